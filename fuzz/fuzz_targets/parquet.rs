//! Footers, schemas and pages of Parquet: whatever the bytes, an output or a refusal, no panic and no huge allocation.

#![no_main]

use std::io::Write;

use hmask::Missing;
use hmask::table::parquet;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(data).unwrap();
    let _ = hmask_fuzz::with_job("*", |job| parquet::mask(&file, &mut std::io::sink(), job, Missing::Ignore));
});
