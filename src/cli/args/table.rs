//! What many commands share: how tables are read, what a pseudonym looks like, where the key comes from, how the run goes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hmask::table::TextEncoding;
use hmask::table::csv::{CsvOptions, Ragged};
use hmask::{Columns, Error, Missing, Result};

/// How tables are read and which columns are masked.
#[derive(Args)]
#[command(next_help_heading = "Table")]
pub(in crate::cli) struct TableArgs {
    /// Columns to mask, comma separated: names, #N, globs, paths such as contact.email and phones[]
    #[arg(long, short, value_name = "COLS")]
    pub columns: Option<String>,
    /// Policy that says what becomes of which column [default without -c: hmask.toml beside the input, or in a folder above it]
    #[arg(long, short, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Leave out all columns but these, masked or not
    #[arg(long, value_name = "COLS")]
    pub keep: Option<String>,
    /// Leave out all rows but those of which this condition in SQL holds, such as "age > 30"
    #[cfg(feature = "analyse")]
    #[arg(long = "where", value_name = "SQL")]
    pub filter: Option<String>,
    /// A listed column that the table does not have
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub missing: MissingArg,
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// How tables are read.
#[derive(Args)]
#[command(next_help_heading = "Table")]
pub(in crate::cli) struct ReadingArgs {
    /// Format of the input, if name and content do not tell: csv, ndjson, parquet, arrow
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
    /// Delimiter of a CSV: one character, or tab. Default: the one of , ; tab | under which the columns are found
    #[arg(long, short, value_name = "CHAR", allow_hyphen_values = true)]
    pub delimiter: Option<String>,
    /// Quote of a CSV; '' if quotes mean nothing
    #[arg(long, default_value = "\"", value_name = "CHAR", allow_hyphen_values = true)]
    pub quote: String,
    /// Within quotes of a CSV, makes a letter of the character behind it (backslash dialects)
    #[arg(long, value_name = "CHAR", allow_hyphen_values = true)]
    pub escape: Option<String>,
    /// Begins lines of a CSV that are passed over
    #[arg(long, value_name = "CHAR", allow_hyphen_values = true)]
    pub comment: Option<String>,
    /// Encoding of a CSV, if no byte order mark sets it
    #[arg(long, default_value = "utf-8", value_name = "NAME")]
    pub encoding: String,
    /// The first record is data: columns are named by number
    #[arg(long)]
    pub no_header: bool,
    /// Lines before the header, kept as they are
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub skip_lines: usize,
    /// Leave these lines out of the output
    #[arg(long)]
    pub drop_preamble: bool,
    /// Bytes that a record of a CSV may have
    #[arg(long, default_value_t = 16 << 20, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    pub max_record: u32,
    /// How many times larger than the compressed file its text may be, beyond 64 MiB
    #[arg(long, default_value_t = hmask::table::compress::MAX_RATIO, value_name = "N")]
    pub max_ratio: u32,
    /// Records with another number of fields than the header: refuse the file, or keep them without surplus fields
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub ragged: RaggedArg,
}

#[derive(Clone, Copy, Default, ValueEnum)]
pub(in crate::cli) enum MissingArg {
    /// An error, before anything is written
    #[default]
    Error,
    /// A warning
    Ignore,
}

#[derive(Clone, Copy, Default, ValueEnum)]
pub(in crate::cli) enum RaggedArg {
    #[default]
    Refuse,
    Keep,
}

/// What a pseudonym looks like and how far it carries.
#[derive(Args)]
#[command(next_help_heading = "Pseudonym")]
pub(in crate::cli) struct FormArgs {
    /// Hex digits: 16 to 64, even [default: 16]
    #[arg(long, value_name = "N")]
    pub length: Option<usize>,
    /// Text before the digits; p_ keeps spreadsheets from reading a number
    #[arg(long, value_name = "TEXT")]
    pub prefix: Option<String>,
    /// Where the same value has the same pseudonym: stable, upload, recipient:NAME, project:NAME [default: stable]
    #[arg(long, value_name = "SCOPE")]
    pub scope: Option<String>,
    /// Empty values: keep them, or hash the empty text [default: keep]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub empty: Option<EmptyArg>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum EmptyArg {
    Keep,
    Hash,
}

/// Where the key comes from: `HMASK_KEY` or the file of `HMASK_KEY_FILE`, unless one of these says otherwise.
#[derive(Args)]
#[expect(clippy::struct_field_names, reason = "these are the names of the options")]
#[command(next_help_heading = "Key")]
pub(in crate::cli) struct KeyArgs {
    /// Environment variable that holds the key
    #[arg(long, value_name = "NAME", group = "key_source")]
    pub key_env: Option<String>,
    /// File that holds the key; one final newline is dropped
    #[arg(long, value_name = "FILE", group = "key_source")]
    pub key_file: Option<PathBuf>,
    /// Open file descriptor that gives the key
    #[arg(long, value_name = "N", group = "key_source")]
    pub key_fd: Option<u32>,
    /// Command that prints the key, such as a vault's client
    #[arg(long, value_name = "CMD", group = "key_source")]
    pub key_command: Option<String>,
}

#[derive(Args)]
#[command(next_help_heading = "Run")]
pub(in crate::cli) struct RunArgs {
    /// Threads that hash [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// Kernel of the hash: avx512, sha-ni, armv8, avx2, portable; for tests and benchmarks
    #[arg(long, value_name = "NAME", hide = true)]
    pub kernel: Option<String>,
    /// Progress bar
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    pub progress: ProgressArg,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ProgressArg {
    /// On a terminal
    #[default]
    Auto,
    Always,
    Never,
}

impl TableArgs {
    /// The columns to mask, if they are named.
    pub(in crate::cli) fn columns(&self) -> Result<Option<Columns>> {
        self.columns.as_deref().map(Columns::parse).transpose()
    }

