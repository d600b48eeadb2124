//! One chunk of a CSV: what is in it is found (`regular`, `spans`), and it is written again with what becomes of its cells (`straight`,
//! `piece`).

use super::layout::{Layout, line_ends};
use super::piece::{Made, Piece};
use super::regular::Regular;
use super::scan::Dialect;
use super::spans::{STAYS, Span, Spans};
use super::straight::{Column, Desk, Straight};
use crate::error::{Error, Result};
use crate::mask::Treatment;
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

/// The greatest limit of a record: places within a chunk are numbers of 32 bits.
const MAX_RECORD: usize = 1 << 30;

/// Masks chunks of one file; shared by all threads.
pub(super) struct Masker<'a> {
    pub layout: &'a Layout,
    pub ragged: Ragged,
    /// For each field its place among the columns that change, or [`STAYS`].
    pub places: Vec<u32>,
    /// The columns that change, from left to right.
    pub changing: Vec<usize>,
    /// For each place what becomes of its cells, and whether an empty field changes, too.
    pub treatments: Vec<&'a Treatment>,
    pub takes_empty: Vec<bool>,
    /// Columns whose values decide how others change, and for each place which of them.
    pub ids: Vec<usize>,
    pub id_of: Vec<Option<usize>>,
    /// Bytes that a record may have.
    pub max_record: usize,
    /// The columns from left to right, if the text is UTF-8, all of them become pseudonyms, and nothing else is of interest.
    pub straight: Option<Vec<Column<'a>>>,
    /// For each place the constant part of its texts, in the file's encoding: of tokens their prefix.
    pub prefixes: Vec<Vec<u8>>,
    /// Whether fields that stay are of no interest.
    pub plain: bool,
    /// Buffers of chunks, and of what was made of them.
    pub spare: Spare<Vec<u8>>,
    pub spare_out: Spare<Vec<u8>>,
    /// Those of spans, of what becomes of cells, of what goes straight, and of ends of fields.
    pub spans: Spare<Vec<Span>>,
    made: Spare<Vec<Made>>,
    desks: Spare<Desk>,
    ends: Spare<Vec<u32>>,
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
        let treatments: Vec<_> = columns.rules.iter().map(|rule| rules.treatment(*rule)).collect();
        let mut prefixes = Vec::new();
        for treatment in &treatments {
            let text = treatment.constant();
            if text.bytes().any(splits) || text.bytes().next().is_some_and(|b| Some(b) == comment) {
                return Err(Error::usage("the prefix holds the delimiter or the quote of the table, or begins a comment"));
            }
            prefixes.push(layout.encoding.encode(text)?);
        }
        let by_others = columns.by.iter().any(Option::is_some);
        if ragged == Ragged::Keep && (layout.drops.any() || by_others) {
            return Err(Error::usage(
                "columns cannot be dropped or shifted where records have any number of fields: no --ragged keep",
            ));
        }
        if max_record > MAX_RECORD {
            return Err(Error::usage(format!("a record of more than {MAX_RECORD} bytes is out of reach")));
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
        let changing: Vec<usize> = (0..layout.width).filter(|column| places[*column] != STAYS).collect();
        let mut ids: Vec<usize> = columns.by.iter().flatten().copied().collect();
        ids.sort_unstable();
        ids.dedup();
        let id_of = columns.by.iter().map(|by| ids.iter().position(|id| Some(*id) == *by)).collect();
        let takes_empty = treatments.iter().map(|treatment| treatment.takes_empty()).collect();
        let plain = !layout.drops.any() && ids.is_empty() && ragged == Ragged::Refuse;
        let column = |number: &usize| {
            let place = places[*number] as usize;
            let takes_empty = treatments[place].takes_empty();
            treatments[place].pseudonymiser().map(|mask| Column { mask, number: *number, place, takes_empty })
        };
        let straight = if plain && layout.encoding == TextEncoding::UTF_8 { changing.iter().map(column).collect() } else { None };
        Ok(Self {
            layout,
            ragged,
            places,
            changing,
            treatments,
            takes_empty,
            ids,
            id_of,
            max_record,
            straight,
            prefixes,
            plain,
            spare: Spare::default(),
            spare_out: Spare::default(),
            spans: Spare::default(),
            made: Spare::default(),
            desks: Spare::default(),
            ends: Spare::default(),
        })
    }

    /// Masks the whole records of a block that is believed to begin at a record's start.
    pub(super) fn mask(&self, chunk: Block) -> Done {
        let (encoding, unit) = (self.layout.encoding, self.layout.encoding.unit());
        let mut buffer = Vec::new();
        let text = encoding.narrow(&chunk.bytes, &mut buffer);
        // Valid as a whole means valid in each field, as all borders are ASCII.
        let as_it_is = encoding == TextEncoding::UTF_8 && simdutf8::basic::from_utf8(&chunk.bytes).is_ok();
        let mut out = self.spare_out.take();
        let mut ends = self.ends.take();
        let regular = self.regular(text, chunk.last, &mut ends);
        if let Some(regular) = regular.as_ref().filter(|_| as_it_is)
            && let Some(straight) = Straight::new(self, regular, text)
        {
            let mut desk = self.desks.take();
            let mut masked = vec![0; self.treatments.len()];
            let done = straight.write(&mut desk, &mut masked, &mut out);
            self.desks.give(desk);
            if done {
                let (records, lines, consumed) = (regular.records() as u64, regular.lines, regular.consumed);
                self.ends.give(ends);
                return Done { chunk, out, consumed, records, lines, masked, long: 0, short: 0, error: None };
            }
        }
        let mut spans = Spans::new(self);
        let mut scanned = spans.scan(text, chunk.last, regular);
        self.ends.give(ends);
        let mut error = spans.fault(&scanned);
        if error.is_none() && chunk.last && !chunk.bytes.len().is_multiple_of(unit) {
            error = Some(Error::malformed("the text ends within a character"));
        }
        let mut made = self.made.take();
        made.resize_with(self.treatments.len(), Made::default);
        made.iter_mut().for_each(|made| made.cells = 0);
        out.clear();
        let piece = Piece { masker: self, raw: &chunk.bytes, text, as_it_is, consumed: scanned.consumed, spans: &spans };
        if let Err((at, e)) = piece.write(&mut made, &mut out) {
            // Records before the faulty one that ended the scan come first.
            scanned.records = u64::from(spans.found[at].record);
            scanned.lines = line_ends(&text[..spans.found[at].start as usize]);
            error = Some(e);
        }
        let masked = made.iter().map(|made| made.cells).collect();
        self.made.give(made);
        self.spans.give(spans.found);
        let consumed = scanned.consumed * unit;
        let (records, lines, long, short) = (scanned.records, scanned.lines, spans.long, spans.short);
        Done { chunk, out, consumed, records, lines, masked, long, short, error }
    }

    /// The fields of a chunk all of whose records are alike.
    fn regular<'r>(&self, text: &'r [u8], last: bool, ends: &'r mut Vec<u32>) -> Option<Regular<'r>> {
        // Where a chunk is no longer than a record may be, none of its records is.
        if !self.plain || text.len() > self.max_record {
            return None;
        }
        let regular = Regular::find(self.layout.dialect, text, self.layout.width, ends);
        // The last record may lack its line end, or never close its quote.
        regular.filter(|regular| !last || regular.consumed == text.len())
    }
}
