//! The footer: read as it is, checked where hmask relies on it, changed where a masked leaf demands it.
//!
//! Source: apache/parquet-format, `parquet.thrift`; the numbers of fields are its.

use std::fs::File;
use std::io::{Seek, SeekFrom};

use super::arrow_schema;
use super::schema::{Leaf, leaves};
use super::thrift::{Struct, Value};
use crate::error::{Error, Result};

/// At both ends of a plain file.
pub const MAGIC: &[u8; 4] = b"PAR1";
/// At the end of a file with an encrypted footer.
const ENCRYPTED_MAGIC: &[u8; 4] = b"PARE";
/// Footers beyond this are refused.
const MAX_FOOTER: u64 = 1 << 30;

/// Fields of `ColumnMetaData`.
pub(super) mod column {
    pub(crate) const TYPE: i16 = 1;
    pub(crate) const ENCODINGS: i16 = 2;
    pub(crate) const PATH: i16 = 3;
    pub(crate) const CODEC: i16 = 4;
    pub(crate) const NUM_VALUES: i16 = 5;
    pub(crate) const UNCOMPRESSED_SIZE: i16 = 6;
    pub(crate) const COMPRESSED_SIZE: i16 = 7;
    pub(crate) const DATA_PAGE_OFFSET: i16 = 9;
    pub(crate) const INDEX_PAGE_OFFSET: i16 = 10;
    pub(crate) const DICTIONARY_PAGE_OFFSET: i16 = 11;
    pub(crate) const STATISTICS: i16 = 12;
    pub(crate) const ENCODING_STATS: i16 = 13;
    pub(crate) const BLOOM_OFFSET: i16 = 14;
    pub(crate) const BLOOM_LENGTH: i16 = 15;
    pub(crate) const SIZE_STATISTICS: i16 = 16;
    pub(crate) const GEOSPATIAL_STATISTICS: i16 = 17;
}

/// Fields of `ColumnChunk`.
pub(super) mod chunk {
    pub(crate) const FILE_PATH: i16 = 1;
    pub(crate) const FILE_OFFSET: i16 = 2;
    pub(crate) const METADATA: i16 = 3;
    pub(crate) const OFFSET_INDEX: i16 = 4;
    pub(crate) const COLUMN_INDEX: i16 = 6;
    pub(crate) const CRYPTO: i16 = 8;
    /// The place of the chunk and its indexes, each with a length.
    pub(crate) const KNOWN: [i16; 6] = [FILE_OFFSET, METADATA, OFFSET_INDEX, OFFSET_INDEX + 1, COLUMN_INDEX, COLUMN_INDEX + 1];
}

/// Fields of `RowGroup`.
pub(super) mod group {
    pub(crate) const COLUMNS: i16 = 1;
    pub(crate) const TOTAL_BYTE_SIZE: i16 = 2;
    pub(crate) const NUM_ROWS: i16 = 3;
    pub(crate) const SORTING_COLUMNS: i16 = 4;
    pub(crate) const FILE_OFFSET: i16 = 5;
    pub(crate) const TOTAL_COMPRESSED_SIZE: i16 = 6;
}

/// Fields of `FileMetaData`.
mod file {
    pub(super) const SCHEMA: i16 = 2;
    pub(super) const ROW_GROUPS: i16 = 4;
    pub(super) const KEY_VALUES: i16 = 5;
    pub(super) const CREATED_BY: i16 = 6;
    pub(super) const COLUMN_ORDERS: i16 = 7;
    pub(super) const ENCRYPTION: i16 = 8;
}

/// A footer and what is needed of it.
pub(super) struct Footer {
    metadata: Struct,
    pub leaves: Vec<Leaf>,
    /// Where the footer begins: no chunk reaches beyond.
    pub start: u64,
}

/// Reads `length` bytes at `offset`.
///
/// # Errors
/// A range that the file does not have.
pub(super) fn read_at(file: &File, offset: u64, length: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read_into(file, offset, length, &mut bytes)?;
    Ok(bytes)
}

/// The same, in place of what a buffer holds.
///
/// # Errors
/// A range that the file does not have.
pub(super) fn read_into(file: &File, offset: u64, length: usize, bytes: &mut Vec<u8>) -> Result<()> {
    bytes.resize(length, 0);
    let mut at = 0;
    while at < length {
        match read_some(file, &mut bytes[at..], offset + at as u64) {
            Ok(0) => return Err(Error::malformed("damaged Parquet file: it ends early")),
            Ok(n) => at += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io("cannot read", e)),
        }
    }
    Ok(())
}

