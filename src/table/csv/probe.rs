//! What the fuzz target of the scanner has to see of it.

use super::regular::Regular;
use super::scan::{Dialect, Field, Visitor};

/// Commas and double quotes.
const PLAIN: Dialect = Dialect { delimiter: Some(b','), quote: Some(b'"'), escape: None, comment: None };

/// Records as they are found.
#[derive(Default)]
pub struct Records {
    /// Start, end, whether there are doubled quotes in it, and whether it stands in quotes.
    pub fields: Vec<(usize, usize, bool, bool)>,
    /// Fields up to the end of each record.
    pub ends: Vec<usize>,
    places: Vec<u32>,
}

/// What was found of a text.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Bytes of whole records.
    pub consumed: usize,
    /// Line ends in them.
    pub lines: u64,
    /// Whether the record behind them cannot be read.
    pub fault: bool,
}

impl Records {
    fn push(&mut self, field: Field) {
        self.fields.push((field.start, field.end, field.escaped, field.quoted));
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.fields.clear();
        self.ends.clear();
    }

    /// Adds what the scanner finds.
    pub fn scan(&mut self, bytes: &[u8], last: bool) -> Outcome {
        let scanned = PLAIN.scan(bytes, last, self);
        self.fields.truncate(self.ends.last().copied().unwrap_or(0));
        Outcome { consumed: scanned.consumed, lines: scanned.lines, fault: scanned.fault.is_some() }
    }

    /// Adds what is found where all records have so many fields; nothing otherwise.
    pub fn regular(&mut self, bytes: &[u8], width: usize) -> Option<Outcome> {
        let mut places = std::mem::take(&mut self.places);
        let regular = Regular::find(PLAIN, bytes, width, &mut places);
        let outcome = regular.map(|regular| {
            let columns: Vec<usize> = (0..width).collect();
            regular.fields(&columns, |_, _, field| self.push(field));
            for (nth, column) in columns.iter().enumerate() {
                let mut fields = self.fields.iter().skip(nth).step_by(width);
                regular.column(*column, |f| assert_eq!(fields.next(), Some(&(f.start, f.end, f.escaped, f.quoted))));
                assert_eq!(fields.next(), None);
            }
            self.ends.extend((1..=regular.records()).map(|record| record * width));
            Outcome { consumed: regular.consumed, lines: regular.lines, fault: false }
        });
        self.places = places;
        outcome
    }
}

impl Visitor for Records {
    fn field(&mut self, field: Field) {
        self.push(field);
    }

    fn record(&mut self, _: usize, _: usize) -> bool {
        self.ends.push(self.fields.len());
        true
    }
}
