//! A Parquet file as CSV, for a recipient that reads no Parquet.

use std::fs::File;
use std::io::Write;

use arrow_array::BooleanArray;
use arrow_csv::WriterBuilder;
use arrow_schema::{ArrowError, DataType};
use arrow_select::filter::filter_record_batch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::error::{Error, Result};

/// Rows that are held in memory at a time.
const BATCH: usize = 8192;

/// Writes the rows of a Parquet file as CSV in UTF-8 with a header; nulls become empty fields. Of rows that are chosen, those alone.
///
/// # Errors
/// A file that does not read, or a nested column, which has no form in a CSV.
pub fn parquet_to_csv(input: File, output: &mut dyn Write, keep: Option<&[bool]>) -> Result<()> {
    let damaged = |e: &dyn std::fmt::Display| Error::malformed(format!("the Parquet file cannot be read as a table: {e}"));
    let builder = ParquetRecordBatchReaderBuilder::try_new(input).map_err(|e| damaged(&e))?;
    if let Some(nested) = builder.schema().fields().iter().find(|f| f.data_type().is_nested()) {
        return Err(Error::unsupported("a nested column cannot be written as CSV").at(|p| p.column = Some(nested.name().clone())));
    }
    if let Some(bytes) = builder
        .schema()
        .fields()
        .iter()
        .find(|f| matches!(f.data_type(), DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_)))
    {
        return Err(Error::unsupported("a binary column cannot be written as CSV").at(|p| p.column = Some(bytes.name().clone())));
    }
    let schema = builder.schema().clone();
    let rows = builder.with_batch_size(BATCH).build().map_err(|e| damaged(&e))?;
    let mut writer = WriterBuilder::new().with_header(true).build(output);
    let mut row = 0;
    // A table without rows still has a header.
    let empty = arrow_array::RecordBatch::new_empty(schema);
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
