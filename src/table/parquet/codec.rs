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
    pub(super) fn decompress(self, input: &[u8], size: usize, out: &mut Vec<u8>) -> Result<()> {
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
            Self::Zstd => zstd::stream::read::Decoder::with_buffer(input).ok().and_then(|d| stream(d, size, out)),
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

    /// Appends `input` compressed.
    ///
    /// # Errors
    /// None that is known; the codec's own.
    pub(super) fn compress(self, input: &[u8], out: &mut Vec<u8>) -> Result<()> {
        const ZSTD_LEVEL: i32 = 1;
        const BROTLI_QUALITY: u32 = 3;
        let failed = |e: std::io::Error| Error::io("cannot compress a page", e);
        match self {
            Self::Uncompressed => out.extend_from_slice(input),
            Self::Snappy => {
                let start = out.len();
                out.resize(start + snap::raw::max_compress_len(input.len()), 0);
                let n = snap::raw::Encoder::new().compress(input, &mut out[start..]).map_err(|e| failed(e.into()))?;
                out.truncate(start + n);
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
            Self::Zstd => zstd::stream::copy_encode(input, out, ZSTD_LEVEL).map_err(failed)?,
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
        for codec in ALL {
            for text in [&b""[..], b"a", b"abcabcabcabcabcabcabcabc", &long, &vec![0; 300_000]] {
                let (mut packed, mut out) = (b"x".to_vec(), b"y".to_vec());
                codec.compress(text, &mut packed).unwrap();
                codec.decompress(&packed[1..], text.len(), &mut out).unwrap();
                assert!(out[1..] == *text, "{codec:?}, {} bytes", text.len());
            }
        }
    }

    #[test]
    fn damage_and_wrong_sizes_are_found() {
        let text: Vec<u8> = (0..2000u16).flat_map(u16::to_le_bytes).collect();
        for codec in ALL {
            let mut packed = Vec::new();
            codec.compress(&text, &mut packed).unwrap();
            for size in [0, text.len() - 1, text.len() + 1, i32::MAX as usize] {
                assert!(codec.decompress(&packed, size, &mut Vec::new()).is_err(), "{codec:?} as {size}");
            }
            assert!(codec.decompress(&packed[..packed.len() / 2], text.len(), &mut Vec::new()).is_err(), "{codec:?} cut");
        }
    }
}
