//! The manifest: what was masked how, what was lent to whom, and that it is gone. No value, no secret, no path but those given.

mod page;
pub mod sign;

pub use page::{Lang, render};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::mask::{Treatment, UNICODE};
use crate::policy::Rules;
use crate::table::TableReport;

/// Version of the manifest's form.
pub const VERSION: u32 = 1;

/// A manifest. Times are RFC 3339 in UTC.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// 1.
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
    /// The table as it was sent, or as it was written.
    pub output: FileFacts,
    /// Data records or rows of the output.
    pub rows: u64,
    /// The columns whose values changed.
    pub columns: Vec<ColumnFacts>,
    /// Names of the columns that left the table.
    pub dropped: Vec<String>,
    /// Names of the columns that stayed as they were.
    pub kept: Vec<String>,
    /// Version of Unicode by which texts were normalised.
    pub unicode: String,
    /// First 8 hex digits of a tag under the key.
    pub key_id: String,
    /// Where a value has the same pseudonym.
    pub scope: String,
    /// The condition that rows had to meet to be sent, as it was given.
    #[serde(rename = "where")]
    pub filter: Option<String>,
    /// The policy, if there was one.
    pub policy: Option<PolicyFacts>,
    /// To whom tables are lent, as the policy names them.
    pub recipient: Option<String>,
    /// What for, as the policy says.
    pub purpose: Option<String>,
    /// What was looked for before anything was sent; none where nothing was to be sent.
    pub gate: Option<GateFacts>,
    /// What became of the loan, if there was one.
    pub loan: Option<LoanFacts>,
}

/// The leak check and the risk, which found nothing but what was accepted.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GateFacts {
    /// Distinct original values that were looked for.
    pub originals: u64,
    /// Distinct original values that are too short to be looked for.
    pub too_short: u64,
    /// Distinct original values that stand for none.
    pub placeholders: u64,
    /// What was found and sent all the same, as the user wished.
    pub accepted: Vec<String>,
    /// How well rows hide among others, where thresholds were set.
    pub risk: Option<RiskFacts>,
}

/// How well rows hide among others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RiskFacts {
    /// The columns that identify together.
    pub quasi: Vec<String>,
    /// Rows of the table.
    pub rows: u64,
    /// Groups of rows that are alike in these columns.
    pub groups: u64,
    /// Rows of the least group.
    pub k_min: u64,
    /// Rows that are like no other.
    pub unique_rows: u64,
    /// Rows by the size of their group.
    pub distribution: Vec<Bin>,
    /// A column whose values should differ within each group.
    pub sensitive: Option<String>,
    /// The least number of different values of it in a group.
    pub l_min: Option<u64>,
    /// What had to hold.
    pub thresholds: Thresholds,
}

/// Rows whose groups have `k` to `to` rows, or at least `k` where `to` is null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Bin {
    /// The least size of a group.
    pub k: u64,
    /// The greatest.
    pub to: Option<u64>,
    /// Rows in such groups.
    pub rows: u64,
}

/// Thresholds of a policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    /// The least number of rows that are alike.
    pub min_k: Option<u64>,
    /// The greatest share of rows that are like no other.
    pub max_unique_share: Option<f64>,
    /// The least number of different sensitive values in a group.
    pub min_l: Option<u64>,
}

/// What identifies a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FileFacts {
    /// As it was named on the command line, if it was.
    pub name: Option<String>,
    /// Its length.
    pub bytes: u64,
    /// In hex digits; empty where it was a pipe.
    pub sha256: String,
}

/// A policy that was followed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PolicyFacts {
    /// As it was named, or found.
    pub name: String,
    /// Of its text, in hex digits.
    pub sha256: String,
}

