//! One chunk of a CSV: its masked cells found, hashed in one batch, and the chunk written again around them.

use super::layout::{Layout, fault_error, line_ends, too_long};
use super::scan::{Dialect, Fault, Field, Scanned, Visitor};
use crate::error::{Error, Result};
use crate::mask::{Pseudonymiser, Tag};
use crate::table::blocks::Block;

/// What to do with a record that has more or fewer fields than the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ragged {
    /// An error.
    #[default]
    Refuse,
    /// Short records pass, surplus fields are dropped.
    Keep,
}

/// What became of a chunk.
pub(super) struct Done {
    pub chunk: Block,
    pub out: Vec<u8>,
    /// Bytes of whole records.
    pub consumed: usize,
    pub records: u64,
    pub lines: u64,
    /// Cells masked, for each of the masked columns.
    pub masked: Vec<u64>,
    /// Records from which surplus fields were dropped.
    pub long: u64,
    /// Records with fewer fields than the header.
    pub short: u64,
    /// What is wrong, with record and line counted within the chunk from 0.
    pub error: Option<Error>,
}

/// Masks chunks of one file; shared by all threads.
pub(super) struct Masker<'a> {
    pub layout: &'a Layout,
    pub pseudonymiser: &'a Pseudonymiser,
    pub ragged: Ragged,
    /// For each field its place among the masked columns.
    pub places: Vec<Option<u32>>,
    /// Bytes that a record may have.
    pub max_record: usize,
    /// The prefix of all tokens in the file's encoding.
    pub prefix: Vec<u8>,
}

/// Part of a chunk that is not copied.
#[derive(Clone, Copy)]
struct Span {
    start: u32,
    end: u32,
    /// Within the chunk, from 0.
    record: u32,
    /// Among the masked columns; [`CUT`] for surplus fields, which have no token in their place.
    place: u32,
    escaped: bool,
}

const CUT: u32 = u32::MAX;

impl<'a> Masker<'a> {
    /// Prepares for one file.
    ///
    /// # Errors
    /// A prefix that the file's encoding lacks or its dialect would split.
    pub(super) fn new(layout: &'a Layout, pseudonymiser: &'a Pseudonymiser, ragged: Ragged, max_record: usize) -> Result<Self> {
        let prefix = pseudonymiser.form().prefix();
        let Dialect { delimiter, quote, escape, .. } = layout.dialect;
        let splits = |b: u8| [delimiter, quote, escape].contains(&Some(b));
        if prefix.bytes().any(splits) || prefix.bytes().next().is_some_and(|b| Some(b) == layout.dialect.comment) {
            return Err(Error::usage("the prefix holds the delimiter or the quote of the table, or begins a comment"));
        }
        let mut places = vec![None; layout.width];
        for (place, column) in layout.columns.found.iter().enumerate() {
            places[*column] = Some(place as u32);
        }
        Ok(Self { layout, pseudonymiser, ragged, max_record, places, prefix: layout.encoding.encode(prefix)? })
    }

    /// Masks the whole records of a block that is believed to begin at a record's start.
    pub(super) fn mask(&self, chunk: Block) -> Done {
        let (encoding, unit) = (self.layout.encoding, self.layout.encoding.unit());
        let mut buffer = Vec::new();
        let text = encoding.narrow(&chunk.bytes, &mut buffer);
        let mut spans = Spans::new(self);
        let mut scanned = self.layout.dialect.scan(text, chunk.last, &mut spans);
        spans.found.truncate(spans.complete);
        let mut error = spans.fault(&scanned);
        if error.is_none() && chunk.last && !chunk.bytes.len().is_multiple_of(unit) {
            error = Some(Error::malformed("the text ends within a character"));
        }
        let mut masked = vec![0; self.layout.columns.found.len()];
        spans.found.iter().filter(|s| s.place != CUT).for_each(|s| masked[s.place as usize] += 1);
        let mut out = Vec::new();
        if let Err((at, e)) = self.write(&chunk.bytes, text, scanned.consumed, &spans.found, &mut out) {
            // Records before the faulty one that ended the scan come first.
            scanned.records = u64::from(spans.found[at].record);
            scanned.lines = line_ends(&text[..spans.found[at].start as usize]);
            error = Some(e);
        }
        let consumed = scanned.consumed * unit;
        let (records, lines, long, short) = (scanned.records, scanned.lines, spans.long, spans.short);
        Done { chunk, out, consumed, records, lines, masked, long, short, error }
    }

