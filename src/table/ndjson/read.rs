//! NDJSON as rows of text, for those who only look: a column is a path, numbered as it comes up.

use std::io::Read;

use serde_json::Value;

use super::{BLOCK, MAX_LINE, cut};
use crate::error::{Error, Result};
use crate::pipeline;
use crate::policy::LIST_STEP;
use crate::table::blocks::{Block, Blocks};
use crate::table::rows::{Columns, Looking, Names, Rows};

/// Looks through NDJSON; see [`crate::table::rows::look`].
///
/// # Errors
/// A line that is no JSON, and those of `each`.
pub(in crate::table) fn look<R: Send>(
    input: &mut (dyn Read + Send),
    looking: &Looking<'_>,
    columns: impl FnOnce(&Columns) -> Result<()>,
    work: impl Fn(&Rows<'_>) -> R + Sync,
    mut each: impl FnMut(R, u64, u64) -> Result<()> + Send,
) -> Result<Columns> {
    let names = Names::default();
    columns(&Columns::default())?;
    let mut blocks = Blocks::new(input, BLOCK);
    let one = |block: &Block| if ends_within_a_line(block) { None } else { Some(read(block, &names, &work)) };
    let (mut left, mut first): (Vec<u8>, u64) = (Vec::new(), 1);
    pipeline::ordered(
        looking.workers,
        || blocks.next(cut, looking.progress, Vec::new()),
        |block| (one(&block), block),
        |(mut done, mut block)| {
            if !left.is_empty() || done.is_none() {
                // A line that is longer than a block.
                left.append(&mut block.bytes);
                if left.len() > MAX_LINE {
                    return Err(Error::malformed(format!("a line is longer than {MAX_LINE} bytes")).at(|p| p.line = Some(first)));
                }
                block.bytes = std::mem::take(&mut left);
                done = one(&block);
            }
            let Some(done) = done else {
                left = block.bytes;
                return Ok(());
            };
            let (result, lines) = done.map_err(|(line, error)| error.at(|p| p.line = Some(first + line)))?;
            each(result, first, lines)?;
            first += lines;
            Ok(())
        },
    )?;
    let candidates = names.all();
    Ok(Columns { types: vec![None; candidates.len()], candidates, metadata: Vec::new() })
}

fn ends_within_a_line(block: &Block) -> bool {
    !block.last && block.bytes.last() != Some(&b'\n')
}

/// What came of a block, and how many lines it has; or the line from 0, and what is wrong.
type Looked<R> = std::result::Result<(R, u64), (u64, Error)>;

fn read<R>(block: &Block, names: &Names, work: impl Fn(&Rows<'_>) -> R) -> Looked<R> {
    let mut cells = Vec::new();
    let (mut lines, mut ends) = (0, Vec::new());
    let bytes = block.bytes.strip_prefix(super::MARK).unwrap_or(&block.bytes);
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        if !line.trim_ascii().is_empty() {
            let value: Value = serde_json::from_slice(line)
                .map_err(|e| (lines, Error::malformed(format!("the line is no JSON, at character {}", e.column()))))?;
            flatten(&value, &mut Vec::new(), names, &mut cells);
        }
        lines += 1;
        ends.push(cells.len());
    }
    let mut rows = Rows::default();
    let mut start = 0;
    for end in ends {
        rows.begin();
        cells[start..end].iter().for_each(|(column, text): &(u32, String)| rows.push(*column, text));
        start = end;
    }
    Ok((work(&rows), lines))
}

fn flatten(value: &Value, path: &mut Vec<String>, names: &Names, out: &mut Vec<(u32, String)>) {
    let text = match value {
        Value::Null => return,
        Value::Object(members) => {
            for (name, value) in members {
                path.push(name.clone());
                flatten(value, path, names, out);
                path.pop();
            }
            return;
        }
        Value::Array(items) => {
            path.push(LIST_STEP.into());
            items.iter().for_each(|item| flatten(item, path, names, out));
            path.pop();
            return;
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    out.push((names.number(path), text));
}
