//! What must hold before a file leaves: it is whole, and no original of a masked column or other identifier stands in it.
//!
//! [`originals`] knows what was masked, [`identify`] what identifies persons, `detect` where it stands within a text, [`leaks`] looks for both, [`inspect`] says what a table is; `fold` makes alike what looks alike.

mod detect;
mod fold;
pub mod identify;
pub mod inspect;
pub mod leaks;
mod memo;
pub mod originals;

use std::fs::File;
use std::io::{Read, Seek};

use leaks::{Finding, Place, Search, Tallies};
use originals::{Facts, Originals};
use sha2::{Digest, Sha256};

use crate::error::{Error, ErrorKind, Result};
use crate::mask::hex;
use crate::policy::{Candidate, Columns, Missing, quote_path};
use crate::report::{GateFacts, RiskFacts};
use crate::table::csv::{CsvOptions, Ragged};
use crate::table::rows::{self, BEYOND, Looking, Rows};
use crate::table::{Format, Input, TextLayout};

/// A finished file that may leave: only [`Cleared::check`] makes one, and nothing else can be uploaded.
///
/// It holds the open file, not its name, so that what is sent is what was checked.
#[derive(Debug)]
pub struct Cleared {
    file: File,
    bytes: u64,
    sha256: String,
    format: Format,
    checked: Checked,
}

/// A masked table on its way out.
pub struct Outgoing<'a> {
    /// What it is written in.
    pub format: Format,
    /// How a CSV is written.
    pub layout: TextLayout,
    /// Bytes that the other side takes.
    pub max_bytes: u64,
    /// Numbers, from 1, and names of the masked columns. In a CSV another column can bear the same name.
    pub masked: Vec<(usize, String)>,
    /// What was masked.
    pub originals: &'a Originals,
    /// Columns in which findings do not matter.
    pub accepted: Option<&'a Columns>,
    /// Threads that look.
    pub workers: usize,
    /// Measures how well the rows hide among others, where a policy has thresholds.
    pub risk: Option<&'a Measure<'a>>,
}

/// Tells of a finished file how well its rows hide among others, with the thresholds that must hold.
pub type Measure<'m> = dyn Fn(&File) -> Result<RiskFacts> + 'm;

/// What the leak check came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checked {
    /// Findings that were accepted.
    pub accepted: Vec<Finding>,
    /// What was looked for.
    pub originals: Facts,
    /// How well the rows hide among others, if it was asked for.
    pub risk: Option<RiskFacts>,
}

impl Checked {
    /// The same for the manifest.
    pub fn facts(&self) -> GateFacts {
        let Facts { looked_for, too_short, placeholders } = self.originals;
        let accepted = self.accepted.iter().map(ToString::to_string).collect();
        GateFacts { originals: looked_for, too_short, placeholders, accepted, risk: self.risk.clone() }
    }
}

impl Cleared {
    /// Looks at a finished file, which is read twice.
    ///
    /// # Errors
    /// An original of a masked column, or another identifier, in a column that is not masked, and not accepted; an empty file, one that is
    /// too large for the other side, or one that cannot be read.
    pub fn check(mut file: File, outgoing: &Outgoing<'_>) -> Result<Self> {
        let failed = |e| Error::io("cannot read the masked file", e);
        file.rewind().map_err(failed)?;
        let (bytes, sha256) = fingerprint(&mut file).map_err(failed)?;
        let refuse = |why: String| Err(Error::new(ErrorKind::Gate(why)));
        if bytes == 0 {
            return refuse("the masked file is empty, so there is nothing to ask about".into());
        }
        let max = outgoing.max_bytes;
        if bytes > max {
            return refuse(format!("the masked file has {bytes} bytes, more than the {max} that can be lent"));
        }
        file.rewind().map_err(failed)?;
        let mut checked = outgoing.check(&file)?;
        if let Some(measure) = outgoing.risk {
            let risk = measure(&file)?;
            let broken = broken(&risk);
            if !broken.is_empty() {
                let error = Error::new(ErrorKind::Gate(format!("nothing was sent: {}", broken.join("; "))));
                return Err(error
                    .hint("fewer columns (--keep), fewer digits (truncate, year, bucket), or another threshold in the policy"));
            }
            checked.risk = Some(risk);
        }
        Ok(Self { file, bytes, sha256, format: outgoing.format, checked })
    }

