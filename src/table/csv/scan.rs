//! Where the records and fields of a CSV begin and end, without a copy of any byte.
//!
//! The grammar is RFC 4180 as the `csv` crate reads it: a quote opens only at the start of a field and is doubled within it; LF, CR and
//! CR LF each end a record; a line of nothing is no record. Stricter than that crate, a closing quote must end its field, an open quote
//! must close, and a NUL is refused.
//!
//! 64 bytes at a time are reduced to a bit mask of those that can matter; only these are looked at. A chunk may end anywhere: what
//! follows the last whole record is left to the next.

use wide::u8x64;

/// Bytes looked at in one step.
const STEP: usize = 64;
/// Delimiters that hmask looks for by itself.
pub(super) const DELIMITERS: [u8; 4] = *b",;\t|";

/// The bytes that structure a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    /// None in a table of one column whose header shows no delimiter: then none of [`DELIMITERS`] may occur outside of quotes.
    pub delimiter: Option<u8>,
    /// None where quotes mean nothing.
    pub quote: Option<u8>,
    /// Within quotes, makes a letter of the byte behind it. Doubled quotes go on to mean one.
    pub escape: Option<u8>,
    /// At the start of a record, makes the rest of the line a comment, which is passed over.
    pub comment: Option<u8>,
}

/// A field within a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// Where its content begins, behind the quote if there is one.
    pub start: usize,
    /// Where its content ends, before the quote if there is one.
    pub end: usize,
    /// Whether it contains doubled quotes or escapes.
    pub escaped: bool,
    /// Whether it stands in quotes.
    pub quoted: bool,
}

/// What the scanner calls for each thing that it finds.
pub(super) trait Visitor {
    /// The next field of the record.
    fn field(&mut self, field: Field);

    /// The record's fields are through: its line end begins at `end`, and what follows at `next`.
    /// Returns whether to go on; a record that stops the scan does not count as scanned.
    fn record(&mut self, end: usize, next: usize) -> bool;
}

/// What a scan of a chunk came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scanned {
    /// Bytes of whole records, blank lines included; an incomplete record follows if this is less than the chunk.
    pub consumed: usize,
    /// Whole records.
    pub records: u64,
    /// Line ends in what was consumed: those of records, of blank lines and within quotes.
    pub lines: u64,
    /// Why the scan stopped early, if it did. The fault lies in the record after `records`.
    pub fault: Option<Fault>,
}

/// What makes a table unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A quote that is never closed.
    OpenQuote,
    /// Text between a closing quote and the delimiter.
    AfterQuote,
    /// A NUL byte or character.
    Nul,
    /// A delimiter in a table that was taken for one column.
    Delimiter(u8),
    /// The visitor did not want to go on.
    Stopped,
}

impl Dialect {
    /// Scans `bytes`, which begin at the start of a record; `last` says that the file ends with them.
    pub(super) fn scan(self, bytes: &[u8], last: bool, visitor: &mut impl Visitor) -> Scanned {
        Scan {
            dialect: self,
            bytes,
            last,
            at: Scanned { consumed: 0, records: 0, lines: 0, fault: None },
            quoted_lines: 0,
            state: State::new(0),
            visitor,
        }
        .run()
    }

    /// The fields of the first record that is no blank line and where the next one begins, or none if it is not complete.
    ///
    /// # Errors
    /// What makes it unreadable.
    pub(super) fn first_record(self, bytes: &[u8], last: bool) -> Result<Option<(Vec<Field>, usize)>, Fault> {
        struct First(Vec<Field>, Option<usize>);
        impl Visitor for First {
            fn field(&mut self, field: Field) {
                self.0.push(field);
            }
            fn record(&mut self, _: usize, next: usize) -> bool {
                self.1 = Some(next);
                false
            }
        }
        let mut first = First(Vec::new(), None);
        match self.scan(bytes, last, &mut first).fault {
            None | Some(Fault::Stopped) => Ok(first.1.map(|next| (first.0, next))),
            Some(fault) => Err(fault),
        }
    }

