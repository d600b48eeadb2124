//! What is known of a CSV before its first data record: mark, encoding, skipped lines, delimiter, header, wanted columns.

use super::CsvOptions;
use super::drop::Drops;
use super::scan::{DELIMITERS, Dialect, Fault, Field};
use crate::error::{Error, ErrorKind, Result};
use crate::policy::{Assigned, Candidate, Rules};
use crate::table::text::TextEncoding;

/// The layout of one file.
#[derive(Debug)]
pub(super) struct Layout {
    pub encoding: TextEncoding,
    pub dialect: Dialect,
    /// Fields of a record.
    pub width: usize,
    /// Names of the columns; the number where a name does not decode or there is no header.
    pub names: Vec<String>,
    pub candidates: Vec<Candidate>,
    pub columns: Assigned,
    /// The columns that leave.
    pub drops: Drops,
    /// The header's fields, counted in units from the end of the preamble.
    pub header: Vec<Field>,
    /// Bytes before the first data record.
    pub start: usize,
    /// Bytes of the byte order mark, and of the lines that are skipped.
    pub mark: usize,
    pub preamble: usize,
    /// Records before the first data record: 1 for a header, else 0.
    pub records: u64,
    /// Lines before the first data record.
    pub lines: u64,
}

/// Whether more of the file is needed to tell.
pub(super) enum Found {
    Layout(Box<Layout>),
    NeedMore,
}

/// A header under one delimiter.
struct Header {
    dialect: Dialect,
    width: usize,
    candidates: Vec<Candidate>,
    fields: Vec<Field>,
    /// Within the narrowed text: where the data begins.
    next: usize,
}

impl Layout {
    /// Looks at the first bytes of a file; `last` says that there are no more.
    ///
    /// # Errors
    /// No header, an unreadable one, a delimiter that is not certain, columns that are not there.
    pub(super) fn find(start: &[u8], last: bool, rules: &Rules, options: &CsvOptions) -> Result<Found> {
        if start.len() < 3 && !last {
            return Ok(Found::NeedMore); // a byte order mark has up to three bytes
        }
        let (encoding, mark) = TextEncoding::from_mark(start).unwrap_or((options.encoding, 0));
        let whole = start.len() - (start.len() - mark) % encoding.unit();
        let mut buffer = Vec::new();
        let text = encoding.narrow(&start[mark..whole], &mut buffer);
        let Some(skipped) = skip_lines(text, options.skip_lines, last) else {
            return if last { Err(Error::usage("the file has fewer lines than --skip-lines")) } else { Ok(Found::NeedMore) };
        };
        // Excel's first line says which delimiter the rest has.
        let certain = |b: u8| {
            b.is_ascii() && encoding.keeps_apart(b) && ![options.quote, options.escape, options.comment].contains(&Some(b))
        };
        let named = separator_line(&text[skipped..]).filter(|(separator, _)| certain(*separator));
        let (separator, skipped) = named.map_or((None, skipped), |(separator, length)| (Some(separator), skipped + length));
        let body = &text[skipped..];
        let raw = &start[mark + skipped * encoding.unit()..whole];
        let separator = options.delimiter.or(separator);
        let find = Find { body, raw, last, encoding, rules, options, separator };
        let Some(header) = find.header()? else {
            return if last {
                Err(find.no_header())
            } else if start.len() > options.max_record {
                Err(too_long(options.max_record))
            } else {
                Ok(Found::NeedMore)
            };
        };
        let columns = rules.resolve(&header.candidates, options.missing)?;
        let data = if options.no_header { 0 } else { header.next };
        let name = |c: &Candidate| c.path.first().cloned().unwrap_or_else(|| format!("#{}", c.number));
        Ok(Found::Layout(Box::new(Self {
            encoding,
            dialect: header.dialect,
            width: header.width,
            names: header.candidates.iter().map(name).collect(),
            candidates: header.candidates,
            drops: Drops::new(header.width, &columns.dropped),
            columns,
            header: if options.no_header { Vec::new() } else { header.fields },
            start: mark + (skipped + data) * encoding.unit(),
            mark,
            preamble: skipped * encoding.unit(),
            records: u64::from(!options.no_header),
            lines: line_ends(&text[..skipped + data]),
        })))
    }
}

