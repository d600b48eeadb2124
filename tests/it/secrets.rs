//! Neither key, token nor original in anything that a run writes, prints, or leaves in memory, however it ends.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use super::env::{KEY, Place, TOKEN, fixture};
use super::mask::{ORIGINALS, PERSONAL};
use super::server::{Fault, Server, rules};

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

/// What of a key must not be found: itself, its padded blocks, and what hashing needs of it.
fn forms_of_the_key() -> Vec<(&'static str, Vec<u8>)> {
    const H0: [u32; 8] = [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];
    let mut forms = vec![("the key", KEY.as_bytes().to_vec()), ("the token", TOKEN.as_bytes().to_vec())];
    for (name, state, pad) in [("the inner block", "the inner state", 0x36), ("the outer block", "the outer state", 0x5c)]
        .map(|(block, state, pad)| (block, state, pad))
    {
        let block: [u8; 64] = std::array::from_fn(|i| KEY.as_bytes()[i] ^ pad);
        let mut words = H0;
        sha2::block_api::compress256(&mut words, &[block]);
        forms.push((name, block.to_vec()));
        forms.push((state, words.iter().flat_map(|w| w.to_le_bytes()).collect()));
        forms.push((state, words.iter().flat_map(|w| w.to_be_bytes()).collect()));
    }
    forms
}

