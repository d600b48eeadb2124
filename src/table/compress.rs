//! Compressed text files: recognised by their first bytes, written by the ending of their name.

use std::io::{self, Cursor, Read, Write};

use crate::error::{Error, Result};

/// How a whole file is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip (RFC 1952), in one or more members.
    Gzip,
    /// Zstandard (RFC 8878), in one or more frames.
    Zstd,
}

/// The level that both programs of these formats take by default.
const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;
/// First bytes of either format.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

impl Compression {
    /// The compression that a file's name tells by its last ending.
    pub fn from_name(name: &str) -> Self {
        match name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).as_deref() {
            Some("gz") => Self::Gzip,
            Some("zst") => Self::Zstd,
            _ => Self::None,
        }
    }

    /// The compression that a file's first bytes tell.
    pub fn from_magic(start: &[u8]) -> Self {
        if start.starts_with(&GZIP_MAGIC) {
            Self::Gzip
        } else if start.starts_with(&ZSTD_MAGIC) {
            Self::Zstd
        } else {
            Self::None
        }
    }

    /// A name without the ending of its compression.
    pub fn strip(name: &str) -> &str {
        match Self::from_name(name) {
            Self::None => name,
            _ => name.rsplit_once('.').map_or(name, |(stem, _)| stem),
        }
    }
}

/// The plain text of a file, whatever it is compressed with.
///
/// # Errors
/// Those of the first read.
pub fn reader(mut input: Box<dyn Read + Send>) -> Result<Box<dyn Read + Send>> {
    let mut start = Vec::new();
    input.by_ref().take(ZSTD_MAGIC.len() as u64).read_to_end(&mut start).map_err(|e| Error::io("cannot read", e))?;
    let compression = Compression::from_magic(&start);
    let whole = Cursor::new(start).chain(input);
    Ok(match compression {
        Compression::None => Box::new(whole),
        Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(whole)),
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(whole).map_err(|e| Error::io("cannot read", e))?),
    })
}

/// Runs `write` with a writer that compresses to `output`, and ends the compressed stream if it succeeds.
///
/// # Errors
/// Those of `write` and of the last bytes.
pub fn write<T>(output: &mut dyn Write, compression: Compression, write: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
    let failed = |e: io::Error| Error::io("cannot write", e);
    match compression {
        Compression::None => write(output),
        Compression::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(output, flate2::Compression::new(GZIP_LEVEL));
            let done = match write(&mut encoder) {
                Ok(done) => done,
                Err(error) => {
                    // Dropped, it would end the stream, and half a table would look like a whole one.
                    std::mem::forget(encoder);
                    return Err(error);
                }
            };
            encoder.finish().map_err(failed)?;
            Ok(done)
        }
        Compression::Zstd => {
            let mut encoder = zstd::stream::write::Encoder::new(output, ZSTD_LEVEL).map_err(failed)?;
            let done = write(&mut encoder)?;
            encoder.finish().map_err(failed)?;
            Ok(done)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_and_read_are_inverse_also_over_members() {
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let mut packed = Vec::new();
            for part in ["first,", "second"] {
                write(&mut packed, compression, |out| out.write_all(part.as_bytes()).map_err(|e| Error::io("", e))).unwrap();
            }
            assert_eq!(Compression::from_magic(&packed), compression);
            let mut plain = String::new();
            reader(Box::new(Cursor::new(packed))).unwrap().read_to_string(&mut plain).unwrap();
            assert_eq!(plain, "first,second");
        }
    }

    #[test]
    fn a_stream_that_failed_has_no_end() {
        for compression in [Compression::Gzip, Compression::Zstd] {
            let mut packed = Vec::new();
            let failed: Result<()> = write(&mut packed, compression, |out| {
                out.write_all(&vec![b'x'; 1 << 20]).map_err(|e| Error::io("", e))?;
                Err(Error::malformed("half"))
            });
            assert!(failed.is_err());
            let whole = reader(Box::new(Cursor::new(packed)))
                .and_then(|mut r| r.read_to_end(&mut Vec::new()).map_err(|e| Error::io("", e)));
            assert!(whole.is_err() || matches!(whole, Ok(0)), "{compression:?}");
        }
    }

    #[test]
    fn names() {
        assert_eq!(Compression::from_name("a.CSV.GZ"), Compression::Gzip);
        assert_eq!(Compression::strip("a.csv.zst"), "a.csv");
        assert_eq!(Compression::strip("a.csv"), "a.csv");
    }
}
