//! What of a chunk is not copied: the cells that change, and what is cut out.

use super::chunk::{Masker, Ragged};
use super::layout::{fault_error, too_long};
use super::regular::Regular;
use super::scan::{Fault, Field, Scanned, Visitor};
use crate::error::Error;

/// Part of a chunk that is not copied.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub start: u32,
    pub end: u32,
    /// Within the chunk, from 0.
    pub record: u32,
    /// Among the columns that change; [`CUT`] or [`BLANK`].
    pub place: u32,
    pub escaped: bool,
    pub quoted: bool,
}

/// A place of what has no text in its place: surplus fields, and columns that leave.
pub(super) const CUT: u32 = u32::MAX;
/// A place of the only field that is left of a record, which is empty: quotes keep the line from being blank.
pub(super) const BLANK: u32 = u32::MAX - 1;
/// A place of a field that stays as it is.
pub(super) const STAYS: u32 = u32::MAX - 2;

impl Span {
    fn new(field: Field, record: u32, place: u32) -> Self {
        let Field { start, end, escaped, quoted } = field;
        let (start, end) = (start as u32, end as u32); // a chunk is far smaller than 4 GiB
        Self { start, end, record, place, escaped, quoted }
    }

    pub(super) fn is_cell(&self) -> bool {
        self.place < STAYS
    }
}

/// Collects the spans of a chunk.
pub(super) struct Spans<'m> {
    masker: &'m Masker<'m>,
    pub found: Vec<Span>,
    /// For each column whose values decide over others, its field of each record.
    pub ids: Vec<Vec<Span>>,
    /// Spans of whole records.
    complete: usize,
    record: u32,
    column: usize,
    /// Where the field before ended.
    before: usize,
    /// Where the last field that the header knows of ends.
    known_end: usize,
    pub long: u64,
    pub short: u64,
    /// Where the record at hand begins, with the blank lines before it.
    start: usize,
    too_long: bool,
    /// Fields of the record that stopped the scan.
    ragged: Option<usize>,
}

impl<'m> Spans<'m> {
    pub(super) fn new(masker: &'m Masker<'m>) -> Self {
        let mut found = masker.spans.take();
        found.clear();
        Self {
            masker,
            found,
            ids: vec![Vec::new(); masker.ids.len()],
            complete: 0,
            record: 0,
            column: 0,
            before: 0,
            known_end: 0,
            long: 0,
            short: 0,
            start: 0,
            too_long: false,
            ragged: None,
        }
    }

    /// Finds the spans of all whole records of a chunk, whose fields may be known already.
    pub(super) fn scan(&mut self, text: &[u8], last: bool, regular: Option<Regular<'_>>) -> Scanned {
        let scanned = match regular {
            Some(regular) => self.regular(&regular),
            None => self.masker.layout.dialect.scan(text, last, self),
        };
        self.found.truncate(self.complete);
        scanned
    }

    fn regular(&mut self, regular: &Regular<'_>) -> Scanned {
        let masker = self.masker;
        self.found.reserve(regular.records() * masker.changing.len());
        regular.fields(&masker.changing, |record, column, field| {
            let place = masker.places[column];
            if field.start < field.end || masker.takes_empty[place as usize] {
                self.found.push(Span::new(field, record as u32, place));
            }
        });
        self.complete = self.found.len();
        Scanned { consumed: regular.consumed, records: regular.records() as u64, lines: regular.lines, fault: None }
    }

    pub(super) fn fault(&self, scanned: &Scanned) -> Option<Error> {
        let fault = scanned.fault?;
        let error = match self.ragged {
            Some(fields) if fault == Fault::Stopped => {
                let header = if self.masker.layout.records == 1 { "the header" } else { "the first record" };
                // No hint at --ragged keep: a delimiter too many or too few may have moved a masked value to another column.
                Error::malformed(format!("{fields} fields where {header} has {}", self.masker.layout.width))
            }
            _ if self.too_long => too_long(self.masker.max_record),
            _ => fault_error(fault),
        };
        let column = self.masker.layout.names.get(self.column);
        Some(match column {
            Some(name) if fault != Fault::Stopped => error.at(|p| p.column = Some(name.clone())),
            _ => error,
        })
    }
}

impl Visitor for Spans<'_> {
    #[expect(clippy::inline_always, reason = "called for each field: a call of its own would cost more than its work")]
    #[inline(always)]
    fn field(&mut self, field: Field) {
        let masker = self.masker;
        let span = |place| Span::new(field, self.record, place);
        let place = masker.places.get(self.column).copied().unwrap_or(STAYS);
        if place != STAYS && (field.start < field.end || masker.takes_empty[place as usize]) {
            self.found.push(span(place));
        }
        if masker.plain {
            self.column += 1;
            return;
        }
        if masker.layout.drops.any() {
            if let Some(cut) = masker.layout.drops.cut(self.column, field, self.before) {
                self.found.push(Span { start: cut.start as u32, end: cut.end as u32, ..span(CUT) });
            } else if masker.layout.drops.one_left() && field.start == field.end && !field.quoted {
                self.found.push(span(BLANK));
            }
        }
        for (id, ids) in masker.ids.iter().zip(&mut self.ids) {
            if *id == self.column {
                ids.push(span(CUT));
            }
        }
        self.before = field.end + usize::from(field.quoted);
        self.column += 1;
        if self.column == self.masker.layout.width {
            self.known_end = field.end + usize::from(field.quoted);
        }
    }

    #[expect(clippy::inline_always, reason = "called for each field: a call of its own would cost more than its work")]
    #[inline(always)]
    fn record(&mut self, end: usize, next: usize) -> bool {
        let start = std::mem::replace(&mut self.start, next);
        if end - start > self.masker.max_record {
            self.too_long = true;
            return false;
        }
        let fields = std::mem::take(&mut self.column);
        if fields != self.masker.layout.width {
            if self.masker.ragged == Ragged::Refuse {
                self.ragged = Some(fields);
                return false;
            }
            if fields > self.masker.layout.width {
                self.long += 1;
                let (start, end) = (self.known_end as u32, end as u32);
                self.found.push(Span { start, end, record: self.record, place: CUT, escaped: false, quoted: false });
            } else {
                self.short += 1;
            }
        }
        self.record += 1;
        self.before = next;
        self.complete = self.found.len();
        true
    }
}
