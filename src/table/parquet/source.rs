//! The input: chunks to be copied in pieces, chunks to be masked page by page.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;

use super::codec::Codec;
use super::footer::{Footer, column, metadata, read_at};
use super::page::{Chunk, page_type};
use super::thrift::{self, Struct, Value};
use super::{Item, Place, Plan};
use crate::error::{Error, Result};
use crate::table::Job;

/// Bytes of a piece that is copied.
const COPY: u64 = 1 << 20;
/// Bytes read for a page header at first; more if it is longer.
const HEADER: u64 = 4 << 10;
/// A page header beyond this is none.
const MAX_HEADER: u64 = 16 << 20;

/// The file in pieces.
pub(super) struct Source<'a> {
    input: &'a File,
    footer: &'a Footer,
    plan: &'a Plan<'a>,
    job: &'a Job<'a>,
    chunks: VecDeque<Place>,
    now: Option<Reading<'a>>,
}

/// A chunk while it is read.
struct Reading<'a> {
    place: Place,
    at: u64,
    end: u64,
    page: usize,
    /// Nothing for a chunk that is copied.
    masked: Option<(Arc<Chunk<'a>>, Option<super::Shared>)>,
}

impl<'a> Source<'a> {
    pub(super) fn new(input: &'a File, footer: &'a Footer, plan: &'a Plan<'a>, job: &'a Job<'a>) -> Self {
        let places = |group| (0..footer.leaves.len()).map(move |column| Place { group, column });
        let chunks = (0..plan.groups.len()).flat_map(places).collect();
        Self { input, footer, plan, job, chunks, now: None }
    }

    pub(super) fn next(&mut self) -> Result<Option<Item<'a>>> {
        if self.now.is_none() {
            let Some(place) = self.chunks.pop_front() else { return Ok(None) };
            self.now = Some(self.start(place).map_err(|e| self.locate(e, place, None))?);
        }
        let Some(mut reading) = self.now.take() else { return Ok(None) };
        let (place, page) = (reading.place, reading.page);
        if reading.at == reading.end {
            return Ok(Some(Item::End(place)));
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
        let masked = self.plan.masked.iter().position(|i| *i == place.column);
        let masked = masked.map(|i| self.chunk(metadata, place, i)).transpose()?;
        Ok(Reading { place, at, end: at + size, page: 0, masked: masked.map(|chunk| (Arc::new(chunk), None)) })
    }

    fn chunk(&self, metadata: &Struct, place: Place, masked: usize) -> Result<Chunk<'a>> {
        let leaf = &self.footer.leaves[place.column];
        let (physical, meaning) = self.plan.kinds[masked];
        if metadata.int(column::TYPE) != self.footer.element(leaf).int(1) {
            return Err(Error::malformed("damaged footer: the chunk's type is not that of the schema"));
        }
        let path = metadata.list(column::PATH).iter();
        if !path.map(Value::as_binary).eq(leaf.raw_path.iter().map(|name| Some(name.as_slice()))) {
            return Err(Error::malformed("damaged footer: the chunk's path is not that of the schema"));
        }
        Ok(Chunk {
            pseudonymiser: self.job.pseudonymiser,
            codec: Codec::from_number(metadata.int(column::CODEC).unwrap_or(-1))?,
            physical,
            meaning,
            max_definition: leaf.max_definition,
            max_repetition: leaf.max_repetition,
            bloom: metadata.get(column::BLOOM_OFFSET).is_some(),
        })
    }

    fn piece(&self, reading: &mut Reading<'a>) -> Result<Item<'a>> {
        let Some((chunk, dictionary)) = &mut reading.masked else {
            let length = COPY.min(reading.end - reading.at);
            let bytes = read_at(self.input, reading.at, length as usize)?;
            reading.at += length;
            (self.job.progress)(length);
            return Ok(Item::Raw(bytes));
        };
        let (header, header_len) = self.header(reading.at, reading.end)?;
        let length = header.int(3).and_then(|n| u64::try_from(n).ok()).filter(|n| *n <= reading.end - reading.at - header_len);
        let length = length.ok_or_else(|| Error::malformed("damaged page: an impossible size"))?;
        let body = read_at(self.input, reading.at + header_len, length as usize)?;
        reading.at += header_len + length;
        (self.job.progress)(header_len + length);
        let number = reading.page;
        reading.page += 1;
        match header.int(1) {
            Some(page_type::DATA | page_type::DATA_V2) => {
                let (chunk, dictionary) = (chunk.clone(), dictionary.clone());
                Ok(Item::Page { place: reading.place, number, chunk, dictionary, header, body })
            }
            Some(page_type::DICTIONARY) if dictionary.is_none() && number == 0 => {
                let shared = dictionary.insert(Arc::default()).clone();
                Ok(Item::Dictionary { place: reading.place, chunk: chunk.clone(), dictionary: shared, header, body })
            }
            Some(page_type::INDEX) => Ok(Item::Raw(Vec::new())),
            _ => Err(Error::malformed("damaged page: a type that is not expected here")),
        }
    }

    /// The page header at `at` and its length.
    fn header(&self, at: u64, end: u64) -> Result<(Struct, u64)> {
        let mut window = HEADER;
        loop {
            let length = window.min(end - at);
            match Struct::read(&read_at(self.input, at, length as usize)?) {
                Ok((header, used)) => return Ok((header, used as u64)),
                Err(e) if thrift::is_cut(&e) && length < end - at && window < MAX_HEADER => window *= 8,
                Err(e) => return Err(e),
            }
        }
    }
}
