//! The codecs of pages. Nothing is allocated on a header's word: output grows as it comes, up to the size announced.
//!
//! Source: apache/parquet-format, `Compression.md`.

use std::io::{Read, Write};

use crate::error::{Error, Result};

/// A codec by its number in the footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Uncompressed,
    Snappy,
    Gzip,
    Brotli,
    /// The deprecated one: blocks behind Hadoop's two lengths, as a rule.
    Lz4,
    Zstd,
    Lz4Raw,
}

/// What a codec needs beside its input, used again for the next page.
#[derive(Default)]
pub(super) struct Contexts {
    unpack: Option<zstd::bulk::Decompressor<'static>>,
    pack: Option<zstd::bulk::Compressor<'static>>,
}

/// Bytes of a page that are reserved on its header's word; more only where the input is not much less.
const TRUSTED: usize = 8 << 20;
/// The worst ratio that LZ4 and Snappy reach; a size beyond it is forged.
const BLOCK_RATIO: usize = 256;

impl Codec {
    /// Finds a codec by its number.
    ///
    /// # Errors
    /// One that hmask cannot decode.
    pub(super) fn from_number(number: i64) -> Result<Self> {
        Ok(match number {
            0 => Self::Uncompressed,
            1 => Self::Snappy,
            2 => Self::Gzip,
            4 => Self::Brotli,
            5 => Self::Lz4,
            6 => Self::Zstd,
            7 => Self::Lz4Raw,
            3 => return Err(Error::unsupported("the codec LZO is not supported for masked columns")),
            n => return Err(Error::unsupported(format!("unknown codec {n}"))),
        })
    }

    /// Appends the `size` bytes that `input` decompresses to.
    ///
    /// # Errors
    /// Damage, or another size.
    pub(super) fn decompress(self, input: &[u8], size: usize, out: &mut Vec<u8>, contexts: &mut Contexts) -> Result<()> {
        let start = out.len();
        let done = match self {
            Self::Uncompressed => {
                out.extend_from_slice(input);
                Some(())
            }
            _ if size == 0 && input.is_empty() => Some(()),
            Self::Snappy => snappy(input, size, out),
            Self::Gzip => stream(flate2::read::MultiGzDecoder::new(input), size, out),
            Self::Brotli => stream(brotli::Decompressor::new(input, 4096), size, out),
            Self::Zstd => zstd(input, size, out, contexts),
            Self::Lz4Raw => lz4_block(input, size, out),
            Self::Lz4 => hadoop(input, size, out)
                .or_else(|| {
                    out.truncate(start);
                    lz4_block(input, size, out)
                })
                .or_else(|| {
                    out.truncate(start);
                    stream(lz4_flex::frame::FrameDecoder::new(input), size, out)
                }),
        };
        match done {
            Some(()) if out.len() - start == size => Ok(()),
            _ => Err(Error::malformed("damaged page: it does not decompress to the size in its header")),
        }
    }

    /// Puts `input`, compressed, in place of what `out` holds.
    ///
    /// # Errors
    /// None that is known; the codec's own.
    pub(super) fn compress(self, input: &[u8], out: &mut Vec<u8>, contexts: &mut Contexts) -> Result<()> {
        const ZSTD_LEVEL: i32 = 1;
        const BROTLI_QUALITY: u32 = 3;
        let failed = |e: std::io::Error| Error::io("cannot compress a page", e);
        out.clear();
        match self {
            Self::Uncompressed => out.extend_from_slice(input),
            Self::Snappy => {
                out.resize(snap::raw::max_compress_len(input.len()), 0);
                let n = snap::raw::Encoder::new().compress(input, out).map_err(|e| failed(e.into()))?;
                out.truncate(n);
            }
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::default());
                encoder.write_all(input).and_then(|()| encoder.finish().map(drop)).map_err(failed)?;
            }
            Self::Brotli => {
                let mut encoder = brotli::CompressorWriter::new(out, 4096, BROTLI_QUALITY, 22);
                encoder.write_all(input).map_err(failed)?;
                encoder.into_inner(); // writes the end of the stream
            }
            Self::Zstd => {
                let pack = match &mut contexts.pack {
                    Some(pack) => pack,
                    none => none.insert(zstd::bulk::Compressor::new(ZSTD_LEVEL).map_err(failed)?),
                };
                out.reserve(zstd::zstd_safe::compress_bound(input.len()));
                pack.compress_to_buffer(input, out).map_err(failed)?;
            }
            Self::Lz4Raw => out.extend_from_slice(&lz4_flex::block::compress(input)),
            Self::Lz4 => {
                let block = lz4_flex::block::compress(input);
                for n in [input.len(), block.len()] {
                    out.extend_from_slice(&(n as u32).to_be_bytes()); // a page has less than 2 GiB
                }
                out.extend_from_slice(&block);
            }
        }
        Ok(())
    }
}

