//! The pages of a chunk by their headers, and whether a page index is that of these pages.
//!
//! What is not masked is copied without a look at its values. In a damaged file the bytes at its place can be those of a masked column: so
//! they must at least be pages, as many as the footer says, and the indexes must name just these.
//!
//! Source: apache/parquet-format, `parquet.thrift`; the numbers of fields are its.

use std::fs::File;

use super::footer::{chunk, column, read_at};
use super::parts::page_type;
use super::thrift::{self, Struct};
use crate::error::{Error, Result};

/// Bytes read for a page header at first; more if it is longer.
const HEADER: u64 = 4 << 10;
/// A page header beyond this is none.
const MAX_HEADER: u64 = 16 << 20;

/// The page header at `at` and its length.
///
/// # Errors
/// None before `end`.
pub(super) fn header(input: &File, at: u64, end: u64) -> Result<(Struct, u64)> {
    let mut window = HEADER;
    loop {
        let length = window.min(end - at);
        match Struct::read(&read_at(input, at, length as usize)?) {
            Ok((header, used)) => return Ok((header, used as u64)),
            Err(e) if thrift::is_cut(&e) && length < end - at && window < MAX_HEADER => window *= 8,
            Err(e) => return Err(e),
        }
    }
}

/// Bytes of a page's body, of at most `room`.
///
/// # Errors
/// More, or none.
pub(super) fn length(header: &Struct, room: u64) -> Result<u64> {
    let length = header.int(3).and_then(|n| u64::try_from(n).ok()).filter(|n| *n <= room);
    length.ok_or_else(|| Error::malformed("damaged page: an impossible size"))
}

/// Values of a data page, as its header says.
pub(super) fn values(header: &Struct) -> Option<u64> {
    header.structure(5).or(header.structure(8)).and_then(|inner| u64::try_from(inner.int(1)?).ok())
}

/// Where the data pages of a chunk begin.
///
/// # Errors
/// A chunk that is not made of pages alone, or has another number of values than its metadata says.
pub(super) fn data_pages(input: &File, metadata: &Struct, (start, size): (u64, u64)) -> Result<Vec<u64>> {
    let (mut at, end) = (start, start + size);
    let (mut pages, mut all) = (Vec::new(), 0u64);
    while at < end {
        let (header, header_length) = header(input, at, end)?;
        let body = length(&header, end - at - header_length)?;
        if let Some(page_type::DATA | page_type::DATA_V2) = header.int(1) {
            all = all.saturating_add(values(&header).ok_or_else(|| Error::malformed("damaged page: no number of values"))?);
            pages.push(at);
        }
        at += header_length + body;
    }
    if metadata.int(column::NUM_VALUES).is_none_or(|n| u64::try_from(n) != Ok(all)) {
        return Err(Error::malformed("damaged footer: the number of values is not that of the pages"));
    }
    Ok(pages)
}

/// A page index of a chunk, and its bytes.
pub(super) type Index = (Struct, Vec<u8>);

/// The index that a chunk's fields `id` and `id + 1` point to, which must end before `end` and be that of these data pages.
///
/// # Errors
/// One that is not.
pub(super) fn index(input: &File, chunk: &Struct, id: i16, end: u64, pages: &[u64]) -> Result<Option<Index>> {
    let Some(offset) = chunk.int(id) else { return Ok(None) };
    let damaged = || Error::malformed("damaged page index: it is not that of the column's pages");
    let place = u64::try_from(offset).ok().zip(chunk.int(id + 1).and_then(|n| u64::try_from(n).ok()));
    let (offset, length) = place.filter(|(o, n)| *o >= 4 && o.checked_add(*n).is_some_and(|e| e <= end)).ok_or_else(damaged)?;
    let bytes = read_at(input, offset, length as usize)?;
    let (index, used) = Struct::read(&bytes).map_err(|_| damaged())?;
    let fits = if id == chunk::OFFSET_INDEX {
        let places = index.structs(1).map(|place| place.int(1).and_then(|at| u64::try_from(at).ok()));
        places.eq(pages.iter().map(|at| Some(*at)))
    } else {
        // Which pages are of nulls alone, and the bounds of each.
        [1, 2, 3].iter().all(|id| index.list(*id).len() == pages.len())
    };
    if used == bytes.len() && fits { Ok(Some((index, bytes))) } else { Err(damaged()) }
}
