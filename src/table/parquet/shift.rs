//! Rows that change each on its own: a page's values by row, and dates moved by the days of their row.

use super::levels::{bit_packed, hybrid, short, width_of};
use super::page::{Chunk, Tokens};
use super::parts::{Parts, data_header, dictionary_header, is_indices};
use super::thrift::Struct;
use super::values::{MAX_CLAIMED, Ranges, encoding};
use crate::error::{Error, Result};
use crate::mask::Treatment;

impl Chunk<'_> {
    /// The entries of a dictionary page.
    ///
    /// # Errors
    /// Damage of any kind.
    pub(super) fn entries(&self, header: &Struct, body: &[u8]) -> Result<Vec<Vec<u8>>> {
        let (_, encoding, count) = dictionary_header(header)?;
        let plain = self.opened(header, body, 0)?;
        Ok(self.values(&plain, encoding, count, Ranges::new())?.slices().into_iter().map(<[u8]>::to_vec).collect())
    }

    /// The values of a data page by row, none where they are null. The leaf lies in no list.
    ///
    /// # Errors
    /// Damage of any kind.
    pub(super) fn rows<'d>(
        &self,
        header: &Struct,
        body: &[u8],
        dictionary: impl FnOnce() -> Option<&'d [Vec<u8>]>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let (_, _, raw_levels) = data_header(header)?;
        let plain = self.opened(header, body, raw_levels)?;
        let parts = self.parts(header, &plain)?;
        let values = self.present(&parts, dictionary)?;
        let mut values = values.into_iter();
        let presence = self.presence(header, &plain, &parts)?;
        Ok(presence.into_iter().map(|there| if there { values.next() } else { None }).collect())
    }

    /// Adds a page's dates, each moved by the days of its row; the page begins with this one of the row group.
    ///
    /// # Errors
    /// Damage, or a value that is no date or cannot be moved so far.
    pub(super) fn moved<'d>(
        &self,
        header: &Struct,
        parts: &Parts<'_>,
        plain: &[u8],
        (row, days): (u64, &[i32]),
        dictionary: impl FnOnce() -> Option<&'d [Vec<u8>]>,
        tokens: &mut Tokens,
    ) -> Result<()> {
        let presence = self.presence(header, plain, parts)?;
        let end = row.checked_add(parts.count).filter(|end| *end <= days.len() as u64).ok_or_else(short)?;
        let days = &days[row as usize..end as usize];
        let values = self.present(parts, dictionary)?;
        let days = presence.iter().zip(days).filter(|(there, _)| **there).map(|(_, days)| *days);
        let mut texts = Vec::new();
        for (value, days) in values.iter().zip(days) {
            let done = match (self.kept, self.treatment) {
                (Some(kept), _) => kept.apply(value, days, self.physical, self.meaning, &mut tokens.plain),
                (None, _) if value.is_empty() => {
                    texts.push(Vec::new());
                    continue;
                }
                (None, Treatment::Shift(shift)) => {
                    let mut text = Vec::new();
                    let moved = shift.form().moved(value, days, &mut text);
                    texts.push(text);
                    moved
                }
                _ => None,
            };
            done.ok_or_else(|| Error::malformed("a value is no date that can be moved"))?;
            tokens.masked += 1;
        }
        if self.kept.is_none() {
            self.lay_out(texts.iter().map(Vec::as_slice), tokens);
        }
        Ok(())
    }

    /// The values that are there, looked up where they are indices.
    pub(super) fn present<'d>(
        &self,
        parts: &Parts<'_>,
        dictionary: impl FnOnce() -> Option<&'d [Vec<u8>]>,
    ) -> Result<Vec<Vec<u8>>> {
        if parts.present == 0 {
            return Ok(Vec::new());
        }
        if !is_indices(parts.encoding) {
            let values = self.values(parts.values, parts.encoding, parts.present, Ranges::new())?;
            return Ok(values.slices().into_iter().map(<[u8]>::to_vec).collect());
        }
        let dictionary = dictionary().ok_or_else(|| Error::malformed("damaged page: indices without a dictionary"))?;
        let (width, runs) = parts.values.split_first().ok_or_else(short)?;
        let mut values = Vec::new();
        let mut each = |index: u32, times: usize| {
            let entry = dictionary.get(index as usize);
            let entry = entry.ok_or_else(|| Error::malformed("damaged page: an index beyond the dictionary"))?;
            if values.len() + times > MAX_CLAIMED {
                return Err(Error::unsupported("a page of more values than can be moved one by one"));
            }
            values.extend(std::iter::repeat_n(entry, times).cloned());
            Ok(())
        };
        if *width == 0 && runs.is_empty() {
            each(0, parts.present)?;
        } else {
            hybrid(runs, (*width).into(), parts.present, each)?;
        }
        Ok(values)
    }

    /// Which rows of a page have a value.
    fn presence(&self, header: &Struct, plain: &[u8], parts: &Parts<'_>) -> Result<Vec<bool>> {
        let count = usize::try_from(parts.count).ok().filter(|n| *n <= MAX_CLAIMED);
        let count = count.ok_or_else(|| Error::unsupported("a page of more values than can be moved one by one"))?;
        if self.max_definition == 0 {
            return Ok(vec![true; count]);
        }
        let mut presence = Vec::with_capacity(count);
        let each = |level: u32, times: usize| {
            presence.extend(std::iter::repeat_n(level == self.max_definition, times));
            Ok(())
        };
        let width = width_of(self.max_definition);
        if header.structure(8).is_some() {
            hybrid(plain, width, count, each)?; // no repetition levels before them: the leaf lies in no list
        } else if header.structure(5).and_then(|inner| inner.int(3)) == Some(encoding::BIT_PACKED) {
            bit_packed(plain, width, count, each)?;
        } else {
            hybrid(plain.get(4..).ok_or_else(short)?, width, count, each)?;
        }
        Ok(presence)
    }
}
