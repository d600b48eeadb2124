//! Where the key comes from, and how little of it stays in memory.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use hmask::mask::MAX_KEY_BYTES;
use hmask::{Error, ErrorKind, Key, Result};
use zeroize::Zeroizing;

use super::args::KeyArgs;
use super::environ;
use super::print::Printer;

/// The default variable that holds the key.
pub(super) const KEY_VARIABLE: &str = "HMASK_KEY";
/// The variable that names a file with the key.
pub(super) const KEY_FILE_VARIABLE: &str = "HMASK_KEY_FILE";
/// The variable that holds the access token of the endpoint.
pub(super) const TOKEN_VARIABLE: &str = "OPENAI_API_KEY";
/// The variable that holds the access key of Azure's resource.
pub(super) const AZURE_TOKEN_VARIABLE: &str = "AZURE_OPENAI_API_KEY";
/// How variables begin that say how one gets into an object store, and words in the names of those that hold a secret.
const STORES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];
const SECRET_WORDS: [&str; 8] = ["SECRET", "TOKEN", "KEY", "SAS", "PASSWORD", "CONNECTION_STRING", "CREDENTIAL", "BEARER"];
/// Such words in the names of those that hold none: ids, and paths of files.
const PLAIN_WORDS: [&str; 4] = ["_ID", "_FILE", "_URI", "GOOGLE_APPLICATION_CREDENTIALS"];
/// Bytes of a generated key before they are written as hex digits.
const GENERATED: usize = 32;

/// The key while it is needed: its memory is not swapped out where the system allows, and wiped when dropped.
pub(super) struct HeldKey {
    key: Key,
    _lock: Option<region::LockGuard>,
}

impl HeldKey {
    /// The key.
    pub(super) fn key(&self) -> &Key {
        &self.key
    }
}

/// Prints 64 hex digits from the system's generator.
pub(super) fn keygen() -> Result<ExitCode> {
    let mut bytes = Zeroizing::new([0u8; GENERATED]);
    getrandom::fill(&mut *bytes).map_err(|e| Error::io("the system gives no random bytes", std::io::Error::other(e)))?;
    let mut line = Zeroizing::new([b'\n'; 2 * GENERATED + 1]);
    for (byte, pair) in bytes.iter().zip(line.as_chunks_mut::<2>().0) {
        *pair = [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).map_or(b'0', |c| c as u8));
    }
    std::io::stdout().write_all(&*line).map_err(|e| Error::io("cannot write", e))?;
    Ok(ExitCode::SUCCESS)
}

/// Reads the key.
///
/// # Errors
/// None, two, or one that is refused.
pub(super) fn read(args: &KeyArgs, printer: &Printer) -> Result<HeldKey> {
    let bytes = match args {
        KeyArgs { key_file: Some(path), .. } => from_file(path)?,
        KeyArgs { key_fd: Some(fd), .. } => from_descriptor(*fd)?,
        KeyArgs { key_command: Some(command), .. } => from_command(command, args)?,
        KeyArgs { key_env: Some(name), .. } => {
            from_variable(name).ok_or_else(|| no_key("the variable that --key-env names is not set"))?
        }
        _ => from_default_variables()?,
    };
    let key = Key::from_zeroizing(bytes).map_err(|e| e.hint("export HMASK_KEY=$(hmask keygen)"))?;
    let (start, length) = key.memory();
    let lock = region::lock(start, length).ok();
    if lock.is_none() {
        printer.warn("the key's memory cannot be locked, so it could be swapped out");
    }
    Ok(HeldKey { key, _lock: lock })
}

fn no_key(why: &str) -> Error {
    Error::new(ErrorKind::Key(format!("no key: {why}"))).hint("export HMASK_KEY=$(hmask keygen)")
}

fn from_default_variables() -> Result<Zeroizing<Vec<u8>>> {
    match (from_variable(KEY_VARIABLE), std::env::var_os(KEY_FILE_VARIABLE)) {
        (Some(_), Some(_)) => Err(Error::new(ErrorKind::Key(format!("both {KEY_VARIABLE} and {KEY_FILE_VARIABLE} are set")))
            .hint(format!("--key-env {KEY_VARIABLE}"))
            .hint(format!("--key-file \"${KEY_FILE_VARIABLE}\""))),
        (Some(bytes), None) => Ok(bytes),
        (None, Some(path)) => from_file(Path::new(&path)),
        (None, None) => Err(no_key(&format!("{KEY_VARIABLE} is not set"))),
    }
}

