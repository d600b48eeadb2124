//! Parquet and Arrow files as rows of text, by the `arrow` crates: for those who only look.

use std::fs::File;
use std::io::Read;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::rows::{Columns, Looking, Rows};
use crate::error::{Error, Result};
use crate::pipeline;
use crate::policy::{Candidate, LIST_STEP};

/// Rows of a batch.
const BATCH: usize = 8192;

/// Batches of a schema.
pub(super) struct Batches {
    schema: SchemaRef,
    metadata: Vec<(String, String)>,
    all: Box<dyn Iterator<Item = std::result::Result<RecordBatch, ArrowError>> + Send>,
}

/// The batches of a Parquet file.
///
/// # Errors
/// One that does not read.
pub(super) fn parquet(file: File) -> Result<Batches> {
    let damaged = |_| Error::malformed("the Parquet file cannot be read as a table");
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(damaged)?;
    let schema = builder.schema().clone();
    let entries = builder.metadata().file_metadata().key_value_metadata().into_iter().flatten();
    // Base64 of the schema, which has its own below.
    let entries = entries.filter(|e| e.key != "ARROW:schema").map(|e| (e.key.clone(), e.value.clone().unwrap_or_default()));
    let metadata = entries.chain(metadata(&schema)).collect();
    let batches = builder.with_batch_size(BATCH).build().map_err(damaged)?;
    Ok(Batches { schema, metadata, all: Box::new(batches) })
}

/// The batches of an Arrow file or stream.
///
/// # Errors
/// One that does not read.
pub(super) fn ipc(mut input: Box<dyn Read + Send>) -> Result<Batches> {
    // A file is a stream between a mark and a footer.
    let mut start = [0; 8];
    let mut length = 0;
    while length < start.len() {
        match input.read(&mut start[length..]).map_err(|e| Error::io("cannot read", e))? {
            0 => break,
            n => length += n,
        }
    }
    let start = if start.starts_with(super::ipc::MAGIC) { Vec::new() } else { start[..length].to_vec() };
    let reader = StreamReader::try_new(std::io::Cursor::new(start).chain(input), None);
    let reader = reader.map_err(|_| Error::malformed("the Arrow file cannot be read as a table"))?;
    let schema = reader.schema();
    let metadata = metadata(&schema).collect();
    Ok(Batches { schema, metadata, all: Box::new(reader) })
}

/// What a schema and its fields say beside names and types.
fn metadata(schema: &SchemaRef) -> impl Iterator<Item = (String, String)> {
    let fields = schema.flattened_fields().into_iter().flat_map(|f| f.metadata().clone());
    schema.metadata().clone().into_iter().chain(fields.collect::<Vec<_>>())
}

/// A leaf of the schema, in the order in which [`cells`] meets them.
struct Leaf {
    candidate: Candidate,
    data_type: DataType,
}