/// Reads at a place of its own: pages are read by one thread while another copies an index.
#[cfg(unix)]
fn read_some(file: &File, bytes: &mut [u8], offset: u64) -> std::io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, offset)
}

/// Reads at a place of its own: pages are read by one thread while another copies an index.
#[cfg(windows)]
fn read_some(file: &File, bytes: &mut [u8], offset: u64) -> std::io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, bytes, offset)
}

impl Footer {
    /// Reads the footer of a file.
    ///
    /// # Errors
    /// No Parquet file, an encrypted one, or one whose numbers are impossible.
    pub(super) fn read(mut file: &File) -> Result<Self> {
        let size = file.seek(SeekFrom::End(0)).map_err(|e| Error::io("cannot read", e))?;
        let no_parquet = || Error::malformed("not a Parquet file, or a damaged one: no magic number at both ends");
        if size < 12 {
            return Err(no_parquet());
        }
        let tail = read_at(file, size - 8, 8)?;
        let head = read_at(file, 0, 4)?;
        if tail[4..] == *ENCRYPTED_MAGIC {
            return Err(Error::unsupported("the Parquet file is encrypted"));
        }
        if tail[4..] != *MAGIC || head != MAGIC {
            return Err(no_parquet());
        }
        let length = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
        let start = (size - 8).checked_sub(length).filter(|s| *s >= 4 && length <= MAX_FOOTER);
        let start = start.ok_or_else(|| Error::malformed("damaged footer: an impossible length"))?;
        let (metadata, used) = Struct::read(&read_at(file, start, length as usize)?)?;
        if metadata.get(file::ENCRYPTION).is_some() {
            return Err(Error::unsupported("columns of the Parquet file are encrypted"));
        }
        if used as u64 != length {
            // A struct that ends early: what belongs to it would be taken for something else, and kept.
            return Err(Error::malformed("damaged footer: it ends early"));
        }
        let elements: Vec<&Struct> = metadata.structs(file::SCHEMA).collect();
        let leaves = leaves(&elements)?;
        let footer = Self { metadata, leaves, start };
        for (number, group) in footer.groups().enumerate() {
            footer.check_group(group).map_err(|e| e.at(|p| p.row_group = Some(number)))?;
        }
        Ok(footer)
    }

    /// The row groups.
    pub(super) fn groups(&self) -> impl ExactSizeIterator<Item = &Struct> {
        self.metadata.structs(file::ROW_GROUPS)
    }

    /// Rows of the file: those of its row groups.
    pub(super) fn rows(&self) -> u64 {
        let rows = self.groups().map(|g| g.int(group::NUM_ROWS).and_then(|n| u64::try_from(n).ok()).unwrap_or(0));
        rows.fold(0, u64::saturating_add)
    }

    /// Makes sure that no chunk lies over a masked one, and no page index over that of a masked one: its copy would take originals along.
    /// A bloom filter whose place cannot be is left out when its turn comes.
    ///
    /// # Errors
    /// Such a chunk or index.
    pub(super) fn check_overlaps(&self, masked: &[usize]) -> Result<()> {
        let mut spans = Vec::new();
        for group in self.groups() {
            for (column, chunk) in group.structs(group::COLUMNS).enumerate() {
                let Some(metadata) = chunk.structure(chunk::METADATA) else { continue };
                let masked = masked.contains(&column);
                let (start, size) = self.span(metadata)?;
                spans.push((start, start + size, masked));
                let pair = |id| u64::try_from(chunk.int(id)?).ok().zip(u64::try_from(chunk.int(id + 1)?).ok());
                let others = [chunk::OFFSET_INDEX, chunk::COLUMN_INDEX].into_iter().filter_map(pair);
                spans.extend(others.map(|(start, length)| (start, start.saturating_add(length), masked)));
            }
        }
        spans.retain(|(start, end, _)| start < end);
        spans.sort_unstable();
        // How far the masked and the other chunks before reach.
        let (mut masked_end, mut other_end) = (0, 0);
        for (start, end, is_masked) in spans {
            if start < masked_end || is_masked && start < other_end {
                return Err(Error::malformed("damaged footer: column chunks, or their indexes, lie over each other"));
            }
            let reach = if is_masked { &mut masked_end } else { &mut other_end };
            *reach = end.max(*reach);
        }
        Ok(())
    }

