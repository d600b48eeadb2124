//! A batch with masked leaves: their buffers are made anew, all others are copied as they are, compressed or not.
//!
//! Source: apache/arrow, `format/Message.fbs`.

use std::collections::HashMap;
use std::io::Read;

use arrow_ipc as fb;
use flatbuffers::{FlatBufferBuilder, WIPOffset};

use super::message::Message;
use super::remade;
use super::schema::{Field, Layout, StringType};
use super::values;
use crate::error::{Error, Result};
use crate::mask::Treatment;

/// What a batch has to become.
pub(super) struct Rewrite<'a> {
    pub masked: &'a [usize],
    /// Names of the candidates, for errors.
    pub names: &'a [String],
    /// Of the masked leaves.
    pub treatments: &'a [&'a Treatment],
}

/// Values of a masked leaf: which, how many became pseudonyms, how many are missing.
pub(super) type Count = (usize, u64, u64);

/// Buffers start at multiples of this, as the format recommends.
const ALIGNMENT: usize = 64;

impl Rewrite<'_> {
    /// Masks a record batch of these fields.
    ///
    /// # Errors
    /// A batch that does not fit its schema.
    pub(super) fn record_batch(&self, message: &Message, fields: &[Field]) -> Result<(Message, Vec<Count>)> {
        let batch = message.header()?.header_as_record_batch().ok_or_else(|| damaged("no record batch"))?;
        self.remake(message, batch, fields, None)
    }

    /// Masks a batch of a dictionary whose values are this field.
    ///
    /// # Errors
    /// As above.
    pub(super) fn dictionary(&self, message: &Message, dictionaries: &HashMap<i64, Field>) -> Result<(Message, Vec<Count>)> {
        let dictionary = message.header()?.header_as_dictionary_batch().ok_or_else(|| damaged("no dictionary"))?;
        let field = dictionaries.get(&dictionary.id()).ok_or_else(|| damaged("a dictionary that no field has"))?;
        let batch = dictionary.data().ok_or_else(|| damaged("a dictionary without values"))?;
        let (done, _) = self.remake(message, batch, std::slice::from_ref(field), Some(dictionary))?;
        Ok((done, Vec::new())) // its values are counted where they are used
    }

    fn remake(
        &self,
        message: &Message,
        batch: fb::RecordBatch<'_>,
        fields: &[Field],
        dictionary: Option<fb::DictionaryBatch<'_>>,
    ) -> Result<(Message, Vec<Count>)> {
        let mut copy = Copy {
            rewrite: self,
            nodes: batch.nodes().unwrap_or_default().iter().copied().collect(),
            buffers: batch.buffers().unwrap_or_default().iter().map(|b| (b.offset(), b.length())).collect(),
            variadic: batch.variadicBufferCounts().map(|v| v.iter().collect()).unwrap_or_default(),
            codec: batch.compression().map(|c| c.codec()),
            input: &message.body,
            next_node: 0,
            next_buffer: 0,
            next_variadic: 0,
            out: Out::default(),
            counts: Vec::new(),
        };
        copy.check_order()?;
        for field in fields {
            copy.field(field)?;
        }
        if copy.next_node != copy.nodes.len()
            || copy.next_buffer != copy.buffers.len()
            || copy.next_variadic != copy.variadic.len()
        {
            return Err(damaged("it has more buffers than its schema"));
        }
        let header = message.header()?;
        let mut fbb = FlatBufferBuilder::new();
        let out = copy.out;
        let args = fb::RecordBatchArgs {
            length: batch.length(),
            nodes: Some(fbb.create_vector(&out.nodes)),
            buffers: Some(fbb.create_vector(&out.buffers)),
            compression: batch.compression().map(|c| {
                fb::BodyCompression::create(&mut fbb, &fb::BodyCompressionArgs { codec: c.codec(), method: c.method() })
            }),
            variadicBufferCounts: (!out.variadic.is_empty()).then(|| fbb.create_vector(&out.variadic)),
        };
        let data = fb::RecordBatch::create(&mut fbb, &args);
        let new_header: WIPOffset<flatbuffers::UnionWIPOffset> = match dictionary {
            None => data.as_union_value(),
            Some(d) => {
                let args = fb::DictionaryBatchArgs { id: d.id(), data: Some(data), isDelta: d.isDelta() };
                fb::DictionaryBatch::create(&mut fbb, &args).as_union_value()
            }
        };
        let custom_metadata = remade::copy_metadata(&mut fbb, header.custom_metadata(), false);
        let args = fb::MessageArgs {
            version: header.version(),
            header_type: header.header_type(),
            header: Some(new_header),
            bodyLength: out.body.len() as i64,
            custom_metadata,
        };
        let root = fb::Message::create(&mut fbb, &args);
        fbb.finish(root, None);
        Ok((Message { metadata: fbb.finished_data().to_vec(), body: out.body }, copy.counts))
    }
}

