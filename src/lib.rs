//! hmask pseudonymises a table with keyed HMAC-SHA256 before it leaves the house, and lends it for as short a time as possible.
//!
//! # What it promises
//!
//! - A pseudonym is `lowercase_hex(HMAC-SHA256(key, canonical(value)))[..16]`, for ever (`docs/spec.md`), so that anybody with the key can
//!   make it again without hmask.
//! - A masked CSV differs from its input in the masked cells only; a masked Parquet file keeps the bytes of every other column chunk.
//! - A table that cannot be read with certainty is refused. No error holds a value of it, a key or an access token.
//! - Nothing is uploaded that has not become a [`gate::Cleared`], and everything that was lent is deleted and looked for again.
//!
//! It does not anonymise: whoever has the key can try values until one fits, and columns that are kept may identify people on their own.
//!
//! # Pseudonyms
//!
//! ```
//! use hmask::{Form, Key, Pseudonymiser, Scope};
//!
//! let key = Key::new("0123456789abcdef".repeat(4).into_bytes())?;
//! let mask = Pseudonymiser::new(&key, &Scope::Stable, "", Form::default());
//! assert_eq!(mask.pseudonym("Zoé Lefèvre".as_bytes()), "3bf2a566b1b9ef4e");
//! # Ok::<(), hmask::Error>(())
//! ```
//!
//! # Tables
//!
//! ```
//! use hmask::table::csv::{self, CsvOptions};
//! use hmask::table::Job;
//! use hmask::{Columns, Form, Key, Pseudonymiser, Rules, Scope};
//!
//! let key = Key::new("0123456789abcdef".repeat(4).into_bytes())?;
//! let mask = Pseudonymiser::new(&key, &Scope::Stable, "", Form::default());
//! let rules = Rules::pseudonyms(Columns::parse("id")?, mask);
//! let job = Job { rules: &rules, workers: 2, progress: &|_| {} };
//! let mut out = Vec::new();
//! csv::mask(&mut "id;city\n007;Nîmes\n".as_bytes(), &mut out, &job, &CsvOptions::default())?;
//! assert_eq!(out, "id;city\n676956ddd7e64da5;Nîmes\n".as_bytes());
//! # Ok::<(), hmask::Error>(())
//! ```

#[cfg(feature = "analyse")]
pub mod analyse;
mod error;
pub mod gate;
pub mod mask;
pub mod output;
pub mod pipeline;
pub mod policy;
pub mod remote;
pub mod report;
pub mod table;

pub use error::{Error, ErrorKind, Position, Result};
pub use mask::{Form, Key, KeyId, Pseudonymiser, Scope};
pub use policy::{Columns, Missing, Policy, Rules};
