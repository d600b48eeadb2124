//! A table as text, for those who only look: rows of cells in any format, in parallel, in bounded memory.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use super::csv::CsvOptions;
use super::{Format, Input, arrow, compress, csv, ndjson};
use crate::error::{Error, Result};
use crate::policy::{Candidate, quote_path};

/// Some rows, one behind the other.
#[derive(Default)]
pub struct Rows<'r> {
    cells: Vec<Cell<'r>>,
    /// Where each row begins.
    starts: Vec<usize>,
}

/// A value that is there: a null or an empty text is no cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell<'r> {
    /// Its column, from 0. A column can have several cells of one row, where it is a list.
    pub column: u32,
    /// Its text, in UTF-8.
    pub text: &'r str,
}

/// How a table is looked at.
pub struct Looking<'a> {
    /// How to read a CSV. Where it has no delimiter, that under which the header has most fields.
    pub options: &'a CsvOptions,
    /// Threads at work.
    pub workers: usize,
    /// Called with the number of input bytes taken since the last call.
    pub progress: &'a (dyn Fn(u64) + Sync),
}

/// The columns of a table that was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// What a column list can name. A CSV has one more for surplus fields, named [`BEYOND`].
    pub candidates: Vec<Candidate>,
    /// Types, where the format has some.
    pub types: Vec<Option<String>>,
    /// Keys and values of the file's metadata, those of its fields included.
    pub metadata: Vec<(String, String)>,
}

impl Columns {
    /// Names as they stand in a header; paths of nested columns as a column list has them.
    pub fn names(&self) -> Vec<String> {
        let name = |c: &Candidate| match &c.path[..] {
            [] => format!("#{}", c.number),
            [only] => only.clone(),
            path => quote_path(path),
        };
        self.candidates.iter().map(name).collect()
    }

    /// What names a column in a list: its name, quoted where that is needed, or its number.
    pub fn entry(&self, column: usize) -> String {
        let Candidate { path, number } = &self.candidates[column];
        if path.iter().all(String::is_empty) { format!("#{number}") } else { quote_path(path) }
    }
}

/// What fields beyond the header are called.
pub const BEYOND: &str = "beyond the header";

impl<'r> Rows<'r> {
    /// Begins a row.
    pub(super) fn begin(&mut self) {
        self.starts.push(self.cells.len());
    }

    /// Adds a cell to the row, unless it is empty.
    pub(super) fn push(&mut self, column: u32, text: &'r str) {
        if !text.is_empty() {
            self.cells.push(Cell { column, text });
        }
    }

    /// One row of one cell.
    pub fn one(text: &'r str) -> Self {
        let mut rows = Self::default();
        rows.begin();
        rows.push(0, text);
        rows
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The cells of each row.
    pub fn iter(&self) -> impl Iterator<Item = &[Cell<'r>]> {
        let ends = self.starts.iter().skip(1).copied().chain([self.cells.len()]);
        self.starts.iter().zip(ends).map(|(start, end)| &self.cells[*start..end])
    }
}

/// Names that come up while a table is read, numbered.
#[derive(Default)]
pub(super) struct Names(RwLock<Numbered>);

/// Names in their order, and the number of each.
type Numbered = (Vec<Candidate>, HashMap<Vec<String>, u32>);

impl Names {
    /// The number of a path, a new one if it is new.
    pub(super) fn number(&self, path: &[String]) -> u32 {
        if let Some(number) = self.0.read().unwrap_or_else(PoisonError::into_inner).1.get(path) {
            return *number;
        }
        let mut names = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let next = names.0.len() as u32;
        let number = *names.1.entry(path.to_vec()).or_insert(next);
        if number == next {
            names.0.push(Candidate { path: path.to_vec(), number: 0 });
        }
        number
    }

    /// All names by their numbers.
    pub(super) fn all(self) -> Vec<Candidate> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Looks through a table: `work` is called on many threads, `each` in order, with what came of it, the number of the first record (from 1, a
/// header included) and how many there are. `columns` is called before both, with what is known beforehand.
///
/// # Errors
/// A table that does not read, and those of `each`.
pub fn look<R: Send>(
    input: Input,
    format: Format,
    looking: &Looking<'_>,
    columns: impl FnOnce(&Columns) -> Result<()>,
    work: impl Fn(&Rows<'_>) -> R + Sync,
    each: impl FnMut(R, u64, u64) -> Result<()> + Send,
) -> Result<Columns> {
    let max_ratio = looking.options.max_ratio;
    let plain = |input| match input {
        Input::File(file) => compress::reader(Box::new(file), max_ratio),
        Input::Stream(stream) => compress::reader(stream, max_ratio),
    };
    match (format, input) {
        (Format::Csv, input) => csv::look(&mut *plain(input)?, looking, columns, work, each),
        (Format::Ndjson, input) => ndjson::look(&mut *plain(input)?, looking, columns, work, each),
        (Format::Ipc, input) => arrow::look(arrow::ipc(plain(input)?)?, looking, columns, work, each),
        (Format::Parquet, Input::File(file)) => arrow::look(arrow::parquet(file)?, looking, columns, work, each),
        (Format::Parquet, Input::Stream(_)) => {
            Err(Error::unsupported("Parquet cannot be read from a pipe: its footer is at the end"))
        }
    }
}
