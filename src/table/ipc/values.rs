//! The values of a leaf in canonical form, and the buffers of its tokens.

use half::f16;

use super::schema::{Layout, Meaning, StringType};
use crate::error::{Error, Result};
use crate::mask::{Texts, Treatment, canonical};

/// Values of a leaf: a slice each, none where it is null.
pub(super) struct Values<'b> {
    /// What lies in no buffer of the batch.
    made: Vec<u8>,
    spans: Vec<Option<Span<'b>>>,
}

enum Span<'b> {
    Here(&'b [u8]),
    Made(usize, usize),
}

/// Values of a batch in a column of nulls, which claims them without a byte for each.
const MAX_NULLS: usize = 1 << 22;

fn damaged(what: &str) -> Error {
    Error::malformed(format!("damaged batch: {what}"))
}

/// Reads `count` values; `buffers` are those of the leaf, plain, validity first.
///
/// # Errors
/// Buffers that are too short, offsets that lead astray, a text that is not UTF-8, a type without a canonical form.
pub(super) fn read<'b>(layout: Layout, count: usize, validity: &[u8], buffers: &[&'b [u8]]) -> Result<Values<'b>> {
    let valid = |i: usize| validity.is_empty() || validity[i / 8] >> (i % 8) & 1 == 1;
    if !validity.is_empty() && validity.len() < count.div_ceil(8) {
        return Err(damaged("a validity buffer is too short"));
    }
    let mut values = Values { made: Vec::new(), spans: Vec::new() };
    match (layout, buffers) {
        (Layout::Null, _) if count > MAX_NULLS => {
            return Err(Error::unsupported(format!("a batch of more than {MAX_NULLS} nulls")));
        }
        (Layout::Null, _) => values.spans.extend((0..count).map(|_| None)),
        (Layout::Fixed(meaning), [data]) => fixed(meaning, count, &valid, data, &mut values)?,
        (Layout::Bytes { large, text }, [offsets, data]) => {
            let width = if large { 8 } else { 4 };
            let offset =
                |i: usize| usize::try_from(signed(&offsets[i * width..][..width])).map_err(|_| damaged("an offset below 0"));
            if count > 0 && offsets.len() / width <= count {
                return Err(damaged("an offset buffer is too short"));
            }
            for i in 0..count {
                let value = data.get(offset(i)?..offset(i + 1)?).ok_or_else(|| damaged("an offset beyond the data"))?;
                values.push(valid(i).then_some(value), text)?;
            }
        }
        (Layout::View { text }, [views, data @ ..]) => {
            let views = views.chunks_exact(16);
            if views.len() < count {
                return Err(damaged("a view buffer is too short"));
            }
            for (i, view) in views.take(count).enumerate() {
                values.push(if valid(i) { Some(look(view, data)?) } else { None }, text)?;
            }
        }
        _ => return Err(Error::unsupported("a nested type cannot be masked as a whole")),
    }
    Ok(values)
}

impl<'b> Values<'b> {
    fn push(&mut self, value: Option<&'b [u8]>, text: bool) -> Result<()> {
        if text && value.is_some_and(|v| simdutf8::basic::from_utf8(v).is_err()) {
            return Err(Error::malformed("a text is not valid UTF-8"));
        }
        self.spans.push(value.map(Span::Here));
        Ok(())
    }

    fn get<'s>(&'s self, span: &'s Span<'b>) -> &'s [u8] {
        match span {
            Span::Here(bytes) => bytes,
            Span::Made(start, end) => &self.made[*start..*end],
        }
    }
}

/// The bytes that a view shows: within itself up to 12, else in a data buffer.
fn look<'b>(view: &'b [u8], data: &[&'b [u8]]) -> Result<&'b [u8]> {
    const INLINE: usize = 12;
    let word = |i: usize| usize::try_from(signed(&view[4 * i..][..4])).map_err(|_| damaged("a view is below 0"));
    let length = word(0)?;
    if length <= INLINE {
        return Ok(&view[4..4 + length]);
    }
    let (buffer, offset) = (word(2)?, word(3)?);
    let bytes = data.get(buffer).and_then(|b| b.get(offset..offset + length));
    bytes.ok_or_else(|| damaged("a view beyond the data"))
}

fn fixed<'b>(meaning: Meaning, count: usize, valid: &impl Fn(usize) -> bool, data: &'b [u8], out: &mut Values<'b>) -> Result<()> {
    let width = match meaning {
        Meaning::Boolean => 0,
        Meaning::Timestamp(..) => 8,
        Meaning::Uuid => 16,
        Meaning::Signed(n)
        | Meaning::Unsigned(n)
        | Meaning::Float(n)
        | Meaning::Decimal(n, _)
        | Meaning::Date(n)
        | Meaning::Time(n, ..)
        | Meaning::Binary(n)
        | Meaning::Span(n) => n,
    };
    let bytes = if meaning == Meaning::Boolean { Some(count.div_ceil(8)) } else { width.checked_mul(count) };
    if width == 0 && meaning != Meaning::Boolean && count > MAX_NULLS {
        return Err(Error::unsupported(format!("a batch of more than {MAX_NULLS} values without a byte")));
    }
    if bytes.is_none_or(|n| n > data.len()) {
        return Err(damaged("a data buffer is too short"));
    }
    for i in 0..count {
        let value = &data[i * width..][..width];
        out.spans.push(match meaning {
            _ if !valid(i) => None,
            Meaning::Binary(_) => Some(Span::Here(value)),
            _ => {
                let start = out.made.len();
                if meaning == Meaning::Boolean {
                    canonical::boolean(&mut out.made, data[i / 8] >> (i % 8) & 1 == 1);
                } else {
                    one(meaning, value, &mut out.made)?;
                }
                Some(Span::Made(start, out.made.len()))
            }
        });
    }
    Ok(())
}

