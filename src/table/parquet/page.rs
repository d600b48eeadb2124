//! One page of a masked chunk: its values replaced, its levels kept.
//!
//! A page whose values are dictionary indices keeps its bytes, since only the dictionary is rewritten. Any other becomes PLAIN.

use super::codec::{Codec, Contexts};
use super::dictionary::{Dictionary, indices};
use super::index::Bounds;
use super::kept::Kept;
use super::levels::short;
use super::parts::{Parts, data_header, dictionary_header, is_indices, page_type};
use super::schema::{Meaning, Physical};
use super::thrift::{Struct, Value};
use super::values::{Ranges, Values, canonical_values, encoding, raw_values};
use crate::error::{Error, Result};
use crate::mask::{Form, Tag, Texts, Treatment};
use crate::table::blocks::Spare;

/// Bytes that a decompressed page may have: sizes are signed 32-bit numbers.
const MAX_PAGE: usize = i32::MAX as usize;

/// Values that are hashed together: what they need stays in the cache of a core.
const RUN: usize = 1 << 12;

/// Memory that goes from page to page.
#[derive(Default)]
pub(super) struct Buffers {
    /// Pages as they are read, and as they are written.
    pub bytes: Spare<Vec<u8>>,
    desks: Spare<Desk>,
}

/// What the work on one page needs.
#[derive(Default)]
struct Desk {
    plain: Vec<u8>,
    made: Vec<u8>,
    packed: Vec<u8>,
    ranges: Ranges,
    tags: Vec<Tag>,
    contexts: Contexts,
}

/// What all pages of a masked chunk have in common.
pub(super) struct Chunk<'a> {
    pub buffers: &'a Buffers,
    /// The number of its leaf.
    pub column: usize,
    pub treatment: &'a Treatment,
    /// How the leaf's type is kept, if it is.
    pub kept: Option<Kept>,
    /// Days by which each row of the row group is moved.
    pub days: Option<Vec<i32>>,
    pub codec: Codec,
    pub physical: Physical,
    pub meaning: Meaning,
    pub max_definition: u32,
    pub max_repetition: u32,
    /// Whether a bloom filter is made of the tokens.
    pub bloom: bool,
}

/// A page as it is written, and what indexes and footer say of it.
#[derive(Default)]
pub(super) struct Masked {
    /// Header and body.
    pub bytes: Vec<u8>,
    /// Header and decompressed body.
    pub uncompressed: usize,
    pub kind: i64,
    pub encoding: i64,
    /// Values with nulls, as the header counts them; 0 for a dictionary.
    pub values: u64,
    pub rows: u64,
    /// Whether its first value begins a row, rather than going on with that of the page before.
    pub begins_row: bool,
    /// Values that are not null and not the empty text.
    pub hashed: u64,
    /// Values that are null.
    pub nulls: u64,
    /// Least and greatest token.
    pub bounds: Option<Bounds>,
    /// Hashes of the tokens, where a bloom filter is made.
    pub hashes: Vec<u64>,
}

/// What takes the place of values, encoded PLAIN.
#[derive(Default)]
pub(super) struct Tokens {
    /// The texts, behind what stands before them in a page.
    pub plain: Vec<u8>,
    /// Bytes before the texts.
    start: usize,
    pub masked: u64,
    pub bounds: Option<Bounds>,
    pub hashes: Vec<u64>,
}

