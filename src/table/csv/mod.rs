//! CSV: the input with the masked fields replaced, and no other byte changed.
//!
//! `layout` is what the file is. `scan` finds records and fields, `regular` does where all are alike, by the bit masks of `marks`. `chunk`
//! masks a piece of the file: `straight` in the usual case, else `piece`, by what `spans` says that changes. Here a file is cut into chunks
//! that are masked in parallel and put together again in order.
//!
//! Where a record begins cannot be known without having read all before it, as a line end may stand within quotes. So each chunk is cut
//! where a record most likely begins and masked as if it did. Whether it did shows when the chunk before it is through: if that one ends
//! within a record, the guess was wrong, and the next is masked again together with what was left over. Each byte is scanned once as long
//! as the guesses hold; the result is the same in any case.

mod chunk;
mod drop;
mod layout;
mod marks;
mod piece;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod probe;
mod read;
mod regular;
mod scan;
mod select;
mod spans;
mod straight;

use std::io::{Read, Write};

pub use chunk::Ragged;
use chunk::{Done, Masker};
use layout::{Found, Layout, too_long};
pub(super) use read::look;
pub(super) use select::Select;

use super::blocks::{Block, Blocks};
use super::text::TextEncoding;
use super::{ColumnReport, Job, TableReport, TextLayout};
use crate::error::{Error, Result};
use crate::pipeline;
use crate::policy::{Missing, Rules};

/// Bytes of a chunk.
const CHUNK: usize = 1 << 18;
/// Bytes that a record may have, unless told otherwise.
const MAX_RECORD: usize = 16 << 20;

/// How to read a CSV. The default: delimiter found by the wanted columns, quote `"`, UTF-8, a header, no skipped lines.
#[derive(Clone, Debug)]
pub struct CsvOptions {
    /// The field delimiter, if it is known.
    pub delimiter: Option<u8>,
    /// The quote, or none where quotes mean nothing.
    pub quote: Option<u8>,
    /// Within quotes, makes a letter of the byte behind it.
    pub escape: Option<u8>,
    /// Begins lines that are passed over.
    pub comment: Option<u8>,
    /// The encoding, unless a byte order mark sets it.
    pub encoding: TextEncoding,
    /// Whether the first record is data; columns are then named by number.
    pub no_header: bool,
    /// Lines before the header that are kept as they are.
    pub skip_lines: usize,
    /// Whether these lines are left out instead.
    pub drop_preamble: bool,
    /// Bytes that a record may have.
    pub max_record: usize,
    /// Records of another length than the header.
    pub ragged: Ragged,
    /// Wanted columns that are not there.
    pub missing: Missing,
    /// How many times larger the text may be than what it was compressed to.
    pub max_ratio: u32,
    /// Bytes of a chunk; small ones serve tests.
    #[doc(hidden)]
    pub chunk: usize,
}

impl CsvOptions {
    /// Sets the bytes of the dialect from ASCII characters.
    ///
    /// # Errors
    /// One that cannot structure a table: beyond ASCII, alphanumeric, a line end, NUL, or two the same.
    pub fn dialect(
        mut self,
        delimiter: Option<char>,
        quote: Option<char>,
        escape: Option<char>,
        comment: Option<char>,
    ) -> Result<Self> {
        let byte = |c: char| match u8::try_from(c) {
            Ok(b) if b.is_ascii() && !b.is_ascii_alphanumeric() && !matches!(b, 0 | b'\n' | b'\r') => Ok(b),
            _ => Err(Error::usage(format!("{c:?} cannot structure a table"))),
        };
        self.delimiter = delimiter.map(byte).transpose()?;
        self.quote = quote.map(byte).transpose()?;
        self.escape = escape.map(byte).transpose()?;
        self.comment = comment.map(byte).transpose()?;
        let roles: Vec<u8> = [self.delimiter, self.quote, self.escape, self.comment].into_iter().flatten().collect();
        if (1..roles.len()).any(|i| roles[i..].contains(&roles[i - 1])) {
            return Err(Error::usage("delimiter, quote, escape and comment must differ"));
        }
        if let Some(role) = roles.iter().find(|b| !self.encoding.keeps_apart(**b)) {
            let (role, encoding) = (char::from(*role), self.encoding.name());
            return Err(Error::usage(format!("{role:?} can be half of another character in {encoding}")));
        }
        Ok(self)
    }
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self {
            delimiter: None,
            quote: Some(b'"'),
            escape: None,
            comment: None,
            encoding: TextEncoding::UTF_8,
            no_header: false,
            skip_lines: 0,
            drop_preamble: false,
            max_record: MAX_RECORD,
            ragged: Ragged::Refuse,
            missing: Missing::Error,
            max_ratio: super::compress::MAX_RATIO,
            chunk: CHUNK,
        }
    }
}

