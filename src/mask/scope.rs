//! Subkeys: HKDF-SHA256 (RFC 5869) of the key for a scope and a column's domain.

use zeroize::Zeroizing;

use super::hmac::{KeyState, Tag, tags};
use super::key::Key;
use crate::error::{Error, Result};

/// The salt of the extraction.
const SALT: &[u8] = b"hmask/v1";

/// How far a pseudonym carries: where the same value has the same token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// In every run: the key itself is used (unless a column has a domain of its own).
    #[default]
    Stable,
    /// In one run only; holds the run's task id.
    Upload(String),
    /// In all that one recipient gets.
    Recipient(String),
    /// In one project.
    Project(String),
}

impl Scope {
    /// Parses `stable`, `upload`, `recipient:NAME` or `project:NAME`; `task` is the run's id.
    ///
    /// # Errors
    /// Another word, or no name.
    pub fn parse(text: &str, task: &str) -> Result<Self> {
        match text.split_once(':') {
            None if text == "stable" => Ok(Self::Stable),
            None if text == "upload" => Ok(Self::Upload(task.to_owned())),
            Some(("recipient", name)) if !name.is_empty() => Ok(Self::Recipient(name.to_owned())),
            Some(("project", name)) if !name.is_empty() => Ok(Self::Project(name.to_owned())),
            _ => Err(Error::usage(format!("the scope {text:?} is none of stable, upload, recipient:NAME, project:NAME"))),
        }
    }

    /// The scope as it enters the derivation, and as a manifest names it.
    pub fn label(&self) -> String {
        match self {
            Self::Stable => "stable".into(),
            Self::Upload(task) => format!("upload:{task}"),
            Self::Recipient(name) => format!("recipient:{name}"),
            Self::Project(name) => format!("project:{name}"),
        }
    }

    /// The state to hash with: that of the key itself, or of its subkey for this scope and domain.
    pub fn key_state(&self, key: &Key, domain: &str) -> KeyState {
        if *self == Self::Stable && domain.is_empty() {
            return KeyState::new(key.expose());
        }
        KeyState::new(&*subkey(key.expose(), &self.label(), domain))
    }
}

/// `HKDF(ikm = key, salt = "hmask/v1", info = lp(scope) ‖ lp(domain), L = 32)`: one block, so one extraction and one expansion.
fn subkey(key: &[u8], scope: &str, domain: &str) -> Zeroizing<Tag> {
    let mut out = Zeroizing::new([Tag::default()]);
    tags(&KeyState::new(SALT), &[key], &mut *out);
    let state = KeyState::new(&out[0]);
    let mut info = Vec::new();
    for part in [scope, domain] {
        info.extend((part.len() as u32).to_be_bytes());
        info.extend(part.as_bytes());
    }
    info.push(1);
    tags(&state, &[&info], &mut *out);
    Zeroizing::new(out[0])
}

#[cfg(test)]
mod tests {
    use hkdf::Hkdf;
    use sha2::Sha256;

    use super::*;

    fn key() -> Key {
        Key::new("0123456789abcdef".repeat(4).into_bytes()).unwrap()
    }

    #[test]
    fn vectors_of_the_specification() {
        for (scope, domain, want) in [
            (Scope::Recipient("acme".into()), "", "a4282bb73ea234bf24ec956554fe0872cf9454374f164f942b8c295c65285497"),
            (Scope::Project("étude".into()), "", "f8b7ef1af66ff8056c716438e66ca4ba1236c2f1f0223f1eac80c73e009abb82"),
            (Scope::Stable, "email", "ca7ecf7ebb7062e67eaa2ac8332e2e4c41464951fec89fb3f195488266d7d59c"),
        ] {
            let got = subkey(key().expose(), &scope.label(), domain);
            assert_eq!(crate::mask::hex(&*got), want);
        }
    }

    #[test]
    fn agrees_with_the_hkdf_crate() {
        for (scope, domain) in [("upload:x", ""), ("", ""), ("recipient:a", "b"), (&"s".repeat(300), &"d".repeat(70))] {
            let (_, hkdf) = Hkdf::<Sha256>::extract(Some(SALT), key().expose());
            let lengths = [scope.len(), domain.len()].map(|n| (n as u32).to_be_bytes());
            let mut want = [0; 32];
            hkdf.expand_multi_info(&[&lengths[0], scope.as_bytes(), &lengths[1], domain.as_bytes()], &mut want).unwrap();
            assert_eq!(*subkey(key().expose(), scope, domain), want);
        }
    }

    #[test]
    fn parse_and_label_are_inverse() {
        for text in ["stable", "recipient:a:b", "project:é"] {
            assert_eq!(Scope::parse(text, "t").unwrap().label(), text);
        }
        assert_eq!(Scope::parse("upload", "t").unwrap().label(), "upload:t");
        for bad in ["", "Stable", "recipient:", "recipient", "upload:x", "team:x"] {
            assert!(Scope::parse(bad, "t").unwrap_err().is_usage(), "{bad}");
        }
    }
}
