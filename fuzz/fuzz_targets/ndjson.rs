//! NDJSON: arbitrary bytes are masked alike in one block and many, or refused.

#![no_main]

use hmask::table::{Job, ndjson};
use hmask::{Columns, Form, Key, Missing, Pseudonymiser, Scope};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let key = Key::new("0123456789abcdef".repeat(4).into_bytes()).unwrap();
    let pseudonymiser = Pseudonymiser::new(&key, &Scope::Stable, "", Form::default());
    let columns = Columns::parse("a,b.c,d[]").unwrap();
    let job = Job { columns: &columns, pseudonymiser: &pseudonymiser, workers: 1, progress: &|_| {} };
    let mut out = Vec::new();
    if ndjson::mask(&mut &data[..], &mut out, &job, Missing::Ignore).is_ok() {
        assert_eq!(data.iter().filter(|b| **b == b'\n').count(), out.iter().filter(|b| **b == b'\n').count());
    }
});