/// What became of a column.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ColumnFacts {
    /// As the header or schema has it.
    pub name: String,
    /// As a policy has it: `pseudonym`, `redact`, `truncate:2`, `year`, `month`, `bucket:10`, `shift:30`.
    pub treatment: String,
    /// What was done to values before they were hashed.
    pub normalise: Vec<String>,
    /// Columns of one domain have the same pseudonym for the same value.
    pub domain: String,
    /// What stands before the digits of a pseudonym.
    pub prefix: String,
    /// Hex digits of a pseudonym.
    pub digits: Option<usize>,
    /// Whether empty values were hashed rather than kept.
    pub hash_empty: bool,
    /// Values that changed.
    pub masked: u64,
    /// Nulls and empty values, which stayed.
    pub missing: u64,
    /// Different values among those that changed: an estimate, within about 2 %.
    pub distinct: Option<u64>,
    /// The chance that two values share a pseudonym; if `distinct` is not known, as if all values were different.
    pub collision_chance: Option<f64>,
}

/// What was lent, and its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LoanFacts {
    /// Scheme, host and port.
    pub recipient: String,
    /// The neutral name over there.
    pub remote_name: String,
    /// Seconds; idle ones, where the table was put into a container alone. None where nothing expires by itself.
    pub expiry_asked: Option<u64>,
    /// Seconds, if the upload was answered.
    pub expiry_granted: Option<u64>,
    /// When the signed address ends by which an object is read, in seconds since 1970; the object itself stays until it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_until: Option<u64>,
    /// Whether there was an answer.
    pub answered: bool,
    /// Deleted, looked for afterwards and not found.
    pub confirmed_gone: Vec<String>,
    /// What may still be there.
    pub may_be_live: Vec<String>,
    /// What no deletion of ours reaches.
    pub not_deletable: String,
}

impl Manifest {
    /// The manifest as it is written.
    ///
    /// # Errors
    /// None that is known: all of its parts have a form in JSON.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut text = serde_json::to_vec_pretty(self).map_err(|e| Error::io("cannot write the manifest", e.into()))?;
        text.push(b'\n');
        Ok(text)
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// A text that is none, or of another version.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let manifest: Self = serde_json::from_slice(text).map_err(|e| Error::malformed(format!("this is no manifest: {e}")))?;
        if manifest.version != VERSION {
            return Err(Error::unsupported(format!(
                "a manifest of version {}; this hmask reads version {VERSION}",
                manifest.version
            )));
        }
        Ok(manifest)
    }
}

/// The version of Unicode by which texts are normalised.
pub fn unicode() -> String {
    format!("{}.{}.{}", UNICODE.0, UNICODE.1, UNICODE.2)
}

/// The columns of a report. `distinct` tells how many different values a column had, if it is known.
pub fn columns(report: &TableReport, rules: &Rules, distinct: impl Fn(usize) -> Option<u64>) -> Vec<ColumnFacts> {
    let facts = report.columns.iter().map(|c| {
        let treatment = rules.treatment(c.rule);
        let mask = match treatment {
            Treatment::Pseudonym(mask) => Some(mask),
            _ => None,
        };
        let distinct = distinct(c.rule).filter(|_| mask.is_some()).map(|n| n.min(c.masked));
        ColumnFacts {
            name: c.name.clone(),
            treatment: treatment.describe(),
            normalise: mask.map(|m| m.normalisation().names()).unwrap_or_default(),
            domain: mask.map(|m| m.domain().to_owned()).unwrap_or_default(),
            prefix: mask.map(|m| m.form().prefix().to_owned()).unwrap_or_default(),
            digits: mask.map(|m| m.form().digits()),
            hash_empty: mask.is_some_and(|m| m.form().hashes_empty()),
            masked: c.masked,
            missing: c.missing,
            distinct,
            collision_chance: mask.map(|m| m.form().collision_chance(distinct.unwrap_or(c.masked))),
        }
    });
    facts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "to write the schema anew")]
    fn the_schema_in_the_documentation_is_that_of_the_code() {
        let text = serde_json::to_string_pretty(&schemars::schema_for!(Manifest)).unwrap() + "\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/manifest.schema.json");
        if std::env::var_os("HMASK_BLESS").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), text, "HMASK_BLESS=1 cargo test schema");
    }
}