impl Chunk<'_> {
    /// Masks a dictionary page.
    ///
    /// # Errors
    /// Damage of any kind.
    pub(super) fn dictionary(&self, header: &Struct, body: &[u8]) -> Result<(Dictionary, Option<Masked>)> {
        if self.days.is_some() {
            // An entry stands in rows that are moved by different days.
            return Ok((Dictionary::of_originals(self.entries(header, body)?), None));
        }
        let (inner, encoding, count) = dictionary_header(header)?;
        let mut desk = self.buffers.desks.take();
        self.open(header, body, 0, &mut desk)?;
        let plain = std::mem::take(&mut desk.plain);
        let mut tokens = Tokens::behind(&[], &mut desk);
        self.tokens(&plain, encoding, count, &mut desk, &mut tokens)?;
        desk.plain = plain;
        let mut header = header.clone();
        header.keep(&[1, 2, 3, 4, 7]);
        if let Some(Value::Struct(inner)) = header.get_mut(7) {
            inner.keep(&[1, 2]); // tokens are not sorted as the values were
        }
        let mut masked = self.close(header, &tokens, &mut desk)?;
        (masked.kind, masked.encoding) = (page_type::DICTIONARY, inner.int(2).unwrap_or(encoding::PLAIN));
        masked.hashes = tokens.hashes;
        let dictionary = match self.width() {
            Some(width) => Dictionary::new(tokens.plain.chunks_exact(width)),
            None => Dictionary::new(plain_slices(&tokens.plain)),
        };
        desk.made = tokens.plain;
        self.buffers.desks.give(desk);
        if dictionary.unfolds {
            return Ok((dictionary, None));
        }
        Ok((dictionary, Some(masked)))
    }

    /// Bytes of a value, where the type is kept.
    fn width(&self) -> Option<usize> {
        self.kept.map(|_| match self.physical {
            Physical::Int32 | Physical::Float => 4,
            Physical::Fixed(n) => n,
            _ => 8,
        })
    }

    /// Whether texts have to be decoded to be treated: not where the type is kept.
    pub(super) fn values<'b>(&self, bytes: &'b [u8], encoding: i64, count: usize, ranges: Ranges) -> Result<Values<'b>> {
        if self.kept.is_some() {
            raw_values(bytes, encoding, self.physical, count, ranges)
        } else {
            canonical_values(bytes, encoding, self.physical, self.meaning, count, ranges)
        }
    }

    /// Masks a data page of either version; `dictionary` is called if its values are indices.
    ///
    /// # Errors
    /// Damage of any kind, or a value that has no canonical form.
    pub(super) fn data<'d>(
        &self,
        header: &Struct,
        body: &[u8],
        row: u64,
        dictionary: impl FnOnce() -> Option<&'d Dictionary>,
    ) -> Result<Masked> {
        let (v2, field, raw_levels) = data_header(header)?;
        let mut desk = self.buffers.desks.take();
        self.open(header, body, raw_levels, &mut desk)?;
        let plain = std::mem::take(&mut desk.plain);
        let parts = self.parts(header, &plain)?;
        let mut tokens = Tokens::behind(parts.levels, &mut desk);
        let mut new_header = header.clone();
        new_header.keep(&[1, 2, 3, 4, field]);
        let inner = new_header.get_mut(field).and_then(Value::as_struct_mut).ok_or_else(short)?;
        // Not the statistics, which are originals, nor what is not known to hold none.
        inner.keep(if v2 { &[1, 2, 3, 4, 5, 6, 7] } else { &[1, 2, 3, 4] });
        let mut dictionary = Some(dictionary);
        let mut dictionary = || dictionary.take().and_then(|d| d());
        match &self.days {
            Some(days) => {
                let entries = || dictionary().map(|d| &d.tokens[..]);
                self.moved(header, &parts, &plain, (row, days), entries, &mut tokens)?;
            }
            None if is_indices(parts.encoding) => match dictionary() {
                Some(entries) if entries.unfolds => self.unfolded(&parts, entries, &mut tokens)?,
                entries => {
                    let (masked, bounds) = indices(&parts, entries)?;
                    let kept = Masked { hashed: masked, bounds, encoding: parts.encoding, ..self.keep(&new_header, &[], body) };
                    let counted = self.counted(kept, v2, &parts);
                    (desk.plain, desk.made) = (plain, tokens.plain);
                    self.buffers.desks.give(desk);
                    return Ok(counted);
                }
            },
            // Nothing to replace, but the encoding may be one that no text has.
            None if parts.present == 0 => {}
            None => self.tokens(parts.values, parts.encoding, parts.present, &mut desk, &mut tokens)?,
        }
        inner.set(if v2 { 4 } else { 2 }, Value::i32(encoding::PLAIN as i32));
        if v2 {
            inner.set(7, Value::Bool(self.codec != Codec::Uncompressed));
        }
        let closed = self.close(new_header, &tokens, &mut desk)?;
        let Tokens { masked, bounds, hashes, .. } = tokens;
        let made = Masked { hashed: masked, bounds, hashes, encoding: encoding::PLAIN, ..closed };
        let counted = self.counted(made, v2, &parts);
        (desk.plain, desk.made) = (plain, tokens.plain);
        self.buffers.desks.give(desk);
        Ok(counted)
    }

    /// A page with what its parts say of it.
    fn counted(&self, mut masked: Masked, v2: bool, parts: &Parts<'_>) -> Masked {
        masked.kind = if v2 { page_type::DATA_V2 } else { page_type::DATA };
        if self.kept.is_some() {
            masked.bounds = None;
        }
        (masked.values, masked.rows, masked.begins_row) = (parts.count, parts.rows, parts.begins_row);
        masked.nulls = parts.count - parts.present as u64;
        masked
    }

    /// The values of a page of indices, each in full.
    fn unfolded(&self, parts: &Parts<'_>, dictionary: &Dictionary, tokens: &mut Tokens) -> Result<()> {
        let values = self.present(parts, || Some(&dictionary.tokens[..]))?;
        tokens.masked = values.iter().filter(|v| !v.is_empty()).count() as u64;
        if self.kept.is_some() {
            values.iter().for_each(|v| tokens.plain.extend_from_slice(v));
        } else {
            self.lay_out(values.iter().map(Vec::as_slice), tokens);
        }
        Ok(())
    }

    /// The page decompressed, levels of version 2 included, after a look at its checksum.
    pub(super) fn opened(&self, header: &Struct, body: &[u8], raw_levels: usize) -> Result<Vec<u8>> {
        let mut desk = self.buffers.desks.take();
        self.open(header, body, raw_levels, &mut desk)?;
        let plain = std::mem::take(&mut desk.plain);
        self.buffers.desks.give(desk);
        Ok(plain)
    }

    fn open(&self, header: &Struct, body: &[u8], raw_levels: usize, desk: &mut Desk) -> Result<()> {
        if header.int(4).is_some_and(|crc| crc as u32 != crc32fast::hash(body)) {
            return Err(Error::malformed("damaged page: its checksum does not match"));
        }
        let size = header.int(2).and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= MAX_PAGE).ok_or_else(short)?;
        let (levels, values) = body.split_at_checked(raw_levels).ok_or_else(short)?;
        desk.plain.clear();
        desk.plain.extend_from_slice(levels);
        let codec = match header.structure(8).and_then(|h| h.bool(7)) {
            Some(false) => Codec::Uncompressed,
            _ => self.codec,
        };
        codec.decompress(values, size.checked_sub(raw_levels).ok_or_else(short)?, &mut desk.plain, &mut desk.contexts)
    }

    /// The page with its new values; of version 2 the levels before them are left as they are.
    fn close(&self, mut header: Struct, tokens: &Tokens, desk: &mut Desk) -> Result<Masked> {
        let v2 = header.int(1) == Some(page_type::DATA_V2);
        let (levels, values) = tokens.plain.split_at(if v2 { tokens.start } else { 0 });
        self.codec.compress(values, &mut desk.packed, &mut desk.contexts)?;
        let sizes = (i32::try_from(tokens.plain.len()), i32::try_from(levels.len() + desk.packed.len()));
        let (Ok(uncompressed), Ok(compressed)) = sizes else {
            return Err(Error::unsupported("a page of masked values would be larger than 2 GiB"));
        };
        header.set(2, Value::i32(uncompressed));
        header.set(3, Value::i32(compressed));
        if header.get(4).is_some() {
            let mut sum = crc32fast::Hasher::new();
            sum.update(levels);
            sum.update(&desk.packed);
            header.set(4, Value::i32(sum.finalize() as i32));
        }
        Ok(self.keep(&header, levels, &desk.packed))
    }

    /// A page whose body, levels and values, stays as it is.
    fn keep(&self, header: &Struct, levels: &[u8], values: &[u8]) -> Masked {
        let mut bytes = self.buffers.bytes.take();
        bytes.clear();
        header.write(&mut bytes);
        let uncompressed = bytes.len() + header.int(2).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        bytes.extend_from_slice(levels);
        bytes.extend_from_slice(values);
        Masked { bytes, uncompressed, ..Masked::default() }
    }

    fn tokens(&self, bytes: &[u8], encoding: i64, count: usize, desk: &mut Desk, tokens: &mut Tokens) -> Result<()> {
        let values = self.values(bytes, encoding, count, std::mem::take(&mut desk.ranges))?;
        let unfit = |why: &str| Error::malformed(why);
        let keeps = |v: &[u8]| v.is_empty() && !self.treatment.takes_empty();
        if let Some(kept) = self.kept {
            for value in values.slices() {
                let done = kept.apply(value, 0, self.physical, self.meaning, &mut tokens.plain);
                done.ok_or_else(|| unfit("a value has no place in its type after the treatment"))?;
            }
            tokens.masked = count as u64;
        } else if let Treatment::Pseudonym(mask) = self.treatment {
            tokens.plain.reserve(count * (4 + mask.form().token_len()));
            let (mut changing, mut extremes, mut empty) = (Vec::with_capacity(RUN), None, false);
            for run in values.runs(RUN) {
                changing.clear();
                changing.extend(run.clone().filter(|v| !keeps(v)));
                desk.tags.resize(desk.tags.len().max(changing.len()), Tag::default());
                let tags = &mut desk.tags[..changing.len()];
                mask.tags_of_column(&changing, self.column, tags).map_err(|e| unfit(e.why))?;
                tokens.masked += tags.len() as u64;
                tags.iter().for_each(|tag| widen(&mut extremes, tag));
                let mut next = tags.iter();
                for value in run {
                    if let Some(tag) = if keeps(value) { None } else { next.next() } {
                        tokens.plain.extend_from_slice(&(mask.form().token_len() as u32).to_le_bytes());
                        mask.form().write(tag, &mut tokens.plain);
                    } else {
                        empty = true;
                        tokens.plain.extend_from_slice(&[0; 4]);
                    }
                }
            }
            tokens.bounds = bounds(extremes, empty, mask.form());
            self.told(tokens);
        } else {
            let values = values.slices();
            let changing: Vec<&[u8]> = values.iter().copied().filter(|v| !keeps(v)).collect();
            tokens.masked = changing.len() as u64;
            let mut texts = Texts::default();
            self.treatment.apply(&changing, &[], &mut texts).map_err(|e| unfit(e.why))?;
            let mut texts = texts.iter();
            let all = values.iter().map(|v| if keeps(v) { &[][..] } else { texts.next().unwrap_or_default() });
            self.lay_out(all, tokens);
        }
        desk.ranges = values.into_ranges();
        Ok(())
    }

    /// Texts encoded PLAIN, with what indexes say of them.
    pub(super) fn lay_out<'t>(&self, texts: impl Iterator<Item = &'t [u8]>, tokens: &mut Tokens) {
        for text in texts {
            tokens.plain.extend_from_slice(&(text.len() as u32).to_le_bytes()); // no longer than the value was, or a constant
            tokens.plain.extend_from_slice(text);
        }
        let all = || plain_slices(&tokens.plain[tokens.start..]);
        tokens.bounds = all().min().map(<[u8]>::to_vec).zip(all().max().map(<[u8]>::to_vec));
        self.told(tokens);
    }

    /// With what the bloom filter will say of them, where there is one.
    fn told(&self, tokens: &mut Tokens) {
        if self.bloom {
            tokens.hashes = plain_slices(&tokens.plain[tokens.start..]).map(super::index::bloom_hash).collect();
        }
    }
}

