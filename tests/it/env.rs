//! A hermetic place to run hmask in: a fresh folder, a cleared environment, a fixed key.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The key of docs/spec.md.
pub const KEY: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
/// An access token that must not be seen anywhere.
pub const TOKEN: &str = "sk-canary-token-4242";

/// A folder that goes with it, and nothing else.
pub struct Place {
    dir: tempfile::TempDir,
    vars: BTreeMap<String, String>,
}

/// What a run came to.
pub struct Ran {
    pub code: i32,
    pub out: Vec<u8>,
    pub err: String,
}

impl Place {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), vars: BTreeMap::from([("HMASK_KEY".into(), KEY.into())]) }
    }

    /// With the token of the servers of these tests.
    pub fn with_token() -> Self {
        Self::new().set("OPENAI_API_KEY", TOKEN)
    }

    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.vars.insert(name.into(), value.into());
        self
    }

    pub fn unset(mut self, name: &str) -> Self {
        self.vars.remove(name);
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Names of all files, hidden ones too, without the folder for temporary files.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(self.dir.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|n| n != "tmp" && n != "home");
        names.sort();
        names
    }

    /// What lies in the folder for temporary files.
    pub fn temporary(&self) -> usize {
        fs::read_dir(self.path("tmp")).map_or(0, Iterator::count)
    }

    pub fn command(&self, args: &[&str]) -> Command {
        for folder in ["tmp", "home"] {
            fs::create_dir_all(self.path(folder)).unwrap();
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_hmask"));
        command.args(args).current_dir(self.dir.path()).env_clear().envs(&self.vars);
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("TMPDIR", self.path("tmp")).env("HOME", self.path("home"));
        command.stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(&self.command(args).output().unwrap())
    }

    pub fn run_with_input(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let feeder = std::thread::spawn(move || {
            // A run that refuses its input stops reading.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        feeder.join().unwrap();
        Ran::of(&output)
    }
}

impl Ran {
    pub fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: output.stdout.clone(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{}", self.err);
        self
    }

    /// It failed with this code, and the first line on stderr says so in hmask's form.
    #[track_caller]
    pub fn fails(self, code: i32, says: &str) -> Self {
        assert_eq!(self.code, code, "{}", self.err);
        assert!(self.err.starts_with("hmask: ") && self.err.contains(says), "{:?} is not in: {}", says, self.err);
        self
    }

    /// It failed with this code; what it said.
    #[track_caller]
    pub fn fails_at(self, code: i32) -> String {
        assert_eq!(self.code, code, "{}", self.err);
        self.err
    }

    /// The arguments were wrong, and clap says how.
    #[track_caller]
    pub fn fails_usage(self) {
        assert_eq!(self.code, 2, "{}", self.err);
        assert!(self.err.contains("Usage: hmask"), "{}", self.err);
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.out.clone()).unwrap()
    }
}

/// Whether the part of a page between `<!-- name -->` and `<!-- end -->` is this text; with `HMASK_BLESS` it is made so.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "to write the page anew")]
pub fn blessed(page: &str, name: &str, want: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let text = fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once(&format!("<!-- {name} -->\n")).unwrap();
    let (is, tail) = rest.split_once("<!-- end -->").unwrap();
    if std::env::var_os("HMASK_BLESS").is_some() {
        fs::write(&path, format!("{head}<!-- {name} -->\n{want}<!-- end -->{tail}")).unwrap();
        return;
    }
    assert!(is == want, "{page} is not what happens: HMASK_BLESS=1 cargo test writes it anew; it would say:\n{want}");
}

/// A file of `fixtures/`.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}
