//! A disk that fails at each call in turn: no output, nothing left, and an exit code that says so. The calls are counted and broken by a
//! library that is loaded before libc's; without a C compiler the tests are skipped.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use super::env::{Place, fixture};
use super::mask::PERSONAL;
use super::server::{Server, rules};
use super::sweep::journals;

/// Fails the call of number `DISK_FAIL_AT` on regular files with `DISK_ERRNO` (for EINTR once, else from then on), and writes to
/// `DISK_COUNT` how many there were.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
static atomic_long calls;
static long at = -1;
static int code;
static char count[4096];
__attribute__((constructor)) static void begin(void) {
    const char *a = getenv("DISK_FAIL_AT"), *e = getenv("DISK_ERRNO"), *c = getenv("DISK_COUNT");
    if (a) at = atol(a);
    if (e) code = atoi(e);
    if (c) strncpy(count, c, sizeof count - 1);
}
__attribute__((destructor)) static void end(void) {
    if (!count[0]) return;
    FILE *f = fopen(count, "w");
    if (f) { fprintf(f, "%ld", atomic_load(&calls)); fclose(f); }
}
static int fails(void) {
    long n = atomic_fetch_add(&calls, 1) + 1;
    if (code == EINTR ? n == at : at > 0 && n >= at) { errno = code; return 1; }
    return 0;
}
static int regular(int fd) { struct stat s; return fstat(fd, &s) == 0 && S_ISREG(s.st_mode); }
#define NEXT(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))
ssize_t write(int fd, const void *b, size_t n) { return regular(fd) && fails() ? -1 : NEXT(write)(fd, b, n); }
ssize_t writev(int fd, const struct iovec *v, int n) { return regular(fd) && fails() ? -1 : NEXT(writev)(fd, v, n); }
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t o) { return regular(fd) && fails() ? -1 : NEXT(pwrite64)(fd, b, n, o); }
int fsync(int fd) { return regular(fd) && fails() ? -1 : NEXT(fsync)(fd); }
int fdatasync(int fd) { return regular(fd) && fails() ? -1 : NEXT(fdatasync)(fd); }
int rename(const char *a, const char *b) { return code != EINTR && fails() ? -1 : NEXT(rename)(a, b); }
int linkat(int x, const char *a, int y, const char *b, int f) { return code != EINTR && fails() ? -1 : NEXT(linkat)(x, a, y, b, f); }
static int makes(int flags) { return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE; }
int open64(const char *p, int flags, ...) {
    va_list l; va_start(l, flags); int mode = va_arg(l, int); va_end(l);
    return makes(flags) && fails() ? -1 : NEXT(open64)(p, flags, mode);
}
int open(const char *p, int flags, ...) {
    va_list l; va_start(l, flags); int mode = va_arg(l, int); va_end(l);
    return makes(flags) && fails() ? -1 : NEXT(open)(p, flags, mode);
}
"#;

const ENOSPC: i32 = 28;
const EIO: i32 = 5;
const EINTR: i32 = 4;

/// The library; none without a compiler.
#[expect(clippy::print_stderr, reason = "a test that cannot be made says so")]
fn shim() -> Option<&'static PathBuf> {
    static SHIM_PATH: OnceLock<Option<PathBuf>> = OnceLock::new();
    let made = || {
        let folder = tempfile::tempdir().unwrap().keep();
        let (source, library) = (folder.join("disk.c"), folder.join("disk.so"));
        fs::write(&source, SHIM).unwrap();
        let done =
            Command::new("cc").args(["-shared", "-fPIC", "-O1", "-w", "-o"]).arg(&library).arg(&source).arg("-ldl").status();
        let made = done.is_ok_and(|status| status.success()).then_some(library);
        if made.is_none() {
            eprintln!("skipped: no C compiler");
        }
        made
    };
    SHIM_PATH.get_or_init(made).as_ref()
}