    /// The schema element of a leaf.
    pub(super) fn element(&self, leaf: &Leaf) -> &Struct {
        static EMPTY: Value = Value::Bool(false);
        let value = self.metadata.list(file::SCHEMA).get(leaf.element).unwrap_or(&EMPTY);
        value.as_struct().unwrap_or_else(|| unreachable!("leaves are made of elements"))
    }

    /// Bytes of a column chunk.
    ///
    /// # Errors
    /// A range that the file does not have.
    pub(super) fn span(&self, metadata: &Struct) -> Result<(u64, u64)> {
        let start = chunk_start(metadata).unwrap_or(0);
        let size = metadata.int(column::COMPRESSED_SIZE).unwrap_or(-1);
        let impossible = || Error::malformed("damaged footer: a column chunk at an impossible place");
        let (start, size) = u64::try_from(start).ok().zip(u64::try_from(size).ok()).ok_or_else(impossible)?;
        if size == 0 {
            return Ok((start, 0));
        }
        match start.checked_add(size) {
            Some(end) if start >= 4 && end <= self.start => Ok((start, size)),
            _ => Err(impossible()),
        }
    }

    fn check_group(&self, group: &Struct) -> Result<()> {
        let columns = group.structs(group::COLUMNS);
        if columns.len() != self.leaves.len() {
            return Err(Error::malformed(format!(
                "damaged footer: {} column chunks for {} columns",
                columns.len(),
                self.leaves.len()
            )));
        }
        for (chunk, leaf) in columns.zip(&self.leaves) {
            let name = || crate::policy::quote_path(&leaf.candidate.path);
            let check = || {
                if chunk.get(chunk::CRYPTO).is_some() {
                    return Err(Error::unsupported("the column is encrypted"));
                }
                if chunk.binary(chunk::FILE_PATH).is_some_and(|path| !path.is_empty()) {
                    return Err(Error::unsupported("the column's data lies in another file"));
                }
                let metadata = chunk
                    .structure(chunk::METADATA)
                    .ok_or_else(|| Error::malformed("damaged footer: a chunk without metadata"))?;
                self.span(metadata).map(drop)
            };
            check().map_err(|e| e.at(|p| p.column = Some(name())))?;
        }
        Ok(())
    }

    /// Changes what is said of the masked leaves, apart from the row groups. Returns warnings.
    /// `strings` are leaves that have become texts, `dropped` those that have left.
    ///
    /// # Errors
    /// A leaf that cannot leave, since a map or list is none without it.
    pub(super) fn mask_schema(&mut self, strings: &[usize], dropped: &[usize]) -> Result<Vec<String>> {
        let mut warnings = Vec::new();
        for leaf in strings {
            let element = self.leaves[*leaf].element;
            let elements = self.metadata.list_mut(file::SCHEMA);
            if let Some(e) = elements.and_then(|l| l.get_mut(element)).and_then(Value::as_struct_mut) {
                super::schema::make_string(e);
            }
            // Order by type: what the column's old order said of numbers does not hold for text.
            let order = Value::Struct(Struct::default().with(1, Value::Struct(Struct::default())));
            if let Some(old) = self.metadata.list_mut(file::COLUMN_ORDERS).and_then(|l| l.get_mut(*leaf)) {
                *old = order;
            }
        }
        if !dropped.is_empty() {
            let elements: Vec<usize> = dropped.iter().map(|leaf| self.leaves[*leaf].element).collect();
            if let Some(schema) = self.metadata.list_mut(file::SCHEMA) {
                *schema = super::schema::without(schema, &elements)?;
            }
            if let Some(orders) = self.metadata.list_mut(file::COLUMN_ORDERS) {
                let mut leaf = 0;
                orders.retain(|_| {
                    leaf += 1;
                    !dropped.contains(&(leaf - 1))
                });
            }
        }
        let of = |leaves: &[usize]| leaves.iter().map(|i| self.leaves[*i].candidate.path.clone()).collect::<Vec<_>>();
        let (paths, gone) = (of(strings), of(dropped));
        let mut lost = false;
        if let Some(entries) = self.metadata.list_mut(file::KEY_VALUES) {
            entries.retain_mut(|entry| {
                let Some(entry) = entry.as_struct_mut().filter(|e| e.binary(1) == Some(arrow_schema::KEY)) else { return true };
                let changed = entry.binary(2).and_then(|encoded| arrow_schema::masked(encoded, &paths, &gone));
                lost |= changed.is_none();
                changed.map(|v| entry.set(2, Value::Binary(v))).is_some()
            });
        }
        for entry in self.metadata.structs(file::KEY_VALUES) {
            let told = entry.binary(1).and_then(|key| crate::table::metadata::warning(key, entry.binary(2).unwrap_or_default()));
            warnings.extend(told);
        }
        if lost {
            warnings.push("the Arrow schema in the metadata does not read and was left out".into());
        }
        let mut by = self.metadata.binary(file::CREATED_BY).map_or_else(Vec::new, |b| [b, b"; "].concat());
        by.extend_from_slice(concat!("hmask ", env!("CARGO_PKG_VERSION")).as_bytes());
        self.metadata.set(file::CREATED_BY, Value::Binary(by));
        Ok(warnings)
    }