/// All memory of a process that can be read, a part at a time; none if it is closed to us.
fn memory(pid: u32, mut each: impl FnMut(&[u8])) -> Option<usize> {
    use std::os::unix::fs::FileExt;
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let mem = fs::File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut read = 0;
    for line in maps.lines().filter(|l| l.split(' ').nth(1).is_some_and(|p| p.starts_with('r'))) {
        let range = line.split(' ').next().unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let [start, end] = [start, end].map(|n| u64::from_str_radix(n, 16).unwrap());
        let mut bytes = vec![0; (end - start) as usize];
        if !line.contains("[v") && mem.read_exact_at(&mut bytes, start).is_ok() {
            read += bytes.len();
            each(&bytes);
        }
    }
    Some(read)
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that cannot look says so")]
fn while_a_table_is_lent_nothing_of_the_key_is_in_memory_or_environment() {
    use std::io::{BufRead, BufReader};
    let server = Server::start(rules([]));
    let place = Place::with_token();
    let rows: String = (0..50_000).map(|i| format!("{i},c{i}@example.fr\n")).collect();
    place.write("t.csv", format!("id,mail\n{rows}"));
    let args = ["lend", "t.csv", "-c", "id,mail", "--to", &server.url(), "--hold", "60s"];
    let mut child = place.command(&args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("file_id"), "{line}");
    let pid = child.id();
    let environ = fs::read(format!("/proc/{pid}/environ"));
    let forms = forms_of_the_key();
    let said: serde_json::Value = serde_json::from_str(&line).unwrap();
    let id = said["file_id"].as_str().unwrap().to_owned();
    let (mut found, mut sees) = (Vec::new(), false);
    let read = memory(pid, |bytes| {
        sees |= memchr::memmem::find(bytes, id.as_bytes()).is_some();
        for (name, form) in &forms {
            // The token is needed until all is deleted.
            if *name != "the token" && memchr::memmem::find(bytes, form).is_some() {
                found.push(*name);
            }
        }
    });
    let image = std::process::Command::new("gcore").args(["-o", "core", &pid.to_string()]).current_dir(place.path("")).output();
    let core = fs::read(place.path(&format!("core.{pid}"))).ok();
    drop(child.stdin.take().map(|mut stdin| stdin.write_all(b"\n")));
    assert!(child.wait().unwrap().success());
    match environ {
        Ok(environ) => {
            let text = String::from_utf8_lossy(&environ).into_owned();
            assert!(text.contains("HMASK_KEY=") && !text.contains(&KEY[..16]) && !text.contains(TOKEN), "{text}");
        }
        Err(e) => eprintln!("skipped: the environment cannot be read ({e})"),
    }
    match read {
        Some(read) if read > 1 << 20 => assert!(sees && found.is_empty(), "in memory: {found:?}"),
        _ => eprintln!("skipped: the memory cannot be read"),
    }
    match (image, core) {
        (Ok(_), Some(core)) => {
            let names = forms.iter().filter(|(name, form)| *name != "the token" && memchr::memmem::find(&core, form).is_some());
            assert!(memchr::memmem::find(&core, id.as_bytes()).is_some(), "the image is none");
            assert_eq!(names.map(|(name, _)| *name).collect::<Vec<_>>(), Vec::<&str>::new(), "in a core image");
        }
        _ => eprintln!("skipped: no gcore, or it cannot attach"),
    }
}

/// What strace saw: system calls in the order in which they ended, strings in clear.
fn calls(log: &str) -> Vec<String> {
    let clear = |line: &str| {
        let mut parts = line.split("\\x");
        let mut bytes = parts.next().unwrap().as_bytes().to_vec();
        for part in parts {
            bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
            bytes.extend_from_slice(&part.as_bytes()[2..]);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let (mut begun, mut calls) = (std::collections::HashMap::new(), Vec::new());
    for line in log.lines() {
        let (pid, call) = line.split_once(' ').unwrap();
        let call = call.trim_start();
        if let Some(call) = call.strip_suffix(" <unfinished ...>") {
            begun.insert(pid, clear(call));
        } else if call.starts_with("<...") {
            calls.push(format!("{}{}", begun.remove(pid).unwrap_or_default(), clear(call)));
        } else {
            calls.push(clear(call));
        }
    }
    calls
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that cannot look says so")]
fn the_journal_is_on_the_disk_before_each_request_and_the_key_is_in_no_write() {
    let server = Server::start(rules([]));
    let place = Place::with_token();
    let file = fixture("clients.csv");
    let args = ["ask", file.to_str().unwrap(), "-c", PERSONAL, "SELECT COUNT(*) AS n FROM data", "--to", &server.url()];
    let plain = place.command(&args);
    let mut traced = std::process::Command::new("strace");
    let wanted = "trace=write,writev,pwrite64,sendto,sendmsg,connect,fdatasync,fsync,unlink,unlinkat,execve";
    traced
        .args(["-f", "-y", "-xx", "-s", "1000000", "-o", "trace", "-e", wanted])
        .arg(plain.get_program())
        .args(plain.get_args());
    traced.current_dir(place.path("")).env_clear().envs(plain.get_envs().filter_map(|(k, v)| Some((k, v?))));
    let done = traced.stdin(Stdio::null()).output();
    let Ok(log) = fs::read_to_string(place.path("trace")) else {
        eprintln!("skipped: no strace ({done:?})");
        return;
    };
    let done = done.unwrap();
    if !done.status.success() && !log.contains("connect") {
        eprintln!("skipped: strace cannot attach");
        return;
    }
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let (mut written, mut synced, mut requests, mut connected) = (String::new(), String::new(), Vec::new(), false);
    for call in calls(&log) {
        let name = call.split('(').next().unwrap();
        let of_journal = call.contains("/home/.local/state/hmask/");
        match name {
            "execve" => {}
            "fdatasync" if of_journal && call.ends_with("= 0") => synced.clone_from(&written),
            "write" if of_journal => written.clone_from(&call),
            "connect" if call.contains("AF_INET") => {
                connected = true;
                assert_eq!(synced, written, "a line that is not on the disk");
                assert!(!requests.is_empty() || synced.contains("\"intent\""), "a connection before the journal: {call}");
            }
            "unlink" | "unlinkat" if of_journal && call.contains(".jsonl") => requests.push("removed".to_owned()),
            _ => {
                let sent = ["POST ", "GET ", "DELETE "].iter().filter_map(|method| call.find(&format!("{method}/v1/"))).min();
                if let Some(at) = sent {
                    let line = call[at..].split("\r\n").next().unwrap();
                    let route = super::server::route(line);
                    if matches!(route.as_str(), "POST /v1/files" | "POST /v1/containers") {
                        assert!(synced.contains("\"intent\"") && synced == written, "{route} after {synced}");
                    } else {
                        assert_eq!(synced, written, "{route}: a line that is not on the disk");
                    }
                    requests.push(route);
                } else {
                    assert!(!call.contains(TOKEN), "the token is in a write: {name}");
                }
            }
        }
        if name != "execve" {
            assert!(!call.contains(KEY) && !call.contains("\u{1}#Eg"), "the key is in a write: {name}");
        }
    }
    assert!(connected);
    assert_eq!(requests.first().map(String::as_str), Some("POST /v1/files"));
    assert!(requests.contains(&"DELETE /v1/files/*".into()));
    // Looked for, and only then forgotten.
    assert_eq!(requests[requests.len() - 2..], ["GET /v1/files/*", "removed"]);
}
