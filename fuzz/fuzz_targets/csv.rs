//! The record scanner against the `csv` crate: for arbitrary bytes, chunk borders at every offset and any number of threads.

#![no_main]

use hmask::{Columns, Rules};
use hmask::table::Job;
use hmask::table::csv::{self, CsvOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [chunk, text @ ..] = data else { return };
    let pseudonymiser = hmask_fuzz::pseudonymiser();
    let rules = Rules::pseudonyms(Columns::parse("#1").unwrap(), hmask_fuzz::pseudonymiser());
    let mask = |chunk: usize, workers: usize| {
        let options = CsvOptions { delimiter: Some(b','), chunk, ..CsvOptions::default() };
        let job = Job { rules: &rules, workers, progress: &|_| {} };
        let mut out = Vec::new();
        csv::mask(&mut &text[..], &mut out, &job, &options).ok().map(|_| out)
    };
    let whole = mask(1 << 16, 1);
    // A chunk holds one code unit at least. Threads cost far more than what they are given here, so most runs do without.
    let workers = if *chunk > 250 { 2 } else { 1 };
    assert_eq!(mask(usize::from(*chunk % 127) + 2, workers), whole, "chunks of {} bytes change the result", chunk % 127 + 2);
    let Some(masked) = whole else { return };
    // What hmask takes, the oracle reads alike; a byte order mark and blank lines aside, which it does not know.
    let plain = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let read = |bytes: &[u8]| -> Vec<::csv::ByteRecord> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut reader = ::csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
        reader.byte_records().map(Result::unwrap).collect()
    };
    if plain.starts_with(b"\xff\xfe") || plain.starts_with(b"\xfe\xff") || plain.starts_with(b"sep=") {
        return;
    }
    let (before, after) = (read(plain), read(&masked));
    assert_eq!(before.len(), after.len());
    for (number, (x, y)) in before.iter().zip(&after).enumerate() {
        assert_eq!(x.len(), y.len());
        let first = if number == 0 { x[0].to_vec() } else { pseudonymiser.pseudonym(&x[0]).into_bytes() };
        assert_eq!(first, y[0], "record {number}");
        assert!(x.iter().skip(1).eq(y.iter().skip(1)), "record {number}");
    }
});
