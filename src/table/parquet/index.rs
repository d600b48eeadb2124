//! Page indexes and bloom filters of masked chunks, made from tokens.
//!
//! Source: apache/parquet-format, `PageIndex.md` and `BloomFilter.md`.

use twox_hash::XxHash64;

use super::page::Masked;
use super::thrift::{Struct, Value};

/// The least and the greatest token.
pub(crate) type Bounds = (Vec<u8>, Vec<u8>);

/// What the pages of a chunk tell, without their bytes.
pub(super) struct PageInfo {
    pub offset: u64,
    pub size: usize,
    pub first_row: u64,
    pub bounds: Option<Bounds>,
}

/// Bytes of a block of a bloom filter.
const BLOOM_BLOCK: usize = 32;
/// Bytes that a bloom filter may have: as `parquet-mr` and Arrow limit it.
const MAX_BLOOM: i64 = 128 << 20;
/// The salts of the split block algorithm.
const SALT: [u32; 8] = [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// A split block bloom filter.
pub(super) struct Bloom {
    header: Struct,
    bits: Vec<u8>,
}

/// The hash that goes into a bloom filter.
pub(super) fn bloom_hash(value: &[u8]) -> u64 {
    XxHash64::oneshot(0, value)
}

impl Bloom {
    /// An empty filter of the size that this header says, if the header makes sense.
    pub(super) fn like(header: &Struct) -> Option<Self> {
        let size = header.int(1).filter(|n| *n > 0 && *n % BLOOM_BLOCK as i64 == 0 && *n <= MAX_BLOOM)?;
        Some(Self { header: header.clone(), bits: vec![0; size as usize] })
    }

    /// Bytes of its bits.
    pub(super) fn size(&self) -> usize {
        self.bits.len()
    }

    /// Adds a value by its hash.
    pub(super) fn insert(&mut self, hash: u64) {
        let blocks = (self.bits.len() / BLOOM_BLOCK) as u64;
        let block = (((hash >> 32) * blocks) >> 32) as usize * BLOOM_BLOCK;
        let words = self.bits[block..block + BLOOM_BLOCK].as_chunks_mut::<4>().0;
        for (word, salt) in words.iter_mut().zip(SALT) {
            let bit = (hash as u32).wrapping_mul(salt) >> 27;
            *word = (u32::from_le_bytes(*word) | 1 << bit).to_le_bytes();
        }
    }

    /// Header and bits.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        self.header.write(out);
        out.extend_from_slice(&self.bits);
    }
}

impl PageInfo {
    /// Takes note of a data page at `offset`.
    pub(super) fn new(page: Masked, offset: u64, size: usize, first_row: u64) -> Self {
        Self { offset, size, first_row, bounds: page.bounds }
    }
}

/// The offset index of these pages.
pub(super) fn offset_index(pages: &[PageInfo]) -> Struct {
    let location = |p: &PageInfo| {
        Struct::default()
            .with(1, Value::i64(p.offset as i64))
            .with(2, Value::i32(p.size as i32))
            .with(3, Value::i64(p.first_row as i64))
    };
    Struct::default().with(1, Value::struct_list(pages.iter().map(location)))
}

/// The column index of these pages; histograms of levels, which do not change, are taken from the old one.
pub(super) fn column_index(pages: &[PageInfo], old: Option<&Struct>) -> Struct {
    const UNORDERED: i32 = 0;
    let bound = |pick: fn(&Bounds) -> &Vec<u8>| {
        Value::binary_list(pages.iter().map(|p| p.bounds.as_ref().map(|b| pick(b).clone()).unwrap_or_default()))
    };
    let mut index = Struct::default()
        .with(1, Value::bool_list(pages.iter().map(|p| p.bounds.is_none())))
        .with(2, bound(|b| &b.0))
        .with(3, bound(|b| &b.1))
        .with(4, Value::i32(UNORDERED));
    for id in [5, 6, 7] {
        if let Some(value) = old.and_then(|o| o.get(id)) {
            index.set(id, value.clone());
        }
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bloom_filter_has_what_was_put_in() {
        let header = Struct::default().with(1, Value::i32(64));
        let mut bloom = Bloom::like(&header).unwrap();
        bloom.insert(bloom_hash(b"a"));
        let mut out = Vec::new();
        bloom.write(&mut out);
        // One bit in each of the eight words of one block.
        assert_eq!(bloom.bits.iter().map(|b| b.count_ones()).sum::<u32>(), 8);
        assert_eq!(out.len(), 64 + 4);
        for bad in [0, 31, -32, i32::MAX] {
            assert!(Bloom::like(&Struct::default().with(1, Value::i32(bad))).is_none());
        }
    }

    #[test]
    fn the_hash_is_xxhash64() {
        // xxHash, doc/xxhash_spec.md: the empty input with seed 0.
        assert_eq!(bloom_hash(b""), 0xef46_db37_51d8_e999);
    }
}
