//! Chunks in which all records are alike, which is nearly all that there are: their fields are found by arithmetic on bit masks, 64 bytes
//! at a time (`marks`), where the scanner takes one byte that matters after another.
//!
//! Only what is certain is told: records of exactly so many fields, quotes where they belong, LF or CR LF at the end of each. Of anything
//! else, and of blank lines, comments or escapes, nothing is told, and the scanner says what it is.

use super::marks::{Marks, ROOM, marks};
use super::scan::{Dialect, Field};

/// The records of a regular chunk.
pub(super) struct Regular<'e> {
    bytes: &'e [u8],
    quote: Option<u8>,
    /// Where each field ends: a delimiter, or the LF of the record.
    ends: &'e [u32],
    width: usize,
    /// Bytes of whole records.
    pub consumed: usize,
    /// Line ends in them, with those within quotes.
    pub lines: u64,
}

impl<'e> Regular<'e> {
    /// Looks for records of `width` fields, or returns none. `ends` is what the result refers to.
    pub(super) fn find(dialect: Dialect, bytes: &'e [u8], width: usize, ends: &'e mut Vec<u32>) -> Option<Self> {
        let Dialect { delimiter: Some(delimiter), quote, escape: None, comment: None } = dialect else { return None };
        // With one field alone a blank line would look like a record.
        if width < 2 || u32::try_from(bytes.len() + ROOM).is_err() {
            return None;
        }
        // A field for each byte; mostly it is so long already.
        let room = bytes.len() + ROOM;
        if ends.len() < room {
            *ends = vec![0; room]; // its pages are made when they are written to: mostly few are
        }
        let Marks { count, records, within_quotes } = marks(bytes, delimiter, quote, ends)?;
        let ends = &ends[..count];
        // What follows the last record's end is left over, the line ends within its quotes too.
        let last = ends.iter().rposition(|end| bytes.get(*end as usize) == Some(&b'\n'));
        let fields = last.map_or(0, |last| last + 1);
        let consumed = last.map_or(0, |last| ends[last] as usize + 1);
        let left = bytes[consumed..].iter().filter(|b| **b == b'\n').count();
        let lines = (records + within_quotes - left) as u64;
        let ends = &ends[..fields];
        // So many fields, so many line ends, and these where they belong: then there are no others between them.
        let regular = fields == records * width && ends.chunks_exact(width).all(|r| bytes[r[width - 1] as usize] == b'\n');
        regular.then_some(Self { bytes, quote, ends, width, consumed, lines })
    }

    pub(super) fn records(&self) -> usize {
        self.ends.len() / self.width
    }

    /// Calls `each` for the fields of some columns, which are given from left to right, with the numbers of record and column.
    pub(super) fn fields(&self, columns: &[usize], mut each: impl FnMut(usize, usize, Field)) {
        let mut start = 0;
        for (record, ends) in self.ends.chunks_exact(self.width).enumerate() {
            for column in columns.iter().copied() {
                let start = if column == 0 { start } else { ends[column - 1] as usize + 1 };
                let mut end = ends[column] as usize;
                if column + 1 == self.width && end > start && self.bytes[end - 1] == b'\r' {
                    end -= 1;
                }
                each(record, column, self.field(start, end));
            }
            start = ends[self.width - 1] as usize + 1;
        }
    }

    /// Calls `each` for the fields of one column.
    #[expect(clippy::inline_always, reason = "what is called for each field has to be part of the loop")]
    #[inline(always)]
    pub(super) fn column(&self, column: usize, mut each: impl FnMut(Field)) {
        let width = self.width;
        let records = self.ends.chunks_exact(width);
        if column == 0 {
            let mut start = 0;
            for ends in records {
                each(self.field(start, ends[0] as usize));
                start = ends[width - 1] as usize + 1;
            }
        } else if column + 1 == width {
            for ends in records {
                let (start, mut end) = (ends[column - 1] as usize + 1, ends[column] as usize);
                if end > start && self.bytes[end - 1] == b'\r' {
                    end -= 1;
                }
                each(self.field(start, end));
            }
        } else {
            for ends in records {
                each(self.field(ends[column - 1] as usize + 1, ends[column] as usize));
            }
        }
    }

