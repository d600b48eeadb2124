//! The output: pieces in order, and the footer that fits them.

use std::fs::File;
use std::io::Write;

use super::building::Building;
use super::footer::{Footer, chunk as chunk_field, chunk_start, column, cut_sorting, group as group_field, metadata, read_at};
use super::index::{self, Bloom};
use super::page::Buffers;
use super::thrift::{Struct, Value};
use super::{Done, Place, walk};
use crate::error::{Error, Result};
use crate::policy::Assigned;
use crate::table::ColumnReport;

/// The page indexes of a chunk: of columns and of offsets, where it has them.
struct Indexes {
    place: Place,
    columns: Option<Vec<u8>>,
    offsets: Option<Vec<u8>>,
}

/// The output, and what its footer will say.
pub(super) struct Sink<'a> {
    input: &'a File,
    output: &'a mut (dyn Write + Send),
    footer: &'a Footer,
    assigned: &'a Assigned,
    /// For each leaf that changes whether its type stays.
    kept_types: Vec<bool>,
    /// The last leaf that stays.
    last: usize,
    offset: u64,
    groups: Vec<Struct>,
    now: Building,
    /// Page indexes, written behind all row groups.
    indexes: Vec<Indexes>,
    buffers: &'a Buffers,
    columns: Vec<ColumnReport>,
}