/// A batch being taken apart and put together.
struct Copy<'a> {
    rewrite: &'a Rewrite<'a>,
    nodes: Vec<fb::FieldNode>,
    buffers: Vec<(i64, i64)>,
    variadic: Vec<i64>,
    codec: Option<fb::CompressionType>,
    input: &'a [u8],
    next_node: usize,
    next_buffer: usize,
    next_variadic: usize,
    out: Out,
    counts: Vec<Count>,
}

#[derive(Default)]
struct Out {
    nodes: Vec<fb::FieldNode>,
    buffers: Vec<fb::Buffer>,
    variadic: Vec<i64>,
    body: Vec<u8>,
}

impl<'a> Copy<'a> {
    /// Makes sure that no buffer lies over another: the copy of one that is not masked would take originals along.
    fn check_order(&self) -> Result<()> {
        let mut reached = 0;
        for (offset, length) in self.buffers.iter().copied().filter(|(_, length)| *length != 0) {
            if offset < reached {
                return Err(damaged("its buffers lie over each other"));
            }
            reached = offset.saturating_add(length);
        }
        Ok(())
    }

    fn field(&mut self, field: &Field) -> Result<()> {
        let node = *self.nodes.get(self.next_node).ok_or_else(|| damaged("it has fewer fields than its schema"))?;
        self.next_node += 1;
        let place = self.rewrite.masked.iter().position(|leaf| Some(*leaf) == field.leaf);
        let Some((place, leaf)) = place.zip(field.leaf) else {
            self.out.nodes.push(node);
            let buffers = self.buffers_of(field)?;
            self.copy(buffers)?;
            if field.dictionary.is_none() {
                if matches!(field.layout, Layout::View { .. }) {
                    self.out.variadic.push(buffers as i64 - 2);
                }
                field.children.iter().try_for_each(|child| self.field(child))?;
            }
            return Ok(());
        };
        let done = if field.dictionary.is_some() { self.indexes(field, node, leaf) } else { self.leaf(field, node, leaf, place) };
        done.map_err(|e| e.at(|p| p.column = Some(self.rewrite.names[leaf].clone())))
    }

    /// How many buffers the field itself has in a batch.
    fn buffers_of(&mut self, field: &Field) -> Result<usize> {
        Ok(match field.layout {
            _ if field.dictionary.is_some() => 2,
            Layout::Null => 0,
            Layout::Fixed(_) => 2,
            Layout::Bytes { .. } => 3,
            Layout::Nested(n) => n,
            Layout::View { .. } => {
                let many = self.variadic.get(self.next_variadic).and_then(|n| usize::try_from(*n).ok());
                let many = many.filter(|n| *n <= self.buffers.len()).ok_or_else(|| damaged("a view without its buffers"))?;
                self.next_variadic += 1;
                2 + many
            }
        })
    }