/// The error for a record beyond the limit.
pub(super) fn too_long(limit: usize) -> Error {
    Error::malformed(format!("a record is longer than {limit} bytes, or a quote is not closed")).hint("--max-record BYTES")
}

/// Line ends of a text: LF, CR LF and CR alone.
pub(super) fn line_ends(text: &[u8]) -> u64 {
    let lone_cr = |i: usize| text[i] == b'\r' && text.get(i + 1) != Some(&b'\n');
    (0..text.len()).filter(|i| text[*i] == b'\n' || lone_cr(*i)).count() as u64
}

/// The delimiter that a first line `sep=;` names, and the line's length with its end.
fn separator_line(text: &[u8]) -> Option<(u8, usize)> {
    let (head, rest) = text.split_first_chunk::<5>()?;
    if !head[..4].eq_ignore_ascii_case(b"sep=") || head[4].is_ascii_alphanumeric() || matches!(head[4], b'\r' | b'\n' | 0) {
        return None;
    }
    match rest {
        [b'\r', b'\n', ..] => Some((head[4], 7)),
        [b'\r' | b'\n', ..] => Some((head[4], 6)),
        _ => None,
    }
}

/// The offset behind the first `count` lines, whatever they hold.
fn skip_lines(text: &[u8], count: usize, last: bool) -> Option<usize> {
    let mut at = 0;
    for _ in 0..count {
        at += text[at..].iter().position(|b| matches!(b, b'\n' | b'\r'))? + 1;
        if text[at - 1] == b'\r' {
            match text.get(at) {
                Some(b'\n') => at += 1,
                None if !last => return None,
                _ => {}
            }
        }
    }
    Some(at)
}

/// All that finding a header needs.
struct Find<'a> {
    /// Narrowed, from the header on.
    body: &'a [u8],
    /// As it is in the file.
    raw: &'a [u8],
    last: bool,
    encoding: TextEncoding,
    rules: &'a Rules,
    options: &'a CsvOptions,
    /// The delimiter, if it is known.
    separator: Option<u8>,
}