impl<'a> Sink<'a> {
    pub(super) fn new(
        input: &'a File,
        output: &'a mut (dyn Write + Send),
        footer: &'a Footer,
        assigned: &'a Assigned,
        kept_types: Vec<bool>,
        buffers: &'a Buffers,
    ) -> Self {
        let name = |i: &usize| crate::policy::quote_path(&footer.leaves[*i].candidate.path);
        // Columns of which a leaf stays are counted, each once.
        let mut stay: Vec<usize> = (0..footer.leaves.len())
            .filter(|i| !assigned.dropped.contains(i))
            .map(|i| footer.leaves[i].candidate.number)
            .collect();
        stay.dedup();
        let number = |n: usize| stay.iter().position(|s| *s == n).map_or(0, |at| at + 1);
        let report = |(i, rule): (&usize, &usize)| ColumnReport {
            name: name(i),
            number: number(footer.leaves[*i].candidate.number),
            rule: *rule,
            ..Default::default()
        };
        let columns = assigned.found.iter().zip(&assigned.rules).map(report).collect();
        let last = (0..footer.leaves.len()).rev().find(|i| !assigned.dropped.contains(i)).unwrap_or(0);
        let groups = footer.groups().cloned().collect();
        let (now, indexes) = (Building::default(), Vec::new());
        Self { input, output, footer, assigned, kept_types, last, offset: 0, groups, now, indexes, buffers, columns }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.write_all(bytes).map_err(|e| Error::io("cannot write", e))?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn take(&mut self, done: Done) -> Result<()> {
        match done {
            Done::Raw(bytes) => {
                self.now.start.get_or_insert(self.offset);
                self.write(&bytes)?;
                self.buffers.bytes.give(bytes);
                Ok(())
            }
            Done::Page(place, number, page) => {
                let page = page.and_then(|mut page| {
                    let bytes = std::mem::take(&mut page.bytes);
                    self.now.page(*page, self.offset, bytes.len())?;
                    Ok(bytes)
                });
                let bytes = page.map_err(|e| {
                    let column = crate::policy::quote_path(&self.footer.leaves[place.column].candidate.path);
                    e.at(|p| (p.row_group, p.column, p.page) = (Some(place.group), Some(column), Some(number)))
                })?;
                self.write(&bytes)?;
                self.buffers.bytes.give(bytes);
                Ok(())
            }
            Done::End(place, pages) => {
                let building = std::mem::take(&mut self.now);
                let end = match self.assigned.found.iter().position(|i| *i == place.column) {
                    Some(i) => self.end_masked(place, i, building, &pages),
                    None => self.end_copied(place, &building, &pages),
                };
                end.map_err(|e| {
                    let column = crate::policy::quote_path(&self.footer.leaves[place.column].candidate.path);
                    e.at(|p| (p.row_group, p.column) = (Some(place.group), Some(column)))
                })?;
                if place.column == self.last { self.end_group(place.group) } else { Ok(()) }
            }
        }
    }

    fn chunk_mut(&mut self, place: Place) -> &mut Struct {
        let columns = self.groups[place.group].list_mut(group_field::COLUMNS);
        let chunk = columns.and_then(|c| c.get_mut(place.column)).and_then(Value::as_struct_mut);
        chunk.unwrap_or_else(|| unreachable!("checked with the footer"))
    }

    /// Offsets of a copied chunk move with it; its indexes are taken along, its bloom filter follows the row group.
    fn end_copied(&mut self, place: Place, building: &Building, pages: &[u64]) -> Result<()> {
        let old = metadata(&self.groups, place).clone();
        let (old_start, size) = self.footer.span(&old)?;
        let start = building.start.unwrap_or(self.offset);
        debug_assert_eq!(start + size, self.offset);
        let by = start as i64 - old_start as i64;
        let chunk = self.chunk_mut(place);
        move_offset(chunk, chunk_field::FILE_OFFSET, by);
        if let Some(metadata) = chunk.get_mut(chunk_field::METADATA).and_then(Value::as_struct_mut) {
            for id in [column::DATA_PAGE_OFFSET, column::INDEX_PAGE_OFFSET, column::DICTIONARY_PAGE_OFFSET] {
                move_offset(metadata, id, by);
            }
        }
        let column_index = self.old_index(place, chunk_field::COLUMN_INDEX, pages)?.map(|(_, bytes)| bytes);
        let offset_index = self.old_index(place, chunk_field::OFFSET_INDEX, pages)?.map(|(mut index, _)| {
            for location in index.list_mut(1).into_iter().flatten().filter_map(Value::as_struct_mut) {
                move_offset(location, 1, by);
            }
            let mut out = Vec::new();
            index.write(&mut out);
            out
        });
        self.indexes.push(Indexes { place, columns: column_index, offsets: offset_index });
        Ok(())
    }

    /// A page index of the input, where a chunk has one, which must be that of these pages.
    fn old_index(&self, place: Place, id: i16, pages: &[u64]) -> Result<Option<walk::Index>> {
        let chunk = self.groups[place.group].list(group_field::COLUMNS)[place.column].as_struct();
        chunk.map_or(Ok(None), |chunk| walk::index(self.input, chunk, id, self.footer.start, pages))
    }

    fn end_masked(&mut self, place: Place, masked: usize, mut now: Building, pages: &[u64]) -> Result<()> {
        let old = metadata(&self.groups, place).clone();
        let rows = self.groups[place.group].int(group_field::NUM_ROWS);
        if old.int(column::NUM_VALUES) != Some(now.values as i64) {
            return Err(Error::malformed("damaged footer: the number of values is not that of the pages"));
        }
        if rows != Some(now.rows as i64) {
            return Err(Error::malformed("damaged pages: the number of rows is not that of the row group"));
        }
        self.columns[masked].masked += now.masked;
        self.columns[masked].missing += now.values - now.masked;
        let start = now.start.unwrap_or(self.offset);
        let keeps_type = self.kept_types[masked];
        // Of numbers and dates that have changed no bounds are told.
        let old_column_index = self.old_index(place, chunk_field::COLUMN_INDEX, pages)?.filter(|_| !keeps_type);
        let had_offsets = self.old_index(place, chunk_field::OFFSET_INDEX, pages)?.is_some();
        let to_bytes = |s: Struct| {
            let mut out = Vec::new();
            s.write(&mut out);
            out
        };
        let column_index = old_column_index.map(|(old, _)| to_bytes(index::column_index(&now.pages, Some(&old))));
        let offset_index = had_offsets.then(|| to_bytes(index::offset_index(&now.pages)));
        let new = now.metadata(&old, start, self.offset, keeps_type);
        let hashes = std::mem::take(&mut now.hashes);
        let bloom = self.old_bloom(&old).filter(|_| !keeps_type).and_then(|(header, _)| Bloom::like(&header)).map(|mut bloom| {
            hashes.into_iter().for_each(|h| bloom.insert(h));
            let mut out = Vec::new();
            bloom.write(&mut out);
            out
        });
        let chunk = self.chunk_mut(place);
        if chunk.int(chunk_field::FILE_OFFSET).is_some_and(|n| n != 0) {
            chunk.set(chunk_field::FILE_OFFSET, Value::i64(start as i64));
        }
        chunk.set(chunk_field::METADATA, Value::Struct(new));
        // Nobody knows what else is told of the values.
        chunk.keep(&chunk_field::KNOWN);
        if let Some(bytes) = bloom {
            // Right behind the chunk: it would have to be held in memory otherwise.
            let at = self.offset;
            self.write(&bytes)?;
            self.set_bloom(place, at, bytes.len());
        }
        self.indexes.push(Indexes { place, columns: column_index, offsets: offset_index });
        Ok(())
    }

    /// Header and bytes of the bloom filter of a chunk of the input, where there is one that reads.
    fn old_bloom(&self, metadata: &Struct) -> Option<(Struct, Vec<u8>)> {
        let offset = u64::try_from(metadata.int(column::BLOOM_OFFSET)?).ok().filter(|o| *o >= 4 && *o < self.footer.start)?;
        let room = self.footer.start - offset;
        let (header, used) = Struct::read(&read_at(self.input, offset, room.min(1024) as usize).ok()?).ok()?;
        let length = used as u64 + Bloom::like(&header)?.size() as u64;
        let stated = metadata.int(column::BLOOM_LENGTH);
        if length > room || stated.is_some_and(|n| n as u64 != length) {
            return None;
        }
        Some((header, read_at(self.input, offset, length as usize).ok()?))
    }

    fn set_bloom(&mut self, place: Place, at: u64, length: usize) {
        let metadata = self.chunk_mut(place).get_mut(chunk_field::METADATA).and_then(Value::as_struct_mut);
        if let Some(metadata) = metadata {
            metadata.set(column::BLOOM_OFFSET, Value::i64(at as i64));
            metadata.set(column::BLOOM_LENGTH, Value::i32(length as i32)); // at most 128 MiB and a header
        }
    }

    fn end_group(&mut self, group: usize) -> Result<()> {
        let stays: Vec<usize> = (0..self.footer.leaves.len()).filter(|i| !self.assigned.dropped.contains(i)).collect();
        for column in stays.iter().copied() {
            let place = Place { group, column };
            if self.assigned.found.contains(&column) || metadata(&self.groups, place).get(column::BLOOM_OFFSET).is_none() {
                continue;
            }
            if let Some((_, bytes)) = self.old_bloom(metadata(&self.groups, place)) {
                let at = self.offset;
                self.write(&bytes)?;
                self.set_bloom(place, at, bytes.len());
            } else {
                let metadata = self.chunk_mut(place).get_mut(chunk_field::METADATA).and_then(Value::as_struct_mut);
                if let Some(metadata) = metadata {
                    metadata.remove(column::BLOOM_OFFSET);
                    metadata.remove(column::BLOOM_LENGTH);
                }
            }
        }
        let sums = stays.iter().copied().map(|column| metadata(&self.groups, Place { group, column }));
        let (mut plain, mut packed, mut first) = (0, 0, None);
        for m in sums {
            plain = i64::saturating_add(plain, m.int(column::UNCOMPRESSED_SIZE).unwrap_or(0));
            packed = i64::saturating_add(packed, m.int(column::COMPRESSED_SIZE).unwrap_or(0));
            first = first.or(chunk_start(m));
        }
        let changed = [&self.assigned.found[..], &self.assigned.dropped].concat();
        let group = &mut self.groups[group];
        group.set(group_field::TOTAL_BYTE_SIZE, Value::i64(plain));
        if group.get(group_field::TOTAL_COMPRESSED_SIZE).is_some() {
            group.set(group_field::TOTAL_COMPRESSED_SIZE, Value::i64(packed));
        }
        if group.get(group_field::FILE_OFFSET).is_some() {
            group.set(group_field::FILE_OFFSET, Value::i64(first.unwrap_or(0)));
        }
        cut_sorting(group, &changed, &stays);
        Ok(())
    }

    /// Writes the page indexes, column indexes first; returns the row groups that point to them, and what became of the columns.
    pub(super) fn finish(mut self) -> Result<(Vec<Struct>, Vec<ColumnReport>)> {
        let indexes = std::mem::take(&mut self.indexes);
        for id in [chunk_field::COLUMN_INDEX, chunk_field::OFFSET_INDEX] {
            for Indexes { place, columns, offsets } in &indexes {
                let bytes = if id == chunk_field::COLUMN_INDEX { columns } else { offsets };
                let at = self.offset;
                if let Some(bytes) = bytes {
                    self.write(bytes)?;
                }
                let chunk = self.chunk_mut(*place);
                if let Some(bytes) = bytes {
                    chunk.set(id, Value::i64(at as i64));
                    chunk.set(id + 1, Value::i32(bytes.len() as i32));
                } else {
                    chunk.remove(id);
                    chunk.remove(id + 1);
                }
            }
        }
        for group in &mut self.groups {
            if let Some(columns) = group.list_mut(group_field::COLUMNS) {
                let mut column = 0;
                columns.retain(|_| {
                    column += 1;
                    !self.assigned.dropped.contains(&(column - 1))
                });
            }
        }
        Ok((self.groups, self.columns))
    }
}

fn move_offset(s: &mut Struct, id: i16, by: i64) {
    if let Some(n) = s.int(id).filter(|n| *n > 0) {
        s.set(id, Value::i64(n.saturating_add(by).max(0)));
    }
}