    /// The next buffer as it lies in the file.
    fn raw(&mut self) -> Result<&'a [u8]> {
        let (offset, length) =
            *self.buffers.get(self.next_buffer).ok_or_else(|| damaged("it has fewer buffers than its schema"))?;
        self.next_buffer += 1;
        let start = usize::try_from(offset).ok();
        let end = start.and_then(|s| s.checked_add(usize::try_from(length).ok()?));
        start.zip(end).and_then(|(s, e)| self.input.get(s..e)).ok_or_else(|| damaged("a buffer lies outside of it"))
    }

    fn copy(&mut self, buffers: usize) -> Result<()> {
        for _ in 0..buffers {
            let raw = self.raw()?;
            self.out.put(raw);
        }
        Ok(())
    }

    /// The next buffers, plain.
    fn plain(&mut self, buffers: usize) -> Result<Vec<std::borrow::Cow<'a, [u8]>>> {
        (0..buffers).map(|_| self.raw().and_then(|raw| decompress(raw, self.codec))).collect()
    }

    /// A masked column of indexes: they stay, its dictionary changes.
    fn indexes(&mut self, field: &Field, node: fb::FieldNode, leaf: usize) -> Result<()> {
        if matches!(field.layout, Layout::Nested(_)) {
            return Err(Error::unsupported("a nested type cannot be masked as a whole"));
        }
        let (count, nulls) = (number(node.length())?, number(node.null_count())?);
        self.out.nodes.push(node);
        self.copy(2)?;
        self.counts.push((leaf, count.saturating_sub(nulls), nulls));
        Ok(())
    }

    fn leaf(&mut self, field: &Field, node: fb::FieldNode, leaf: usize, place: usize) -> Result<()> {
        let string = field.layout.string();
        let many = self.buffers_of(field)?;
        let first = self.next_buffer;
        let buffers = self.plain(many)?;
        let validity = buffers.first().map_or(&[][..], |b| b);
        let count = number(node.length())?;
        let slices: Vec<&[u8]> = buffers.iter().skip(1).map(|b| &b[..]).collect();
        let read = values::read(field.layout, count as usize, validity, &slices)?;
        let tokens = values::mask(&read, self.rewrite.treatments[place], string)?;
        self.counts.push((leaf, tokens.masked, tokens.missing));
        self.out.nodes.push(node);
        if many == 0 {
            // Null has no buffers; a string has.
            self.out.put(&compress(&vec![0; (count as usize).div_ceil(8)], self.codec)?);
        } else {
            let after = std::mem::replace(&mut self.next_buffer, first);
            self.copy(1)?;
            self.next_buffer = after;
        }
        for buffer in &tokens.buffers {
            self.out.put(&compress(buffer, self.codec)?);
        }
        if string == StringType::Utf8View {
            self.out.variadic.push(1);
        }
        Ok(())
    }
}

impl Out {
    fn put(&mut self, buffer: &[u8]) {
        self.buffers.push(fb::Buffer::new(self.body.len() as i64, buffer.len() as i64));
        self.body.extend_from_slice(buffer);
        self.body.resize(self.body.len().next_multiple_of(ALIGNMENT), 0);
    }
}

fn damaged(what: &str) -> Error {
    Error::malformed(format!("damaged batch: {what}"))
}

fn number(n: i64) -> Result<u64> {
    u64::try_from(n).map_err(|_| damaged("a number of values below 0"))
}

/// A buffer behind its plain length; `-1` says that it is not compressed.
fn decompress(raw: &[u8], codec: Option<fb::CompressionType>) -> Result<std::borrow::Cow<'_, [u8]>> {
    let Some(codec) = codec.filter(|_| !raw.is_empty()) else { return Ok(raw.into()) };
    let (length, packed) = raw.split_first_chunk().ok_or_else(|| damaged("a compressed buffer without its length"))?;
    let length = match i64::from_le_bytes(*length) {
        -1 => return Ok(packed.into()),
        n => number(n)?,
    };
    let mut out = Vec::new();
    // One byte more than announced, so that too much is seen without being taken.
    let read = match codec {
        fb::CompressionType::LZ4_FRAME => lz4_flex::frame::FrameDecoder::new(packed).take(length + 1).read_to_end(&mut out),
        fb::CompressionType::ZSTD => {
            zstd::stream::read::Decoder::with_buffer(packed).and_then(|d| d.take(length + 1).read_to_end(&mut out))
        }
        _ => return Err(Error::unsupported("an unknown codec")),
    };
    match read {
        Ok(n) if n as u64 == length => Ok(out.into()),
        _ => Err(damaged("a buffer does not decompress to its length")),
    }
}

fn compress(plain: &[u8], codec: Option<fb::CompressionType>) -> Result<Vec<u8>> {
    const ZSTD_LEVEL: i32 = 1;
    let Some(codec) = codec.filter(|_| !plain.is_empty()) else { return Ok(plain.to_vec()) };
    let failed = |e: std::io::Error| Error::io("cannot compress a buffer", e);
    let mut out = (plain.len() as i64).to_le_bytes().to_vec();
    match codec {
        fb::CompressionType::LZ4_FRAME => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(&mut out);
            std::io::Write::write_all(&mut encoder, plain).map_err(failed)?;
            encoder.finish().map_err(|e| failed(e.into()))?;
        }
        fb::CompressionType::ZSTD => zstd::stream::copy_encode(plain, &mut out, ZSTD_LEVEL).map_err(failed)?,
        _ => return Err(Error::unsupported("an unknown codec")),
    }
    Ok(out)
}
