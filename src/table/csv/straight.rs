//! The usual case, straight on: a chunk in UTF-8 whose records are all alike, and columns that become pseudonyms. Of each cell nothing is
//! put down but where it stands; whatever is not as usual is left to the spans, which can do all of it.

use std::ops::Range;

use super::chunk::Masker;
use super::regular::Regular;
use crate::mask::{Pseudonymiser, Tag};

/// Records whose cells are hashed together, column by column: what they need stays in the nearest cache of a core.
const RUN: usize = 512;
/// Bytes that are copied at once where they suffice: a call for a few bytes costs more than they do.
const FEW: usize = 16;
const SOME: usize = 64;

/// Where a cell begins and ends.
type Cell = [u32; 2];

/// Buffers, used again from chunk to chunk.
#[derive(Default)]
pub(super) struct Desk {
    columns: Vec<Found>,
}

/// What is known of a column.
#[derive(Default)]
struct Found {
    /// Its cell of each record of the chunk.
    cells: Vec<Cell>,
    /// The tags of those of a run that change, and how many these are.
    tags: Vec<Tag>,
    changing: usize,
}

/// A chunk and what changes in it.
pub(super) struct Straight<'s> {
    bytes: &'s [u8],
    regular: &'s Regular<'s>,
    /// From left to right.
    columns: &'s [Column<'s>],
}

/// A column that becomes pseudonyms.
pub(super) struct Column<'m> {
    pub mask: &'m Pseudonymiser,
    /// Among the fields of a record, and among the columns that change.
    pub number: usize,
    pub place: usize,
    pub takes_empty: bool,
}

impl<'s> Straight<'s> {
    pub(super) fn new(masker: &'s Masker<'_>, regular: &'s Regular<'s>, bytes: &'s [u8]) -> Option<Self> {
        let columns = masker.straight.as_deref().filter(|columns| !columns.is_empty())?;
        Some(Self { bytes, regular, columns })
    }

    /// Writes the whole records with pseudonyms in place of the cells, and counts these for each place in `masked`. Returns whether it
    /// could; if not, what has been written is of no use.
    pub(super) fn write(&self, desk: &mut Desk, masked: &mut [u64], out: &mut Vec<u8>) -> bool {
        let Some(length) = self.find(desk) else { return false };
        // Room for what is copied beyond the end of a piece; a buffer that comes again mostly has it already.
        out.resize(length + SOME, 0);
        let mut values = Vec::with_capacity(RUN);
        let mut progress = Progress::default();
        let records = self.regular.records();
        for run in (0..records).step_by(RUN).map(|first| first..records.min(first + RUN)) {
            for (column, found) in self.columns.iter().zip(&mut desk.columns) {
                values.clear();
                let cells = found.cells[run.clone()].iter().filter(|cell| column.changes(**cell));
                values.extend(cells.map(|[start, end]| &self.bytes[*start as usize..*end as usize]));
                masked[column.place] += values.len() as u64;
                found.changing = values.len();
                found.tags.resize(RUN, Tag::default());
                if column.mask.tags_of_column(&values, column.place, &mut found.tags[..values.len()]).is_err() {
                    return false;
                }
            }
            let Some(further) = self.weave(run, &desk.columns, progress, out) else { return false };
            progress = further;
        }
        let written = copy(self.bytes, progress.copied..self.regular.consumed, out, progress.written);
        out.truncate(written);
        written == length
    }

    /// Finds all cells, and how long the output will be; nothing if a quote in a cell is doubled.
    fn find(&self, desk: &mut Desk) -> Option<usize> {
        desk.columns.resize_with(self.columns.len(), Found::default);
        let mut length = self.regular.consumed;
        for (column, Found { cells, .. }) in self.columns.iter().zip(&mut desk.columns) {
            let (mut before, mut changing, mut escaped) = (0, 0, false);
            cells.clear();
            cells.reserve(self.regular.records());
            self.regular.column(column.number, |field| {
                let cell = [field.start as u32, field.end as u32]; // a chunk is far smaller than 4 GiB
                cells.push(cell);
                before += field.end - field.start;
                changing += usize::from(column.changes(cell));
                escaped |= field.escaped;
            });
            if escaped {
                return None;
            }
            length = length - before + changing * column.mask.form().token_len();
        }
        Some(length)
    }

    /// Copies what lies between the cells of a run of records, and writes tokens in place of these. Nothing if there are not just as many
    /// tokens as cells: then a cell would stay.
    fn weave(&self, run: Range<usize>, found: &[Found], progress: Progress, out: &mut [u8]) -> Option<Progress> {
        let Progress { mut written, mut copied } = progress;
        let columns = self.columns.iter().zip(found);
        let mut columns: Vec<_> = columns.map(|(c, f)| (c, f.cells[run.clone()].iter(), f.tags[..f.changing].iter())).collect();
        for _ in run {
            for (column, cells, tags) in &mut columns {
                let [start, end] = *cells.next()?;
                if column.changes([start, end]) {
                    let tag = tags.next()?;
                    written = copy(self.bytes, copied..start as usize, out, written);
                    written += column.mask.form().put(tag, &mut out[written..]);
                    copied = end as usize;
                }
            }
        }
        columns.iter().all(|(_, _, tags)| tags.len() == 0).then_some(Progress { written, copied })
    }
}

/// How much of the output is written, and how much of the input is copied or replaced.
#[derive(Clone, Copy, Default)]
struct Progress {
    written: usize,
    copied: usize,
}