    /// Writes the first `consumed` units with tokens in place of the spans. An error says at which span.
    fn write(&self, raw: &[u8], text: &[u8], consumed: usize, spans: &[Span], out: &mut Vec<u8>) -> Result<(), (usize, Error)> {
        let (encoding, unit) = (self.layout.encoding, self.layout.encoding.unit());
        let cells = || spans.iter().filter(|s| s.place != CUT);
        // Valid as a whole means valid in each field, as all borders are ASCII.
        let as_it_is = encoding == super::TextEncoding::UTF_8 && simdutf8::basic::from_utf8(raw).is_ok();
        // Texts that do not stand in the chunk as they are hashed, one behind the other.
        let mut arena = Vec::new();
        let mut ends = Vec::new();
        if !as_it_is || spans.iter().any(|s| s.escaped) {
            for (at, span) in spans.iter().enumerate().filter(|(_, s)| s.place != CUT) {
                let cell = &raw[span.start as usize * unit..span.end as usize * unit];
                let Some(value) = encoding.decode(cell) else { return Err((at, self.undecodable(span, cell))) };
                if span.escaped {
                    self.layout.dialect.unescape(&value, &mut arena);
                } else {
                    arena.extend_from_slice(&value);
                }
                ends.push(arena.len());
            }
        }
        let values: Vec<&[u8]> = if ends.is_empty() {
            cells().map(|s| &text[s.start as usize..s.end as usize]).collect()
        } else {
            let mut start = 0;
            ends.iter().map(|end| &arena[std::mem::replace(&mut start, *end)..*end]).collect()
        };
        let mut tags = vec![Tag::default(); values.len()];
        self.pseudonymiser.tags(&values, &mut tags);
        out.reserve_exact(consumed * unit + values.len() * self.pseudonymiser.form().token_len() * unit);
        let (mut tags, mut copied) = (tags.iter(), 0);
        for span in spans {
            out.extend_from_slice(&raw[copied..span.start as usize * unit]);
            copied = span.end as usize * unit;
            if span.place != CUT
                && let Some(tag) = tags.next()
            {
                self.token(tag, out);
            }
        }
        out.extend_from_slice(&raw[copied..consumed * unit]);
        Ok(())
    }

    fn token(&self, tag: &Tag, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.prefix);
        let start = out.len();
        self.pseudonymiser.form().write_digits(tag, out);
        self.layout.encoding.widen(out, start);
    }

    fn undecodable(&self, span: &Span, cell: &[u8]) -> Error {
        let encoding = self.layout.encoding;
        let column = self.layout.columns.found[span.place as usize];
        let likely = encoding.likely(cell);
        let error = Error::malformed(format!("a masked cell does not decode as {}", encoding.name()));
        let error = error.at(|p| p.column = Some(self.layout.names[column].clone()));
        if likely.eq_ignore_ascii_case(encoding.name()) || encoding.unit() == 2 {
            error
        } else {
            error.hint(format!("--encoding {likely}"))
        }
    }
}

/// Collects the spans of a chunk.
struct Spans<'m> {
    masker: &'m Masker<'m>,
    found: Vec<Span>,
    /// Spans of whole records.
    complete: usize,
    record: u32,
    column: usize,
    hash_empty: bool,
    /// Where the last field that the header knows of ends.
    known_end: usize,
    long: u64,
    short: u64,
    /// Where the record at hand begins, with the blank lines before it.
    start: usize,
    too_long: bool,
    /// Fields of the record that stopped the scan.
    ragged: Option<usize>,
}

impl<'m> Spans<'m> {
    fn new(masker: &'m Masker<'m>) -> Self {
        let hash_empty = masker.pseudonymiser.form().hashes_empty();
        Self {
            masker,
            found: Vec::new(),
            complete: 0,
            record: 0,
            column: 0,
            hash_empty,
            known_end: 0,
            long: 0,
            short: 0,
            start: 0,
            too_long: false,
            ragged: None,
        }
    }

    fn fault(&self, scanned: &Scanned) -> Option<Error> {
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
        match self.masker.places.get(self.column) {
            Some(&Some(place)) if field.start < field.end || self.hash_empty => self.found.push(Span {
                start: field.start as u32, // a chunk is far smaller than 4 GiB
                end: field.end as u32,
                record: self.record,
                place,
                escaped: field.escaped,
            }),
            _ => {}
        }
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
                self.found.push(Span { start, end, record: self.record, place: CUT, escaped: false });
            } else {
                self.short += 1;
            }
        }
        self.record += 1;
        self.complete = self.found.len();
        true
    }
}
