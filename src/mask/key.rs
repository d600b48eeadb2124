//! The key: a few bytes that are wiped, never printed, never copied.

use std::fmt;

use zeroize::Zeroizing;

use super::hmac::{KeyState, Tag, tags};
use super::pseudonym::hex;
use crate::error::{Error, ErrorKind, Result};

/// The least length of a key in bytes.
pub const MIN_KEY_BYTES: usize = 32;
/// The greatest length of a key in bytes.
pub const MAX_KEY_BYTES: usize = 65_536;

/// The secret that all pseudonyms of a project hang on.
///
/// Its bytes are wiped when it is dropped. It is neither `Clone` nor printable: `{:?}` shows stars.
///
/// ```
/// let key = hmask::Key::new(b"0123456789abcdef0123456789abcdef".to_vec())?;
/// assert_eq!(format!("{key:?}"), "Key(***)");
/// assert!(hmask::Key::new(b"short".to_vec()).is_err());
/// # Ok::<(), hmask::Error>(())
/// ```
pub struct Key(Zeroizing<Vec<u8>>);

/// What may be printed and stored of a key: the first 8 hex digits of a tag under it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyId([u8; 4]);

impl Key {
    /// Takes the bytes as they are, without decoding.
    ///
    /// # Errors
    /// Fewer than [`MIN_KEY_BYTES`], more than [`MAX_KEY_BYTES`], or all bytes equal. The bytes are wiped then, too.
    pub fn new(bytes: Vec<u8>) -> Result<Self> {
        Self::from_zeroizing(Zeroizing::new(bytes))
    }

    /// As [`Key::new`], for bytes that are already held in a wiping buffer.
    ///
    /// # Errors
    /// As [`Key::new`].
    pub fn from_zeroizing(bytes: Zeroizing<Vec<u8>>) -> Result<Self> {
        let refuse = |why: String| Err(Error::new(ErrorKind::Key(why)));
        if bytes.len() < MIN_KEY_BYTES {
            return refuse(format!("the key has {} bytes, at least {MIN_KEY_BYTES} are needed", bytes.len()));
        }
        if bytes.len() > MAX_KEY_BYTES {
            return refuse(format!("the key is longer than {MAX_KEY_BYTES} bytes"));
        }
        if bytes.iter().all(|b| *b == bytes[0]) {
            return refuse("all bytes of the key are equal".into());
        }
        Ok(Self(bytes))
    }

    /// The id of this key, by which a manifest or a colleague can name it.
    pub fn id(&self) -> KeyId {
        let mut tag = [Tag::default()];
        tags(&KeyState::new(&self.0), &[b"hmask/v1/key-id"], &mut tag);
        let [a, b, c, d, ..] = tag[0];
        KeyId([a, b, c, d])
    }

    /// The key's bytes. Each caller keys an HMAC with them and lets go of them.
    pub(super) fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Where the bytes lie, so that the caller can lock that memory.
    #[doc(hidden)]
    pub fn memory(&self) -> (*const u8, usize) {
        (self.0.as_ptr(), self.0.len())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(***)")
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_that_of_the_specification() {
        let key = Key::new("0123456789abcdef".repeat(4).into_bytes()).unwrap();
        assert_eq!(key.id().to_string(), "0f1742ee");
    }

    #[test]
    fn refusals_and_prints_show_no_byte() {
        for bad in [&b""[..], b"SECRETSECRETSECRETSECRETSECRET1", &[b'Z'; 64], &vec![7; MAX_KEY_BYTES + 1]] {
            let error = Key::new(bad.to_vec()).unwrap_err();
            assert!(error.is_usage());
            for text in [format!("{error}"), format!("{error:?}")] {
                assert!(!text.contains("SECRET") && !text.contains("ZZZ"), "{text}");
            }
        }
        let key = Key::new(b"SECRETSECRETSECRETSECRETSECRETSECRET".to_vec()).unwrap();
        assert_eq!(format!("{key:?}"), "Key(***)");
    }
}