/// Runs it with each call failing in turn. `check` looks at the place after a run; the number of calls, or none without a compiler.
fn at_each_call(name: &str, place: impl Fn() -> Place, args: &[&str], check: impl Fn(&Place, i32, &str)) -> Option<usize> {
    let shim = shim()?;
    let place = || place().set("LD_PRELOAD", shim.to_str().unwrap());
    let counted = place();
    let file = counted.path("count").display().to_string();
    let counted = counted.set("DISK_COUNT", &file);
    counted.run(args).ok();
    let calls: usize = fs::read_to_string(file).unwrap().parse().unwrap();
    for errno in [ENOSPC, EIO, EINTR] {
        for at in 1..=calls {
            let place = place().set("DISK_FAIL_AT", &at.to_string()).set("DISK_ERRNO", &errno.to_string());
            let ran = place.run(args);
            let case = format!("{name}: call {at} of {calls}, error {errno}: {}", ran.err);
            assert!(ran.code != 101 && ran.code >= 0, "{case}");
            check(&place.unset("LD_PRELOAD"), if errno == EINTR { EINTR } else { ran.code }, &case);
            if errno == EINTR {
                assert_eq!(ran.code, 0, "{case}");
            }
        }
    }
    Some(calls)
}

#[test]
#[expect(clippy::print_stderr, reason = "how many there were is the point")]
fn a_table_that_cannot_be_written_whole_is_not_there() {
    let rows: String = (0..20_000).map(|n| format!("Nom {n},{n}\n")).collect();
    for (name, table) in
        [("csv", format!("nom,n\n{rows}").into_bytes()), ("parquet", fs::read(fixture("clients.parquet")).unwrap())]
    {
        let (file, column) = (format!("t.{name}"), "nom");
        let place = || {
            let place = Place::new();
            place.write(&file, &table);
            place
        };
        let out = format!("o.{name}");
        let args = ["mask", &file, "-c", column, "-o", &out, "--manifest", "m.json", "--report", "r.html"];
        let calls = at_each_call(name, place, &args, |place, code, case| {
            let mut names = place.names();
            names.retain(|n| n != &file && n != "count");
            assert!(code != 0, "{case}: it was not noticed");
            if code == EINTR {
                assert_eq!(names, ["m.json", &out, "r.html"], "{case}");
            } else {
                // What is there is whole: the output comes before its proof.
                assert!(!names.contains(&"m.json".into()) || names.contains(&out), "{case}: {names:?}");
                assert!(names.iter().all(|n| [out.as_str(), "m.json", "r.html"].contains(&n.as_str())), "{case}: {names:?}");
                if names.contains(&out) {
                    assert!(case.contains(&out), "{case}: it does not say that the table is there");
                }
            }
            assert_eq!(place.temporary(), 0, "{case}");
        });
        let Some(calls) = calls else { return };
        assert!(calls >= 8, "{name}: {calls} calls");
        eprintln!("{name}: {} faults of the disk survived", calls * 3);
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "how many there were is the point")]
fn a_loan_whose_journal_cannot_be_written_leaves_nothing_once_swept() {
    let server = Server::start(rules([]));
    let url = server.url();
    let file = fixture("clients.csv").display().to_string();
    let args = [
        "ask",
        &file,
        "-c",
        PERSONAL,
        "SELECT COUNT(*) AS n FROM data",
        "--to",
        &url,
        "--delete-for=1",
        "--save-dir",
        "out",
        "--manifest",
        "m.json",
    ];
    let calls = at_each_call("loan", Place::with_token, &args, |place, code, case| {
        assert!(code != 0 || place.path("m.json").exists(), "{case}");
        assert_eq!((place.temporary(), server.live()), (0, 0), "{case}");
        place.run(&["sweep"]).ok();
        assert_eq!((server.live(), journals(place)), (0, vec![]), "{case}");
    });
    let Some(calls) = calls else { return };
    assert!(calls >= 20, "{calls} calls");
    eprintln!("loan: {} faults of the disk survived", calls * 3);
}
