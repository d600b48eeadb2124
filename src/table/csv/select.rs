//! Some records of a CSV, as they stand in it: what a condition has chosen, before anything is masked.

use std::io::{self, Read};

use super::layout::{Found, Layout};
use super::scan::{Field, Visitor};
use super::{CsvOptions, too_long};
use crate::error::Error;
use crate::policy::{Rules, Unlisted};

/// Bytes that are read at a time.
const STEP: usize = 1 << 20;

/// A CSV without the records that were not chosen.
pub(in crate::table) struct Select {
    input: Box<dyn Read + Send>,
    options: CsvOptions,
    /// For each data record whether it stays.
    keep: Vec<bool>,
    layout: Option<Box<Layout>>,
    /// Read, and not looked at yet.
    ahead: Vec<u8>,
    ended: bool,
    /// Data records so far.
    records: usize,
    /// To be handed on, from `at` on.
    out: Vec<u8>,
    at: usize,
}

/// Where records end.
#[derive(Default)]
struct Ends(Vec<usize>);

impl Visitor for Ends {
    fn field(&mut self, _: Field) {}

    fn record(&mut self, _: usize, next: usize) -> bool {
        self.0.push(next);
        true
    }
}

impl Select {
    pub(in crate::table) fn new(input: Box<dyn Read + Send>, options: &CsvOptions, keep: Vec<bool>) -> Self {
        let (ahead, out) = (Vec::new(), Vec::new());
        Self { input, options: options.clone(), keep, layout: None, ahead, ended: false, records: 0, out, at: 0 }
    }

    /// Reads on, and fills `out` with what stays; none of it may.
    fn fill(&mut self) -> io::Result<()> {
        let read = (&mut self.input).take(STEP as u64).read_to_end(&mut self.ahead)?;
        self.ended = read < STEP;
        self.out.clear();
        self.at = 0;
        let failed = |error: Error| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
        if self.layout.is_none() {
            let rules = Rules::new(Vec::new(), Unlisted::Keep);
            match Layout::find(&self.ahead, self.ended, &rules, &self.options).map_err(failed)? {
                Found::NeedMore => return Ok(()),
                Found::Layout(layout) => {
                    self.out.extend(self.ahead.drain(..layout.start));
                    self.layout = Some(layout);
                }
            }
        }
        let Some(layout) = &self.layout else { return Ok(()) };
        let (unit, mut buffer, mut ends) = (layout.encoding.unit(), Vec::new(), Ends::default());
        let text = layout.encoding.narrow(&self.ahead, &mut buffer);
        let scanned = layout.dialect.scan(text, self.ended, &mut ends);
        let mut start = 0;
        for end in ends.0.iter().map(|end| end * unit) {
            if self.keep.get(self.records).is_some_and(|keep| *keep) {
                self.out.extend_from_slice(&self.ahead[start..end]);
            }
            self.records += 1;
            start = end;
        }
        let consumed = scanned.consumed * unit;
        // What makes the table unreadable is handed on as it is: who masks it will say so, and where.
        let rest = if scanned.fault.is_some() || self.ended { self.ahead.len() } else { consumed };
        let kept_from = if scanned.fault.is_some() { start } else { consumed };
        self.out.extend_from_slice(&self.ahead[kept_from..rest.max(kept_from)]);
        self.ahead.drain(..rest.max(kept_from));
        if self.ahead.len() > self.options.max_record + STEP {
            return Err(failed(too_long(self.options.max_record)));
        }
        Ok(())
    }
}

impl Read for Select {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.out.len() {
            if self.ended && self.ahead.is_empty() {
                return Ok(0);
            }
            if self.ended {
                // A header that is none: what is left is handed on.
                self.out = std::mem::take(&mut self.ahead);
                self.at = 0;
                continue;
            }
            self.fill()?;
        }
        let n = buffer.len().min(self.out.len() - self.at);
        buffer[..n].copy_from_slice(&self.out[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(csv: &[u8], keep: &[bool], options: &CsvOptions) -> Vec<u8> {
        let mut out = Vec::new();
        Select::new(Box::new(io::Cursor::new(csv.to_vec())), options, keep.to_vec()).read_to_end(&mut out).unwrap();
        out
    }

    #[test]
    fn chosen_records_stand_as_they_stood() {
        let options = CsvOptions::default();
        assert_eq!(select(b"a,b\r\n1,2\r\n\r\n\"3\n\",4\r\n5,6", &[true, false, true], &options), b"a,b\r\n1,2\r\n5,6");
        assert_eq!(select(b"a,b\n1,2\n\"3\n\",4\n", &[false, true], &options), b"a,b\n\"3\n\",4\n");
        assert_eq!(select(b"a,b\n1,2\n", &[false], &options), b"a,b\n");
        assert_eq!(
            select(b"x\na;b\n1;2\n3;4\n", &[false, true], &CsvOptions { skip_lines: 1, ..options.clone() }),
            b"x\na;b\n3;4\n"
        );
        assert_eq!(select(b"1;2\n3;4\n", &[false, true], &CsvOptions { no_header: true, ..options.clone() }), b"3;4\n");
        let wide: Vec<u8> = [0xff, 0xfe].into_iter().chain("a,b\né,1\nx,2\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
        let want: Vec<u8> = [0xff, 0xfe].into_iter().chain("a,b\nx,2\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
        assert_eq!(select(&wide, &[false, true], &options), want);
    }

    #[test]
    fn records_across_steps_are_whole() {
        let long = "x".repeat(STEP / 3);
        let csv = "a,b\n".to_owned() + &(0..20).map(|i| format!("{i},\"{long}\n\"\n")).collect::<String>();
        let keep: Vec<bool> = (0..20).map(|i| i % 3 == 0).collect();
        let want =
            "a,b\n".to_owned() + &(0..20).filter(|i| i % 3 == 0).map(|i| format!("{i},\"{long}\n\"\n")).collect::<String>();
        assert_eq!(select(csv.as_bytes(), &keep, &CsvOptions::default()), want.as_bytes());
    }
}
