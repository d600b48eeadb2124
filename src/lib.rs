//! hmask pseudonymises a table with keyed HMAC-SHA256 before it leaves the house, and lends it for as short a time as possible.
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
pub use policy::{Columns, Missing};
