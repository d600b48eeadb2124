//! A masked chunk while it is written: what its pages add up to.

use super::footer::column;
use super::index::{Bounds, PageInfo};
use super::page::Masked;
use super::parts::page_type;
use super::thrift::{Struct, Value};
use super::values;
use crate::error::{Error, Result};

/// A chunk while it is written.
#[derive(Default)]
pub(super) struct Building {
    pub start: Option<u64>,
    pub dictionary: bool,
    pub first_data: Option<u64>,
    pub uncompressed: u64,
    pub values: u64,
    pub rows: u64,
    pub masked: u64,
    pub nulls: u64,
    pub bounds: Option<Bounds>,
    pub pages: Vec<PageInfo>,
    /// Page type, encoding, number of pages.
    pub encodings: Vec<(i64, i64, i32)>,
    pub hashes: Vec<u64>,
}

impl Building {
    pub(super) fn page(&mut self, mut page: Masked, offset: u64, size: usize) -> Result<()> {
        self.start.get_or_insert(offset);
        self.uncompressed += page.uncompressed as u64;
        match self.encodings.iter_mut().find(|e| (e.0, e.1) == (page.kind, page.encoding)) {
            Some(entry) => entry.2 += 1,
            None => self.encodings.push((page.kind, page.encoding, 1)),
        }
        self.hashes.append(&mut page.hashes);
        if page.kind == page_type::DICTIONARY {
            self.dictionary = true;
            return Ok(());
        }
        if self.first_data.is_none() && !page.begins_row {
            return Err(Error::malformed("damaged page: the first repetition level is not 0"));
        }
        self.first_data.get_or_insert(offset);
        if let Some((least, greatest)) = &page.bounds {
            let bounds = self.bounds.get_or_insert_with(|| (least.clone(), greatest.clone()));
            if *least < bounds.0 {
                bounds.0.clone_from(least);
            }
            if *greatest > bounds.1 {
                bounds.1.clone_from(greatest);
            }
        }
        let first_row = self.rows;
        self.values += page.values;
        self.rows += page.rows;
        self.masked += page.hashed;
        self.nulls += page.nulls;
        self.pages.push(PageInfo::new(page, offset, size, first_row));
        Ok(())
    }

    /// The chunk's metadata as it is now; what held originals is made anew or left out.
    pub(super) fn metadata(&self, old: &Struct, start: u64, end: u64, keeps_type: bool) -> Struct {
        const BYTE_ARRAY: i32 = 6;
        /// What is known to hold nothing of the values, or is made anew below.
        const KEPT: [i16; 12] = [1, 2, 3, 4, 5, 6, 7, 9, 11, 12, 13, 16];
        let mut new = old.clone();
        new.keep(&KEPT);
        if !keeps_type {
            new.set(column::TYPE, Value::i32(BYTE_ARRAY));
        }
        let mut encodings = vec![values::encoding::RLE as i32]; // levels
        encodings.extend(self.encodings.iter().map(|e| e.1 as i32));
        encodings.sort_unstable();
        encodings.dedup();
        new.set(column::ENCODINGS, Value::i32_list(encodings));
        new.set(column::UNCOMPRESSED_SIZE, Value::i64(self.uncompressed as i64));
        new.set(column::COMPRESSED_SIZE, Value::i64((end - start) as i64));
        new.set(column::DATA_PAGE_OFFSET, Value::i64(self.first_data.unwrap_or(start) as i64));
        for id in [
            column::INDEX_PAGE_OFFSET,
            column::DICTIONARY_PAGE_OFFSET,
            column::BLOOM_OFFSET,
            column::BLOOM_LENGTH,
            column::GEOSPATIAL_STATISTICS,
        ] {
            new.remove(id);
        }
        if self.dictionary {
            new.set(column::DICTIONARY_PAGE_OFFSET, Value::i64(start as i64));
        }
        if old.get(column::STATISTICS).is_some() {
            let mut statistics = Struct::default().with(3, Value::i64(self.nulls as i64));
            if let Some((least, greatest)) = &self.bounds {
                statistics.set(5, Value::Binary(greatest.clone()));
                statistics.set(6, Value::Binary(least.clone()));
            }
            new.set(column::STATISTICS, Value::Struct(statistics));
        }
        if old.get(column::ENCODING_STATS).is_some() {
            let entry = |(kind, encoding, count): &(i64, i64, i32)| {
                Struct::default()
                    .with(1, Value::i32(*kind as i32))
                    .with(2, Value::i32(*encoding as i32))
                    .with(3, Value::i32(*count))
            };
            new.set(column::ENCODING_STATS, Value::struct_list(self.encodings.iter().map(entry)));
        }
        if let Some(sizes) = new.get_mut(column::SIZE_STATISTICS).and_then(Value::as_struct_mut) {
            sizes.remove(1); // bytes of the originals
        }
        new
    }
}
