//! Encapsulated messages: metadata and a body, one behind the other.
//!
//! Source: apache/arrow, `docs/source/format/Columnar.rst`, "Encapsulated message format".

use std::io::{Read, Write};

use arrow_ipc as fb;

use crate::error::{Error, Result};

/// What stands before the length of a message.
pub(super) const CONTINUATION: [u8; 4] = [0xff; 4];
/// Bytes of metadata that a message may have.
const MAX_METADATA: u32 = 1 << 28;
/// Messages start at multiples of this.
const ALIGNMENT: usize = 8;

/// A message.
pub(super) struct Message {
    /// A flat buffer, checked when it was read.
    pub metadata: Vec<u8>,
    pub body: Vec<u8>,
}

impl Message {
    /// What the metadata say.
    ///
    /// # Errors
    /// Metadata that are none.
    pub(super) fn header(&self) -> Result<fb::Message<'_>> {
        fb::root_as_message(&self.metadata).map_err(|_| Error::malformed("the metadata of a message are damaged"))
    }

    /// Writes the message; returns the bytes before its body.
    ///
    /// # Errors
    /// Those of the output.
    pub(super) fn write(&self, output: &mut (dyn Write + Send)) -> Result<usize> {
        let padded = self.metadata.len().next_multiple_of(ALIGNMENT);
        let mut head = CONTINUATION.to_vec();
        head.extend_from_slice(&(padded as u32).to_le_bytes()); // below MAX_METADATA when read, and about as long when remade
        head.extend_from_slice(&self.metadata);
        head.resize(8 + padded, 0);
        let failed = |e| Error::io("cannot write", e);
        output.write_all(&head).map_err(failed)?;
        output.write_all(&self.body).map_err(failed)?;
        Ok(head.len())
    }
}

/// Messages of a stream, in order.
pub(super) struct Messages<'a> {
    input: &'a mut (dyn Read + Send),
    /// Bytes taken.
    pub at: u64,
    /// What follows the last message of a file, as far as it has been read.
    pub rest: Vec<u8>,
}

impl<'a> Messages<'a> {
    /// Begins behind `at` bytes.
    pub(super) fn new(input: &'a mut (dyn Read + Send), at: u64) -> Self {
        Self { input, at, rest: Vec::new() }
    }

    /// The next message, or none at the end of the stream.
    ///
    /// # Errors
    /// A message that is cut or damaged.
    pub(super) fn next(&mut self) -> Result<Option<Message>> {
        let start = self.at;
        let here = |e: Error| e.at(|p| p.byte = Some(start));
        let head = self.take(8)?;
        let (mark, length) = head.split_at(head.len().min(4));
        if mark != CONTINUATION {
            // Older writers end a file's messages without a mark: its footer follows. What is none is refused there.
            self.rest = head;
            return Ok(None);
        }
        let Ok(length) = length.try_into().map(u32::from_le_bytes) else {
            return Err(here(Error::malformed("the stream ends within a message")));
        };
        if length == 0 {
            return Ok(None);
        }
        if length > MAX_METADATA {
            return Err(here(Error::malformed("an impossible length of metadata")));
        }
        let metadata = self.take(length.into())?;
        let mut message = Message { metadata, body: Vec::new() };
        let body = match message.header().map(|h| u64::try_from(h.bodyLength())) {
            _ if message.metadata.len() < length as usize => Err(Error::malformed("the stream ends within a message")),
            Ok(Ok(body)) => Ok(body),
            Ok(Err(_)) => Err(Error::malformed("an impossible length of a body")),
            Err(error) => Err(error),
        };
        let body = body.map_err(here)?;
        message.body = self.take(body)?;
        if message.body.len() as u64 != body {
            return Err(here(Error::malformed("the stream ends within a message")));
        }
        Ok(Some(message))
    }

    /// All that follows.
    ///
    /// # Errors
    /// Those of the input.
    pub(super) fn rest(&mut self, limit: u64) -> Result<Vec<u8>> {
        let mut rest = std::mem::take(&mut self.rest);
        rest.extend(self.take(limit)?);
        Ok(rest)
    }

    /// Up to `n` bytes, as they come: a forged length takes no memory.
    fn take(&mut self, n: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.input.take(n).read_to_end(&mut bytes).map_err(|e| Error::io("cannot read", e))?;
        self.at += bytes.len() as u64;
        Ok(bytes)
    }
}
