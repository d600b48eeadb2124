//! The manifest: what was masked how, what was lent to whom, and that it is gone. No value, no secret, no path but those given.

use std::io::Write;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::mask::Form;
use crate::output::Staged;
use crate::table::TableReport;

/// Version of the manifest's form.
pub const VERSION: u32 = 1;

/// A manifest. Times are RFC 3339 in UTC.
#[derive(Debug, Serialize)]
pub struct Manifest {
    /// [`VERSION`].
    pub version: u32,
    /// The run's `UUIDv7`.
    pub task: String,
    /// As `hmask --version` says.
    pub tool: String,
    /// When the run began.
    pub started: String,
    /// When it ended.
    pub ended: String,
    /// The table as it was.
    pub input: FileFacts,
    /// The table as it was sent.
    pub output: FileFacts,
    /// Data records or rows.
    pub rows: u64,
    /// The masked columns.
    pub columns: Vec<ColumnFacts>,
    /// First 8 hex digits of a tag under the key.
    pub key_id: String,
    /// Where a value has the same pseudonym.
    pub scope: String,
    /// What was looked for before anything was sent.
    pub gate: GateFacts,
    /// What became of the loan.
    pub loan: LoanFacts,
}

/// The leak check, which found nothing but what was accepted.
#[derive(Debug, Serialize)]
pub struct GateFacts {
    /// Distinct original values that were looked for.
    pub originals: u64,
    /// Distinct original values that are too short to be looked for.
    pub too_short: u64,
    /// Distinct original values that stand for none.
    pub placeholders: u64,
    /// What was found and sent all the same, as the user wished.
    pub accepted: Vec<String>,
}

/// What identifies a file.
#[derive(Clone, Debug, Serialize)]
pub struct FileFacts {
    /// As it was named on the command line, if it was.
    pub name: Option<String>,
    /// Its length.
    pub bytes: u64,
    /// In hex digits.
    pub sha256: String,
}

/// What became of a column.
#[derive(Debug, Serialize)]
pub struct ColumnFacts {
    /// As the header or schema has it.
    pub name: String,
    /// `pseudonym`.
    pub treatment: &'static str,
    /// Hex digits of a pseudonym.
    pub digits: usize,
    /// Values that became pseudonyms.
    pub masked: u64,
    /// Nulls and empty values, which stayed.
    pub missing: u64,
    /// The chance that two values share a pseudonym, if all values were distinct: an upper bound.
    pub collision_chance: f64,
}

/// What was lent, and its end.
#[derive(Debug, Serialize)]
pub struct LoanFacts {
    /// Scheme, host and port.
    pub recipient: String,
    /// The neutral name over there.
    pub remote_name: String,
    /// Seconds.
    pub expiry_asked: u64,
    /// Seconds, if the upload was answered.
    pub expiry_granted: Option<u64>,
    /// Whether there was an answer.
    pub answered: bool,
    /// Deleted, looked for afterwards and not found.
    pub confirmed_gone: Vec<String>,
    /// What may still be there.
    pub may_be_live: Vec<String>,
    /// What no deletion of ours reaches.
    pub not_deletable: &'static str,
}

/// The provider's own records (`OpenAI`, "Data controls in the platform").
pub const NOT_DELETABLE: &str = "the question, the column names and what the answer quotes may stay in the provider's abuse monitoring logs for up to 30 days";

impl Manifest {
    /// Writes the manifest as JSON, and gives the file its name.
    ///
    /// # Errors
    /// Those of the disk, or a file that came to be in the meantime.
    pub fn write(&self, mut staged: Staged) -> Result<()> {
        let failed = |e: std::io::Error| Error::io("cannot write the manifest", e);
        let mut text = serde_json::to_vec_pretty(self).map_err(|e| failed(e.into()))?;
        text.push(b'\n');
        staged.write_all(&text).map_err(failed)?;
        staged.persist()
    }
}

/// The columns of a report.
pub fn columns(report: &TableReport, form: &Form) -> Vec<ColumnFacts> {
    let facts = report.columns.iter().map(|c| ColumnFacts {
        name: c.name.clone(),
        treatment: "pseudonym",
        digits: form.digits(),
        masked: c.masked,
        missing: c.missing,
        collision_chance: form.collision_chance(c.masked),
    });
    facts.collect()
}
