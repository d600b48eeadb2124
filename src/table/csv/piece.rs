//! A chunk of any kind, whose spans are known: what becomes of its cells, column by column, and the chunk written again around them.

use std::ops::Range;

use super::chunk::Masker;
use super::scan::Dialect;
use super::spans::{BLANK, CUT, Span, Spans};
use crate::error::{Error, Result};
use crate::mask::{Tag, Texts};
use crate::table::text::TextEncoding;

/// Spans whose cells are hashed together: what they need stays in the cache of a core.
const RUN: usize = 1 << 12;

/// A chunk whose spans are known.
pub(super) struct Piece<'p> {
    pub masker: &'p Masker<'p>,
    pub raw: &'p [u8],
    /// The same, a byte for each unit.
    pub text: &'p [u8],
    /// Whether all of it is UTF-8, so that fields are hashed as they stand.
    pub as_it_is: bool,
    /// Units of whole records.
    pub consumed: usize,
    pub spans: &'p Spans<'p>,
}

/// An error, and at which span.
type Failed = (usize, Error);

/// What becomes of the cells of one column, of a run of spans.
#[derive(Default)]
pub(super) struct Made {
    /// One or the other, by the column's treatment.
    tags: Vec<Tag>,
    texts: Texts,
    /// The next to be written.
    next: usize,
    /// Cells of the chunk so far.
    pub cells: u64,
}

