//! One chunk of a CSV: its masked cells found, hashed in one batch, and the chunk written again around them.

use std::ops::Range;

use super::layout::{Layout, line_ends};
use super::scan::Dialect;
use super::spans::{BLANK, CUT, STAYS, Span, Spans};
use crate::error::{Error, Result};
use crate::mask::{Pseudonymiser, Tag, Texts, Treatment, Unfit};
use crate::policy::Rules;
use crate::table::blocks::{Block, Spare};
use crate::table::text::TextEncoding;

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

/// Spans whose cells are hashed together: what they need stays in the cache of a core.
const RUN: usize = 1 << 12;

/// Masks chunks of one file; shared by all threads.
pub(super) struct Masker<'a> {
    pub layout: &'a Layout,
    pub rules: &'a Rules,
    /// What masks all columns that change, if it is one for all.
    one: Option<&'a Pseudonymiser>,
    pub ragged: Ragged,
    /// For each field its place among the columns that change, or [`STAYS`].
    pub places: Vec<u32>,
    /// The columns that change, from left to right.
    pub changing: Vec<usize>,
    /// For each place whether an empty field changes, too.
    pub takes_empty: Vec<bool>,
    /// Columns whose values decide how others change, and for each place which of them.
    pub ids: Vec<usize>,
    id_of: Vec<Option<usize>>,
    /// Bytes that a record may have.
    pub max_record: usize,
    /// The prefix of all tokens in the file's encoding, where there are tokens of one kind alone.
    prefix: Vec<u8>,
    /// Whether fields that stay are of no interest.
    pub plain: bool,
    /// Buffers of chunks, and of what was made of them.
    pub spare: Spare<Vec<u8>>,
    pub spare_out: Spare<Vec<u8>>,
    /// Those of spans, tags and ends of fields.
    pub spans: Spare<Vec<Span>>,
    tags: Spare<Vec<Tag>>,
    pub ends: Spare<Vec<u32>>,
}

impl<'a> Masker<'a> {
    /// Prepares for one file.
    ///
    /// # Errors
    /// Texts that the file's encoding lacks or its dialect would split; records of any length, where that would lead astray.
    pub(super) fn new(layout: &'a Layout, rules: &'a Rules, ragged: Ragged, max_record: usize) -> Result<Self> {
        let Dialect { delimiter, quote, escape, comment } = layout.dialect;
        let columns = &layout.columns;
        let splits = |b: u8| [delimiter, quote, escape].contains(&Some(b));
        for treatment in columns.rules.iter().map(|rule| rules.treatment(*rule)) {
            let text = treatment.constant();
            if text.bytes().any(splits) || text.bytes().next().is_some_and(|b| Some(b) == comment) {
                return Err(Error::usage("the prefix holds the delimiter or the quote of the table, or begins a comment"));
            }
            layout.encoding.encode(text)?;
        }
        let by_others = columns.by.iter().any(Option::is_some);
        if ragged == Ragged::Keep && (layout.drops.any() || by_others) {
            return Err(Error::usage(
                "columns cannot be dropped or shifted where records have any number of fields: no --ragged keep",
            ));
        }
        if comment.is_some() && columns.dropped.contains(&0) {
            return Err(Error::usage("the first column cannot be dropped where a character begins comments"));
        }
        if layout.drops.one_left() && quote.is_none() {
            return Err(Error::usage("without quotes, one column alone cannot be left: an empty field would be a blank line"));
        }
        let mut places = vec![STAYS; layout.width];
        for (place, column) in columns.found.iter().enumerate() {
            places[*column] = place as u32;
        }
        let changing = (0..layout.width).filter(|column| places[*column] != STAYS).collect();
        let mut ids: Vec<usize> = columns.by.iter().flatten().copied().collect();
        ids.sort_unstable();
        ids.dedup();
        let id_of = columns.by.iter().map(|by| ids.iter().position(|id| Some(*id) == *by)).collect();
        let takes_empty = columns.rules.iter().map(|rule| rules.treatment(*rule).takes_empty()).collect();
        let one = match columns.rules.first().map(|rule| (rule, rules.treatment(*rule))) {
            Some((first, Treatment::Pseudonym(mask))) if columns.rules.iter().all(|rule| rule == first) => Some(&**mask),
            _ => None,
        };
        let prefix = layout.encoding.encode(one.map_or("", |mask| mask.form().prefix()))?;
        let plain = !layout.drops.any() && ids.is_empty() && ragged == Ragged::Refuse;
        Ok(Self {
            layout,
            rules,
            one,
            ragged,
            places,
            changing,
            takes_empty,
            ids,
            id_of,
            max_record,
            prefix,
            plain,
            spare: Spare::default(),
            spare_out: Spare::default(),
            spans: Spare::default(),
            tags: Spare::default(),
            ends: Spare::default(),
        })
    }

