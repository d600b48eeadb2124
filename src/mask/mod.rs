//! Bytes in, bytes out: key, scope, canonical form, pseudonym, batch HMAC. No files, environment, clock or threads.

pub mod canonical;
mod hmac;
mod key;
mod normal;
mod pseudonym;
mod repeats;
mod scope;
mod treatment;

pub use hmac::{Kernel, KeyState, Tag};
pub use key::{Key, KeyId, MAX_KEY_BYTES, MIN_KEY_BYTES};
pub use normal::{Normalisation, UNICODE};
pub(crate) use pseudonym::hex;
pub use pseudonym::{Form, Observer, Pseudonymiser, Witness};
pub use scope::Scope;
pub(crate) use treatment::sha256;
pub use treatment::{DateForm, Shift, Texts, Treatment, Unfit};
