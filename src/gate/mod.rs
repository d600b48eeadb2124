//! What must hold before a file leaves.

use std::fs::File;
use std::io::{Read, Seek};

use sha2::{Digest, Sha256};

use crate::error::{Error, ErrorKind, Result};
use crate::mask::hex;

/// Bytes that the Files API takes (`OpenAI`, createFile).
const MAX_BYTES: u64 = 512 << 20;

/// A finished file that may leave: only [`Cleared::check`] makes one, and nothing else can be uploaded.
///
/// It holds the open file, not its name, so that what is sent is what was checked.
#[derive(Debug)]
pub struct Cleared {
    file: File,
    bytes: u64,
    sha256: String,
}

impl Cleared {
    /// Looks at a finished file, which is read once.
    ///
    /// # Errors
    /// An empty file, one beyond 512 MiB, or one that cannot be read.
    pub fn check(mut file: File) -> Result<Self> {
        let failed = |e| Error::io("cannot read the masked file", e);
        file.rewind().map_err(failed)?;
        let (bytes, sha256) = fingerprint(&mut file).map_err(failed)?;
        let refuse = |why: String| Err(Error::new(ErrorKind::Gate(why)));
        if bytes == 0 {
            return refuse("the masked file is empty, so there is nothing to ask about".into());
        }
        if bytes > MAX_BYTES {
            return refuse(format!("the masked file has {bytes} bytes, more than the {MAX_BYTES} that can be lent"));
        }
        Ok(Self { file, bytes, sha256 })
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its SHA-256 in hex digits.
    pub fn sha256(&self) -> String {
        self.sha256.clone()
    }

    /// The file, to be read from its start.
    ///
    /// # Errors
    /// Those of the system.
    pub fn reader(&self) -> Result<File> {
        let failed = |e| Error::io("cannot read the masked file", e);
        let mut file = self.file.try_clone().map_err(failed)?;
        file.rewind().map_err(failed)?;
        Ok(file)
    }
}

/// Length in bytes and SHA-256 in hex digits of all that can be read.
///
/// # Errors
/// Those of the reader.
pub fn fingerprint(input: &mut impl Read) -> std::io::Result<(u64, String)> {
    let (mut hash, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 16]);
    loop {
        match input.read(&mut buffer)? {
            0 => break,
            n => {
                hash.update(&buffer[..n]);
                bytes += n as u64;
            }
        }
    }
    Ok((bytes, hex(&hash.finalize())))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_is_known_by_its_hash_and_an_empty_one_stays() {
        let mut file = tempfile::tempfile().unwrap();
        assert!(matches!(Cleared::check(file.try_clone().unwrap()).unwrap_err().kind(), ErrorKind::Gate(_)));
        file.write_all(b"abc").unwrap();
        let cleared = Cleared::check(file).unwrap();
        // FIPS 180-4, example "abc".
        assert_eq!(cleared.sha256(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        for _ in 0..2 {
            let mut text = String::new();
            cleared.reader().unwrap().read_to_string(&mut text).unwrap();
            assert_eq!((text.as_str(), cleared.bytes()), ("abc", 3));
        }
    }
}