    /// Masks the whole records of a block that is believed to begin at a record's start.
    pub(super) fn mask(&self, chunk: Block) -> Done {
        let (encoding, unit) = (self.layout.encoding, self.layout.encoding.unit());
        let mut buffer = Vec::new();
        let text = encoding.narrow(&chunk.bytes, &mut buffer);
        let mut spans = Spans::new(self);
        let mut scanned = spans.scan(text, chunk.last);
        let mut error = spans.fault(&scanned);
        if error.is_none() && chunk.last && !chunk.bytes.len().is_multiple_of(unit) {
            error = Some(Error::malformed("the text ends within a character"));
        }
        let mut masked = vec![0; self.layout.columns.found.len()];
        spans.found.iter().filter(|s| s.is_cell()).for_each(|s| masked[s.place as usize] += 1);
        let mut out = self.spare_out.take();
        out.clear();
        // Valid as a whole means valid in each field, as all borders are ASCII.
        let as_it_is = encoding == TextEncoding::UTF_8 && simdutf8::basic::from_utf8(&chunk.bytes).is_ok();
        let piece = Piece { masker: self, raw: &chunk.bytes, text, as_it_is, consumed: scanned.consumed, spans: &spans };
        if let Err((at, e)) = piece.write(&mut out) {
            // Records before the faulty one that ended the scan come first.
            scanned.records = u64::from(spans.found[at].record);
            scanned.lines = line_ends(&text[..spans.found[at].start as usize]);
            error = Some(e);
        }
        self.spans.give(spans.found);
        let consumed = scanned.consumed * unit;
        let (records, lines, long, short) = (scanned.records, scanned.lines, spans.long, spans.short);
        Done { chunk, out, consumed, records, lines, masked, long, short, error }
    }
}

/// A chunk whose spans are known.
struct Piece<'p> {
    masker: &'p Masker<'p>,
    raw: &'p [u8],
    /// The same, a byte for each unit.
    text: &'p [u8],
    /// Whether all of it is UTF-8, so that fields are hashed as they stand.
    as_it_is: bool,
    /// Units of whole records.
    consumed: usize,
    spans: &'p Spans<'p>,
}

/// An error, and at which span.
type Failed = (usize, Error);