impl Column<'_> {
    /// Whether this cell becomes a pseudonym.
    #[inline]
    fn changes(&self, [start, end]: Cell) -> bool {
        start < end || self.takes_empty
    }
}

/// Copies a piece to `at`, and returns where it ends. What lies beyond it may be copied, too, and is overwritten by what comes next, or
/// cut off.
#[expect(clippy::inline_always, reason = "called for each value: a call of its own would cost as much as its work")]
#[inline(always)]
fn copy(from: &[u8], piece: Range<usize>, out: &mut [u8], at: usize) -> usize {
    let length = piece.end - piece.start;
    let (from, to) = (&from[piece.start..], &mut out[at..]);
    if let (true, Some(from), Some(to)) = (length <= FEW, from.first_chunk::<FEW>(), to.first_chunk_mut::<FEW>()) {
        *to = *from;
    } else if let (true, Some(from), Some(to)) = (length <= SOME, from.first_chunk::<SOME>(), to.first_chunk_mut::<SOME>()) {
        *to = *from;
    } else {
        to[..length].copy_from_slice(&from[..length]);
    }
    at + length
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::chunk::Ragged;
    use super::super::layout::{Found as Layouts, Layout};
    use super::super::{CsvOptions, mask};
    use super::*;
    use crate::table::{Job, TextEncoding};
    use crate::{Columns, Form, Key, Rules, Scope};

    const KEY: &str = "0123456789abcdef0123456789abcdef";

    fn rules(columns: &str, form: Form) -> Rules {
        let key = Key::new(KEY.into()).unwrap();
        Rules::pseudonyms(Columns::parse(columns).unwrap(), Pseudonymiser::new(&key, &Scope::Stable, "", form))
    }

    /// What comes of a table in one go, if it could be done straight.
    fn straight(text: &str, columns: &str) -> Option<String> {
        let rules = rules(columns, Form::default());
        let options = CsvOptions::default();
        let Layouts::Layout(layout) = Layout::find(text.as_bytes(), true, &rules, &options).unwrap() else { panic!("no layout") };
        let masker = Masker::new(&layout, &rules, Ragged::Refuse, 1000).unwrap();
        let bytes = &text.as_bytes()[layout.start..];
        let mut ends = Vec::new();
        let regular = Regular::find(layout.dialect, bytes, layout.width, &mut ends)?;
        let (mut masked, mut out) = (vec![0; 2], b"what was there before".to_vec());
        let done = Straight::new(&masker, &regular, bytes)?.write(&mut Desk::default(), &mut masked, &mut out);
        done.then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn the_usual_case_is_straight_and_no_other() {
        let token = |v: &str| {
            let mask = Pseudonymiser::new(&Key::new(KEY.into()).unwrap(), &Scope::Stable, "", Form::default());
            mask.pseudonym(v.as_bytes())
        };
        let text = "id,name,city\n1,Zoé,Nîmes\r\n2,\"\",x\n3,\"O'Neill, Ann\",\"a \"\"b\"\"\"\n";
        let want = text.replace("Zoé", &token("Zoé")).replace("O'Neill, Ann", &token("O'Neill, Ann"));
        assert_eq!(straight(text, "name").as_deref(), want.split_once('\n').map(|(_, data)| data));
        assert_eq!(straight(text, "city"), None, "a doubled quote is left to the spans");
        assert_eq!(straight("id,name\n1,2,3\n", "name"), None);
    }

    /// Straight, and by spans: a text of ASCII is the same in both encodings, and only UTF-8 goes straight.
    #[test]
    fn straight_and_by_spans_come_to_the_same() {
        let field = proptest::sample::select(vec![
            "",
            "\"\"",
            "a",
            "\"x,\ny\"",
            "O'Neill",
            "a far longer text than any token is",
            "\"q\"\"q\"",
        ]);
        let record = proptest::collection::vec(field, 4);
        let forms = [
            Form::default(),
            Form::new(16, "p_", false).unwrap(),
            Form::new(64, "", true).unwrap(),
            Form::new(18, "", true).unwrap(),
        ];
        proptest!(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() }, |(
            records in proptest::collection::vec((record, any::<bool>()), 1..700), columns in proptest::sample::select(vec!["a", "d", "b,a", "a,b,c,d", "c"]),
            form in 0usize..4, chunk in 100usize..20_000, doubled in any::<bool>(),
        )| {
            let mut text = String::from("a,b,c,d\n");
            for (fields, cr) in &records {
                let fields: Vec<&str> = fields.iter().map(|f| if doubled || !f.contains("\"\"q") { *f } else { "v" }).collect();
                text += &fields.join(",");
                text += if *cr { "\r\n" } else { "\n" };
            }
            let rules = rules(columns, forms[form].clone());
            let run = |encoding: &str, chunk| {
                let options = CsvOptions { encoding: TextEncoding::from_label(encoding).unwrap(), chunk, ..CsvOptions::default() };
                let mut out = Vec::new();
                let report = mask(&mut text.as_bytes(), &mut out, &Job { rules: &rules, workers: 2, progress: &|_| {} }, &options).unwrap();
                (out, report.columns.iter().map(|c| (c.masked, c.missing)).collect::<Vec<_>>(), report.rows)
            };
            let spans = run("latin1", 1 << 20);
            prop_assert!(run("utf-8", chunk) == spans);
            prop_assert!(run("utf-8", 1 << 20) == spans);
        });
    }
}