    /// The footer's bytes with new row groups, its length and the magic number included.
    pub(super) fn finish(mut self, groups: Vec<Struct>) -> Result<Vec<u8>> {
        if self.metadata.get(file::ROW_GROUPS).is_some() {
            self.metadata.set(file::ROW_GROUPS, Value::struct_list(groups));
        }
        let mut out = Vec::new();
        self.metadata.write(&mut out);
        let length = u32::try_from(out.len()).map_err(|_| Error::unsupported("the footer would be larger than 4 GiB"))?;
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(MAGIC);
        Ok(out)
    }
}

/// The chunk metadata of a column in a row group.
pub(super) fn metadata(groups: &[Struct], place: super::Place) -> &Struct {
    let column = groups[place.group].list(group::COLUMNS)[place.column].as_struct();
    column.and_then(|c| c.structure(chunk::METADATA)).unwrap_or_else(|| unreachable!("checked with the footer"))
}

/// Where a chunk begins, as its metadata says: with its dictionary, if that comes first.
pub(super) fn chunk_start(metadata: &Struct) -> Option<i64> {
    let offsets = [column::DATA_PAGE_OFFSET, column::DICTIONARY_PAGE_OFFSET].map(|id| metadata.int(id));
    offsets.into_iter().flatten().filter(|n| *n > 0).min()
}

/// Cuts the sorting columns before the first that changes or leaves: what follows it is no longer sorted. `stays` are those that do not
/// leave, by which the others get new numbers.
pub(super) fn cut_sorting(group: &mut Struct, changed: &[usize], stays: &[usize]) {
    let is_masked = |v: &Value| {
        let column = v.as_struct().and_then(|s| s.int(1)).and_then(|n| usize::try_from(n).ok());
        column.is_some_and(|c| changed.contains(&c))
    };
    let Some(sorting) = group.list_mut(group::SORTING_COLUMNS) else { return };
    let keep = sorting.iter().position(is_masked).unwrap_or(sorting.len());
    sorting.truncate(keep);
    for entry in sorting.iter_mut().filter_map(Value::as_struct_mut) {
        let old = entry.int(1).and_then(|n| usize::try_from(n).ok());
        if let Some(new) = old.and_then(|old| stays.iter().position(|i| *i == old)) {
            entry.set(1, Value::i32(new as i32));
        }
    }
    if sorting.is_empty() {
        group.remove(group::SORTING_COLUMNS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_lies_over_what_is_masked() {
        let file = File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/clients.parquet")).unwrap();
        let check = |change: &dyn Fn(&Struct, &mut Struct)| {
            let mut footer = Footer::read(&file).unwrap();
            let groups = footer.metadata.list_mut(file::ROW_GROUPS).unwrap();
            let columns = groups[0].as_struct_mut().and_then(|group| group.list_mut(group::COLUMNS)).unwrap();
            let first = columns[0].as_struct().unwrap().clone();
            change(&first, columns.last_mut().and_then(Value::as_struct_mut).unwrap());
            footer.check_overlaps(&[0])
        };
        check(&|_, _| {}).unwrap();
        // What is said of the last column now points to where the first one's lies.
        for id in [chunk::COLUMN_INDEX, chunk::OFFSET_INDEX] {
            let moved = check(&|first, last| last.set(id, Value::i64(first.int(id).unwrap())));
            assert!(moved.is_err(), "field {id}");
        }
        let moved = check(&|first, last| {
            let start = chunk_start(first.structure(chunk::METADATA).unwrap()).unwrap();
            let metadata = last.get_mut(chunk::METADATA).and_then(Value::as_struct_mut).unwrap();
            metadata.set(column::DICTIONARY_PAGE_OFFSET, Value::i64(start));
        });
        assert!(moved.is_err());
    }
}