fn one(meaning: Meaning, value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    const MILLIS_A_DAY: i64 = 86_400_000;
    let scaled = |many: i64| signed(value).checked_mul(many).ok_or_else(|| Error::unsupported("a time beyond all calendars"));
    match meaning {
        Meaning::Signed(_) => canonical::integer(out, signed(value)),
        Meaning::Unsigned(_) => canonical::unsigned(out, value.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))),
        Meaning::Float(2) => canonical::float16(out, f16::from_bits(signed(value) as u16)),
        Meaning::Float(4) => canonical::float32(out, f32::from_bits(signed(value) as u32)),
        Meaning::Float(_) => canonical::float64(out, f64::from_bits(signed(value) as u64)),
        Meaning::Decimal(_, scale) => {
            let scale = usize::try_from(scale).map_err(|_| Error::unsupported("a decimal of a negative scale"))?;
            let big_endian: Vec<u8> = value.iter().rev().copied().collect();
            canonical::decimal(out, &big_endian, scale);
        }
        Meaning::Date(4) => canonical::date(out, signed(value)),
        Meaning::Date(_) => canonical::date(out, signed(value).div_euclid(MILLIS_A_DAY)),
        Meaning::Time(_, unit, many) => {
            if !canonical::time(out, scaled(many)?, unit) {
                return Err(Error::malformed("a time outside of a day"));
            }
        }
        Meaning::Timestamp(unit, many, utc) => canonical::timestamp(out, scaled(many)?, unit, utc),
        Meaning::Uuid => canonical::uuid(out, value.first_chunk().ok_or_else(|| damaged("a UUID is too short"))?),
        Meaning::Boolean | Meaning::Binary(_) => out.extend_from_slice(value),
        Meaning::Span(_) => return Err(Error::unsupported("an interval or duration has no canonical form")),
    }
    Ok(())
}

/// A little-endian number of up to 8 bytes with its sign.
fn signed(value: &[u8]) -> i64 {
    let fill = if value.last().is_some_and(|b| b & 0x80 != 0) { -1 } else { 0 };
    value.iter().rev().fold(fill, |n, b| n << 8 | i64::from(*b))
}

/// Buffers of tokens behind the validity, which stays as it is.
pub(super) struct Tokens {
    pub buffers: Vec<Vec<u8>>,
    /// Values that became pseudonyms.
    pub masked: u64,
    /// Nulls and empty values.
    pub missing: u64,
}

/// Hashes values and lays the tokens out as strings of this type.
///
/// # Errors
/// More bytes of tokens than the type can address.
pub(super) fn mask(values: &Values<'_>, treatment: &Treatment, string: StringType) -> Result<Tokens> {
    let changes = |v: &&[u8]| treatment.takes_empty() || !v.is_empty();
    let present = || values.spans.iter().map(|s| s.as_ref().map(|s| values.get(s)).filter(changes));
    let messages: Vec<&[u8]> = present().flatten().collect();
    let mut texts = Texts::default();
    treatment.apply(&messages, &[], &mut texts).map_err(|unfit| Error::malformed(unfit.why))?;
    let too_much = || Error::unsupported("a batch with more tokens than its type can hold");
    let mut data = Vec::new();
    let mut index = Vec::with_capacity((values.spans.len() + 1) * 8);
    let offset = |data: &[u8], index: &mut Vec<u8>| {
        match string {
            StringType::LargeUtf8 => index.extend_from_slice(&(data.len() as u64).to_le_bytes()),
            _ => index.extend_from_slice(&i32::try_from(data.len()).map_err(|_| too_much())?.to_le_bytes()),
        }
        Ok(())
    };
    if string != StringType::Utf8View {
        offset(&data, &mut index)?;
    }
    let mut texts = texts.iter();
    for value in present() {
        let start = data.len();
        if let Some(text) = value.and_then(|_| texts.next()) {
            data.extend_from_slice(text);
        }
        if string == StringType::Utf8View {
            view(&data, start, &mut index)?;
        } else {
            offset(&data, &mut index)?;
        }
    }
    let masked = messages.len() as u64;
    Ok(Tokens { buffers: vec![index, data], masked, missing: values.spans.len() as u64 - masked })
}

/// Appends the view of a text: within itself up to 12 bytes, else with its first four bytes and where it lies.
fn view(data: &[u8], start: usize, index: &mut Vec<u8>) -> Result<()> {
    const INLINE: usize = 12;
    let text = &data[start..];
    index.extend_from_slice(&(text.len() as u32).to_le_bytes());
    if text.len() <= INLINE {
        let mut inline = [0; INLINE];
        inline[..text.len()].copy_from_slice(text);
        index.extend_from_slice(&inline);
        return Ok(());
    }
    let offset = i32::try_from(start).map_err(|_| Error::unsupported("a batch with more tokens than its type can hold"))?;
    index.extend_from_slice(&text[..4]);
    index.extend_from_slice(&0u32.to_le_bytes());
    index.extend_from_slice(&offset.to_le_bytes());
    Ok(())
}
