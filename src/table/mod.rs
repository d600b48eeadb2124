//! A table in, the same table out: formats, compression, text.

mod arrow;
mod blocks;
pub mod compress;
pub mod csv;
pub mod export;
pub mod ipc;
mod metadata;
pub mod ndjson;
pub mod parquet;
pub mod rows;
mod text;

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use compress::Compression;
use csv::CsvOptions;
pub use text::TextEncoding;

use crate::error::{Error, Result};
use crate::policy::Rules;

/// What is to be done with a table, whatever its format.
pub struct Job<'a> {
    /// What becomes of which column.
    pub rules: &'a Rules,
    /// Threads that hash.
    pub workers: usize,
    /// Called with the number of input bytes taken since the last call.
    pub progress: &'a (dyn Fn(u64) + Sync),
}

/// What became of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableReport {
    /// Data records or rows.
    pub rows: u64,
    /// The columns whose values changed.
    pub columns: Vec<ColumnReport>,
    /// Names of the columns that left the table, and of those that stayed as they were, where columns have names of their own.
    pub dropped: Vec<String>,
    /// See above.
    pub kept: Vec<String>,
    /// Columns that were wanted and are not there.
    pub missing: Vec<String>,
    /// Records from which surplus fields were dropped.
    pub long_records: u64,
    /// Records with fewer fields than the header.
    pub short_records: u64,
    /// What the user should know, one sentence each.
    pub warnings: Vec<String>,
    /// How a CSV is written.
    pub layout: Option<TextLayout>,
}

/// How a CSV is written, as far as its reader has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLayout {
    /// Which bytes are which characters.
    pub encoding: TextEncoding,
    /// What stands between two fields.
    pub delimiter: u8,
}

impl Default for TextLayout {
    /// Commas, in UTF-8.
    fn default() -> Self {
        Self { encoding: TextEncoding::UTF_8, delimiter: b',' }
    }
}

/// What became of a column whose values changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnReport {
    /// Its name, as a column list names it.
    pub name: String,
    /// The number of its top-level column in the output, from 1; 0 where columns have none.
    pub number: usize,
    /// Its rule among those of the job.
    pub rule: usize,
    /// Values that became pseudonyms, or what else its treatment makes of them.
    pub masked: u64,
    /// Nulls and empty values, which stayed.
    pub missing: u64,
}

/// The formats of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Delimited text.
    Csv,
    /// One JSON object a line.
    Ndjson,
    /// Apache Parquet.
    Parquet,
    /// Apache Arrow's file or stream of batches; Feather is the file.
    Ipc,
}

/// Where a table comes from.
pub enum Input {
    /// A file that can be read at any place.
    File(File),
    /// A pipe, with what has been read of it already in front.
    Stream(Box<dyn Read + Send>),
}

impl Format {
    /// Parses the name of a format, as `--format` takes it.
    ///
    /// # Errors
    /// An unknown name.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "csv" | "tsv" | "txt" => Ok(Self::Csv),
            "ndjson" | "jsonl" => Ok(Self::Ndjson),
            "parquet" => Ok(Self::Parquet),
            "arrow" | "feather" | "ipc" => Ok(Self::Ipc),
            other => Err(Error::usage(format!("unknown format {other:?}: csv, ndjson, parquet and arrow are known"))),
        }
    }

    /// The format that a file's name tells, behind the ending of a compression.
    pub fn from_name(path: &Path) -> Option<Self> {
        let name = Compression::strip(path.file_name()?.to_str()?).to_ascii_lowercase();
        match name.rsplit_once('.')?.1 {
            "csv" | "tsv" | "txt" | "tab" => Some(Self::Csv),
            "ndjson" | "jsonl" => Some(Self::Ndjson),
            "parquet" | "pq" => Some(Self::Parquet),
            "arrow" | "feather" | "ipc" | "arrows" => Some(Self::Ipc),
            _ => None,
        }
    }

    /// The format that a file's first bytes tell; text is taken for CSV.
    pub fn from_magic(start: &[u8]) -> Self {
        if start.starts_with(parquet::MAGIC) {
            Self::Parquet
        } else if start.starts_with(ipc::MAGIC) || start.starts_with(ipc::STREAM_MAGIC) {
            Self::Ipc
        } else {
            Self::Csv
        }
    }

    /// Refuses a file whose first bytes are those of a format that hmask does not read, before it is taken for text.
    ///
    /// # Errors
    /// The first version of Feather, and zip archives such as Excel's.
    pub fn refuse_foreign(start: &[u8]) -> Result<()> {
        let what = if start.starts_with(ipc::FEATHER_1) {
            "a Feather file of version 1"
        } else if start.starts_with(b"PK\x03\x04") {
            "an Excel workbook or another zip archive"
        } else {
            return Ok(());
        };
        Err(Error::unsupported(format!("{what} is not supported yet; CSV, NDJSON, Parquet and Arrow are")))
    }

    /// Whether files of this format are lines of text.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Csv | Self::Ndjson)
    }

    /// The ending of a file of this format.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
            Self::Parquet => "parquet",
            Self::Ipc => "arrow",
        }
    }
}

impl Input {
    /// The same table without the rows that were not chosen: each byte of the others stands as it stood.
    ///
    /// # Errors
    /// A format of which rows cannot be left out.
    pub fn chosen(self, keep: Vec<bool>, format: Format, options: &CsvOptions) -> Result<Self> {
        let plain = match self {
            Self::File(file) => compress::reader(Box::new(file), options.max_ratio)?,
            Self::Stream(stream) => compress::reader(stream, options.max_ratio)?,
        };
        match format {
            Format::Csv => Ok(Self::Stream(Box::new(csv::Select::new(plain, options, keep)))),
            Format::Ndjson => Ok(Self::Stream(Box::new(ndjson::Select::new(plain, keep)))),
            Format::Parquet | Format::Ipc => {
                Err(Error::unsupported("rows of a Parquet or Arrow file cannot be left out yet; of CSV and NDJSON they can"))
            }
        }
    }
}

/// Masks a table from `input` to `output`, which is compressed as `packing` says.
///
/// # Errors
/// Whatever makes the table uncertain or cannot be read or written; `output` may then have been written in part.
pub fn mask(
    input: Input,
    output: &mut (dyn Write + Send),
    format: Format,
    packing: Compression,
    job: &Job<'_>,
    options: &CsvOptions,
) -> Result<TableReport> {
    match (format, input) {
        (Format::Csv | Format::Ndjson | Format::Ipc, input) => {
            let mut plain: Box<dyn Read + Send> = match input {
                Input::File(file) => compress::reader(Box::new(file), options.max_ratio)?,
                Input::Stream(stream) => compress::reader(stream, options.max_ratio)?,
            };
            compress::write(output, packing, |out| match format {
                Format::Ndjson => ndjson::mask(&mut plain, out, job, options.missing),
                Format::Ipc => ipc::mask(&mut plain, out, job, options.missing),
                _ => csv::mask(&mut plain, out, job, options),
            })
        }
        (Format::Parquet, Input::File(file)) => parquet::mask(&file, output, job, options.missing),
        (Format::Parquet, Input::Stream(_)) => {
            Err(Error::unsupported("Parquet cannot be read from a pipe: its footer is at the end")
                .hint("hmask mask FILE.parquet"))
        }
    }
}