/// Up to one byte more than announced, so that too much is seen without being taken.
fn stream(input: impl Read, size: usize, out: &mut Vec<u8>) -> Option<()> {
    input.take(size as u64 + 1).read_to_end(out).ok().map(drop)
}

fn zstd(input: &[u8], size: usize, out: &mut Vec<u8>, contexts: &mut Contexts) -> Option<()> {
    let start = out.len();
    if size > TRUSTED && size / BLOCK_RATIO > input.len() {
        return stream(zstd::stream::read::Decoder::with_buffer(input).ok()?, size, out);
    }
    let unpack = match &mut contexts.unpack {
        Some(unpack) => unpack,
        none => none.insert(zstd::bulk::Decompressor::new().ok()?),
    };
    if start == 0 {
        out.reserve(size);
        unpack.decompress_to_buffer(input, out).ok()?;
    } else {
        out.resize(start + size, 0);
        let n = unpack.decompress_to_buffer(input, &mut out[start..]).ok()?;
        out.truncate(start + n);
    }
    Some(())
}

fn snappy(input: &[u8], size: usize, out: &mut Vec<u8>) -> Option<()> {
    if snap::raw::decompress_len(input).ok()? != size || size / BLOCK_RATIO > input.len() {
        return None;
    }
    let start = out.len();
    out.resize(start + size, 0);
    snap::raw::Decoder::new().decompress(input, &mut out[start..]).ok().map(drop)
}

fn lz4_block(input: &[u8], size: usize, out: &mut Vec<u8>) -> Option<()> {
    if size / BLOCK_RATIO > input.len() {
        return None;
    }
    let start = out.len();
    out.resize(start + size, 0);
    let n = lz4_flex::block::decompress_into(input, &mut out[start..]).ok()?;
    out.truncate(start + n);
    Some(())
}

/// Hadoop's framing: the size of the whole and of the block, big-endian, then the block; again until the end.
fn hadoop(mut input: &[u8], size: usize, out: &mut Vec<u8>) -> Option<()> {
    let end = out.len() + size;
    while let Some((head, rest)) = input.split_first_chunk::<8>() {
        let lengths = u64::from_be_bytes(*head);
        let whole = (lengths >> 32) as usize;
        let block = rest.get(..lengths as u32 as usize)?;
        if out.len() + whole > end {
            return None;
        }
        lz4_block(block, whole, out)?;
        input = &rest[block.len()..];
    }
    input.is_empty().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Codec; 7] =
        [Codec::Uncompressed, Codec::Snappy, Codec::Gzip, Codec::Brotli, Codec::Lz4, Codec::Zstd, Codec::Lz4Raw];

    #[test]
    fn compress_and_decompress_are_inverse() {
        let long: Vec<u8> = (0..100_000u32).flat_map(|i| (i / 3).to_le_bytes()).collect();
        let mut contexts = Contexts::default();
        for codec in ALL {
            for text in [&b""[..], b"a", b"abcabcabcabcabcabcabcabc", &long, &vec![0; 300_000]] {
                let (mut packed, mut out) = (b"x".to_vec(), b"y".to_vec());
                codec.compress(text, &mut packed, &mut contexts).unwrap();
                codec.decompress(&packed, text.len(), &mut out, &mut contexts).unwrap();
                assert!(out[1..] == *text, "{codec:?}, {} bytes", text.len());
                out.clear();
                codec.decompress(&packed, text.len(), &mut out, &mut contexts).unwrap();
                assert!(out == *text, "{codec:?}, {} bytes, at the start", text.len());
            }
        }
    }

    #[test]
    fn damage_and_wrong_sizes_are_found() {
        let text: Vec<u8> = (0..2000u16).flat_map(u16::to_le_bytes).collect();
        let mut contexts = Contexts::default();
        for codec in ALL {
            let mut packed = Vec::new();
            codec.compress(&text, &mut packed, &mut contexts).unwrap();
            for size in [0, text.len() - 1, text.len() + 1, i32::MAX as usize] {
                for capacity in [0, 1 << 20] {
                    let mut out = Vec::with_capacity(capacity);
                    assert!(codec.decompress(&packed, size, &mut out, &mut contexts).is_err(), "{codec:?} as {size}");
                }
            }
            let cut = &packed[..packed.len() / 2];
            assert!(codec.decompress(cut, text.len(), &mut Vec::new(), &mut contexts).is_err(), "{codec:?} cut");
        }
    }
}