/// Looks through batches; see [`super::rows::look`].
///
/// # Errors
/// A damaged file, and those of `each`.
pub(super) fn look<R: Send>(
    mut batches: Batches,
    looking: &Looking<'_>,
    columns: impl FnOnce(&Columns) -> Result<()>,
    work: impl Fn(&Rows<'_>) -> R + Sync,
    mut each: impl FnMut(R, u64, u64) -> Result<()> + Send,
) -> Result<Columns> {
    let mut leaves = Vec::new();
    for (i, field) in batches.schema.fields().iter().enumerate() {
        below(field, &mut vec![field.name().clone()], i + 1, &mut leaves);
    }
    let found = Columns {
        candidates: leaves.iter().map(|l| l.candidate.clone()).collect(),
        types: leaves.iter().map(|l| Some(l.data_type.to_string())).collect(),
        metadata: batches.metadata.clone(),
    };
    columns(&found)?;
    let mut first = 1;
    pipeline::ordered(
        looking.workers,
        || {
            // Arrow's words about a value that it cannot read may quote it.
            let batch = batches.all.next().transpose().map_err(|_| Error::malformed("a page or batch is damaged"))?;
            if let Some(batch) = &batch {
                (looking.progress)(batch.get_array_memory_size() as u64);
            }
            Ok(batch)
        },
        |batch| rows(&batch, &work).map(|result| (result, batch.num_rows() as u64)),
        |done| {
            let (result, rows) = done?;
            each(result, first, rows)?;
            first += rows;
            Ok(())
        },
    )?;
    Ok(found)
}

/// The leaves of a field, which belongs to the column of this number.
fn below(field: &Field, path: &mut Vec<String>, number: usize, out: &mut Vec<Leaf>) {
    let mut child = |inner: &Field, step: &str| {
        path.push(step.into());
        below(inner, path, number, out);
        path.pop();
    };
    match field.data_type() {
        DataType::Struct(fields) => fields.iter().for_each(|f| child(f, f.name())),
        DataType::List(inner) | DataType::LargeList(inner) | DataType::FixedSizeList(inner, _) => child(inner, LIST_STEP),
        DataType::Map(entries, _) => {
            if let DataType::Struct(pair) = entries.data_type() {
                pair.iter().zip(["key", "value"]).for_each(|(inner, name)| child(inner, name));
            }
        }
        data_type => {
            out.push(Leaf { candidate: Candidate { path: path.clone(), number }, data_type: data_type.clone() });
        }
    }
}

/// A cell whose row, column and place in the buffer of texts are known.
struct Placed {
    row: usize,
    column: u32,
    start: usize,
    end: usize,
}

fn rows<R>(batch: &RecordBatch, work: impl Fn(&Rows<'_>) -> R) -> Result<R> {
    let mut cells = Cells { buffer: String::new(), placed: Vec::new(), column: 0 };
    let all: Vec<usize> = (0..batch.num_rows()).collect();
    for array in batch.columns() {
        cells.array(array, &all)?;
    }
    // By row, and within it in the order of the columns, as they were met.
    cells.placed.sort_by_key(|c| c.row);
    let mut rows = Rows::default();
    let mut placed = cells.placed.iter().peekable();
    for row in 0..batch.num_rows() {
        rows.begin();
        while let Some(cell) = placed.next_if(|c| c.row == row) {
            rows.push(cell.column, &cells.buffer[cell.start..cell.end]);
        }
    }
    Ok(work(&rows))
}

/// The values of a binary array.
fn bytes_of(array: &dyn Array) -> Option<Vec<Option<&[u8]>>> {
    Some(match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().iter().collect(),
        DataType::LargeBinary => array.as_binary::<i64>().iter().collect(),
        DataType::BinaryView => array.as_binary_view().iter().collect(),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().iter().collect(),
        _ => return None,
    })
}

struct Cells {
    buffer: String,
    placed: Vec<Placed>,
    /// The next leaf.
    column: u32,
}

impl Cells {
    /// The cells of an array, whose values belong to these rows; a row that is none has no value.
    fn array(&mut self, array: &dyn Array, rows: &[usize]) -> Result<()> {
        /// No row: what a null list or struct holds.
        const NONE: usize = usize::MAX;
        let of = |lengths: &mut dyn Iterator<Item = usize>, rows: &[usize]| -> Vec<usize> {
            rows.iter().zip(lengths).flat_map(|(row, length)| std::iter::repeat_n(*row, length)).collect()
        };
        let there = |i: usize| if array.is_null(i) { NONE } else { rows[i] };
        match array.data_type() {
            DataType::Struct(_) => {
                let inner: Vec<usize> = (0..array.len()).map(there).collect();
                return array.as_struct().columns().iter().try_for_each(|child| self.array(child, &inner));
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                let (first, last) = (list.offsets()[0], list.offsets()[list.len()]);
                let values = list.values().slice(first as usize, (last - first) as usize);
                return self.array(&values, &of(&mut list.offsets().lengths(), rows));
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                let (first, last) = (list.offsets()[0], list.offsets()[list.len()]);
                let values = list.values().slice(first as usize, (last - first) as usize);
                return self.array(&values, &of(&mut list.offsets().lengths(), rows));
            }
            DataType::FixedSizeList(_, n) => {
                let list = array.as_fixed_size_list();
                let inner: Vec<usize> = (0..array.len()).flat_map(|i| std::iter::repeat_n(there(i), *n as usize)).collect();
                return self.array(list.values(), &inner);
            }
            DataType::Map(..) => {
                let map = array.as_map();
                let (first, last) = (map.offsets()[0], map.offsets()[map.len()]);
                let entries = map.entries().slice(first as usize, (last - first) as usize);
                return self.array(&entries, &of(&mut map.offsets().lengths(), rows));
            }
            _ => {}
        }
        let column = self.column;
        self.column += 1;
        if let Some(texts) = bytes_of(array) {
            // Text without its annotation, as old writers leave it.
            for (row, bytes) in rows.iter().zip(texts).filter(|(row, _)| **row != NONE) {
                let Some(bytes) = bytes else { continue };
                let start = self.buffer.len();
                self.buffer.push_str(&String::from_utf8_lossy(bytes));
                self.placed.push(Placed { row: *row, column, start, end: self.buffer.len() });
            }
            return Ok(());
        }
        let unreadable = |_| Error::unsupported("a type that cannot be shown as text");
        let options = FormatOptions::default().with_display_error(true);
        let formatter = ArrayFormatter::try_new(array, &options).map_err(unreadable)?;
        for (i, row) in rows.iter().enumerate().filter(|(i, row)| **row != NONE && !array.is_null(*i)) {
            let start = self.buffer.len();
            formatter.value(i).write(&mut self.buffer).map_err(unreadable)?;
            self.placed.push(Placed { row: *row, column, start, end: self.buffer.len() });
        }
        Ok(())
    }
}
