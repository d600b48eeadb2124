//! A Parquet or Arrow file as CSV, for a recipient that reads neither.

use std::fs::File;
use std::io::{BufReader, Read, Seek, Write};

use arrow_array::{BooleanArray, RecordBatch};
use arrow_csv::WriterBuilder;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use arrow_select::filter::filter_record_batch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::{Format, ipc};
use crate::error::{Error, Result};

/// Rows that are held in memory at a time.
const BATCH: usize = 8192;

/// Writes the rows of a Parquet or Arrow file as CSV in UTF-8 with a header; nulls become empty fields. Of rows that are chosen, those alone.
///
/// # Errors
/// A file that does not read, or a nested or binary column, which has no form in a CSV.
pub fn to_csv(mut input: File, format: Format, output: &mut (dyn Write + Send), keep: Option<&[bool]>) -> Result<()> {
    input.rewind().map_err(|e| Error::io("cannot read", e))?;
    match format {
        Format::Parquet => {
            let builder = ParquetRecordBatchReaderBuilder::try_new(input).map_err(|e| damaged(&e))?;
            let schema = builder.schema().clone();
            write(&schema, builder.with_batch_size(BATCH).build().map_err(|e| damaged(&e))?, output, keep)
        }
        Format::Ipc => {
            let mut start = [0; ipc::MAGIC.len()];
            let is_file = input.read_exact(&mut start).is_ok() && start == *ipc::MAGIC;
            input.rewind().map_err(|e| Error::io("cannot read", e))?;
            if is_file {
                let rows = FileReader::try_new(BufReader::new(input), None).map_err(|e| damaged(&e))?;
                write(&rows.schema(), rows, output, keep)
            } else {
                let rows = StreamReader::try_new(BufReader::new(input), None).map_err(|e| damaged(&e))?;
                write(&rows.schema(), rows, output, keep)
            }
        }
        Format::Csv | Format::Ndjson => Err(Error::unsupported("this is text already")),
    }
}

fn damaged(e: &dyn std::fmt::Display) -> Error {
    Error::malformed(format!("the file cannot be read as a table: {e}"))
}

fn write(
    schema: &SchemaRef,
    rows: impl Iterator<Item = std::result::Result<RecordBatch, ArrowError>>,
    output: &mut (dyn Write + Send),
    keep: Option<&[bool]>,
) -> Result<()> {
    let refuse = |what: &str, name: &str| Err(Error::unsupported(what).at(|p| p.column = Some(name.to_owned())));
    let plain = |kind: &DataType| match kind {
        DataType::Dictionary(_, values) => (**values).clone(),
        kind => kind.clone(),
    };
    for field in schema.fields() {
        let kind = plain(field.data_type());
        if kind.is_nested() {
            return refuse("a nested column cannot be written as CSV", field.name());
        }
        if matches!(kind, DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)) {
            return refuse("a binary column cannot be written as CSV", field.name());
        }
    }
    let schema = schema.clone();
    let mut writer = WriterBuilder::new().with_header(true).build(output);
    let mut row = 0;
    // A table without rows still has a header.
    let empty = RecordBatch::new_empty(schema);
    for batch in std::iter::once(Ok(empty)).chain(rows) {
        // Arrow's words about a value that it cannot write may quote it.
        let mut batch = batch.map_err(|_: ArrowError| damaged(&"a page is damaged"))?;
        if let Some(keep) = keep {
            let here = keep.get(row..).unwrap_or_default();
            let mask: BooleanArray = (0..batch.num_rows()).map(|i| Some(here.get(i).is_some_and(|k| *k))).collect();
            row += batch.num_rows();
            batch = filter_record_batch(&batch, &mask).map_err(|_| damaged(&"a batch cannot be filtered"))?;
        }
        writer.write(&batch).map_err(|e| match e {
            ArrowError::IoError(_, e) => Error::io("cannot write", e),
            _ => Error::unsupported("a value cannot be written as CSV"),
        })?;
    }
    Ok(())
}
