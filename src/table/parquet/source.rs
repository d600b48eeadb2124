//! The input: chunks to be copied in pieces, chunks to be masked page by page.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;

use super::codec::Codec;
use super::footer::{Footer, column, metadata, read_at, read_into};
use super::page::{Buffers, Chunk};
use super::parts::page_type;
use super::thrift::{Struct, Value};
use super::{Item, Place, Plan, walk};
use crate::error::{Error, Result};
use crate::mask::{Shift, Treatment};
use crate::table::Job;

/// Bytes of a piece that is copied.
const COPY: u64 = 1 << 20;

/// The file in pieces.
pub(super) struct Source<'a> {
    input: &'a File,
    footer: &'a Footer,
    plan: &'a Plan<'a>,
    job: &'a Job<'a>,
    buffers: &'a Buffers,
    chunks: VecDeque<Place>,
    now: Option<Reading<'a>>,
}

/// A chunk while it is read.
struct Reading<'a> {
    place: Place,
    at: u64,
    end: u64,
    page: usize,
    /// Where its data pages begin.
    pages: Vec<u64>,
    /// Rows of the pages before, as long as a page's values are its rows.
    row: u64,
    /// Nothing for a chunk that is copied.
    masked: Option<(Arc<Chunk<'a>>, Option<super::Shared>)>,
}

impl<'a> Source<'a> {
    pub(super) fn new(input: &'a File, footer: &'a Footer, plan: &'a Plan<'a>, job: &'a Job<'a>, buffers: &'a Buffers) -> Self {
        let stays = |place: &Place| !plan.assigned.dropped.contains(&place.column);
        let places = |group| (0..footer.leaves.len()).map(move |column| Place { group, column }).filter(stays);
        let chunks = (0..plan.groups.len()).flat_map(places).collect();
        Self { input, footer, plan, job, buffers, chunks, now: None }
    }