impl Piece<'_> {
    /// Writes the whole records with texts in place of the spans.
    fn write(&self, out: &mut Vec<u8>) -> Result<(), Failed> {
        let spans = &self.spans.found;
        let cells = |from: usize, spans: &'_ [Span]| -> Vec<(usize, Span)> {
            let numbered = spans.iter().enumerate().filter(|(_, s)| s.is_cell());
            numbered.map(|(i, s)| (from + i, *s)).collect()
        };
        let mut copied = 0;
        if let Some(mask) = self.masker.one {
            out.reserve_exact((self.consumed + spans.len() * mask.form().token_len()) * self.unit());
            let mut tags = self.masker.tags.take();
            tags.resize(RUN.min(spans.len()), Tag::default());
            for (number, run) in spans.chunks(RUN).enumerate() {
                let mut arena = Arena::default();
                let cells = || cells(number * RUN, run);
                let values = match self.as_they_stand(run) {
                    Some(values) => values,
                    None => self.values(&cells(), &mut arena)?,
                };
                let tags = &mut tags[..values.len()];
                // Without other spans than cells, values and spans go by the same numbers.
                let column = |i: usize| if self.masker.plain { run[i].place as usize } else { 0 };
                mask.tags_of_columns(&values, column, tags).map_err(|unfit| self.unfit(cells()[unfit.index].0, unfit))?;
                let mut tags = tags.iter();
                self.weave(run, &mut copied, out, |_, out| {
                    if let Some(tag) = tags.next() {
                        if !self.masker.prefix.is_empty() {
                            out.extend_from_slice(&self.masker.prefix);
                        }
                        let start = out.len();
                        mask.form().write_digits(tag, out);
                        self.encoding().widen(out, start);
                    }
                });
            }
            self.rest(copied, out);
            self.masker.tags.give(tags);
            return Ok(());
        }
        let cells = cells(0, spans);
        let mut arena = Arena::default();
        let values = self.values(&cells, &mut arena)?;
        let mut texts = Vec::new();
        for place in 0..self.masker.layout.columns.found.len() {
            let mine: Vec<usize> = (0..cells.len()).filter(|i| cells[*i].1.place as usize == place).collect();
            let column: Vec<&[u8]> = mine.iter().map(|i| values[*i]).collect();
            let ids: Vec<(usize, Span)> = match self.masker.id_of[place] {
                Some(id) => mine.iter().map(|i| (cells[*i].0, self.spans.ids[id][cells[*i].1.record as usize])).collect(),
                None => Vec::new(),
            };
            let mut arena = Arena::default();
            let ids = self.values(&ids, &mut arena)?;
            let mut out = Texts::default();
            let treatment = self.masker.rules.treatment(self.masker.layout.columns.rules[place]);
            treatment.apply(&column, &ids, &mut out).map_err(|unfit| self.unfit(cells[mine[unfit.index]].0, unfit))?;
            texts.push(out);
        }
        let mut next: Vec<_> = texts.iter().map(Texts::iter).collect();
        let one_column = self.masker.layout.width == 1 || self.masker.layout.drops.one_left();
        out.reserve(self.consumed * self.unit());
        self.weave(spans, &mut copied, out, |span, out| match next[span.place as usize].next() {
            Some([]) if one_column && !span.quoted => self.blank(out),
            Some(text) => self.text(text, span.quoted, out),
            None => {}
        });
        self.rest(copied, out);
        Ok(())
    }

    fn encoding(&self) -> TextEncoding {
        self.masker.layout.encoding
    }

    fn unit(&self) -> usize {
        self.encoding().unit()
    }

    /// The bytes of the cells among these spans, if these are what the cells mean.
    fn as_they_stand(&self, spans: &[Span]) -> Option<Vec<&[u8]>> {
        if !self.as_it_is || spans.iter().any(|s| s.escaped) {
            return None;
        }
        let mut values = Vec::with_capacity(spans.len());
        values.extend(spans.iter().filter(|s| s.is_cell()).map(|s| &self.text[s.start as usize..s.end as usize]));
        Some(values)
    }

    /// What the fields of these spans mean, in UTF-8; `arena` holds what does not stand in the chunk as it is hashed.
    fn values<'v>(&'v self, spans: &[(usize, Span)], arena: &'v mut Arena) -> Result<Vec<&'v [u8]>, Failed> {
        let (encoding, unit) = (self.encoding(), self.unit());
        if self.as_it_is && !spans.iter().any(|(_, s)| s.escaped) {
            return Ok(spans.iter().map(|(_, s)| &self.text[s.start as usize..s.end as usize]).collect());
        }
        let keeps_ascii = encoding.keeps_ascii();
        for (at, span) in spans {
            let cell = &self.raw[span.start as usize * unit..span.end as usize * unit];
            if keeps_ascii && !span.escaped && cell.is_ascii() {
                arena.places.push(None);
                continue;
            }
            let Some(value) = encoding.decode(cell) else { return Err((*at, self.undecodable(span, cell))) };
            let start = arena.bytes.len();
            if span.escaped {
                self.masker.layout.dialect.unescape(&value, &mut arena.bytes);
            } else {
                arena.bytes.extend_from_slice(&value);
            }
            arena.places.push(Some(start..arena.bytes.len()));
        }
        let value = |(place, (_, span)): (&Option<Range<usize>>, &(usize, Span))| match place {
            Some(place) => &arena.bytes[place.clone()],
            None => &self.text[span.start as usize..span.end as usize],
        };
        Ok(arena.places.iter().zip(spans).map(value).collect())
    }

    /// Copies what lies between these spans, from `copied` on; `cell` writes what takes the place of one.
    fn weave(&self, spans: &[Span], copied: &mut usize, out: &mut Vec<u8>, mut cell: impl FnMut(&Span, &mut Vec<u8>)) {
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
                _ => cell(span, out),
            }
        }
    }

    /// Copies what lies behind the last span.
    fn rest(&self, copied: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.raw[copied..self.consumed * self.unit()]);
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

    fn unfit(&self, span: usize, unfit: Unfit) -> Failed {
        let column = self.masker.layout.columns.found[self.spans.found[span].place as usize];
        let error = Error::malformed(unfit.why);
        (span, error.at(|p| p.column = Some(self.masker.layout.names[column].clone())))
    }

    fn undecodable(&self, span: &Span, cell: &[u8]) -> Error {
        let encoding = self.encoding();
        let column = self.masker.layout.columns.found[span.place as usize];
        let likely = encoding.likely(cell);
        let error = Error::malformed(format!("a masked cell does not decode as {}", encoding.name()));
        let error = error.at(|p| p.column = Some(self.masker.layout.names[column].clone()));
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