fn from_variable(name: &str) -> Option<Zeroizing<Vec<u8>>> {
    let value = environ::secret(name);
    environ::forget(name);
    value
}

fn from_file(path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    let failed = |e| Error::new(ErrorKind::Key(format!("cannot read the key file {}: {e}", path.display())));
    let mut file = File::open(path).map_err(failed)?;
    read_line(&mut file).map_err(failed)
}

fn from_descriptor(number: u32) -> Result<Zeroizing<Vec<u8>>> {
    let failed = |e| Error::new(ErrorKind::Key(format!("cannot read the key from descriptor {number}: {e}")));
    let mut file = File::open(format!("/dev/fd/{number}")).map_err(failed)?;
    read_line(&mut file).map_err(failed)
}

fn from_command(command: &str, args: &KeyArgs) -> Result<Zeroizing<Vec<u8>>> {
    let failed = |why: String| Error::new(ErrorKind::Key(format!("the key command {why}")));
    let mut command_line = Command::new("sh");
    let asked = without_secrets(command_line.arg("-c").arg(command), args.key_env.as_deref());
    // Who keeps keys is often asked with the same credentials as who keeps objects; they are overwritten in our own environment.
    for name in store_secrets().into_iter().filter(|name| name != AZURE_TOKEN_VARIABLE && Some(name) != args.key_env.as_ref()) {
        if let Some(value) = environ::secret_text(&name) {
            asked.env(name, value.as_str());
        }
    }
    let mut child = asked.stdout(Stdio::piped()).spawn().map_err(|e| failed(format!("cannot be started: {e}")))?;
    let line = child.stdout.take().map_or_else(|| Ok(Zeroizing::default()), |mut out| read_line(&mut out));
    let status = child.wait().map_err(|e| failed(format!("cannot be waited for: {e}")))?;
    if !status.success() {
        return Err(failed(format!("failed: {status}")));
    }
    line.map_err(|e| failed(format!("gives nothing that can be read: {e}")))
}

/// Names of the variables in the environment that let one into an object store.
pub(super) fn store_secrets() -> Vec<String> {
    let has = |name: &str, words: &[&str]| words.iter().any(|word| name.contains(word));
    let is_secret = |name: &String| {
        STORES.iter().any(|store| name.starts_with(store))
            && has(name, &SECRET_WORDS)
            && !PLAIN_WORDS.iter().any(|w| name.ends_with(w))
    };
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(is_secret).collect()
}

/// Takes the secrets out of the environment of a child.
pub(super) fn without_secrets<'c>(command: &'c mut Command, key_env: Option<&str>) -> &'c mut Command {
    for name in [Some(KEY_VARIABLE), Some(TOKEN_VARIABLE), Some(AZURE_TOKEN_VARIABLE), key_env].into_iter().flatten() {
        command.env_remove(OsStr::new(name));
    }
    command
}

/// All bytes but one final newline, in a buffer that never moves, so that no copy is left where it was.
fn read_line(input: &mut impl Read) -> std::io::Result<Zeroizing<Vec<u8>>> {
    // One byte more than a key may have, and two for the newline, so that too much is seen as such.
    let mut buffer = Zeroizing::new(vec![0; MAX_KEY_BYTES + 3]);
    let mut length = 0;
    loop {
        match input.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(n) => length += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    let bytes = &buffer[..length];
    let line = bytes.strip_suffix(b"\r\n").or_else(|| bytes.strip_suffix(b"\n")).unwrap_or(bytes);
    Ok(Zeroizing::new(line.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_final_newline_is_dropped() {
        for (text, want) in [("k\n", "k"), ("k\r\n", "k"), ("k\n\n", "k\n"), ("k", "k"), (" k \n", " k "), ("", "")] {
            assert_eq!(read_line(&mut text.as_bytes()).unwrap().as_slice(), want.as_bytes());
        }
        let long = vec![b'x'; MAX_KEY_BYTES + 100];
        assert!(Key::from_zeroizing(read_line(&mut long.as_slice()).unwrap()).is_err());
    }
}