    /// How to read a CSV.
    pub(in crate::cli) fn csv_options(&self) -> Result<CsvOptions> {
        let missing = match self.missing {
            MissingArg::Error => Missing::Error,
            MissingArg::Ignore => Missing::Ignore,
        };
        Ok(CsvOptions { missing, ..self.reading.csv_options()? })
    }
}

impl ReadingArgs {
    /// How to read a CSV.
    pub(in crate::cli) fn csv_options(&self) -> Result<CsvOptions> {
        let delimiter = self.delimiter.as_deref().map(character).transpose()?;
        let quote = if self.quote.is_empty() { None } else { Some(character(&self.quote)?) };
        let options = CsvOptions {
            encoding: TextEncoding::from_label(&self.encoding)?,
            no_header: self.no_header,
            skip_lines: self.skip_lines,
            drop_preamble: self.drop_preamble,
            max_record: self.max_record as usize,
            max_ratio: self.max_ratio,
            ragged: match self.ragged {
                RaggedArg::Refuse => Ragged::Refuse,
                RaggedArg::Keep => Ragged::Keep,
            },
            ..CsvOptions::default()
        };
        let optional = |c: &Option<String>| c.as_deref().map(character).transpose();
        options.dialect(delimiter, quote, optional(&self.escape)?, optional(&self.comment)?)
    }
}

impl ReadingArgs {
    /// Whether the table is written as few readers expect it.
    pub(in crate::cli) fn has_own_dialect(&self) -> bool {
        self.no_header || self.quote != "\"" || self.escape.is_some() || self.comment.is_some()
    }
}

fn character(text: &str) -> Result<char> {
    let mut chars = text.chars();
    match (text, chars.next(), chars.next()) {
        ("tab" | "\\t", ..) => Ok('\t'),
        (_, Some(c), None) => Ok(c),
        _ => Err(Error::usage(format!("{text:?} is not one character"))),
    }
}
