//! Signatures of manifests: Ed25519 (RFC 8032), with keys as `openssl genpkey -algorithm ed25519` writes them (RFC 8410).
//!
//! A signature is 64 bytes beside the manifest; `openssl pkeyutl -verify -pubin -inkey PUB.pem -rawin -in MANIFEST -sigfile MANIFEST.sig`
//! verifies it, too.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};
use zeroize::Zeroizing;

use crate::error::{Error, ErrorKind, Result};

/// What signs manifests.
pub struct SigningKey(Ed25519KeyPair);

/// What verifies signatures.
pub struct PublicKey([u8; 32]);

impl SigningKey {
    /// Reads a private key: PKCS #8 in PEM, not encrypted.
    ///
    /// # Errors
    /// A text that is none, or a key of another kind.
    pub fn from_pem(pem: &[u8]) -> Result<Self> {
        let der = Zeroizing::new(der(pem, "PRIVATE KEY")?);
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der);
        pair.map(Self).map_err(|_| refused("it is no Ed25519 key").hint("openssl genpkey -algorithm ed25519 -out key.pem"))
    }

    /// The signature of a manifest.
    pub fn sign(&self, manifest: &[u8]) -> Vec<u8> {
        self.0.sign(manifest).as_ref().to_vec()
    }
}

impl PublicKey {
    /// Reads a public key: `SubjectPublicKeyInfo` in PEM.
    ///
    /// # Errors
    /// A text that is none, or a key of another kind.
    pub fn from_pem(pem: &[u8]) -> Result<Self> {
        /// `AlgorithmIdentifier` of id-Ed25519, and a bit string of 32 bytes (RFC 8410, section 4).
        const HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
        let der = der(pem, "PUBLIC KEY")?;
        let key = der.strip_prefix(&HEAD).and_then(|k| k.try_into().ok());
        key.map(Self).ok_or_else(|| refused("it is no Ed25519 key").hint("openssl pkey -in key.pem -pubout"))
    }

    /// Whether a signature is that of a manifest under this key.
    pub fn verifies(&self, manifest: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.0).verify(manifest, signature).is_ok()
    }
}

fn refused(why: &str) -> Error {
    Error::new(ErrorKind::Key(format!("the key of signatures is refused: {why}")))
}

/// The bytes between the lines of a PEM text with this label.
fn der(pem: &[u8], label: &str) -> Result<Vec<u8>> {
    let none = || refused(&format!("there is no {label} in it"));
    let text = Zeroizing::new(String::from_utf8(pem.to_vec()).map_err(|_| none())?);
    let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
    let body = text.split_once(&begin).and_then(|(_, rest)| rest.split_once(&end)).ok_or_else(none)?.0;
    let body = Zeroizing::new(body.split_ascii_whitespace().collect::<String>());
    BASE64_STANDARD.decode(body.as_bytes()).map_err(|_| none())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with `openssl genpkey -algorithm ed25519`, for these tests alone.
    const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n";
    /// RFC 8032, section 7.1, test 1: the public key of the one above.
    const PUBLIC: &str =
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n";

    #[test]
    fn a_signature_of_rfc_8032() {
        let signature = SigningKey::from_pem(PRIVATE.as_bytes()).unwrap().sign(b"");
        let want = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b";
        assert_eq!(crate::mask::hex(&signature), want);
        let public = PublicKey::from_pem(PUBLIC.as_bytes()).unwrap();
        assert!(public.verifies(b"", &signature));
        assert!(!public.verifies(b"x", &signature) && !public.verifies(b"", &signature[..63]));
    }

    #[test]
    fn other_keys_are_refused_and_not_told() {
        for bad in ["", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", PUBLIC, &PRIVATE[..60]] {
            let Err(error) = SigningKey::from_pem(bad.as_bytes()) else { panic!("{bad}") };
            assert!(!error.to_string().contains("AAAA"), "{error}");
        }
        assert!(PublicKey::from_pem(PRIVATE.as_bytes()).is_err());
    }
}
