//! One boxed error kind with a position, never with a value of the table.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, and where.
///
/// Its text names files, records, columns and pages, but never holds a cell's content, a key or an access token.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    position: Position,
    hints: Vec<String>,
    answer: Option<String>,
}

/// The kinds of failure; each maps to one exit code of the command line.
#[non_exhaustive]
#[derive(Debug)]
pub enum ErrorKind {
    /// The call does not fit: columns, options, a policy.
    Usage(String),
    /// A column that the table does not have.
    NoColumn(String),
    /// There is no key, or it is refused.
    Key(String),
    /// The input cannot be read with certainty.
    Malformed(String),
    /// The input is sound, but hmask does not know how to do this with it.
    Unsupported(String),
    /// A local read or write failed.
    Io(String, io::Error),
    /// A check found something that must not leave the house.
    Gate(String),
    /// The remote side failed, and nothing of ours is left there.
    Remote(String),
    /// The remote side failed, and something of ours may still be there.
    Live(String),
    /// A signal ended the run, and everything was cleaned up.
    Interrupted,
}

/// Where in the input something was found. Every part may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The file as it was named on the command line.
    pub file: Option<PathBuf>,
    /// Record of a CSV, from 1, the header included.
    pub record: Option<u64>,
    /// Line of a text file, from 1.
    pub line: Option<u64>,
    /// Row group of a Parquet file, from 0.
    pub row_group: Option<usize>,
    /// Page within a column chunk, from 0, dictionary included.
    pub page: Option<usize>,
    /// Offset in bytes from the start of the file.
    pub byte: Option<u64>,
    /// Name of the column, as in the header or schema.
    pub column: Option<String>,
}

impl Error {
    /// An error of this kind without a position.
    pub fn new(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { kind, position: Position::default(), hints: Vec::new(), answer: None }))
    }

    /// See [`ErrorKind::Usage`].
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage(message.into()))
    }

    /// See [`ErrorKind::NoColumn`].
    pub fn no_column(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NoColumn(message.into()))
    }

    /// See [`ErrorKind::Malformed`].
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Malformed(message.into()))
    }

    /// See [`ErrorKind::Unsupported`].
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported(message.into()))
    }

    /// See [`ErrorKind::Io`]; `doing` says what failed, as in `cannot open`.
    pub fn io(doing: impl Into<String>, source: io::Error) -> Self {
        Self::new(ErrorKind::Io(doing.into(), source))
    }

    /// See [`ErrorKind::Remote`].
    pub fn remote(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Remote(message.into()))
    }

    /// The same error with parts of its position filled in.
    #[must_use]
    pub fn at(mut self, fill: impl FnOnce(&mut Position)) -> Self {
        fill(&mut self.0.position);
        self
    }

    /// The same error in this file, unless it already names one.
    #[must_use]
    pub fn in_file(self, file: &Path) -> Self {
        self.at(|p| {
            p.file.get_or_insert_with(|| file.to_owned());
        })
    }

    /// The same error with a hint: a command to type or an option to add.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hints.push(hint.into());
        self
    }

    /// The same error with words of the other side that can hold cells of the table: they are no part of its text.
    #[must_use]
    pub fn with_answer(mut self, answer: Option<String>) -> Self {
        self.0.answer = answer;
        self
    }

    /// Words of the other side, to be shown where an answer would be, and not to be logged.
    pub fn answer(&self) -> Option<&str> {
        self.0.answer.as_deref()
    }

    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Where it went wrong.
    pub fn position(&self) -> &Position {
        &self.0.position
    }

    /// Commands or options that help, one a line.
    pub fn hints(&self) -> &[String] {
        &self.0.hints
    }

    /// Whether the call itself was wrong, so that nothing was read or written.
    pub fn is_usage(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Usage(_) | ErrorKind::NoColumn(_) | ErrorKind::Key(_))
    }

    /// Whether something of ours may still be live on the remote side.
    pub fn is_live(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Live(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.0.position, self.0.kind)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self})")
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.kind {
            ErrorKind::Io(_, source) => Some(source),
            _ => None,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(m)
            | Self::NoColumn(m)
            | Self::Key(m)
            | Self::Malformed(m)
            | Self::Unsupported(m)
            | Self::Gate(m)
            | Self::Remote(m)
            | Self::Live(m) => f.write_str(m),
            Self::Io(doing, source) => write!(f, "{doing}: {source}"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

/// `file: record 3, line 7, column "email": `, or nothing where nothing is known.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        let mut parts = Vec::new();
        let mut part = |name: &str, number: Option<u64>| parts.extend(number.map(|n| format!("{name} {n}")));
        part("record", self.record);
        part("line", self.line);
        part("row group", self.row_group.map(|n| n as u64));
        part("page", self.page.map(|n| n as u64));
        part("byte", self.byte);
        parts.extend(self.column.as_ref().map(|name| format!("column {name:?}")));
        if parts.is_empty() { Ok(()) } else { write!(f, "{}: ", parts.join(", ")) }
    }
}