impl Piece<'_> {
    /// Writes the whole records with texts in place of the spans.
    pub(super) fn write(&self, made: &mut [Made], out: &mut Vec<u8>) -> Result<(), Failed> {
        let spans = &self.spans.found;
        let token = self.masker.treatments.iter().filter_map(|t| Some(t.pseudonymiser()?.form().token_len())).max();
        out.reserve_exact((self.consumed + spans.len() * token.unwrap_or(0)) * self.unit());
        let mut copied = 0;
        for (number, run) in spans.chunks(RUN).enumerate() {
            self.make(number * RUN, run, made)?;
            self.weave(run, &mut copied, made, out);
        }
        out.extend_from_slice(&self.raw[copied..self.consumed * self.unit()]);
        Ok(())
    }

    /// What becomes of the cells of a run of spans, of which the first has this number.
    fn make(&self, first: usize, run: &[Span], made: &mut [Made]) -> Result<(), Failed> {
        let each = run.len() / made.len().max(1) + 1;
        let mut cells: Vec<Vec<u32>> = made.iter().map(|_| Vec::with_capacity(each)).collect();
        for (number, span) in run.iter().enumerate() {
            if span.is_cell() {
                cells[span.place as usize].push(number as u32); // below RUN
            }
        }
        // Of the faults of all columns the one that comes first in the file.
        let failed = made.iter_mut().zip(&cells).enumerate().filter_map(|(place, (made, cells))| {
            let (nth, error) = self.make_column(place, run, cells, made).err()?;
            Some((first + cells[nth] as usize, error))
        });
        failed.min_by_key(|(span, _)| *span).map_or(Ok(()), Err)
    }

    /// The same for one column; the error says which of its cells it is about.
    fn make_column(&self, place: usize, run: &[Span], cells: &[u32], made: &mut Made) -> Result<(), Failed> {
        let spans = || cells.iter().map(|number| &run[*number as usize]);
        let mut arena = Arena::default();
        let column = self.masker.layout.columns.found[place];
        let values = self.values(column, spans(), &mut arena)?;
        made.next = 0;
        made.cells += values.len() as u64;
        let done = if let Some(mask) = self.masker.treatments[place].pseudonymiser() {
            made.tags.resize(values.len(), Tag::default());
            mask.tags_of_column(&values, place, &mut made.tags)
        } else {
            let mut arena = Arena::default();
            let ids = match self.masker.id_of[place] {
                Some(id) => {
                    let fields = spans().map(|span| &self.spans.ids[id][span.record as usize]);
                    self.values(self.masker.ids[id], fields, &mut arena)?
                }
                None => Vec::new(),
            };
            made.texts.clear();
            self.masker.treatments[place].apply(&values, &ids, &mut made.texts)
        };
        done.map_err(|unfit| (unfit.index, self.at_column(Error::malformed(unfit.why), column)))
    }

    fn encoding(&self) -> TextEncoding {
        self.masker.layout.encoding
    }

    fn unit(&self) -> usize {
        self.encoding().unit()
    }

    /// What the fields of these spans, all of one column, mean in UTF-8; `arena` holds what does not stand in the chunk as it is hashed.
    fn values<'v>(
        &'v self,
        column: usize,
        spans: impl Iterator<Item = &'v Span> + Clone,
        arena: &'v mut Arena,
    ) -> Result<Vec<&'v [u8]>, Failed> {
        let (encoding, unit) = (self.encoding(), self.unit());
        let as_it_stands = |span: &Span| &self.text[span.start as usize..span.end as usize];
        if self.as_it_is && !spans.clone().any(|s| s.escaped) {
            return Ok(spans.map(as_it_stands).collect());
        }
        let keeps_ascii = encoding.keeps_ascii();
        for (nth, span) in spans.clone().enumerate() {
            let cell = &self.raw[span.start as usize * unit..span.end as usize * unit];
            if keeps_ascii && !span.escaped && cell.is_ascii() {
                arena.places.push(None);
                continue;
            }
            let Some(value) = encoding.decode(cell) else { return Err((nth, self.undecodable(column, cell))) };
            let start = arena.bytes.len();
            if span.escaped {
                self.masker.layout.dialect.unescape(&value, &mut arena.bytes);
            } else {
                arena.bytes.extend_from_slice(&value);
            }
            arena.places.push(Some(start..arena.bytes.len()));
        }
        let value = |(place, span): (&Option<Range<usize>>, &'v Span)| match place {
            Some(place) => &arena.bytes[place.clone()],
            None => as_it_stands(span),
        };
        Ok(arena.places.iter().zip(spans).map(value).collect())
    }

    /// Copies what lies between these spans, from `copied` on, and writes what takes their place.
    fn weave(&self, spans: &[Span], copied: &mut usize, made: &mut [Made], out: &mut Vec<u8>) {
        let unit = self.unit();
        for span in spans {
            match &self.raw[*copied..span.start as usize * unit] {
                // Between two columns that change there is mostly nothing but a delimiter.
                [byte] => out.push(*byte),
                bytes => out.extend_from_slice(bytes),
            }
            *copied = span.end as usize * unit;
            match span.place {
                CUT => {}
                BLANK => self.blank(out),
                place => self.cell(span, place as usize, &mut made[place as usize], out),
            }
        }
    }

    /// What takes the place of a cell.
    #[expect(clippy::inline_always, reason = "called for each value: a call of its own would cost as much as its work")]
    #[inline(always)]
    fn cell(&self, span: &Span, place: usize, made: &mut Made, out: &mut Vec<u8>) {
        let nth = made.next;
        made.next += 1;
        if let Some(mask) = self.masker.treatments[place].pseudonymiser() {
            let prefix = &self.masker.prefixes[place];
            if !prefix.is_empty() {
                out.extend_from_slice(prefix);
            }
            let start = out.len();
            mask.form().write_digits(&made.tags[nth], out);
            self.encoding().widen(out, start);
            return;
        }
        let text = made.texts.get(nth);
        let one_column = self.masker.layout.width == 1 || self.masker.layout.drops.one_left();
        if text.is_empty() && one_column && !span.quoted {
            self.blank(out);
        } else {
            self.text(text, span.quoted, out);
        }
    }

    /// An empty field in quotes.
    fn blank(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend(self.masker.layout.dialect.quote.into_iter().flat_map(|q| [q, q]));
        self.encoding().widen(out, start);
    }

    /// A text in the file's encoding; within quotes, these are doubled and escapes escaped.
    fn text(&self, text: &[u8], quoted: bool, out: &mut Vec<u8>) {
        let Dialect { quote, escape, .. } = self.masker.layout.dialect;
        let special = |b: &u8| quoted && [quote, escape].contains(&Some(*b));
        let start = out.len();
        if text.iter().any(special) {
            // Structural bytes are ASCII, so no character is cut.
            for byte in text {
                if special(byte) {
                    out.push(if Some(*byte) == escape { *byte } else { quote.unwrap_or(*byte) });
                }
                out.push(*byte);
            }
        } else {
            out.extend_from_slice(text);
        }
        if out[start..].is_ascii() {
            self.encoding().widen(out, start);
        } else if self.encoding() != TextEncoding::UTF_8 {
            // A part of what was decoded from this encoding, or a constant that was tried: it can be encoded.
            let text = String::from_utf8_lossy(&out[start..]).into_owned();
            let encoded = self.encoding().encode(&text).unwrap_or_default();
            out.truncate(start);
            out.extend_from_slice(&encoded);
        }
    }

    fn at_column(&self, error: Error, column: usize) -> Error {
        error.at(|p| p.column = Some(self.masker.layout.names[column].clone()))
    }

    fn undecodable(&self, column: usize, cell: &[u8]) -> Error {
        let encoding = self.encoding();
        let likely = encoding.likely(cell);
        let what = if self.masker.ids.contains(&column) { "a cell that others go by" } else { "a masked cell" };
        let error = Error::malformed(format!("{what} does not decode as {}", encoding.name()));
        let error = self.at_column(error, column);
        if likely.eq_ignore_ascii_case(encoding.name()) || encoding.unit() == 2 {
            error
        } else {
            error.hint(format!("--encoding {likely}"))
        }
    }
}

/// Texts that do not stand in the chunk as they are hashed.
#[derive(Default)]
struct Arena {
    bytes: Vec<u8>,
    /// Where each is; none for a text that does stand there.
    places: Vec<Option<Range<usize>>>,
}
