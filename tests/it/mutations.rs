//! Files of which a byte or a stretch has been changed: masked with certainty, or refused without a trace.
//!
//! With `HMASK_TEST_ALL` ten thousand of each kind, else some of them.

#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a switch of the tests, and what they have tried")]

use std::fs;
use std::io::Write;

use arrow_ipc::writer::StreamWriter;
use hmask::output::{Existing, Staged};
use hmask::table::compress::Compression;
use hmask::table::csv::CsvOptions;
use hmask::table::{Format, Input, Job, mask};
use hmask::{Columns, Form, Key, Pseudonymiser, Rules, Scope};

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::env::{KEY, Place, fixture};
use super::mask::{ORIGINALS, PERSONAL, token};

/// What is done to a file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mutation {
    Flip,
    Cut,
    Duplicate,
    Remove,
    Nul,
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % n.max(1)
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>) -> Mutation {
        use Mutation::{Cut, Duplicate, Flip, Nul, Remove};
        let at = self.below(bytes.len());
        let end = at + self.below((bytes.len() - at).min(80));
        let mutation = [Flip, Cut, Duplicate, Remove, Nul][self.below(5)];
        match mutation {
            Flip => bytes[at] ^= 1 << self.below(8),
            Cut => bytes.truncate(at),
            Duplicate => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
            Remove => drop(bytes.drain(at..end)),
            Nul => bytes[at] = 0,
        }
        mutation
    }
}

/// A file in the making, and what has been written to it, which a pipe would have passed on.
struct Both {
    staged: Staged,
    written: Vec<u8>,
}

impl Write for Both {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = self.staged.write(bytes)?;
        self.written.extend_from_slice(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.staged.flush()
    }
}

/// Masks many mutations of a file; `check` sees those that are masked: the input and the output. Returns how many are, and how many are
/// refused.
fn mutations(good: &[u8], format: Format, check: impl Fn(&[u8], &[u8])) -> (u32, u32) {
    let key = Key::new(KEY.as_bytes().to_vec()).unwrap();
    let (mut random, mut counts) = (Random(7), (0, 0));
    let place = Place::new();
    let out = place.path("o");
    let all = if std::env::var_os("HMASK_TEST_ALL").is_some() { 10_000 } else { 1500 };
    for number in 0..all {
        let mut bytes = good.to_vec();
        let mutation = random.mutate(&mut bytes);
        let mut input = tempfile::tempfile().unwrap();
        input.write_all(&bytes).unwrap();
        std::io::Seek::rewind(&mut input).unwrap();
        let pseudonyms = Pseudonymiser::new(&key, &Scope::Stable, "", Form::default());
        let rules = Rules::pseudonyms(Columns::parse(PERSONAL).unwrap(), pseudonyms);
        let job = Job { rules: &rules, workers: 1, progress: &|_| {} };
        let mut both = Both { staged: Staged::create(&out, Existing::Refuse).unwrap(), written: Vec::new() };
        let done = mask(Input::File(input), &mut both, format, Compression::None, &job, &CsvOptions::default());
        let Both { staged, written } = both;
        match done {
            Ok(_) => {
                assert!(mutation != Mutation::Nul || format != Format::Csv, "a NUL is taken");
                staged.persist().unwrap();
                check(&bytes, &fs::read(&out).unwrap());
                fs::remove_file(&out).unwrap();
                counts.0 += 1;
            }
            Err(error) => {
                drop(staged);
                if format != Format::Csv {
                    nothing_is_left(&bytes, &written); // who reads from a pipe has it already
                }
                assert!(place.names().is_empty(), "{number} {mutation:?}: a file is left");
                let said = format!("{error} {error:?}");
                let told = ORIGINALS.iter().find(|value| said.contains(**value));
                assert!(told.is_none(), "{number} {mutation:?}: a value is told");
                counts.1 += 1;
            }
        }
    }
    println!("{format:?}: of {all} mutations {} are masked, {} refused", counts.0, counts.1);
    counts
}

#[test]
fn a_csv_is_masked_as_the_oracle_reads_it_or_refused() {
    let records = |bytes: &[u8]| -> Vec<csv::ByteRecord> {
        let reader = csv::ReaderBuilder::new().delimiter(b';').flexible(true).has_headers(false).from_reader(bytes);
        reader.into_byte_records().map(Result::unwrap).collect()
    };
    let (masked, refused) = mutations(&fs::read(fixture("clients.csv")).unwrap(), Format::Csv, |input, output| {
        let (before, after) = (records(input), records(output));
        assert_eq!((before.len(), &before[0]), (after.len(), &after[0]));
        let personal = |i: usize| PERSONAL.split(',').any(|name| name.as_bytes() == &before[0][i]);
        for (before, after) in before.iter().zip(&after).skip(1) {
            assert_eq!(before.len(), after.len());
            for (i, (before, after)) in before.iter().zip(after).enumerate() {
                let want = if personal(i) { token(std::str::from_utf8(before).unwrap()).into_bytes() } else { before.to_vec() };
                assert_eq!(after, want);
            }
        }
    });
    assert!(masked > 200 && refused > 200, "{masked} masked, {refused} refused");
}

/// Whatever has been masked, no value is left anywhere in the file.
fn nothing_is_left(_: &[u8], output: &[u8]) {
    for value in ORIGINALS {
        assert!(!output.windows(value.len()).any(|w| w == value.as_bytes()), "an original value is in the output");
    }
}

#[test]
fn a_parquet_file_is_masked_or_refused() {
    let (masked, refused) = mutations(&fs::read(fixture("clients.parquet")).unwrap(), Format::Parquet, nothing_is_left);
    assert!(masked > 200 && refused > 200, "{masked} masked, {refused} refused");
}

#[test]
fn an_arrow_file_is_masked_or_refused() {
    let input = fs::File::open(fixture("clients.parquet")).unwrap();
    let batches = ParquetRecordBatchReaderBuilder::try_new(input).unwrap().with_batch_size(2).build().unwrap();
    let mut stream = StreamWriter::try_new(Vec::new(), &arrow_array::RecordBatchReader::schema(&batches)).unwrap();
    batches.for_each(|batch| stream.write(&batch.unwrap()).unwrap());
    let (masked, refused) = mutations(&stream.into_inner().unwrap(), Format::Ipc, nothing_is_left);
    assert!(masked > 200 && refused > 200, "{masked} masked, {refused} refused");
}
