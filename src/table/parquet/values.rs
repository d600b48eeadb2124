//! Values of a page in canonical form, from any encoding.
//!
//! Source: apache/parquet-format, `Encodings.md`.

use std::borrow::Cow;
use std::ops::Range;

use half::f16;

use super::levels::{hybrid, short, varint};
use super::schema::{Meaning, Physical};
use crate::error::{Error, Result};
use crate::mask::canonical;

/// Encodings by their number in page headers.
pub(super) mod encoding {
    pub(crate) const PLAIN: i64 = 0;
    pub(crate) const PLAIN_DICTIONARY: i64 = 2;
    pub(crate) const RLE: i64 = 3;
    pub(crate) const BIT_PACKED: i64 = 4;
    pub(crate) const DELTA_BINARY_PACKED: i64 = 5;
    pub(crate) const DELTA_LENGTH_BYTE_ARRAY: i64 = 6;
    pub(crate) const DELTA_BYTE_ARRAY: i64 = 7;
    pub(crate) const RLE_DICTIONARY: i64 = 8;
    pub(crate) const BYTE_STREAM_SPLIT: i64 = 9;
}

/// Byte strings that lie in one piece of memory.
pub(super) struct Values<'b> {
    bytes: Cow<'b, [u8]>,
    spans: Vec<Range<usize>>,
}

/// Values of one page in encodings that can announce any number of them without a byte for each.
pub(super) const MAX_CLAIMED: usize = 1 << 22;
/// Bytes that no decimal has.
const MAX_DECIMAL: usize = 4097;
/// Bytes that the values of one page may take once decoded: delta-encoded prefixes could claim any number.
const MAX_DECODED: usize = 1 << 29;

/// Where values lie, used again for the next page.
pub(super) type Ranges = Vec<Range<usize>>;

impl Values<'_> {
    /// The values in order.
    pub(super) fn slices(&self) -> Vec<&[u8]> {
        self.iter().collect()
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().map(|s| &self.bytes[s.clone()])
    }

    /// The values, at most `many` at a time.
    pub(super) fn runs(&self, many: usize) -> impl Iterator<Item = impl Iterator<Item = &[u8]> + Clone> {
        self.spans.chunks(many).map(|run| run.iter().map(|s| &self.bytes[s.clone()]))
    }

    pub(super) fn into_ranges(self) -> Ranges {
        self.spans
    }

    /// Whether each value is UTF-8.
    fn are_text(&self) -> bool {
        match simdutf8::basic::from_utf8(&self.bytes) {
            // The whole is: then each is that begins and ends between two characters.
            Ok(text) => self.spans.iter().all(|s| text.is_char_boundary(s.start) && text.is_char_boundary(s.end)),
            Err(_) => self.iter().all(|v| simdutf8::basic::from_utf8(v).is_ok()),
        }
    }
}

/// Decodes `count` values and brings them into canonical form. `ranges`, whatever it holds, is used again.
///
/// # Errors
/// Fewer values than `count`, an encoding that does not fit, a text that is not UTF-8, a time that is none.
pub(super) fn canonical_values(
    bytes: &[u8],
    encoding: i64,
    physical: Physical,
    meaning: Meaning,
    count: usize,
    ranges: Ranges,
) -> Result<Values<'_>> {
    let raw = raw_values(bytes, encoding, physical, count, ranges)?;
    match meaning {
        Meaning::Binary => Ok(raw),
        Meaning::Text => {
            if !raw.are_text() {
                return Err(Error::malformed("a text is not valid UTF-8"));
            }
            Ok(raw)
        }
        Meaning::Decimal(scale) if matches!(physical, Physical::Int32 | Physical::Int64) => map(&raw, |value, out| {
            canonical::decimal(out, &signed(value).to_be_bytes(), scale);
            Ok(())
        }),
        _ => map(&raw, |value, out| one(value, meaning, out)),
    }
}

/// Decodes `count` values as their physical type has them. `ranges`, whatever it holds, is used again.
///
/// # Errors
/// Fewer values than `count`, or an encoding that does not fit.
pub(super) fn raw_values(bytes: &[u8], encoding: i64, physical: Physical, count: usize, ranges: Ranges) -> Result<Values<'_>> {
    Ok(match physical {
        Physical::ByteArray => byte_arrays(bytes, encoding, count, ranges)?,
        Physical::Boolean => booleans(bytes, encoding, count)?,
        Physical::Fixed(n) if encoding == encoding::DELTA_BYTE_ARRAY => {
            let values = byte_arrays(bytes, encoding, count, ranges)?;
            if values.spans.iter().any(|s| s.len() != n) {
                return Err(Error::malformed("damaged page: a value of another length than the schema says"));
            }
            values
        }
        Physical::Int32 | Physical::Float => fixed(bytes, encoding, 4, count)?,
        Physical::Int64 | Physical::Double => fixed(bytes, encoding, 8, count)?,
        Physical::Int96 => fixed(bytes, encoding, 12, count)?,
        Physical::Fixed(n) => fixed(bytes, encoding, n, count)?,
    })
}

