//! A CSV as rows of text, for those who only look. A guess of a record's start that was wrong is looked at again, as when masking.

use std::borrow::Cow;
use std::io::Read;

use super::chunk::Ragged;
use super::layout::{Layout, fault_error, too_long};
use super::scan::{Field, Scanned, Visitor};
use super::{Block, Blocks, CsvOptions, cut, layout};
use crate::error::{Error, Result};
use crate::pipeline;
use crate::policy::{Candidate, Rules, Unlisted};
use crate::table::rows::{BEYOND, Columns, Looking, Rows};
use crate::table::text::TextEncoding;

/// What came of a block.
struct Done<R> {
    block: Block,
    result: R,
    scanned: Scanned,
    error: Option<Error>,
}

/// Looks through a CSV; see [`crate::table::rows::look`].
///
/// # Errors
/// Anything that makes the table uncertain, records of another length apart.
pub(in crate::table) fn look<R: Send>(
    input: &mut (dyn Read + Send),
    looking: &Looking<'_>,
    columns: impl FnOnce(&Columns) -> Result<()>,
    work: impl Fn(&Rows<'_>) -> R + Sync,
    mut each: impl FnMut(R, u64, u64) -> Result<()> + Send,
) -> Result<Columns> {
    let options = looking.options;
    let mut blocks = Blocks::new(input, options.chunk);
    let layout = layout(&mut blocks, &Rules::new(Vec::new(), Unlisted::Keep), options)?;
    let mut candidates = layout.candidates.clone();
    candidates.push(Candidate { path: vec![BEYOND.into()], number: 0 });
    let found = Columns { types: vec![None; candidates.len()], candidates, metadata: Vec::new() };
    columns(&found)?;
    blocks.take(layout.start);
    let one = |block: Block| read(block, &layout, options, &work);
    let (mut left, mut records, mut lines) = (Vec::new(), layout.records, layout.lines);
    pipeline::ordered(
        looking.workers,
        || blocks.next(|bytes| cut(bytes, &layout), looking.progress, Vec::new()),
        one,
        |mut done| {
            if !left.is_empty() {
                let mut bytes = std::mem::take(&mut left);
                bytes.extend_from_slice(&done.block.bytes);
                done = one(Block { bytes, last: done.block.last });
            }
            let Done { mut block, result, scanned, error } = done;
            let here = |error: Error| {
                error.at(|p| (p.record, p.line) = (Some(records + scanned.records + 1), Some(lines + scanned.lines + 1)))
            };
            if let Some(error) = error {
                return Err(here(error));
            }
            left = block.bytes.split_off(scanned.consumed * layout.encoding.unit());
            if left.len() > options.max_record {
                return Err(here(too_long(options.max_record)));
            }
            each(result, records + 1, scanned.records)?;
            records += scanned.records;
            lines += scanned.lines;
            Ok(())
        },
    )?;
    Ok(found)
}

/// Fields of whole records.
struct Fields<'l> {
    layout: &'l Layout,
    refuses: bool,
    found: Vec<Field>,
    /// Where each record ends among them.
    ends: Vec<usize>,
}

impl Visitor for Fields<'_> {
    fn field(&mut self, field: Field) {
        self.found.push(field);
    }

    fn record(&mut self, _: usize, _: usize) -> bool {
        let start = self.ends.last().copied().unwrap_or(0);
        if self.refuses && self.found.len() - start != self.layout.width {
            return false;
        }
        self.ends.push(self.found.len());
        true
    }
}

fn read<R>(block: Block, layout: &Layout, options: &CsvOptions, work: impl Fn(&Rows<'_>) -> R) -> Done<R> {
    let (encoding, unit) = (layout.encoding, layout.encoding.unit());
    let mut buffer = Vec::new();
    let text = encoding.narrow(&block.bytes, &mut buffer);
    let mut fields = Fields { layout, refuses: options.ragged == Ragged::Refuse, found: Vec::new(), ends: Vec::new() };
    let scanned = layout.dialect.scan(text, block.last, &mut fields);
    let error = scanned.fault.map(|fault| match fault {
        super::scan::Fault::Stopped => {
            Error::malformed("a record has another number of fields than the header").hint("--ragged keep")
        }
        fault => fault_error(fault),
    });
    fields.found.truncate(fields.ends.last().copied().unwrap_or(0));
    // Texts that are not in UTF-8, or have escapes.
    let mut arena = String::new();
    let as_it_is = if encoding == TextEncoding::UTF_8 { simdutf8::basic::from_utf8(&block.bytes).ok() } else { None };
    let mut spans = Vec::with_capacity(fields.found.len());
    for field in &fields.found {
        if as_it_is.is_some() && !field.escaped {
            spans.push((false, field.start, field.end));
            continue;
        }
        let raw = &block.bytes[field.start * unit..field.end * unit];
        let value = decoded(encoding, raw);
        let start = arena.len();
        if field.escaped {
            let mut plain = Vec::new();
            layout.dialect.unescape(value.as_bytes(), &mut plain);
            arena.push_str(&String::from_utf8_lossy(&plain));
        } else {
            arena.push_str(&value);
        }
        spans.push((true, start, arena.len()));
    }
    let whole = as_it_is.unwrap_or("");
    let mut rows = Rows::default();
    let mut next = 0;
    for end in &fields.ends {
        rows.begin();
        for (column, (in_arena, start, stop)) in spans[next..*end].iter().enumerate() {
            let text = if *in_arena { &arena[*start..*stop] } else { &whole[*start..*stop] };
            rows.push(column.min(layout.width) as u32, text);
        }
        next = *end;
    }
    let result = work(&rows);
    Done { block, result, scanned, error }
}

/// A text in its encoding; what does not decode is read as Windows-1252: what is not masked may be in any, and is to be seen all the same.
fn decoded(encoding: TextEncoding, raw: &[u8]) -> Cow<'_, str> {
    match encoding.decode(raw) {
        Some(Cow::Borrowed(bytes)) => String::from_utf8_lossy(bytes),
        Some(Cow::Owned(bytes)) => String::from_utf8(bytes).unwrap_or_default().into(),
        None => encoding_rs::WINDOWS_1252.decode_without_bom_handling(raw).0,
    }
}
