//! What can be typed. Parsing has no side effects: nothing is read or opened here.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use hmask::table::TextEncoding;
use hmask::table::csv::{CsvOptions, Ragged};
use hmask::{Columns, Error, Form, Missing, Result};

/// Pseudonymise a table with keyed HMAC-SHA256, lend it for an hour, prove that it is gone.
#[derive(Parser)]
#[command(version, arg_required_else_help = true, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub log: LogArgs,
}

#[derive(Subcommand)]
pub enum Command {
    /// Print a new key: 64 hex digits from the system's generator
    Keygen,
    /// Mask columns of a table: the same table out, with pseudonyms in their place
    Mask(MaskArgs),
    /// Print the completions for a shell
    Completions { shell: clap_complete::Shell },
    /// Print the manual page
    Man,
}

#[derive(Args)]
pub struct LogArgs {
    /// Form of messages on stderr
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORM")]
    pub log_format: LogFormat,
    /// Say nothing but errors and warnings
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    #[default]
    Text,
    /// One JSON object a line, with time and task id
    Json,
}

#[derive(Args)]
pub struct MaskArgs {
    /// Files to mask; - is stdin
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Where to write: a file, a folder for several files, - for stdout. Default: stdout into a pipe or file, else NAME.masked.EXT beside the input
    #[arg(long, short, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Replace an existing output
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub table: TableArgs,
    #[command(flatten)]
    pub form: FormArgs,
    #[command(flatten)]
    pub key: KeyArgs,
    #[command(flatten)]
    pub run: RunArgs,
}

/// How tables are read and which columns are masked.
#[derive(Args)]
#[command(next_help_heading = "Table")]
pub struct TableArgs {
    /// Columns to mask, comma separated: names, #N, globs, paths such as contact.email and phones[]
    #[arg(long, short, value_name = "COLS")]
    pub columns: String,
    /// A listed column that the table does not have
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub missing: MissingArg,
    /// Format of the input, if name and content do not tell: csv, parquet
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
    /// Delimiter of a CSV: one character, or tab. Default: the one of , ; tab | under which the columns are found
    #[arg(long, short, value_name = "CHAR", allow_hyphen_values = true)]
    pub delimiter: Option<String>,
    /// Quote of a CSV; '' if quotes mean nothing
    #[arg(long, default_value = "\"", value_name = "CHAR", allow_hyphen_values = true)]
    pub quote: String,
    /// Encoding of a CSV, if no byte order mark sets it
    #[arg(long, default_value = "utf-8", value_name = "NAME")]
    pub encoding: String,
    /// The first record is data: columns are named by number
    #[arg(long)]
    pub no_header: bool,
    /// Lines before the header, kept as they are
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub skip_lines: usize,
    /// Records with another number of fields than the header: refuse the file, or keep them without surplus fields
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub ragged: RaggedArg,
}

#[derive(Clone, Copy, Default, ValueEnum)]
pub enum MissingArg {
    /// An error, before anything is written
    #[default]
    Error,
    /// A warning
    Ignore,
}

#[derive(Clone, Copy, Default, ValueEnum)]
pub enum RaggedArg {
    #[default]
    Refuse,
    Keep,
}

/// What a pseudonym looks like and how far it carries.
#[derive(Args)]
#[command(next_help_heading = "Pseudonym")]
pub struct FormArgs {
    /// Hex digits: 16 to 64, even
    #[arg(long, default_value_t = 16, value_name = "N")]
    pub length: usize,
    /// Text before the digits; p_ keeps spreadsheets from reading a number
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub prefix: String,
    /// Where the same value has the same pseudonym: stable, upload, recipient:NAME, project:NAME
    #[arg(long, default_value = "stable", value_name = "SCOPE")]
    pub scope: String,
    /// Empty values: keep them, or hash the empty text
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub empty: EmptyArg,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum EmptyArg {
    #[default]
    Keep,
    Hash,
}

/// Where the key comes from: HMASK_KEY or the file of HMASK_KEY_FILE, unless one of these says otherwise.
#[derive(Args)]
#[command(next_help_heading = "Key")]
pub struct KeyArgs {
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
pub struct RunArgs {
    /// Threads that hash [default: one a core]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Progress bar
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    pub progress: ProgressArg,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ProgressArg {
    /// On a terminal
    #[default]
    Auto,
    Always,
    Never,
}

impl TableArgs {
    /// The columns.
    pub fn columns(&self) -> Result<Columns> {
        Columns::parse(&self.columns)
    }

    /// How to read a CSV.
    pub fn csv_options(&self) -> Result<CsvOptions> {
        let delimiter = self.delimiter.as_deref().map(character).transpose()?;
        let quote = if self.quote.is_empty() { None } else { Some(character(&self.quote)?) };
        let options = CsvOptions {
            encoding: TextEncoding::from_label(&self.encoding)?,
            no_header: self.no_header,
            skip_lines: self.skip_lines,
            ragged: match self.ragged {
                RaggedArg::Refuse => Ragged::Refuse,
                RaggedArg::Keep => Ragged::Keep,
            },
            missing: match self.missing {
                MissingArg::Error => Missing::Error,
                MissingArg::Ignore => Missing::Ignore,
            },
            ..CsvOptions::default()
        };
        options.dialect(delimiter, quote)
    }
}

impl FormArgs {
    /// The form of the pseudonyms.
    pub fn form(&self) -> Result<Form> {
        Form::new(self.length, &self.prefix, self.empty == EmptyArg::Hash)
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
