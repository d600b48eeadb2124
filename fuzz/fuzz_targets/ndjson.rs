//! NDJSON: arbitrary bytes are masked line by line, or refused.

#![no_main]

use hmask::Missing;
use hmask::table::ndjson;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let lines = |bytes: &[u8]| bytes.iter().filter(|b| **b == b'\n').count();
    let mut out = Vec::new();
    if hmask_fuzz::with_job("a,b.c,d[]", |job| ndjson::mask(&mut &data[..], &mut out, job, Missing::Ignore)).is_ok() {
        assert_eq!(lines(data), lines(&out));
    }
});