fn map(raw: &Values<'_>, canonical: impl Fn(&[u8], &mut Vec<u8>) -> Result<()>) -> Result<Values<'static>> {
    let mut out = Vec::new();
    let mut spans = Vec::with_capacity(raw.spans.len());
    for value in raw.iter() {
        let start = out.len();
        canonical(value, &mut out)?;
        spans.push(start..out.len());
    }
    Ok(Values { bytes: out.into(), spans })
}

/// One value of little-endian bytes, or as its carrier has them.
fn one(value: &[u8], meaning: Meaning, out: &mut Vec<u8>) -> Result<()> {
    match (meaning, value.len()) {
        (Meaning::Boolean, _) => canonical::boolean(out, value != [0]),
        (Meaning::Signed, _) => canonical::integer(out, signed(value)),
        (Meaning::Unsigned, 4) => canonical::unsigned(out, (signed(value) as u32).into()),
        (Meaning::Unsigned, _) => canonical::unsigned(out, signed(value) as u64),
        (Meaning::Date, _) => canonical::date(out, signed(value)),
        (Meaning::Time(unit), _) => {
            if !canonical::time(out, signed(value), unit) {
                return Err(Error::malformed("a time outside of a day"));
            }
        }
        (Meaning::Timestamp(unit, utc), _) => canonical::timestamp(out, signed(value), unit, utc),
        (Meaning::Int96, _) => canonical::int96(out, value.first_chunk().ok_or_else(short)?),
        (Meaning::Decimal(_), MAX_DECIMAL..) => return Err(Error::unsupported("a decimal of more than 4096 bytes")),
        (Meaning::Decimal(scale), _) => canonical::decimal(out, value, scale),
        (Meaning::Float, 4) => canonical::float32(out, f32::from_bits(signed(value) as u32)),
        (Meaning::Float, _) => canonical::float64(out, f64::from_bits(signed(value) as u64)),
        (Meaning::Half, _) => canonical::float16(out, f16::from_bits(signed(value) as u16)),
        (Meaning::Uuid, _) => canonical::uuid(out, value.first_chunk().ok_or_else(short)?),
        (Meaning::Text | Meaning::Binary, _) => out.extend_from_slice(value),
    }
    Ok(())
}

/// A little-endian number of up to 8 bytes with its sign.
fn signed(value: &[u8]) -> i64 {
    let fill = if value.last().is_some_and(|b| b & 0x80 != 0) { -1 } else { 0 };
    value.iter().rev().fold(fill, |n, b| n << 8 | i64::from(*b))
}

fn wrong_encoding(encoding: i64) -> Error {
    Error::malformed(format!("damaged page: encoding {encoding} does not fit the column's type"))
}

fn fixed(bytes: &[u8], encoding: i64, width: usize, count: usize) -> Result<Values<'_>> {
    let size = width.checked_mul(count).ok_or_else(short)?;
    let bytes: Cow<'_, [u8]> = match encoding {
        encoding::PLAIN => bytes.get(..size).ok_or_else(short)?.into(),
        encoding::BYTE_STREAM_SPLIT if width != 12 => {
            let streams = bytes.get(..size).ok_or_else(short)?;
            (0..size).map(|i| streams[i % width * count + i / width]).collect()
        }
        encoding::DELTA_BINARY_PACKED if width == 4 || width == 8 => {
            let mut out = Vec::new();
            delta(bytes, count, |n| {
                out.extend_from_slice(&n.to_le_bytes()[..width]);
                Ok(())
            })?;
            out.into()
        }
        other => return Err(wrong_encoding(other)),
    };
    Ok(Values { bytes, spans: (0..count).map(|i| i * width..(i + 1) * width).collect() })
}

fn booleans(bytes: &[u8], encoding: i64, count: usize) -> Result<Values<'static>> {
    let mut out = Vec::new();
    match encoding {
        encoding::PLAIN => {
            let bits = bytes.get(..count.div_ceil(8)).ok_or_else(short)?;
            out.extend((0..count).map(|i| bits[i / 8] >> (i % 8) & 1));
        }
        encoding::RLE => {
            let (length, rest) = bytes.split_first_chunk().ok_or_else(short)?;
            let runs = rest.get(..u32::from_le_bytes(*length) as usize).ok_or_else(short)?;
            check_claim(count)?;
            hybrid(runs, 1, count, |v, n| {
                out.resize(out.len() + n, v as u8);
                Ok(())
            })?;
        }
        other => return Err(wrong_encoding(other)),
    }
    Ok(Values { bytes: out.into(), spans: (0..count).map(|i| i..i + 1).collect() })
}

