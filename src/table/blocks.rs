//! A stream in blocks, each cut where its reader wants it cut.

use std::io::Read;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, ErrorKind, Result};

/// A stream that is read block by block.
pub(super) struct Blocks<'a> {
    input: &'a mut (dyn Read + Send),
    /// Read, not yet handed on.
    ahead: Vec<u8>,
    ended: bool,
    /// Whether the last block has been handed on.
    done: bool,
    size: usize,
}

/// Buffers that have been used and will be again: fresh memory costs more than what is written into it.
pub(super) struct Spare<T>(Mutex<Vec<Vec<T>>>);

impl<T> Default for Spare<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Spare<T> {
    /// An empty buffer.
    pub(super) fn take(&self) -> Vec<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// A buffer that is not needed any more.
    pub(super) fn give(&self, mut buffer: Vec<T>) {
        buffer.clear();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}

/// A block of a stream.
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    /// Whether the stream ends with it.
    pub(super) last: bool,
}

impl<'a> Blocks<'a> {
    /// Blocks of about `size` bytes.
    pub(super) fn new(input: &'a mut (dyn Read + Send), size: usize) -> Self {
        Self { input, ahead: Vec::new(), ended: false, done: false, size }
    }

    /// Reads on until `length` bytes can be looked at, or the stream ends; says whether it has.
    pub(super) fn look(&mut self, length: usize) -> Result<(&[u8], bool)> {
        let missing = length.saturating_sub(self.ahead.len());
        self.ahead.reserve(missing);
        let read = (&mut *self.input).take(missing as u64).read_to_end(&mut self.ahead).map_err(read_error)?;
        self.ended |= read < missing;
        Ok((&self.ahead, self.ended))
    }

    /// Takes the first bytes of what can be looked at.
    pub(super) fn take(&mut self, length: usize) -> Vec<u8> {
        let rest = self.ahead.split_off(length);
        std::mem::replace(&mut self.ahead, rest)
    }

    /// The next block, cut where `cut` says; the last one, which may be empty, says so. `spare` becomes the buffer of what comes after it.
    pub(super) fn next(
        &mut self,
        cut: impl FnOnce(&[u8]) -> usize,
        progress: &dyn Fn(u64),
        mut spare: Vec<u8>,
    ) -> Result<Option<Block>> {
        if self.done {
            return Ok(None);
        }
        let size = self.size;
        let (bytes, ended) = self.look(size)?;
        let cut = if ended { bytes.len() } else { cut(bytes) };
        self.done = ended;
        spare.extend_from_slice(&self.ahead[cut..]);
        self.ahead.truncate(cut);
        let bytes = std::mem::replace(&mut self.ahead, spare);
        progress(bytes.len() as u64);
        Ok(Some(Block { bytes, last: self.done }))
    }
}

/// The error of a read: of the disk, or of the decompressor that stands before it.
fn read_error(error: std::io::Error) -> Error {
    use std::io::ErrorKind as Io;
    match error.kind() {
        Io::InvalidData | Io::InvalidInput | Io::UnexpectedEof | Io::Other => {
            Error::new(ErrorKind::Malformed(format!("damaged compressed data: {error}")))
        }
        _ => Error::io("cannot read", error),
    }
}
