//! Some lines of NDJSON, as they stand in it: what a condition has chosen, before anything is masked.

use std::io::{self, BufRead, BufReader, Read};

/// NDJSON without the lines that were not chosen.
pub(in crate::table) struct Select {
    input: BufReader<Box<dyn Read + Send>>,
    keep: std::vec::IntoIter<bool>,
    line: Vec<u8>,
    at: usize,
}

impl Select {
    pub(in crate::table) fn new(input: Box<dyn Read + Send>, keep: Vec<bool>) -> Self {
        Self { input: BufReader::with_capacity(1 << 16, input), keep: keep.into_iter(), line: Vec::new(), at: 0 }
    }
}

impl Read for Select {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.line.len() {
            self.line.clear();
            self.at = 0;
            if self.input.read_until(b'\n', &mut self.line)? == 0 {
                return Ok(0);
            }
            if !self.keep.next().unwrap_or(false) {
                self.line.clear();
            }
        }
        let n = buffer.len().min(self.line.len() - self.at);
        buffer[..n].copy_from_slice(&self.line[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_lines_stand_as_they_stood() {
        let mut out = String::new();
        let text = "{\"a\":1}\r\n\n{\"a\": 2}\n{\"a\":3}";
        let keep = vec![true, false, false, true];
        Select::new(Box::new(io::Cursor::new(text)), keep).read_to_string(&mut out).unwrap();
        assert_eq!(out, "{\"a\":1}\r\n{\"a\":3}");
    }
}