fn byte_arrays(bytes: &[u8], encoding: i64, count: usize, mut spans: Ranges) -> Result<Values<'_>> {
    spans.clear();
    match encoding {
        encoding::PLAIN => {
            spans.reserve(count.min(bytes.len() / 4));
            let mut at = 0usize;
            for _ in 0..count {
                let length = bytes[at..].first_chunk().ok_or_else(short)?;
                let start = at + 4;
                at = start
                    .checked_add(u32::from_le_bytes(*length) as usize)
                    .filter(|end| *end <= bytes.len())
                    .ok_or_else(short)?;
                spans.push(start..at);
            }
            Ok(Values { bytes: bytes.into(), spans })
        }
        encoding::DELTA_LENGTH_BYTE_ARRAY => delta_lengths(bytes, count),
        encoding::DELTA_BYTE_ARRAY => {
            let mut prefixes = Vec::new();
            let used = delta(bytes, count, |n| {
                prefixes.push(usize::try_from(n).map_err(|_| short())?);
                Ok(())
            })?;
            let suffixes = delta_lengths(&bytes[used..], count)?;
            let (mut out, mut previous) = (Vec::new(), 0..0);
            for (prefix, suffix) in prefixes.into_iter().zip(suffixes.iter()) {
                if prefix > previous.len() || out.len() + prefix + suffix.len() > MAX_DECODED {
                    return Err(Error::malformed("damaged page: an impossible prefix"));
                }
                let start = out.len();
                out.extend_from_within(previous.start..previous.start + prefix);
                out.extend_from_slice(suffix);
                previous = start..out.len();
                spans.push(previous.clone());
            }
            Ok(Values { bytes: out.into(), spans })
        }
        other => Err(wrong_encoding(other)),
    }
}

fn delta_lengths(bytes: &[u8], count: usize) -> Result<Values<'_>> {
    let mut ends = Vec::new();
    let mut end = 0usize;
    let used = delta(bytes, count, |n| {
        end = usize::try_from(n).ok().and_then(|n| end.checked_add(n)).ok_or_else(short)?;
        ends.push(end);
        Ok(())
    })?;
    let bytes = &bytes[used..];
    if end > bytes.len() {
        return Err(short());
    }
    let mut start = 0;
    let spans = ends.into_iter().map(|end| std::mem::replace(&mut start, end)..end).collect();
    Ok(Values { bytes: bytes.into(), spans })
}

/// Calls `each` for `count` numbers of `DELTA_BINARY_PACKED`; returns the bytes used.
fn delta(bytes: &[u8], count: usize, mut each: impl FnMut(i64) -> Result<()>) -> Result<usize> {
    check_claim(count)?;
    let mut at = 0;
    let number = |at: &mut usize| -> Result<u64> {
        let (n, used) = varint(bytes.get(*at..).ok_or_else(short)?)?;
        *at += used;
        Ok(n)
    };
    let zigzag = |n: u64| (n >> 1) as i64 ^ -((n & 1) as i64);
    let block = number(&mut at)?;
    let minis = number(&mut at)?;
    let total = number(&mut at)?;
    let mut value = zigzag(number(&mut at)?);
    let a_mini = block.checked_div(minis).unwrap_or(0);
    if total != count as u64 || block % minis.max(1) != 0 || a_mini == 0 || a_mini % 8 != 0 || block > 1 << 20 {
        return Err(Error::malformed("damaged page: an impossible delta header"));
    }
    if count > 0 {
        each(value)?;
    }
    let mut left = count.saturating_sub(1);
    while left > 0 {
        let least = zigzag(number(&mut at)?);
        let widths = bytes.get(at..).and_then(|b| b.get(..minis as usize)).ok_or_else(short)?;
        at += widths.len();
        for width in widths {
            if left == 0 {
                break;
            }
            if *width > 64 {
                return Err(Error::malformed(format!("damaged page: a bit width of {width}")));
            }
            let size = a_mini as usize / 8 * usize::from(*width);
            let packed = bytes.get(at..).ok_or_else(short)?;
            let values = left.min(a_mini as usize);
            if packed.len() * 8 < values * usize::from(*width) {
                return Err(short());
            }
            for i in 0..values {
                value = value.wrapping_add(least).wrapping_add(bits(packed, i * usize::from(*width), *width) as i64);
                each(value)?;
            }
            left -= values;
            at += size.min(packed.len());
        }
    }
    Ok(at)
}

fn check_claim(count: usize) -> Result<()> {
    if count > MAX_CLAIMED {
        return Err(Error::unsupported(format!("a page of more than {MAX_CLAIMED} values")));
    }
    Ok(())
}