impl Find<'_> {
    fn header(&self) -> Result<Option<Header>> {
        if let Some(delimiter) = self.separator {
            return self.read(Some(delimiter));
        }
        let mut fitting = Vec::new();
        let mut nearest = None;
        let mut several_columns = false;
        let mut unreadable = None;
        for delimiter in DELIMITERS.into_iter().filter(|d| self.encoding.keeps_apart(*d)) {
            let header = match self.read(Some(delimiter)) {
                Ok(Some(header)) => header,
                Ok(None) => return Ok(None),
                // Under a wrong delimiter a quote may seem to end within a field.
                Err(e) if e.is_usage() => return Err(e),
                Err(e) => {
                    unreadable = Some(e);
                    continue;
                }
            };
            several_columns |= header.width > 1;
            if self.rules.fit(&header.candidates) {
                fitting.push(header);
            } else if nearest.as_ref().is_none_or(|n: &Header| n.width < header.width) {
                nearest = Some(header);
            }
        }
        if let (true, false, Some(e)) = (fitting.is_empty(), several_columns, unreadable) {
            return Err(e);
        }
        if !several_columns {
            return self.read(None);
        }
        if self.rules.is_empty() {
            // Where nothing is named, the delimiter that gives most columns will do, if the next record has as many.
            fitting.sort_by_key(|h| {
                let next = h.dialect.first_record(self.body.get(h.next..).unwrap_or_default(), self.last);
                (next.is_ok_and(|r| r.is_none_or(|(fields, _)| fields.len() == h.width)), h.width)
            });
            fitting.drain(..fitting.len().saturating_sub(1));
        }
        // A delimiter that the header does not have is none, as long as another gives several columns.
        if fitting.iter().any(|h| h.width > 1) {
            fitting.retain(|h| h.width > 1);
        }
        let tried = "the delimiters , ; tab | were tried";
        match (fitting.pop(), fitting.pop(), nearest) {
            (Some(only), None, _) => Ok(Some(only)),
            (Some(one), Some(other), _) => {
                let name = |h: &Header| h.dialect.delimiter.map_or_else(String::new, printable);
                Err(Error::usage(format!("the columns are found under more than one delimiter; {tried}"))
                    .hint(format!("-d {}", name(&other)))
                    .hint(format!("-d {}", name(&one))))
            }
            // Columns that may be missing are looked for under the delimiter that gives most columns.
            (None, _, Some(header)) if self.options.missing == crate::policy::Missing::Ignore => Ok(Some(header)),
            (None, _, nearest) => {
                let candidates = nearest.map_or_else(Vec::new, |h| h.candidates);
                let Err(not_found) = self.rules.resolve(&candidates, self.options.missing) else { return Ok(None) };
                let error = Error::no_column(format!("{not_found}; {tried}"));
                Err(not_found.hints().iter().fold(error, |e, hint| e.hint(hint.clone())))
            }
        }
    }

    fn read(&self, delimiter: Option<u8>) -> Result<Option<Header>> {
        let dialect = self.dialect(delimiter);
        let record = dialect.first_record(self.body, self.last).map_err(|fault| {
            let lines = line_ends(&self.body[..self.body.iter().position(|b| !matches!(b, b'\n' | b'\r')).unwrap_or(0)]);
            fault_error(fault).at(|p| (p.record, p.line) = (Some(1), Some(lines + 1 + self.options.skip_lines as u64)))
        })?;
        let Some((fields, next)) = record else { return Ok(None) };
        if self.options.no_header && !self.rules.only_numbers() {
            return Err(Error::usage("without a header, columns are named by number").hint("-c '#1,#2'"));
        }
        let candidate = |(i, field): (usize, &Field)| Candidate {
            path: if self.options.no_header { Vec::new() } else { self.name(field).into_iter().collect() },
            number: i + 1,
        };
        let candidates = fields.iter().enumerate().map(candidate).collect();
        Ok(Some(Header { dialect, width: fields.len(), candidates, fields, next }))
    }

    fn dialect(&self, delimiter: Option<u8>) -> Dialect {
        let CsvOptions { quote, escape, comment, .. } = *self.options;
        Dialect { delimiter, quote, escape, comment }
    }

    /// A column's name, if it decodes.
    fn name(&self, field: &Field) -> Option<String> {
        let unit = self.encoding.unit();
        let text = self.encoding.decode(&self.raw[field.start * unit..field.end * unit])?;
        let mut name = Vec::new();
        if field.escaped {
            self.dialect(None).unescape(&text, &mut name);
        } else {
            name.extend_from_slice(&text);
        }
        String::from_utf8(name).ok()
    }

    fn no_header(&self) -> Error {
        let what = if self.options.no_header { "record" } else { "header" };
        let why = if self.raw.is_empty() { "the file is empty" } else { "all lines are blank" };
        Error::malformed(format!("no {what}: {why}"))
    }
}

/// The error that a fault of the table is, its position still to be filled in.
pub(super) fn fault_error(fault: Fault) -> Error {
    match fault {
        Fault::OpenQuote => Error::malformed("a quote is not closed").hint("--quote '' if quotes mean nothing in this file"),
        Fault::AfterQuote => {
            Error::malformed("text after a closing quote").hint("--quote '' if quotes mean nothing in this file")
        }
        Fault::Nul => Error::malformed("a NUL").hint("--encoding utf-16le if this is UTF-16 without a byte order mark"),
        Fault::Delimiter(byte) => {
            Error::malformed(format!("a {} outside of quotes, in a table whose header has one field", printable(byte)))
                .hint(format!("-d {}", printable(byte)))
        }
        Fault::Stopped => Error::new(ErrorKind::Interrupted),
    }
}

/// A delimiter as one types it.
fn printable(byte: u8) -> String {
    match byte {
        b'\t' => "tab".into(),
        b';' => "';'".into(),
        b'|' => "'|'".into(),
        other => char::from(other).to_string(),
    }
}
