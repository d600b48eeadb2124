//! Parquet: column chunks that are not masked are copied as they are, masked leaves are rewritten page by page.
//!
//! `thrift` reads metadata without losing what it does not know, `footer` and `schema` say where the leaves are and what they
//! mean, `page` masks one page (`values`, `levels` and `codec` below it), `index` makes indexes and bloom filters anew. Here the
//! file is taken apart into pieces that are masked in parallel and put together in order, so that memory holds a few pages at a time.

mod arrow_schema;
mod building;
mod codec;
mod footer;
mod index;
mod levels;
mod page;
mod schema;
mod sink;
mod source;
mod thrift;
mod values;

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, OnceLock};

use footer::Footer;
pub use footer::MAGIC;
use page::{Chunk, Dictionary, Masked};
use sink::Sink;
use source::Source;
use thrift::Struct;

use super::{Job, TableReport};
use crate::error::{Error, Result};
use crate::pipeline;
use crate::policy::Missing;

/// Masks a Parquet file from `input` to `output`.
///
/// # Errors
/// Damage in what hmask has to read, an encrypted file, columns that are not there; `output` may then have been written in part.
pub fn mask(input: &File, output: &mut dyn Write, job: &Job<'_>, missing: Missing) -> Result<TableReport> {
    let mut footer = Footer::read(input)?;
    let candidates: Vec<_> = footer.leaves.iter().map(|l| l.candidate.clone()).collect();
    let resolved = job.columns.resolve(&candidates, missing)?;
    let masked = resolved.found;
    footer.check_overlaps(&masked)?;
    let mut plan = Plan { groups: footer.groups().cloned().collect(), masked: &masked, kinds: Vec::new() };
    for leaf in masked.iter().map(|i| &footer.leaves[*i]) {
        let element = footer.element(leaf);
        let name = crate::policy::quote_path(&leaf.candidate.path);
        let kind = schema::physical(element).and_then(|p| Ok((p, schema::meaning(element)?)));
        plan.kinds.push(kind.map_err(|e| e.at(|p| p.column = Some(name)))?);
    }
    let mut source = Source::new(input, &footer, &plan, job);
    let mut sink = Sink::new(input, output, &footer, &masked);
    sink.write(MAGIC)?;
    pipeline::ordered(job.workers, || source.next(), Item::work, |done| sink.take(done))?;
    let (groups, columns) = sink.finish()?;
    let warnings = footer.mask_schema(&masked);
    let rows = footer.rows();
    output.write_all(&footer.finish(groups)?).map_err(|e| Error::io("cannot write", e))?;
    Ok(TableReport { rows, columns, missing: resolved.missing, warnings, ..Default::default() })
}

/// What is masked of which row groups.
struct Plan<'a> {
    groups: Vec<Struct>,
    masked: &'a [usize],
    kinds: Vec<(schema::Physical, schema::Meaning)>,
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
    Page { place: Place, number: usize, chunk: Arc<Chunk<'a>>, dictionary: Option<Shared>, header: Struct, body: Vec<u8> },
    /// The dictionary of the pages that follow.
    Dictionary { place: Place, chunk: Arc<Chunk<'a>>, dictionary: Shared, header: Struct, body: Vec<u8> },
    /// The pages of a chunk are through.
    End(Place),
}

/// A piece on its way to the output.
enum Done {
    Raw(Vec<u8>),
    Page(Place, usize, Result<Box<Masked>>),
    End(Place),
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
                    Box::new(page)
                });
                Done::Page(place, 0, masked)
            }
            Self::Page { place, number, chunk, dictionary, header, body } => {
                // Pieces are begun in order: the dictionary is in work when one of its pages waits for it.
                let wait = || dictionary.as_ref().and_then(|d| d.wait().as_ref());
                Done::Page(place, number, chunk.data(&header, &body, wait).map(Box::new))
            }
            Self::End(place) => Done::End(place),
        }
    }
}