    /// A bit for each byte that can matter.
    fn mask(self, block: &[u8; STEP]) -> u64 {
        let Some(delimiter) = self.delimiter else {
            let matters = |b: u8| {
                matches!(b, 0 | b'\n' | b'\r') || Some(b) == self.quote || Some(b) == self.escape || DELIMITERS.contains(&b)
            };
            return block.iter().enumerate().fold(0, |mask, (i, b)| mask | u64::from(matters(*b)) << i);
        };
        let v = u8x64::new(*block);
        let is = |b: u8| v.simd_eq(u8x64::splat(b));
        let mut matters = is(delimiter) | is(self.quote.unwrap_or(b'\n')) | is(b'\n') | is(b'\r') | is(0);
        if let Some(escape) = self.escape {
            matters |= is(escape);
        }
        matters.to_bitmask()
    }

    /// Appends what the content of a quoted field means: doubled quotes made single, escapes taken away.
    pub(super) fn unescape(self, content: &[u8], out: &mut Vec<u8>) {
        let mut rest = content;
        let stands_before = |b: &u8| Some(*b) == self.quote || Some(*b) == self.escape;
        while let Some(at) = rest.iter().position(stands_before) {
            out.extend_from_slice(&rest[..at]);
            out.extend(rest.get(at + 1));
            rest = rest.get(at + 2..).unwrap_or_default();
        }
        out.extend_from_slice(rest);
    }
}

/// Where the scan stands within a field.
#[derive(Clone, Copy)]
struct State {
    field_start: usize,
    within_quotes: bool,
    /// Where the closing quote of a quoted field lies.
    closed: Option<usize>,
    escaped: bool,
    /// Whether this is no field but a comment.
    comment: bool,
}

impl State {
    fn new(field_start: usize) -> Self {
        Self { field_start, within_quotes: false, closed: None, escaped: false, comment: false }
    }

    /// Whether nothing but its start is known of the field.
    fn is_plain(&self) -> bool {
        !self.within_quotes && self.closed.is_none() && !self.comment
    }

    fn field(&self, end: usize) -> Field {
        match self.closed {
            Some(closed) => Field { start: self.field_start + 1, end: closed, escaped: self.escaped, quoted: true },
            None => Field { start: self.field_start, end, escaped: false, quoted: false },
        }
    }
}

struct Scan<'a, V> {
    dialect: Dialect,
    bytes: &'a [u8],
    last: bool,
    at: Scanned,
    /// Line ends within the quotes of the record at hand.
    quoted_lines: u64,
    state: State,
    visitor: &'a mut V,
}

/// Whether to go on; `Break` where the rest of the chunk is not to be looked at.
type Flow = std::ops::ControlFlow<()>;