/// The number of `width` bits from bit `at` on, lowest first.
fn bits(bytes: &[u8], at: usize, width: u8) -> u64 {
    let first = at / 8;
    let last = (at + usize::from(width)).div_ceil(8);
    let wide = bytes[first..last].iter().rev().fold(0u128, |n, b| n << 8 | u128::from(*b));
    (wide >> (at % 8)) as u64 & u64::MAX.checked_shr(64 - u32::from(width)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(bytes: &[u8], encoding: i64, physical: Physical, meaning: Meaning, count: usize) -> Result<Vec<String>> {
        let values = canonical_values(bytes, encoding, physical, meaning, count, Ranges::new())?;
        Ok(values.slices().iter().map(|v| String::from_utf8_lossy(v).into_owned()).collect())
    }

    #[test]
    fn carriers_in_plain() {
        let int = |n: i32| n.to_le_bytes();
        let (signed, unsigned) = (Meaning::Signed, Meaning::Unsigned);
        assert_eq!(texts(&int(-7), encoding::PLAIN, Physical::Int32, signed, 1).unwrap(), ["-7"]);
        assert_eq!(texts(&int(-1), encoding::PLAIN, Physical::Int32, unsigned, 1).unwrap(), ["4294967295"]);
        assert_eq!(texts(&int(-50), encoding::PLAIN, Physical::Int32, Meaning::Decimal(2), 1).unwrap(), ["-0.50"]);
        assert_eq!(texts(&[0xff, 0xce], encoding::PLAIN, Physical::Fixed(2), Meaning::Decimal(2), 1).unwrap(), ["-0.50"]);
        assert_eq!(texts(&[0b101], encoding::PLAIN, Physical::Boolean, Meaning::Boolean, 3).unwrap(), ["true", "false", "true"]);
        assert_eq!(texts(b"\x02\0\0\0ab\0\0\0\0", encoding::PLAIN, Physical::ByteArray, Meaning::Text, 2).unwrap(), ["ab", ""]);
        // Two halves of a character are no text, though what lies in memory is one.
        assert!(texts(b"\x81\0\0\0", encoding::PLAIN, Physical::Fixed(2), Meaning::Text, 2).is_err());
        assert!(texts("é".as_bytes(), encoding::PLAIN, Physical::Fixed(1), Meaning::Text, 2).is_err());
        let long = [&b"\x02\0\0\0a\xc3\x83\0\0\0"[..], &[b'b'; 0x83]].concat();
        assert!(texts(&long, encoding::PLAIN, Physical::ByteArray, Meaning::Text, 2).is_err());
        assert!(texts(b"\x01\0\0\0\xff", encoding::PLAIN, Physical::ByteArray, Meaning::Text, 1).is_err());
    }

    #[test]
    fn split_streams_and_deltas() {
        let split = [1, 2, 0, 0, 0, 0, 0, 0xff];
        assert_eq!(texts(&split, encoding::BYTE_STREAM_SPLIT, Physical::Int32, Meaning::Signed, 2).unwrap(), ["1", "-16777214"]);
        // Block of 128, 4 miniblocks, 5 values 1 to 5 (Encodings.md, example 1): all deltas are 1, so no bits.
        let delta = [128, 1, 4, 5, 2, 2, 0, 0, 0, 0];
        assert_eq!(
            texts(&delta, encoding::DELTA_BINARY_PACKED, Physical::Int64, Meaning::Signed, 5).unwrap(),
            ["1", "2", "3", "4", "5"]
        );
    }

    #[test]
    fn numbers_of_values_that_are_only_claimed_take_no_memory() {
        let many = 1 << 30;
        let delta = [128, 1, 4, 0x80, 0x80, 0x80, 0x80, 4, 0, 0, 0, 0, 0, 0];
        assert!(texts(&delta, encoding::DELTA_BINARY_PACKED, Physical::Int64, Meaning::Signed, many).is_err());
        assert!(
            texts(&[6, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 7, 1], encoding::RLE, Physical::Boolean, Meaning::Boolean, many).is_err()
        );
        for (encoding, physical) in [
            (encoding::PLAIN, Physical::Int32),
            (encoding::PLAIN, Physical::ByteArray),
            (encoding::BYTE_STREAM_SPLIT, Physical::Int64),
        ] {
            assert!(texts(&[0; 16], encoding, physical, Meaning::Binary, many).is_err());
        }
    }

    #[test]
    fn no_bytes_panic() {
        let mut seed = 7u32;
        let mut random = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        };
        for round in 0..20_000 {
            let bytes: Vec<u8> = (0..round % 40).map(|_| random() >> (round % 5)).collect();
            for encoding in 0..10 {
                for physical in [Physical::ByteArray, Physical::Int32, Physical::Int96, Physical::Boolean, Physical::Fixed(3)] {
                    let _ = texts(&bytes, encoding, physical, Meaning::Binary, usize::from(random()) % 50);
                }
            }
        }
    }
}
