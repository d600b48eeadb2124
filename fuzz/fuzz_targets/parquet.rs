//! Footers, schemas and pages of Parquet: whatever the bytes, an output or a refusal, no panic and no huge allocation.

#![no_main]

use hmask::table::{Job, parquet};
use hmask::{Columns, Form, Key, Missing, Pseudonymiser, Scope};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let key = Key::new("0123456789abcdef".repeat(4).into_bytes()).unwrap();
    let pseudonymiser = Pseudonymiser::new(&key, &Scope::Stable, "", Form::default());
    let columns = Columns::parse("*").unwrap();
    let job = Job { columns: &columns, pseudonymiser: &pseudonymiser, workers: 1, progress: &|_| {} };
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, data).unwrap();
    let _ = parquet::mask(&file, &mut std::io::sink(), &job, Missing::Ignore);
});