impl<V: Visitor> Scan<'_, V> {
    fn run(mut self) -> Scanned {
        let mut done = 0;
        self.start(0);
        let (blocks, rest) = self.bytes.as_chunks::<STEP>();
        let delimiter = self.dialect.delimiter.unwrap_or(0); // NUL is none
        let mut tail = [b' '; STEP]; // a blank matters to no dialect
        tail[..rest.len()].copy_from_slice(rest);
        for (i, block) in blocks.iter().chain(std::iter::once(&tail)).enumerate() {
            let mut mask = self.dialect.mask(block);
            if i == blocks.len() {
                mask &= (1 << rest.len()) - 1; // unless the delimiter is one
            }
            while mask != 0 {
                let at = i * STEP + mask.trailing_zeros() as usize;
                mask &= mask - 1;
                if at < done {
                    continue;
                }
                if self.bytes[at] == delimiter && delimiter != 0 && self.state.is_plain() {
                    // By far the most of what there is: a field without quotes ends, and another one begins.
                    self.visitor.field(Field { start: self.state.field_start, end: at, escaped: false, quoted: false });
                    self.state.field_start = at + 1;
                } else if self.byte(at, &mut done).is_break() {
                    return self.at;
                }
            }
        }
        self.end()
    }

    /// Takes one byte that can matter; moves `done` on where it takes the next one with it.
    #[expect(clippy::inline_always, reason = "called for each field: a call of its own would cost more than its work")]
    #[inline(always)]
    fn byte(&mut self, at: usize, done: &mut usize) -> Flow {
        let byte = self.bytes[at];
        if byte == 0 {
            return self.fail(Fault::Nul);
        }
        if self.state.within_quotes {
            return self.byte_within_quotes(at, byte, done);
        }
        if byte == b'\n' || byte == b'\r' {
            return self.line_end(at, byte, done);
        }
        if self.state.comment || Some(byte) == self.dialect.escape {
            return Flow::Continue(());
        }
        if Some(byte) == self.dialect.quote {
            if at == self.state.field_start {
                self.state.within_quotes = true;
            }
            // Elsewhere a quote is a letter; behind a closing one it is found with the delimiter.
            return Flow::Continue(());
        }
        if self.dialect.delimiter.is_none() {
            return self.fail(Fault::Delimiter(byte));
        }
        self.field(at)?;
        self.state = State::new(at + 1);
        Flow::Continue(())
    }

    fn byte_within_quotes(&mut self, at: usize, byte: u8, done: &mut usize) -> Flow {
        let next = self.bytes.get(at + 1).copied();
        if Some(byte) == self.dialect.quote {
            if next == Some(byte) {
                self.state.escaped = true;
                *done = at + 2;
            } else {
                self.state.within_quotes = false;
                self.state.closed = Some(at);
            }
        } else if Some(byte) == self.dialect.escape {
            self.state.escaped = true;
            match next {
                Some(0) => return self.fail(Fault::Nul),
                Some(b'\n' | b'\r') => {} // a line end all the same
                _ => *done = at + 2,
            }
        } else if byte == b'\n' || byte == b'\r' && next != Some(b'\n') {
            self.quoted_lines += 1;
        }
        Flow::Continue(())
    }

    /// Begins a record, or a comment, at `at`.
    fn start(&mut self, at: usize) {
        self.state = State::new(at);
        self.state.comment = self.dialect.comment.is_some() && self.bytes.get(at).copied() == self.dialect.comment;
    }

    fn line_end(&mut self, at: usize, byte: u8, done: &mut usize) -> Flow {
        let mut next = at + 1;
        if byte == b'\r' {
            match self.bytes.get(next) {
                Some(b'\n') => next += 1,
                Some(_) => {}
                None if self.last => {}
                // The LF that belongs to it may follow in the next chunk.
                None => return Flow::Break(()),
            }
        }
        *done = next;
        let blank = at == self.at.consumed || self.state.comment;
        if !blank {
            self.record(at, next)?;
        }
        self.at.lines += 1 + self.quoted_lines;
        self.quoted_lines = 0;
        self.at.consumed = next;
        self.start(next);
        Flow::Continue(())
    }

    fn record(&mut self, end: usize, next: usize) -> Flow {
        self.field(end)?;
        if !self.visitor.record(end, next) {
            return self.fail(Fault::Stopped);
        }
        self.at.records += 1;
        Flow::Continue(())
    }

    fn field(&mut self, end: usize) -> Flow {
        if self.state.closed.is_some_and(|closed| closed + 1 != end) {
            return self.fail(Fault::AfterQuote);
        }
        self.visitor.field(self.state.field(end));
        Flow::Continue(())
    }

    fn end(mut self) -> Scanned {
        let end = self.bytes.len();
        if !self.last || self.at.consumed == end {
            return self.at;
        }
        if self.state.comment {
            self.at.consumed = end;
        } else if self.state.within_quotes {
            let _ = self.fail(Fault::OpenQuote);
        } else if self.record(end, end).is_continue() {
            self.at.consumed = end;
            self.at.lines += self.quoted_lines;
        }
        self.at
    }

    fn fail(&mut self, fault: Fault) -> Flow {
        self.at.fault = Some(fault);
        Flow::Break(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMA: Dialect = Dialect { delimiter: Some(b','), quote: Some(b'"'), escape: None, comment: None };

    /// All records of a text, cut into chunks of at most `chunk` bytes more than what was left over.
    fn records(dialect: Dialect, text: &[u8], chunk: usize) -> Result<Vec<Vec<Vec<u8>>>, Fault> {
        struct Collect<'a>(&'a [u8], Vec<Vec<u8>>, Vec<Vec<Vec<u8>>>, Dialect);
        impl Visitor for Collect<'_> {
            fn field(&mut self, f: Field) {
                let mut value = Vec::new();
                if f.escaped {
                    self.3.unescape(&self.0[f.start..f.end], &mut value);
                } else {
                    value.extend_from_slice(&self.0[f.start..f.end]);
                }
                self.1.push(value);
            }
            fn record(&mut self, _: usize, _: usize) -> bool {
                self.2.push(std::mem::take(&mut self.1));
                true
            }
        }
        let (mut out, mut start, mut end) = (Vec::new(), 0, 0);
        loop {
            end = (end + chunk).min(text.len());
            let piece = &text[start..end];
            let mut visitor = Collect(piece, Vec::new(), Vec::new(), dialect);
            let scanned = dialect.scan(piece, end == text.len(), &mut visitor);
            assert_eq!(scanned.records as usize, visitor.2.len());
            out.append(&mut visitor.2);
            if let Some(fault) = scanned.fault {
                return Err(fault);
            }
            start += scanned.consumed;
            if end == text.len() {
                assert_eq!(start, end);
                return Ok(out);
            }
        }
    }

    fn oracle(dialect: Dialect, text: &[u8]) -> Vec<Vec<Vec<u8>>> {
        let mut builder = csv::ReaderBuilder::new();
        builder.has_headers(false).flexible(true).delimiter(dialect.delimiter.unwrap());
        builder.escape(dialect.escape).comment(dialect.comment);
        match dialect.quote {
            Some(quote) => builder.quote(quote),
            None => builder.quoting(false),
        };
        let reader = builder.from_reader(text).into_byte_records();
        reader.map(|r| r.unwrap().iter().map(<[u8]>::to_vec).collect()).collect()
    }

    #[test]
    fn agrees_with_the_csv_crate_at_every_chunk_border() {
        let texts: [&[u8]; 12] = [
            b"a,b\n1,2\n",
            b"a,b\r\n1,2\r\n\r\n3,4",
            b"a,b\r1,2\r\r3,4\r",
            b"\n\na,\"b,\"\"x\"\"\"\n\"multi\r\nline\",\"\"\n",
            b"5\" pipe,\"6\"\" pipe\"\n ,\" \"\n",
            b"x\n\"\"\n\n\"\"\"\"\n",
            b",\n,,\n",
            b"\"a\"\r\"b\"\r\n\"c\"\n",
            "é,\"ü\n\",ß\n".as_bytes(),
            b"a,b\r",
            b"",
            b"\r\n\n\r",
        ];
        for dialect in [COMMA, Dialect { quote: None, ..COMMA }] {
            for text in texts {
                let want = oracle(dialect, text);
                for chunk in 1..=text.len().max(1) {
                    assert_eq!(records(dialect, text, chunk).unwrap(), want, "{:?} in {chunk}", text.escape_ascii().to_string());
                }
            }
        }
    }

    #[test]
    fn a_long_text_with_everything_at_every_offset_of_a_block() {
        for shift in 0..STEP {
            let mut text = vec![b'x'; shift];
            for i in 0..40 {
                text.extend(format!("v{i},\"q{i}\"\"{}\r\n\",\r\n", "y".repeat(i % 9)).into_bytes());
            }
            let want = oracle(COMMA, &text);
            for chunk in [1, 7, 64, 65, 1000] {
                assert_eq!(records(COMMA, &text, chunk).unwrap(), want);
            }
        }
    }

    #[test]
    fn faults_are_found_at_every_chunk_border() {
        let cases: [(&[u8], Fault); 6] = [
            (b"a\n\"b", Fault::OpenQuote),
            (b"a\n\"b\"\"", Fault::OpenQuote),
            (b"a,b\n\"x\"y,2\n", Fault::AfterQuote),
            (b"a,b\n1,\"x\"\"\" \n", Fault::AfterQuote),
            (b"a,b\n1,\"\0\"\n", Fault::Nul),
            (b"a,b\n1\0,2\n", Fault::Nul),
        ];
        for (text, want) in cases {
            for chunk in 1..=text.len() {
                assert_eq!(records(COMMA, text, chunk).unwrap_err(), want, "{:?} in {chunk}", text.escape_ascii().to_string());
            }
        }
    }

    #[test]
    fn one_column_guards_against_delimiters() {
        let lone = Dialect { delimiter: None, ..COMMA };
        assert_eq!(records(lone, b"email\n\"a;b\"\nx\n", 5).unwrap().len(), 3);
        assert_eq!(records(lone, b"email\na;b\n", 3).unwrap_err(), Fault::Delimiter(b';'));
    }

    #[test]
    fn escapes_and_comments_agree_with_the_csv_crate() {
        let backslash = Dialect { escape: Some(b'\\'), comment: Some(b'#'), ..COMMA };
        let texts: [&[u8]; 6] = [
            b"a,b\n\"x\\\"y\",\"\\\\\"\n\"a\"\"b\",c\\d\n",
            b"#c \"open\n1,#2\n#\n\n\"#q\",3\r\n#end\n",
            b"\"\\,\",\"\\a\"\n",
            b"# only\n# comments\n",
            b"a,\"b\\\nc\",d\n",
            b"\\,\\\n",
        ];
        for text in texts {
            for chunk in 1..=text.len() {
                assert_eq!(
                    records(backslash, text, chunk).unwrap(),
                    oracle(backslash, text),
                    "{:?} in {chunk}",
                    text.escape_ascii().to_string()
                );
            }
        }
        // The csv crate takes a comment without a line end for an empty record.
        assert_eq!(records(backslash, b"a\n#b", 2).unwrap().len(), 1);
        assert_eq!(records(backslash, b"a\n\"b\\\"", 3).unwrap_err(), Fault::OpenQuote);
    }

    #[test]
    fn lines_are_counted_with_those_in_quotes() {
        let text = b"a,b\r\n\n\"x\r\ny\nz\rw\",2\n3,4";
        let scanned = COMMA.scan(text, true, &mut Nothing);
        assert_eq!((scanned.records, scanned.lines, scanned.consumed), (3, 6, text.len()));
    }

    struct Nothing;
    impl Visitor for Nothing {
        fn field(&mut self, _: Field) {}
        fn record(&mut self, _: usize, _: usize) -> bool {
            true
        }
    }

    /// The bytes that matter, and one that does not, in any order: the scanner refuses, or agrees with the oracle.
    #[test]
    fn arbitrary_bytes_agree_with_the_csv_crate() {
        use proptest::prelude::*;
        let bytes = proptest::collection::vec(proptest::sample::select(b"\",\n\rab \xc3".to_vec()), 0..150);
        proptest!(ProptestConfig::with_cases(3000), |(text in bytes, chunk in 1usize..150)| {
            if let Ok(got) = records(COMMA, &text, chunk) {
                prop_assert_eq!(got, oracle(COMMA, &text));
            } else {
                prop_assert!(records(COMMA, &text, text.len().max(1)).is_err());
            }
        });
    }
}
