//! Where the parts of a page lie: its header's kinds, its levels, its values.
//!
//! Source: apache/parquet-format, `parquet.thrift` and `Encodings.md`.

use super::levels::{bit_packed, hybrid, short, width_of};
use super::page::Chunk;
use super::thrift::Struct;
use super::values::encoding;
use crate::error::{Error, Result};

/// Page types by their number.
pub(super) mod page_type {
    pub(crate) const DATA: i64 = 0;
    pub(crate) const INDEX: i64 = 1;
    pub(crate) const DICTIONARY: i64 = 2;
    pub(crate) const DATA_V2: i64 = 3;
}

/// Where the parts of a data page lie.
pub(super) struct Parts<'b> {
    pub levels: &'b [u8],
    pub values: &'b [u8],
    pub count: u64,
    pub rows: u64,
    pub begins_row: bool,
    pub present: usize,
    pub encoding: i64,
}

impl Chunk<'_> {
    /// Where the parts of a decompressed data page lie.
    pub(super) fn parts<'b>(&self, header: &Struct, plain: &'b [u8]) -> Result<Parts<'b>> {
        match (header.structure(8), header.structure(5)) {
            (Some(inner), _) if header.int(1) == Some(page_type::DATA_V2) => self.parts_v2(inner, plain),
            (_, Some(inner)) => self.parts_v1(inner, plain),
            _ => Err(short()),
        }
    }

    fn parts_v1<'b>(&self, inner: &Struct, plain: &'b [u8]) -> Result<Parts<'b>> {
        let count = count(inner.int(1))?;
        let mut at = 0;
        let (mut rows, mut begins_row) = (count, true);
        if self.max_repetition > 0 {
            let counted = Levels::read(plain, inner.int(4), count, self.max_repetition)?;
            (rows, begins_row, at) = (counted.zeros, counted.begins_with_zero(), counted.used);
        }
        let mut present = count;
        if self.max_definition > 0 {
            let counted = Levels::read(&plain[at..], inner.int(3), count, self.max_definition)?;
            (present, at) = (counted.greatest, at + counted.used);
        }
        let (levels, values) = plain.split_at(at);
        let encoding = inner.int(2).ok_or_else(short)?;
        Ok(Parts { levels, values, count, rows, begins_row, present: present as usize, encoding })
    }

    fn parts_v2<'b>(&self, inner: &Struct, plain: &'b [u8]) -> Result<Parts<'b>> {
        let count = count(inner.int(1))?;
        let (repetition, rest) = plain.split_at_checked(level_bytes(inner, 6)?).ok_or_else(short)?;
        let (definition, values) = rest.split_at_checked(level_bytes(inner, 5)?).ok_or_else(short)?;
        let (mut rows, mut begins_row) = (count, true);
        if self.max_repetition > 0 {
            let counted = Levels::runs(repetition, count, self.max_repetition)?;
            (rows, begins_row) = (counted.zeros, counted.begins_with_zero());
        }
        let mut present = count;
        if self.max_definition > 0 {
            present = Levels::runs(definition, count, self.max_definition)?.greatest;
        }
        if inner.int(2).is_some_and(|nulls| self.max_repetition == 0 && count.checked_sub(present) != u64::try_from(nulls).ok()) {
            return Err(Error::malformed("damaged page: the number of nulls is not that of its levels"));
        }
        let levels = &plain[..repetition.len() + definition.len()];
        let encoding = inner.int(4).ok_or_else(short)?;
        Ok(Parts { levels, values, count, rows, begins_row, present: present as usize, encoding })
    }
}

pub(super) fn is_indices(encoding: i64) -> bool {
    matches!(encoding, encoding::PLAIN_DICTIONARY | encoding::RLE_DICTIONARY)
}

/// Whether a data page is of version 2, where its header stands, and how many bytes of levels are not compressed.
pub(super) fn data_header(header: &Struct) -> Result<(bool, i16, usize)> {
    let v2 = header.int(1) == Some(page_type::DATA_V2);
    let field = if v2 { 8 } else { 5 };
    let inner = header.structure(field).ok_or_else(|| Error::malformed("damaged page: no data page header"))?;
    let raw_levels = if v2 { level_bytes(inner, 5)?.checked_add(level_bytes(inner, 6)?).ok_or_else(short)? } else { 0 };
    Ok((v2, field, raw_levels))
}

/// The header of a dictionary page, the encoding of its entries, and how many there are.
pub(super) fn dictionary_header(header: &Struct) -> Result<(&Struct, i64, usize)> {
    let inner = header.structure(7).ok_or_else(|| Error::malformed("damaged page: no dictionary header"))?;
    let encoding = match inner.int(2) {
        Some(encoding::PLAIN_DICTIONARY) => encoding::PLAIN,
        other => other.unwrap_or(encoding::PLAIN),
    };
    Ok((inner, encoding, count(inner.int(1))? as usize))
}

fn count(number: Option<i64>) -> Result<u64> {
    // A signed 32-bit number by the format, whatever is written there.
    let count = number.and_then(|n| u64::try_from(i32::try_from(n).ok()?).ok());
    count.ok_or_else(|| Error::malformed("damaged page: an impossible number of values"))
}

fn level_bytes(inner: &Struct, id: i16) -> Result<usize> {
    usize::try_from(inner.int(id).unwrap_or(0)).map_err(|_| Error::malformed("damaged page: a negative length of levels"))
}

/// What hmask wants to know of levels.
struct Levels {
    zeros: u64,
    greatest: u64,
    first: Option<u32>,
    used: usize,
}

impl Levels {
    /// Levels of a page of version 1.
    fn read(bytes: &[u8], encoding: Option<i64>, count: u64, max: u32) -> Result<Self> {
        if encoding == Some(encoding::BIT_PACKED) {
            return Self::count(max, |each| bit_packed(bytes, width_of(max), count as usize, each));
        }
        let (length, rest) = bytes.split_first_chunk().ok_or_else(short)?;
        let length = u32::from_le_bytes(*length) as usize;
        let mut levels = Self::runs(rest.get(..length).ok_or_else(short)?, count, max)?;
        levels.used = 4 + length;
        Ok(levels)
    }

    fn runs(bytes: &[u8], count: u64, max: u32) -> Result<Self> {
        Self::count(max, |each| hybrid(bytes, width_of(max), count as usize, each))
    }

    fn count(max: u32, run: impl FnOnce(&mut dyn FnMut(u32, usize) -> Result<()>) -> Result<usize>) -> Result<Self> {
        let mut levels = Self { zeros: 0, greatest: 0, first: None, used: 0 };
        let used = run(&mut |level, times| {
            if level > max {
                return Err(Error::malformed("damaged page: an impossible level"));
            }
            levels.first.get_or_insert(level);
            levels.zeros += if level == 0 { times as u64 } else { 0 };
            levels.greatest += if level == max { times as u64 } else { 0 };
            Ok(())
        })?;
        levels.used = used;
        Ok(levels)
    }

    fn begins_with_zero(&self) -> bool {
        self.first.is_none_or(|level| level == 0)
    }
}