/// Masks a CSV from `input` to `output`.
///
/// # Errors
/// Anything that makes the table uncertain (docs/spec.md); `output` may then have been written in part.
pub fn mask(
    input: &mut (dyn Read + Send),
    output: &mut (dyn Write + Send),
    job: &Job<'_>,
    options: &CsvOptions,
) -> Result<TableReport> {
    let mut blocks = Blocks::new(input, options.chunk);
    let layout = layout(&mut blocks, job.rules, options)?;
    let masker = Masker::new(&layout, job.rules, options.ragged, options.max_record)?;
    let mut commit = Commit::new(&masker, output, options.max_record);
    let before = blocks.take(layout.start);
    commit.write(&before[..layout.mark])?;
    let (preamble, header) = before[layout.mark..].split_at(layout.preamble);
    if !options.drop_preamble {
        commit.write(preamble)?;
    }
    commit.write(&layout.drops.header(header, &layout.header, layout.encoding, layout.dialect.quote))?;
    pipeline::ordered(
        job.workers,
        || blocks.next(|bytes| cut(bytes, &layout), job.progress, masker.spare.take()),
        |block| masker.mask(block),
        |done| commit.take(done),
    )?;
    Ok(commit.report)
}

/// Looks at the start of a file until its layout is known.
fn layout(blocks: &mut Blocks<'_>, rules: &Rules, options: &CsvOptions) -> Result<Layout> {
    let mut length = 0;
    loop {
        length += options.chunk;
        let (start, ended) = blocks.look(length)?;
        match Layout::find(start, ended, rules, options)? {
            Found::Layout(layout) => return Ok(*layout),
            Found::NeedMore if ended => return Err(too_long(options.max_record)),
            Found::NeedMore => {}
        }
    }
}

/// Where to cut `bytes`: at the last line start from which a record of the right width can be read, else at the last line start.
fn cut(bytes: &[u8], layout: &Layout) -> usize {
    const TRIES: usize = 64;
    let unit = layout.encoding.unit();
    let whole = bytes.len() / unit * unit;
    let mut buffer = Vec::new();
    let text = layout.encoding.narrow(&bytes[..whole], &mut buffer);
    let mut end = text.len().saturating_sub(1); // a CR at the very end may belong to an LF
    let mut fallback = None;
    for _ in 0..TRIES {
        let Some(at) = text[..end].iter().rposition(|b| matches!(b, b'\n' | b'\r')) else { break };
        end = at;
        let start = at + 1;
        if text[at] == b'\r' && text[start] == b'\n' {
            continue;
        }
        let first = layout.dialect.first_record(&text[start..], false);
        if first.is_ok_and(|r| r.is_some_and(|(fields, _)| fields.len() == layout.width)) {
            return start * unit;
        }
        fallback.get_or_insert(start);
    }
    fallback.map_or(whole, |start| start * unit)
}

/// Puts the masked chunks together.
struct Commit<'a> {
    masker: &'a Masker<'a>,
    output: &'a mut (dyn Write + Send),
    /// The start of a record whose end the chunks so far do not hold.
    left: Vec<u8>,
    records: u64,
    lines: u64,
    report: TableReport,
    max_record: usize,
}

impl<'a> Commit<'a> {
    fn new(masker: &'a Masker<'a>, output: &'a mut (dyn Write + Send), max_record: usize) -> Self {
        let layout = masker.layout;
        let columns = layout.columns.found.iter().zip(&layout.columns.rules).map(|(i, rule)| ColumnReport {
            name: layout.names[*i].clone(),
            number: (0..=*i).filter(|i| !layout.columns.dropped.contains(i)).count(),
            rule: *rule,
            ..Default::default()
        });
        let text = TextLayout { encoding: layout.encoding, delimiter: layout.dialect.delimiter.unwrap_or(b',') };
        let missing = layout.columns.missing.clone();
        let names = |of: &dyn Fn(usize) -> bool| (0..layout.width).filter(|i| of(*i)).map(|i| layout.names[i].clone()).collect();
        let dropped = names(&|i| layout.columns.dropped.contains(&i));
        let kept = names(&|i| !layout.columns.dropped.contains(&i) && !layout.columns.found.contains(&i));
        let columns = columns.collect();
        let report = TableReport { columns, dropped, kept, missing, layout: Some(text), ..Default::default() };
        Self { masker, output, left: Vec::new(), records: layout.records, lines: layout.lines, report, max_record }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.write_all(bytes).map_err(|e| Error::io("cannot write", e))
    }

    fn take(&mut self, mut done: Done) -> Result<()> {
        if !self.left.is_empty() {
            let mut bytes = std::mem::take(&mut self.left);
            bytes.extend_from_slice(&done.chunk.bytes);
            done = self.masker.mask(Block { bytes, last: done.chunk.last });
        }
        if let Some(error) = done.error {
            return Err(error.at(|p| {
                p.record = Some(self.records + done.records + 1);
                p.line = Some(self.lines + done.lines + 1);
            }));
        }
        self.write(&done.out)?;
        self.left = done.chunk.bytes.split_off(done.consumed);
        self.masker.spare.give(done.chunk.bytes);
        self.masker.spare_out.give(done.out);
        if self.left.len() > self.max_record {
            let (record, line) = (self.records + done.records + 1, self.lines + done.lines + 1);
            return Err(too_long(self.max_record).at(|p| (p.record, p.line) = (Some(record), Some(line))));
        }
        self.records += done.records;
        self.lines += done.lines;
        let report = &mut self.report;
        report.rows += done.records;
        report.long_records += done.long;
        report.short_records += done.short;
        for (column, masked) in report.columns.iter_mut().zip(done.masked) {
            column.masked += masked;
            column.missing += done.records - masked;
        }
        Ok(())
    }
}
