//! Neither key, token nor original in anything that a run writes or prints, however it ends.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use super::env::{KEY, Place, TOKEN, fixture};
use super::faults::{Fault, Server, rules};
use super::mask::{ORIGINALS, PERSONAL};

/// All bytes of all files below a folder, pipes left out.
fn everything(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            all.extend(everything(&entry.path()));
        } else if kind.is_file() {
            all.extend(fs::read(entry.path()).unwrap());
        }
    }
    all
}

#[track_caller]
fn assert_clean(bytes: &[u8], originals: bool) {
    let has = |secret: &str| bytes.windows(secret.len()).any(|w| w == secret.as_bytes());
    for secret in [KEY, &KEY[..20], TOKEN] {
        assert!(!has(secret), "{secret:?} was written");
    }
    // Digits stand within ids and hashes by chance: a number counts where it stands alone.
    let alone = |value: &str| {
        let is_word = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
        let mut at = (0..bytes.len()).filter(|i| bytes[*i..].starts_with(value.as_bytes()));
        at.any(|i| !is_word(i.checked_sub(1).and_then(|i| bytes.get(i))) && !is_word(bytes.get(i + value.len())))
    };
    for value in ORIGINALS.iter().filter(|_| originals) {
        let is_number = value.bytes().all(|b| b.is_ascii_digit());
        assert!(!(if is_number { alone(value) } else { has(value) }), "{value:?} was written");
    }
}

#[test]
fn an_abort_in_the_middle_writes_no_key() {
    let place = Place::new();
    let fifo = place.path("in.csv");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // Core dumps are on in the shell, so that only hmask itself can switch them off.
    let hmask = env!("CARGO_BIN_EXE_hmask");
    let shell = place.command(&[]);
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg(format!("ulimit -c unlimited 2>/dev/null; exec {hmask} mask in.csv -c a -o o.csv -v"));
    command.current_dir(place.path("")).env_clear().envs(shell.get_envs().filter_map(|(k, v)| Some((k, v?))));
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    pipe.write_all(&[b"a\n", "x\n".repeat(1_500_000).as_bytes()].concat()).unwrap();
    let process = format!("/proc/{}", child.id());
    let arguments = fs::read(format!("{process}/cmdline")).unwrap_or_default();
    assert!(std::process::Command::new("kill").args(["-ABRT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success());
    assert_clean(&[output.stdout, output.stderr, arguments, everything(&place.path(""))].concat(), false);
    assert_eq!(place.names(), ["in.csv"], "a core or a part of the output is left");
}

#[test]
fn a_whole_loan_writes_and_prints_no_secret_and_no_original() {
    let endings: [Vec<_>; 4] = [
        rules([]),
        rules([("POST /v1/responses", 1, Fault::Status(500))]),
        rules([("DELETE /v1", usize::MAX, Fault::Status(500))]),
        rules([("POST /v1/files", 1, Fault::Answer("{\"error\":{\"message\":\"Incorrect API key provided: sk-canary\"}}"))]),
    ];
    for ending in endings {
        let server = Server::start(ending.clone());
        let place = Place::with_token();
        let file = fixture("clients.csv");
        let args = [
            "ask",
            file.to_str().unwrap(),
            "-c",
            PERSONAL,
            "SELECT * FROM data",
            "--to",
            &server.url(),
            "--save-dir",
            "out",
            "--manifest",
            "m.json",
            "--log-format",
            "json",
            "--verbose",
            "--delete-for",
            "1",
        ];
        let ran = place.run(&args);
        assert_clean(&[ran.out, ran.err.into_bytes(), everything(&place.path(""))].concat(), true);
        assert_clean(
            &server
                .bodies("POST /v1/files")
                .concat()
                .split(|b| *b == b'\n')
                .filter(|l| !l.starts_with(b"authorization"))
                .collect::<Vec<_>>()
                .concat(),
            true,
        );
    }
}

#[test]
fn the_environment_of_a_running_hmask_is_closed_to_others_of_the_same_user() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    let place = Place::new();
    let fifo = place.path("in.csv");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut command = place.command(&["mask", "in.csv", "-c", "a", "-o", "o.csv"]);
    let user = fs::metadata(&fifo).unwrap().uid();
    if user == 0 {
        // The files of a process of root belong to root in any case, so somebody else has to run it.
        let program = place.path("hmask");
        fs::copy(env!("CARGO_BIN_EXE_hmask"), &program).unwrap();
        for path in [place.path(""), fifo.clone(), program.clone()] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        }
        let mut other = std::process::Command::new(program);
        other.args(command.get_args()).current_dir(place.path("")).env_clear();
        other.envs(command.get_envs().filter_map(|(k, v)| Some((k, v?)))).uid(NOBODY).gid(NOBODY);
        command = other;
    }
    let mut child = command.spawn().unwrap();
    // Opened for writing only once it reads, and by then it has closed itself.
    let pipe = fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    let environ = format!("/proc/{}/environ", child.id());
    let owner = fs::metadata(&environ).unwrap().uid();
    assert_eq!(owner, 0, "{environ} belongs to the user");
    drop(pipe);
    assert_eq!(child.wait().unwrap().code(), Some(3));
}