    #[inline]
    fn field(&self, start: usize, end: usize) -> Field {
        match self.quote {
            Some(quote) if start < end && self.bytes[start] == quote => {
                let (start, end) = (start + 1, end - 1);
                Field { start, end, escaped: self.bytes[start..end].contains(&quote), quoted: true }
            }
            _ => Field { start, end, escaped: false, quoted: false },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scan::{Scanned, Visitor};
    use super::*;

    const COMMA: Dialect = Dialect { delimiter: Some(b','), quote: Some(b'"'), escape: None, comment: None };

    /// All fields by the scanner, with what it says of the chunk; none unless every record has so many fields.
    fn scanned(dialect: Dialect, text: &[u8], width: usize) -> Option<(Vec<Field>, Scanned)> {
        struct All(Vec<Field>, usize, usize);
        impl Visitor for All {
            fn field(&mut self, field: Field) {
                self.0.push(field);
            }
            fn record(&mut self, _: usize, _: usize) -> bool {
                self.2 += 1;
                self.0.len() == self.1 * self.2
            }
        }
        let mut all = All(Vec::new(), width, 0);
        let scanned = dialect.scan(text, false, &mut all);
        all.0.truncate(width * scanned.records as usize);
        scanned.fault.is_none().then_some((all.0, scanned))
    }

    /// Whether the chunk is regular; if so, the scanner must say the same of it.
    fn agrees(dialect: Dialect, text: &[u8], width: usize) -> bool {
        let mut ends = Vec::new();
        let Some(regular) = Regular::find(dialect, text, width, &mut ends) else { return false };
        let shown = text.escape_ascii().to_string();
        let (want, scanned) = scanned(dialect, text, width).unwrap_or_else(|| panic!("the scanner finds a fault in {shown}"));
        let mut fields = Vec::new();
        regular.fields(&(0..width).collect::<Vec<_>>(), |_, _, field| fields.push(field));
        assert_eq!(fields, want, "{shown}");
        let counts = (scanned.records as usize, scanned.consumed, scanned.lines);
        assert_eq!((regular.records(), regular.consumed, regular.lines), counts, "{shown}");
        true
    }

    #[test]
    fn what_is_regular_is_found_at_every_offset() {
        let record = "Zoé,\"a \"\"b\"\", c\",,\"\",\"multi\nline\r\n\",x\r\n".as_bytes();
        for shift in 0..128 {
            let mut text = [&vec![b'x'; shift][..], b",1,2,3,4,5\n"].concat();
            (0..9).for_each(|_| text.extend_from_slice(record));
            for cut in 0..record.len() {
                let text = &text[..text.len() - cut];
                // Cut behind a closing quote or a CR it is not certain what comes.
                let uncertain = matches!(text.last(), Some(b'"' | b'\r'));
                assert!(agrees(COMMA, text, 6) || uncertain, "{shift} {cut}");
            }
        }
    }

    #[test]
    fn what_is_odd_is_left_to_the_scanner() {
        let odd: [&[u8]; 13] = [
            b"a,b\n\n1,2\n",
            b"a,b\r\n\r\n1,2\r\n",
            b"a,b\r1,2\r",
            b"a,b\n1\n",
            b"a,b\n1,2,3\n4\n",
            b"a,b\n5\" pipe,1\n",
            b"a,b\n\"x\"y,2\n",
            b"a,b\n\"x\" ,2\n",
            b"a,b\n \"x\",2\n",
            b"a,b\n1\0,2\n",
            b"a,b\n\"1\0\",2\n",
            b"a,b\n\"x\ry\",2\n",
            b"a,b\n1,2\rx\n",
        ];
        for text in odd {
            assert!(Regular::find(COMMA, text, 2, &mut Vec::new()).is_none(), "{:?}", text.escape_ascii().to_string());
        }
        for dialect in [
            Dialect { escape: Some(b'\\'), ..COMMA },
            Dialect { comment: Some(b'#'), ..COMMA },
            Dialect { delimiter: None, ..COMMA },
        ] {
            assert!(Regular::find(dialect, b"a,b\n", 2, &mut Vec::new()).is_none());
        }
        assert!(Regular::find(COMMA, b"a\n\nb\n", 1, &mut Vec::new()).is_none());
        let no_quote = Dialect { quote: None, ..COMMA };
        assert!(agrees(no_quote, b"a,b\n5\" pipe,1\n\"x,\"\n", 2));
    }

    /// Records of two or three fields out of pieces that fit and pieces that do not.
    #[test]
    fn arbitrary_records_agree_with_the_scanner() {
        use proptest::prelude::*;
        use std::cell::Cell;
        let field = proptest::sample::select(
            b"a||\"\"|\"x,y\"|\"q\"\"\"|\"\"\"\"|\"a\nb\"|\"\r\n\"|\xc3\xa9|                                            |5\"|\"o|\"c\"d| \"e\"|\0"
                .split(|b| *b == b'|')
                .collect::<Vec<_>>(),
        );
        let sound = (0usize..12).prop_flat_map(move |n| proptest::collection::vec(field.clone(), n..=n));
        let end = proptest::sample::select(vec![&b"\n"[..], b"\n", b"\n", b"\r\n", b"\n\n", b"\r", b",x\n"]);
        let record = (sound, end);
        let (regular, odd) = (Cell::new(0), Cell::new(0));
        proptest!(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() }, |(
            records in proptest::collection::vec(record, 0..20), width in 2usize..4, cut in 0usize..20,
        )| {
            let mut text = Vec::new();
            for (fields, end) in records {
                // Mostly sound ones, so that both answers occur.
                for i in 0..width {
                    let field = fields.get(i).filter(|f| fields.len() > 8 || f.len() < 6 && !f.contains(&b'"')).copied();
                    text.extend_from_slice(field.unwrap_or(b"v"));
                    text.push(b',');
                }
                text.pop();
                text.extend_from_slice(if fields.len() == 11 { end } else { b"\n" });
            }
            text.truncate(text.len().saturating_sub(cut));
            let counted = if agrees(COMMA, &text, width) { &regular } else { &odd };
            counted.set(counted.get() + 1);
        });
        assert!(regular.get() > 2000 && odd.get() > 2000, "{regular:?} {odd:?}");
    }
}
