//! The record scanner alone against the `csv` crate's, which is `csv-core`: many more texts than whole runs could try.
//!
//! The first byte says where the text is cut in two; a chunk whose records are all alike is also read by bit masks.

#![no_main]

use std::cell::RefCell;

use csv_core::{ReadRecordResult, Reader};
use hmask::table::csv::probe::Records;
use libfuzzer_sys::fuzz_target;

struct Buffers {
    reader: Reader,
    whole: Records,
    other: Records,
    record: Vec<u8>,
    ends: Vec<usize>,
    plain: Vec<u8>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers {
        reader: Reader::new(),
        whole: Records::default(),
        other: Records::default(),
        record: Vec::new(),
        ends: Vec::new(),
        plain: Vec::new(),
    });
}

fuzz_target!(|data: &[u8]| {
    let [cut, text @ ..] = data else { return };
    BUFFERS.with_borrow_mut(|buffers| try_one(usize::from(*cut).min(text.len()), text, buffers));
});

fn try_one(cut: usize, text: &[u8], buffers: &mut Buffers) {
    let Buffers { reader, whole, other, record, ends, plain } = buffers;
    whole.clear();
    let outcome = whole.scan(text, true);

    // In two pieces: what the first leaves over comes before the second.
    other.clear();
    let first = other.scan(&text[..cut], false);
    let (fields, records) = (other.fields.len(), other.ends.len());
    if first.fault {
        assert!(outcome.fault, "a piece is refused, and the whole is not");
    } else {
        let second = other.scan(&text[first.consumed..], true);
        other.fields[fields..].iter_mut().for_each(|f| (f.0, f.1) = (f.0 + first.consumed, f.1 + first.consumed));
        // Fields of the second scan are counted with those of the first.
        assert!(other.fields == whole.fields && other.ends == whole.ends, "cut at {cut}");
        assert_eq!((second.fault, first.consumed + second.consumed), (outcome.fault, outcome.consumed));
        assert_eq!(first.lines + second.lines, outcome.lines);
    }
    assert!(records <= whole.ends.len() && other.ends[..records] == whole.ends[..records]);

    // By bit masks, as if there were more to come.
    let width = whole.ends.first().copied().unwrap_or(2);
    other.clear();
    if let Some(found) = other.regular(text, width) {
        let (found_fields, found_ends) = (std::mem::take(&mut other.fields), std::mem::take(&mut other.ends));
        other.clear();
        assert_eq!(other.scan(text, false), found);
        assert!(other.fields == found_fields && other.ends == found_ends, "records that are alike");
    }

    // What the scanner takes, the oracle reads alike.
    reader.reset();
    record.resize(text.len() + 1, 0);
    ends.resize(text.len() + 1, 0);
    let (mut rest, mut from) = (text, 0);
    for until in &whole.ends {
        let (mut bytes, mut fields) = (0, 0);
        loop {
            let (result, read, written, ended) = reader.read_record(rest, &mut record[bytes..], &mut ends[fields..]);
            rest = &rest[read..];
            (bytes, fields) = (bytes + written, fields + ended);
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::Record => break,
                other => panic!("the oracle finds no record: {other:?}"),
            }
        }
        assert_eq!(fields, until - from, "fields of a record");
        let mut start = 0;
        for ((field, end, escaped, _), stop) in whole.fields[from..*until].iter().zip(&ends[..fields]) {
            let raw = &text[*field..*end];
            let value = if *escaped {
                plain.clear();
                let mut bytes = raw.iter();
                while let Some(byte) = bytes.next() {
                    plain.push(*byte);
                    if *byte == b'"' {
                        assert_eq!(bytes.next(), Some(&b'"'), "a quote that is not doubled");
                    }
                }
                &plain[..]
            } else {
                raw
            };
            assert_eq!(value, &record[start..*stop]);
            start = *stop;
        }
        from = *until;
    }
    if !outcome.fault {
        let (result, ..) = reader.read_record(rest, record, ends);
        let more = if rest.is_empty() { result } else { reader.read_record(b"", record, ends).0 };
        assert!(!matches!(more, ReadRecordResult::Record), "the oracle finds one more record");
    }
}