    /// What the leak check came to.
    pub fn checked(&self) -> &Checked {
        &self.checked
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its SHA-256 in hex digits.
    pub fn sha256(&self) -> String {
        self.sha256.clone()
    }

    /// The ending of its name over there.
    pub fn ending(&self) -> &'static str {
        match self.format {
            Format::Csv => "csv",
            // What reads tables takes a file by its ending, and knows few of them.
            Format::Ndjson => "json",
            Format::Parquet => "parquet",
            Format::Ipc => "arrow",
        }
    }

    /// Its media type (IANA, where there is one).
    pub fn media_type(&self) -> &'static str {
        match self.format {
            Format::Csv => "text/csv",
            Format::Ndjson => "application/json",
            Format::Parquet => "application/vnd.apache.parquet",
            Format::Ipc => "application/vnd.apache.arrow.file",
        }
    }

    /// The file, to be read from its start.
    ///
    /// # Errors
    /// Those of the system.
    pub fn reader(&self) -> Result<File> {
        let failed = |e| Error::io("cannot read the masked file", e);
        let mut file = self.file.try_clone().map_err(failed)?;
        file.rewind().map_err(failed)?;
        Ok(file)
    }
}

impl Outgoing<'_> {
    fn check(&self, file: &File) -> Result<Checked> {
        let mut tallies = Tallies::default();
        let options = CsvOptions {
            delimiter: Some(self.layout.delimiter),
            encoding: self.layout.encoding,
            ragged: Ragged::Keep,
            ..CsvOptions::default()
        };
        let looking = Looking { options: &options, workers: self.workers, progress: &|_| {} };
        // In other formats names are unique, and numbers as they come.
        let numbers: Vec<usize> = self.masked.iter().map(|(n, _)| *n).filter(|_| self.format == Format::Csv).collect();
        let masked = (1..=numbers.iter().copied().max().unwrap_or(0)).map(|n| numbers.contains(&n)).collect();
        let search = Search::new(self.originals, masked);
        let input = Input::File(file.try_clone().map_err(|e| Error::io("cannot read the masked file", e))?);
        let work = |rows: &Rows<'_>| search.rows(rows);
        let columns = rows::look(
            input,
            self.format,
            &looking,
            |_| Ok(()),
            work,
            |found, first, _| {
                tallies.add(found, first);
                Ok(())
            },
        )?;
        let names: Vec<String> = columns.names().into_iter().filter(|n| n != BEYOND).collect();
        let mut findings = search.finish(tallies, &names, &columns.metadata);
        if self.format != Format::Csv {
            findings.retain(|f| !matches!(&f.place, Place::Column(c) if self.masked.iter().any(|(_, name)| name == c || *name == quote_path(std::slice::from_ref(c)))));
        }
        let accepted = self.accepted(&names)?;
        let is_accepted = |f: &Finding| matches!(&f.place, Place::Column(c) if accepted.contains(c));
        let (accepted, leaks): (Vec<_>, Vec<_>) = findings.into_iter().partition(is_accepted);
        if leaks.is_empty() {
            return Ok(Checked { accepted, originals: self.originals.facts(), risk: None });
        }
        let said: Vec<String> = leaks.iter().map(ToString::to_string).collect();
        let why = format!("nothing was sent, as it still holds what identifies persons: {}", said.join("; "));
        let error = Error::new(ErrorKind::Gate(why));
        let mut columns: Vec<String> = leaks
            .into_iter()
            .filter_map(|f| if let Place::Column(c) = f.place { Some(quote_path(&[c])) } else { None })
            .collect();
        columns.dedup();
        if columns.is_empty() {
            return Err(error);
        }
        let columns = columns.join(",");
        Err(error
            .hint(format!("-c …,{columns} masks these columns, too"))
            .hint(format!("--accept-leaks {columns} sends them as they are")))
    }

    /// Names of the columns in which findings do not matter.
    fn accepted(&self, names: &[String]) -> Result<Vec<String>> {
        let Some(columns) = self.accepted else { return Ok(Vec::new()) };
        let candidates: Vec<Candidate> =
            names.iter().enumerate().map(|(i, n)| Candidate { path: vec![n.clone()], number: i + 1 }).collect();
        let found = columns.resolve(&candidates, Missing::Error)?.found;
        Ok(found.into_iter().map(|i| names[i].clone()).collect())
    }
}