    pub(super) fn next(&mut self) -> Result<Option<Item<'a>>> {
        if self.now.is_none() {
            let Some(place) = self.chunks.pop_front() else { return Ok(None) };
            self.now = Some(self.start(place).map_err(|e| self.locate(e, place, None))?);
        }
        let Some(mut reading) = self.now.take() else { return Ok(None) };
        let (place, page) = (reading.place, reading.page);
        if reading.at == reading.end {
            return Ok(Some(Item::End(place, reading.pages)));
        }
        let item = self.piece(&mut reading);
        self.now = Some(reading);
        item.map(Some).map_err(|e| self.locate(e, place, Some(page)))
    }

    fn locate(&self, error: Error, place: Place, page: Option<usize>) -> Error {
        let column = crate::policy::quote_path(&self.footer.leaves[place.column].candidate.path);
        error.at(|p| (p.row_group, p.column, p.page) = (Some(place.group), Some(column), page))
    }

    fn start(&self, place: Place) -> Result<Reading<'a>> {
        let metadata = metadata(&self.plan.groups, place);
        let (at, size) = self.footer.span(metadata)?;
        let masked = self.plan.assigned.found.iter().position(|i| *i == place.column);
        let masked = masked.map(|i| self.chunk(metadata, place, i)).transpose()?;
        // What is copied is looked at before any of it is written.
        let pages = if masked.is_none() { walk::data_pages(self.input, metadata, (at, size))? } else { Vec::new() };
        let masked = masked.map(|chunk| (Arc::new(chunk), None));
        Ok(Reading { place, at, end: at + size, page: 0, pages, row: 0, masked })
    }

    fn chunk(&self, metadata: &Struct, place: Place, masked: usize) -> Result<Chunk<'a>> {
        let kind = self.plan.kinds[masked];
        let mut chunk = self.plain_chunk(metadata, place, kind)?;
        chunk.bloom = kind.kept.is_none() && metadata.get(column::BLOOM_OFFSET).is_some();
        if let (Treatment::Shift(shift), Some(by)) = (kind.treatment, self.plan.assigned.by[masked]) {
            chunk.days = Some(self.days(shift, Place { column: by, ..place })?);
        }
        Ok(chunk)
    }

    /// Days by which the rows of a row group are moved.
    fn days(&self, shift: &Shift, by: Place) -> Result<Vec<i32>> {
        let metadata = metadata(&self.plan.groups, by);
        let element = self.footer.element(&self.footer.leaves[by.column]);
        let kind = super::Kind {
            physical: super::schema::physical(element)?,
            meaning: super::schema::meaning(element)?,
            treatment: &Treatment::Keep,
            kept: None,
        };
        let chunk = self.plain_chunk(metadata, by, kind)?;
        let (mut at, size) = self.footer.span(metadata)?;
        let end = at + size;
        let (mut days, mut dictionary) = (Vec::new(), None);
        while at < end {
            let (header, header_len) = walk::header(self.input, at, end)?;
            let length = walk::length(&header, end - at - header_len)?;
            let body = read_at(self.input, at + header_len, length as usize)?;
            at += header_len + length;
            match header.int(1) {
                Some(page_type::DICTIONARY) => dictionary = Some(chunk.entries(&header, &body)?),
                Some(page_type::DATA | page_type::DATA_V2) => {
                    let ids = chunk.rows(&header, &body, || dictionary.as_deref())?;
                    let ids: Vec<&[u8]> = ids.iter().map(|id| id.as_deref().unwrap_or_default()).collect();
                    days.extend(shift.offsets(&ids));
                }
                _ => {}
            }
        }
        Ok(days)
    }

    fn plain_chunk(&self, metadata: &Struct, place: Place, kind: super::Kind<'a>) -> Result<Chunk<'a>> {
        let leaf = &self.footer.leaves[place.column];
        if metadata.int(column::TYPE) != self.footer.element(leaf).int(1) {
            return Err(Error::malformed("damaged footer: the chunk's type is not that of the schema"));
        }
        let path = metadata.list(column::PATH).iter();
        if !path.map(Value::as_binary).eq(leaf.raw_path.iter().map(|name| Some(name.as_slice()))) {
            return Err(Error::malformed("damaged footer: the chunk's path is not that of the schema"));
        }
        Ok(Chunk {
            buffers: self.buffers,
            column: place.column,
            treatment: kind.treatment,
            kept: kind.kept,
            days: None,
            codec: Codec::from_number(metadata.int(column::CODEC).unwrap_or(-1))?,
            physical: kind.physical,
            meaning: kind.meaning,
            max_definition: leaf.max_definition,
            max_repetition: leaf.max_repetition,
            bloom: false,
        })
    }

    fn piece(&self, reading: &mut Reading<'a>) -> Result<Item<'a>> {
        let Some((chunk, dictionary)) = &mut reading.masked else {
            let length = COPY.min(reading.end - reading.at);
            let mut bytes = self.buffers.bytes.take();
            read_into(self.input, reading.at, length as usize, &mut bytes)?;
            reading.at += length;
            (self.job.progress)(length);
            return Ok(Item::Raw(bytes));
        };
        let start = reading.at;
        let (header, header_len) = walk::header(self.input, reading.at, reading.end)?;
        let length = walk::length(&header, reading.end - reading.at - header_len)?;
        let mut body = self.buffers.bytes.take();
        read_into(self.input, reading.at + header_len, length as usize, &mut body)?;
        reading.at += header_len + length;
        (self.job.progress)(header_len + length);
        let number = reading.page;
        reading.page += 1;
        match header.int(1) {
            Some(page_type::DATA | page_type::DATA_V2) => {
                let (chunk, dictionary, row) = (chunk.clone(), dictionary.clone(), reading.row);
                reading.row = row.saturating_add(walk::values(&header).unwrap_or(0));
                reading.pages.push(start);
                Ok(Item::Page { place: reading.place, number, row, chunk, dictionary, header, body })
            }
            Some(page_type::DICTIONARY) if dictionary.is_none() && number == 0 => {
                let shared = dictionary.insert(Arc::default()).clone();
                Ok(Item::Dictionary { place: reading.place, chunk: chunk.clone(), dictionary: shared, header, body })
            }
            Some(page_type::INDEX) => Ok(Item::Raw(Vec::new())),
            _ => Err(Error::malformed("damaged page: a type that is not expected here")),
        }
    }
}
