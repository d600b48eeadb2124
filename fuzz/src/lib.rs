//! What all fuzz targets need: a job under a fixed key.

use hmask::table::Job;
use hmask::{Columns, Form, Key, Pseudonymiser, Rules, Scope};

/// A pseudonymiser of the key of docs/spec.md.
pub fn pseudonymiser() -> Pseudonymiser {
    let key = Key::new("0123456789abcdef".repeat(4).into_bytes()).unwrap();
    Pseudonymiser::new(&key, &Scope::Stable, "", Form::default())
}

/// Runs `mask` with a job for these columns, on one thread.
pub fn with_job<T>(columns: &str, mask: impl FnOnce(&Job<'_>) -> T) -> T {
    let rules = Rules::pseudonyms(Columns::parse(columns).unwrap(), pseudonymiser());
    mask(&Job { rules: &rules, workers: 1, progress: &|_| {} })
}
