//! Parquet: column chunks that are not masked are copied as they are, masked leaves are rewritten page by page.
//!
//! `thrift` reads metadata without losing what it does not know, `footer` and `schema` say where the leaves are and what they
//! mean, `page` masks one page (`values`, `levels` and `codec` below it), `index` makes indexes and bloom filters anew. Here the
//! file is taken apart into pieces that are masked in parallel and put together in order, so that memory holds a few pages at a time.

mod arrow_schema;
mod building;
mod codec;
mod dictionary;
mod footer;
mod index;
mod kept;
mod levels;
mod page;
mod parts;
mod schema;
mod shift;
mod sink;
mod source;
mod thrift;
mod values;
mod walk;

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, OnceLock};

use dictionary::Dictionary;
use footer::Footer;
pub use footer::MAGIC;
use kept::Kept;
use page::{Chunk, Masked};
use sink::Sink;
use source::Source;
use thrift::Struct;

use super::{Job, TableReport};
use crate::error::{Error, Result};
use crate::mask::Treatment;
use crate::pipeline;
use crate::policy::{Assigned, Missing};

/// Masks a Parquet file from `input` to `output`.
///
/// # Errors
/// Damage in what hmask has to read, an encrypted file, columns that are not there; `output` may then have been written in part.
pub fn mask(input: &File, output: &mut (dyn Write + Send), job: &Job<'_>, missing: Missing) -> Result<TableReport> {
    let mut footer = Footer::read(input)?;
    let candidates: Vec<_> = footer.leaves.iter().map(|l| l.candidate.clone()).collect();
    let assigned = job.rules.resolve(&candidates, missing)?;
    let masked = assigned.found.clone();
    footer.check_overlaps(&masked)?;
    let mut plan = Plan { groups: footer.groups().cloned().collect(), assigned: &assigned, kinds: Vec::new() };
    for (place, leaf) in masked.iter().map(|i| &footer.leaves[*i]).enumerate() {
        let kind = Kind::of(&footer, leaf, job.rules.treatment(assigned.rules[place]), assigned.by[place]);
        plan.kinds.push(kind.map_err(|e| e.at(|p| p.column = Some(crate::policy::quote_path(&leaf.candidate.path))))?);
    }
    let kept_types: Vec<bool> = plan.kinds.iter().map(|kind| kind.kept.is_some()).collect();
    let buffers = page::Buffers::default();
    let mut source = Source::new(input, &footer, &plan, job, &buffers);
    let mut sink = Sink::new(input, output, &footer, &assigned, kept_types.clone(), &buffers);
    sink.write(MAGIC)?;
    pipeline::ordered(job.workers, || source.next(), Item::work, |done| sink.take(done))?;
    let (groups, columns) = sink.finish()?;
    let strings: Vec<usize> = masked.iter().zip(&kept_types).filter(|(_, kept)| !**kept).map(|(i, _)| *i).collect();
    let names = |of: &dyn Fn(usize) -> bool| {
        let leaves = footer.leaves.iter().enumerate().filter(|(i, _)| of(*i));
        leaves.map(|(_, leaf)| crate::policy::quote_path(&leaf.candidate.path)).collect()
    };
    let dropped = names(&|i| assigned.dropped.contains(&i));
    let kept = names(&|i| !assigned.dropped.contains(&i) && !masked.contains(&i));
    let warnings = footer.mask_schema(&strings, &assigned.dropped)?;
    let rows = footer.rows();
    output.write_all(&footer.finish(groups)?).map_err(|e| Error::io("cannot write", e))?;
    Ok(TableReport { rows, columns, dropped, kept, missing: assigned.missing, warnings, ..Default::default() })
}

/// What is masked of which row groups.
struct Plan<'a> {
    groups: Vec<Struct>,
    assigned: &'a Assigned,
    /// Of the leaves that change.
    kinds: Vec<Kind<'a>>,
}

/// What the values of a leaf are, and what becomes of them.
#[derive(Clone, Copy)]
struct Kind<'a> {
    physical: schema::Physical,
    meaning: schema::Meaning,
    treatment: &'a Treatment,
    /// How its type is kept, if it is.
    kept: Option<Kept>,
}

impl<'a> Kind<'a> {
    fn of(footer: &Footer, leaf: &schema::Leaf, treatment: &'a Treatment, by: Option<usize>) -> Result<Self> {
        let element = footer.element(leaf);
        let (physical, meaning) = (schema::physical(element)?, schema::meaning(element)?);
        if by.is_some_and(|by| leaf.max_repetition + footer.leaves[by].max_repetition > 0) {
            return Err(Error::unsupported("a shift goes from one value of a row to another, not to elements of a list"));
        }
        Ok(Self { physical, meaning, treatment, kept: Kept::of(treatment, physical, meaning)? })
    }
}

/// Where a piece belongs.
#[derive(Clone, Copy)]
struct Place {
    group: usize,
    column: usize,
}

/// A dictionary while a worker masks it; none if it does not read.
type Shared = Arc<OnceLock<Option<Dictionary>>>;

/// A piece of the file on its way to the workers.
enum Item<'a> {
    /// Copied as it is.
    Raw(Vec<u8>),
    /// A page of a masked chunk.
    Page {
        place: Place,
        number: usize,
        row: u64,
        chunk: Arc<Chunk<'a>>,
        dictionary: Option<Shared>,
        header: Struct,
        body: Vec<u8>,
    },
    /// The dictionary of the pages that follow.
    Dictionary { place: Place, chunk: Arc<Chunk<'a>>, dictionary: Shared, header: Struct, body: Vec<u8> },
    /// The pages of a chunk are through: where its data pages began.
    End(Place, Vec<u64>),
}

/// A piece on its way to the output.
enum Done {
    Raw(Vec<u8>),
    Page(Place, usize, Result<Box<Masked>>),
    End(Place, Vec<u64>),
}

/// Fills a dictionary in any case, also when a panic ends the work on it: pages wait for it.
struct Fill(Shared);

impl Fill {
    fn with(&self, dictionary: Option<Dictionary>) {
        // Filled once only: with a dictionary, or at the end without one.
        let _ = self.0.set(dictionary);
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        self.with(None);
    }
}

impl Item<'_> {
    fn work(self) -> Done {
        match self {
            Self::Raw(bytes) => Done::Raw(bytes),
            Self::Dictionary { place, chunk, dictionary, header, body } => {
                let fill = Fill(dictionary);
                let masked = chunk.dictionary(&header, &body).map(|(dictionary, page)| {
                    fill.with(Some(dictionary));
                    page
                });
                chunk.buffers.bytes.give(body);
                match masked {
                    Ok(Some(page)) => Done::Page(place, 0, Ok(Box::new(page))),
                    // Its pages are written without it.
                    Ok(None) => Done::Raw(Vec::new()),
                    Err(e) => Done::Page(place, 0, Err(e)),
                }
            }
            Self::Page { place, number, row, chunk, dictionary, header, body } => {
                // Pieces are begun in order: the dictionary is in work when one of its pages waits for it.
                let wait = || dictionary.as_ref().and_then(|d| d.wait().as_ref());
                let page = chunk.data(&header, &body, row, wait).map(Box::new);
                chunk.buffers.bytes.give(body);
                Done::Page(place, number, page)
            }
            Self::End(place, pages) => Done::End(place, pages),
        }
    }
}
