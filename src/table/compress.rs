//! Compressed text files: recognised by their first bytes, written by the ending of their name.

use std::io::{self, Cursor, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// bzip2, in one or more streams.
    Bzip2,
    /// xz, in one or more streams.
    Xz,
}

/// The level that both programs of these formats take by default.
const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;
const XZ_LEVEL: u32 = 6;
/// First bytes of either format.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Of bzip2 the first block's, too, since text can begin with its first three bytes.
const BZIP2_MAGIC: &[u8] = b"BZh";
const BZIP2_BLOCK: [u8; 6] = [0x31, 0x41, 0x59, 0x26, 0x53, 0x59];
const XZ_MAGIC: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];
/// First bytes that tell a compression.
pub const LOOK: usize = 10;

/// How many times larger a text may be than what it was compressed to, unless told otherwise. gzip reaches 1032.
pub const MAX_RATIO: u32 = 1000;
/// Bytes of text that may come of anything.
const FREE: u64 = 64 << 20;

impl Compression {
    /// The compression that a file's name tells by its last ending.
    pub fn from_name(name: &str) -> Self {
        match name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).as_deref() {
            Some("gz") => Self::Gzip,
            Some("zst") => Self::Zstd,
            Some("bz2") => Self::Bzip2,
            Some("xz") => Self::Xz,
            _ => Self::None,
        }
    }

    /// The compression that a file's first bytes tell.
    pub fn from_magic(start: &[u8]) -> Self {
        if start.starts_with(&GZIP_MAGIC) {
            Self::Gzip
        } else if start.starts_with(&ZSTD_MAGIC) {
            Self::Zstd
        } else if start.starts_with(&XZ_MAGIC) {
            Self::Xz
        } else if start.starts_with(BZIP2_MAGIC) && start.get(4..LOOK) == Some(&BZIP2_BLOCK) {
            Self::Bzip2
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

/// The plain text of a file, whatever it is compressed with, up to `max_ratio` times its size.
///
/// # Errors
/// Those of the first read.
pub fn reader(mut input: Box<dyn Read + Send>, max_ratio: u32) -> Result<Box<dyn Read + Send>> {
    let mut start = Vec::new();
    input.by_ref().take(LOOK as u64).read_to_end(&mut start).map_err(|e| Error::io("cannot read", e))?;
    let compression = Compression::from_magic(&start);
    let taken = Arc::new(AtomicU64::new(0));
    let whole = Counted { input: Cursor::new(start).chain(input), taken: taken.clone() };
    let plain: Box<dyn Read + Send> = match compression {
        Compression::None => return Ok(Box::new(whole)),
        Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(whole)),
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(whole).map_err(|e| Error::io("cannot read", e))?),
        Compression::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(whole)),
        Compression::Xz => Box::new(liblzma::read::XzDecoder::new_multi_decoder(whole)),
    };
    Ok(Box::new(Bounded { plain, given: 0, taken, max_ratio: max_ratio.into() }))
}

/// Counts what is taken of a compressed file.
struct Counted<R> {
    input: R,
    taken: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.input.read(buffer)?;
        self.taken.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// Refuses to give more than is believable: a few kilobytes can announce terabytes.
struct Bounded {
    plain: Box<dyn Read + Send>,
    given: u64,
    taken: Arc<AtomicU64>,
    max_ratio: u64,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.plain.read(buffer)?;
        self.given += n as u64;
        let believable = self.taken.load(Ordering::Relaxed).saturating_mul(self.max_ratio);
        if self.given > believable.max(FREE) {
            let why = format!("the text is more than {} times as large as the file (--max-ratio)", self.max_ratio);
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(n)
    }
}

/// Runs `write` with a writer that compresses to `output`, and ends the compressed stream if it succeeds.
///
/// # Errors
/// Those of `write` and of the last bytes.
pub fn write<T>(
    output: &mut (dyn Write + Send),
    compression: Compression,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<T>,
) -> Result<T> {
    use {
        bzip2::write::BzEncoder, flate2::write::GzEncoder, liblzma::write::XzEncoder, zstd::stream::write::Encoder as ZstdEncoder,
    };
    match compression {
        Compression::None => write(output),
        Compression::Gzip => {
            through(GzEncoder::new(output, flate2::Compression::new(GZIP_LEVEL)), write, |e| e.finish().map(drop))
        }
        Compression::Zstd => through(ZstdEncoder::new(output, ZSTD_LEVEL).map_err(failed)?, write, |e| e.finish().map(drop)),
        Compression::Bzip2 => through(BzEncoder::new(output, bzip2::Compression::best()), write, |e| e.finish().map(drop)),
        Compression::Xz => through(XzEncoder::new(output, XZ_LEVEL), write, |e| e.finish().map(drop)),
    }
}

fn through<E: Write + Send, T>(
    mut encoder: E,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<T>,
    finish: impl FnOnce(E) -> io::Result<()>,
) -> Result<T> {
    match write(&mut encoder) {
        Ok(done) => finish(encoder).map_err(failed).map(|()| done),
        Err(error) => {
            // Dropped, it would end the stream, and half a table would look like a whole one.
            std::mem::forget(encoder);
            Err(error)
        }
    }
}

fn failed(e: io::Error) -> Error {
    Error::io("cannot write", e)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Compression; 5] = [Compression::None, Compression::Gzip, Compression::Zstd, Compression::Bzip2, Compression::Xz];

    #[test]
    fn what_is_too_good_to_be_true_is_refused() {
        let (mut packed, zeros) = (Vec::new(), vec![b'0'; 1 << 20]);
        write(&mut packed, Compression::Zstd, |out| (0..80).try_for_each(|_| out.write_all(&zeros).map_err(failed))).unwrap();
        let read = |ratio| io::copy(&mut reader(Box::new(Cursor::new(packed.clone())), ratio).unwrap(), &mut io::sink());
        assert!(read(MAX_RATIO).is_err_and(|e| e.to_string().contains("--max-ratio")));
        assert_eq!(read(u32::MAX).unwrap(), 80 << 20);
    }

    #[test]
    fn write_and_read_are_inverse_also_over_members() {
        for compression in ALL {
            let mut packed = Vec::new();
            for part in ["first,", "second"] {
                write(&mut packed, compression, |out| out.write_all(part.as_bytes()).map_err(|e| Error::io("", e))).unwrap();
            }
            assert_eq!(Compression::from_magic(&packed), compression);
            let mut plain = String::new();
            reader(Box::new(Cursor::new(packed)), MAX_RATIO).unwrap().read_to_string(&mut plain).unwrap();
            assert_eq!(plain, "first,second");
        }
    }

    #[test]
    fn a_stream_that_failed_has_no_end() {
        for compression in &ALL[1..] {
            let mut packed = Vec::new();
            let failed: Result<()> = write(&mut packed, *compression, |out| {
                out.write_all(&vec![b'x'; 1 << 20]).map_err(|e| Error::io("", e))?;
                Err(Error::malformed("half"))
            });
            assert!(failed.is_err());
            let whole = reader(Box::new(Cursor::new(packed)), MAX_RATIO)
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
