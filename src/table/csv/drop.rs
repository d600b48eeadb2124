//! Columns that leave a CSV: which bytes of a record go with them.

use std::ops::Range;

use super::scan::Field;
use crate::table::text::TextEncoding;

/// The columns that leave.
#[derive(Debug)]
pub(super) struct Drops {
    dropped: Vec<bool>,
    /// From here on all columns leave: each takes the delimiter before it along, any other the one behind it.
    tail: usize,
    /// Columns that are left.
    left: usize,
}

impl Drops {
    /// Of `width` columns these leave.
    pub(super) fn new(width: usize, columns: &[usize]) -> Self {
        let dropped: Vec<bool> = (0..width).map(|i| columns.contains(&i)).collect();
        let tail = dropped.iter().rposition(|d| !d).map_or(0, |last| last + 1);
        Self { dropped, tail, left: width - columns.len() }
    }

    /// Whether any leaves.
    pub(super) fn any(&self) -> bool {
        self.left < self.dropped.len()
    }

    /// Whether only one is left, whose empty field would make a blank line.
    pub(super) fn one_left(&self) -> bool {
        self.left == 1 && self.any()
    }

    /// What goes with a field, quotes and one delimiter included; nothing if it stays. `before` is where the field before it ended.
    #[expect(clippy::inline_always, reason = "called for each field: a call of its own would cost more than its work")]
    #[inline(always)]
    pub(super) fn cut(&self, column: usize, field: Field, before: usize) -> Option<Range<usize>> {
        if !self.dropped.get(column).is_some_and(|d| *d) {
            return None;
        }
        let quote = usize::from(field.quoted);
        Some(if column >= self.tail { before..field.end + quote } else { field.start - quote..field.end + quote + 1 })
    }

    /// The header, of these fields, without the columns that leave.
    pub(super) fn header(&self, raw: &[u8], fields: &[Field], encoding: TextEncoding, quote: Option<u8>) -> Vec<u8> {
        let unit = encoding.unit();
        let (mut out, mut copied, mut before) = (Vec::with_capacity(raw.len()), 0, 0);
        for (column, field) in fields.iter().enumerate() {
            if let Some(cut) = self.cut(column, *field, before) {
                out.extend_from_slice(&raw[copied..cut.start * unit]);
                copied = cut.end * unit;
            } else if let (true, Some(quote)) = (self.one_left() && field.start == field.end && !field.quoted, quote) {
                out.extend_from_slice(&raw[copied..field.start * unit]);
                copied = field.start * unit;
                let start = out.len();
                out.extend_from_slice(&[quote, quote]);
                encoding.widen(&mut out, start);
            }
            before = field.end + usize::from(field.quoted);
        }
        out.extend_from_slice(&raw[copied..]);
        out
    }
}
