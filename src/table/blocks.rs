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

/// Buffers that have been used and will be again: fresh memory costs more than what is written into it. The last one given is the first
/// one taken, mostly by the same thread, in the cache of whose core it still lies.
pub(super) struct Spare<T>(Mutex<Vec<T>>);

impl<T> Default for Spare<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Default> Spare<T> {
    /// A buffer with whatever it holds, or a new one.
    pub(super) fn take(&self) -> T {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// A buffer that is not needed any more.
    pub(super) fn give(&self, buffer: T) {
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
        let mut ahead = std::mem::take(&mut self.ahead);
        let mut filled = ahead.len();
        if filled < length {
            ahead.resize(length, 0);
            self.fill(&mut ahead, &mut filled)?;
            ahead.truncate(filled);
        }
        self.ahead = ahead;
        Ok((&self.ahead, self.ended))
    }

    /// Takes the first bytes of what can be looked at.
    pub(super) fn take(&mut self, length: usize) -> Vec<u8> {
        let rest = self.ahead.split_off(length);
        std::mem::replace(&mut self.ahead, rest)
    }

    /// The next block, cut where `cut` says; the last one, which may be empty, says so. It is read into `buffer`, whatever that holds:
    /// one that the calling thread has used lies in the cache of its core.
    pub(super) fn next(
        &mut self,
        cut: impl FnOnce(&[u8]) -> usize,
        progress: &dyn Fn(u64),
        mut buffer: Vec<u8>,
    ) -> Result<Option<Block>> {
        if self.done {
            return Ok(None);
        }
        let mut filled = self.ahead.len();
        buffer.resize(self.size.max(filled), 0);
        buffer[..filled].copy_from_slice(&self.ahead);
        self.fill(&mut buffer, &mut filled)?;
        let cut = if self.ended { filled } else { cut(&buffer[..filled]) };
        self.done = self.ended;
        self.ahead.clear();
        self.ahead.extend_from_slice(&buffer[cut..filled]);
        buffer.truncate(cut);
        progress(cut as u64);
        Ok(Some(Block { bytes: buffer, last: self.done }))
    }

    /// Reads until a buffer of which `filled` bytes are known is full, or the stream ends.
    fn fill(&mut self, buffer: &mut [u8], filled: &mut usize) -> Result<()> {
        while *filled < buffer.len() && !self.ended {
            match self.input.read(&mut buffer[*filled..]) {
                Ok(0) => self.ended = true,
                Ok(n) => *filled += n,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(read_error(error)),
            }
        }
        Ok(())
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