impl Tokens {
    /// None yet, behind these levels.
    fn behind(levels: &[u8], desk: &mut Desk) -> Self {
        let mut plain = std::mem::take(&mut desk.made);
        plain.clear();
        plain.extend_from_slice(levels);
        Self { plain, start: levels.len(), ..Self::default() }
    }
}

/// Takes a tag into the least and greatest of all.
#[inline]
fn widen(extremes: &mut Option<(Tag, Tag)>, tag: &Tag) {
    // The first bytes decide, all but always.
    let first = |tag: &Tag| u64::from_be_bytes(*tag.first_chunk().unwrap_or(&[0; 8]));
    let Some((least, greatest)) = extremes else {
        *extremes = Some((*tag, *tag));
        return;
    };
    if first(tag) <= first(least) && tag < least {
        *least = *tag;
    }
    if first(tag) >= first(greatest) && tag > greatest {
        *greatest = *tag;
    }
}

/// The bounds of tokens, which sort as their tags do; the empty text comes before all.
fn bounds(extremes: Option<(Tag, Tag)>, empty: bool, form: &Form) -> Option<Bounds> {
    let text = |tag: &Tag| {
        let mut out = Vec::new();
        form.write(tag, &mut out);
        out
    };
    let ends = extremes.map(|(least, greatest)| (text(&least), text(&greatest)));
    match ends {
        Some((_, greatest)) if empty => Some((Vec::new(), greatest)),
        None if empty => Some((Vec::new(), Vec::new())),
        ends => ends,
    }
}

/// Byte strings encoded PLAIN, as this module writes them.
fn plain_slices(mut plain: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = plain.split_first_chunk()?;
        let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        plain = rest;
        Some(value)
    })
}
