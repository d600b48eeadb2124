//! Bit-packed and run-length encoded numbers: levels, dictionary indices, booleans.
//!
//! Source: apache/parquet-format, `Encodings.md`, "Run Length Encoding / Bit-Packing Hybrid" and "Bit-packed (Deprecated)".

use crate::error::{Error, Result};

/// Calls `each(value, times)` for `count` values of `width` bits; returns the bytes used.
///
/// # Errors
/// Fewer values than `count`, a width beyond 32, or an error of `each`.
pub(super) fn hybrid(bytes: &[u8], width: u32, count: usize, mut each: impl FnMut(u32, usize) -> Result<()>) -> Result<usize> {
    if width > u32::BITS {
        return Err(Error::malformed(format!("damaged page: a bit width of {width}")));
    }
    let (mut at, mut left) = (0, count);
    while left > 0 {
        let (head, used) = varint(&bytes[at..])?;
        at += used;
        let runs = usize::try_from(head >> 1).map_err(|_| short())?;
        if head & 1 == 0 {
            let n = width.div_ceil(8) as usize;
            let value = bytes.get(at..at + n).ok_or_else(short)?;
            at += n;
            let value = value.iter().rev().fold(0u32, |v, b| v << 8 | u32::from(*b));
            let times = runs.min(left);
            if times == 0 {
                return Err(Error::malformed("damaged page: an empty run"));
            }
            each(value, times)?;
            left -= times;
        } else {
            let times = runs.saturating_mul(8).min(left);
            if times == 0 {
                return Err(Error::malformed("damaged page: an empty run"));
            }
            // The last group may lack the bytes of values that do not exist.
            let packed = &bytes[at..];
            if (packed.len() as u64) * 8 < times as u64 * u64::from(width) {
                return Err(short());
            }
            unpack(packed, width, times, &mut each)?;
            at = at.saturating_add(runs.saturating_mul(width as usize)).min(bytes.len());
            left -= times;
        }
    }
    Ok(at)
}

/// Calls `each(value, 1)` for `count` numbers of `width` bits, lowest bit first; `bytes` hold at least so many.
fn unpack(bytes: &[u8], width: u32, count: usize, each: &mut impl FnMut(u32, usize) -> Result<()>) -> Result<()> {
    let mask = (1u64 << width) - 1;
    let (mut window, mut bits, mut rest) = (0u64, 0, bytes.iter());
    for _ in 0..count {
        while bits < width {
            window |= u64::from(*rest.next().ok_or_else(short)?) << bits;
            bits += 8;
        }
        each((window & mask) as u32, 1)?;
        window >>= width;
        bits -= width;
    }
    Ok(())
}

/// The deprecated levels: packed from the highest bit on, without a length. Returns the bytes used.
///
/// # Errors
/// As [`hybrid`].
pub(super) fn bit_packed(
    bytes: &[u8],
    width: u32,
    count: usize,
    mut each: impl FnMut(u32, usize) -> Result<()>,
) -> Result<usize> {
    let used = (count as u64 * u64::from(width)).div_ceil(8);
    let packed = usize::try_from(used).ok().and_then(|n| bytes.get(..n)).ok_or_else(short)?;
    for i in 0..count {
        let bits = (0..width as usize).map(|b| i * width as usize + b);
        each(bits.fold(0, |v, bit| v << 1 | u32::from(packed[bit / 8] >> (7 - bit % 8) & 1)), 1)?;
    }
    Ok(packed.len())
}

/// Bits that values up to `max` need.
pub(super) fn width_of(max: u32) -> u32 {
    u32::BITS - max.leading_zeros()
}

/// An unsigned LEB128 number and its length.
///
/// # Errors
/// The end of `bytes`, or more than 64 bits.
pub(super) fn varint(bytes: &[u8]) -> Result<(u64, usize)> {
    let mut n = 0;
    for (i, byte) in bytes.iter().take(10).enumerate() {
        n |= u64::from(byte & 0x7f) << (7 * i);
        if *byte < 0x80 {
            return Ok((n, i + 1));
        }
    }
    Err(short())
}

/// The error for a page that announces more than it holds.
pub(super) fn short() -> Error {
    Error::malformed("damaged page: it ends early")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], width: u32, count: usize) -> Result<Vec<u32>> {
        let mut out = Vec::new();
        hybrid(bytes, width, count, |v, n| {
            out.extend(std::iter::repeat_n(v, n));
            Ok(())
        })?;
        Ok(out)
    }

    #[test]
    fn the_example_of_the_format() {
        // Encodings.md: 0 to 7 in 3 bits.
        assert_eq!(all(&[0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010], 3, 8).unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
        let mut out = Vec::new();
        let packed = [0b0000_0101, 0b0011_1001, 0b0111_0111];
        let used = bit_packed(&packed, 3, 8, |v, _| {
            out.push(v);
            Ok(())
        });
        assert_eq!((used.unwrap(), out), (3, vec![0, 1, 2, 3, 4, 5, 6, 7]));
    }

    #[test]
    fn runs_and_groups_mix() {
        let bytes = [10 << 1, 1, 0b11, 0b1010_1010, 4 << 1, 0];
        let got = all(&bytes, 1, 20).unwrap();
        assert_eq!(got, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0]);
        assert_eq!(all(&[200, 1, 7, 0, 0, 0], 32, 100).unwrap(), [7; 100]);
    }

    #[test]
    fn what_is_announced_must_be_there() {
        for (bytes, width, count) in [
            (&[][..], 1, 1),
            (&[2, 1], 1, 2),
            (&[3, 0], 3, 8),
            (&[2], 8, 1),
            (&[0, 0], 1, 1),
            (&[2, 1], 33, 1),
            (&[0xff; 12], 1, 1),
        ] {
            assert!(all(bytes, width, count).is_err(), "{bytes:?}");
        }
        assert!(all(&[], 5, 0).unwrap().is_empty());
    }
}
