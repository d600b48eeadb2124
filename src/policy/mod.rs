//! What becomes of which column: `columns` as they are typed, `rules` for a table, `file` as a policy writes them down.

mod columns;
mod file;
mod rules;

pub(crate) use columns::glob;
pub use columns::{Candidate, Columns, LIST_STEP, Missing, Wanted, quote_path};
pub use file::{Gate, NAME, Policy, VERSION};
pub(crate) use rules::not_listed;
pub use rules::{Assigned, Rule, Rules, Unlisted};