/// Which thresholds do not hold, and by how much.
pub fn broken(risk: &RiskFacts) -> Vec<String> {
    let RiskFacts { k_min, unique_rows, rows, l_min, thresholds, .. } = risk;
    let share = *unique_rows as f64 / (*rows).max(1) as f64;
    let quasi = risk.quasi.join(", ");
    let mut broken = Vec::new();
    if let Some(min) = thresholds.min_k.filter(|min| k_min < min && *rows > 0) {
        broken.push(format!("the least group of rows that are alike in {quasi} has {k_min}, and must have {min}"));
    }
    if let Some(max) = thresholds.max_unique_share.filter(|max| share > *max) {
        broken.push(format!("{unique_rows} of {rows} rows are like no other in {quasi}: {share:.4}, and at most {max} may be"));
    }
    if let (Some(min), Some(l)) = (thresholds.min_l, l_min)
        && *l < min
    {
        let sensitive = risk.sensitive.as_deref().unwrap_or_default();
        broken.push(format!("a group has {l} different values of {sensitive}, and must have {min}"));
    }
    broken
}

/// Length in bytes and SHA-256 in hex digits of all that can be read.
///
/// # Errors
/// Those of the reader.
pub fn fingerprint(input: &mut impl Read) -> std::io::Result<(u64, String)> {
    let (mut hash, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 16]);
    loop {
        match input.read(&mut buffer)? {
            0 => break,
            n => {
                hash.update(&buffer[..n]);
                bytes += n as u64;
            }
        }
    }
    Ok((bytes, hex(&hash.finalize())))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn outgoing(originals: &Originals) -> Outgoing<'_> {
        Outgoing {
            format: Format::Csv,
            layout: TextLayout::default(),
            max_bytes: 1 << 20,
            masked: vec![(1, "name".into())],
            originals,
            accepted: None,
            workers: 2,
            risk: None,
        }
    }

    #[test]
    fn a_file_is_known_by_its_hash_and_an_empty_one_stays() {
        let none = Originals::default();
        let mut file = tempfile::tempfile().unwrap();
        let refused = Cleared::check(file.try_clone().unwrap(), &outgoing(&none)).unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Gate(_)));
        file.write_all(b"abc").unwrap();
        let cleared = Cleared::check(file, &outgoing(&none)).unwrap();
        // FIPS 180-4, example "abc".
        assert_eq!(cleared.sha256(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        for _ in 0..2 {
            let mut text = String::new();
            cleared.reader().unwrap().read_to_string(&mut text).unwrap();
            assert_eq!((text.as_str(), cleared.bytes()), ("abc", 3));
        }
    }

    #[test]
    fn a_file_with_an_original_in_it_stays_unless_its_column_is_accepted() {
        let originals = Originals::default();
        originals.see(&["Zoé Lefèvre".as_bytes()]);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"name,note\n3bf2a566b1b9ef4e,Mme Zoe LEFEVRE\n").unwrap();
        let refused = Cleared::check(file.try_clone().unwrap(), &outgoing(&originals)).unwrap_err();
        let text = refused.to_string();
        assert!(
            matches!(refused.kind(), ErrorKind::Gate(_))
                && text.contains("column \"note\": original of a masked column in 1 cell, first in record 2"),
            "{text}"
        );
        assert!(!text.contains("LEFEVRE"), "{text}");
        let columns = Columns::parse("note").unwrap();
        let cleared =
            Cleared::check(file.try_clone().unwrap(), &Outgoing { accepted: Some(&columns), ..outgoing(&originals) }).unwrap();
        assert_eq!(cleared.checked().accepted.len(), 1);
        let columns = Columns::parse("nots").unwrap();
        assert!(Cleared::check(file, &Outgoing { accepted: Some(&columns), ..outgoing(&originals) }).unwrap_err().is_usage());
    }
}
