//! The leak check: does anything that was masked, or any other identifier, still stand in what is to be sent?

use std::collections::BTreeMap;
use std::fmt;

use super::detect::{Kind, identifiers};
use super::originals::{Originals, Search};

/// What was found in a column, or in the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The column as it can be named without saying more than is known; none for the header.
    pub column: Option<String>,
    /// [`ORIGINAL`], or the kind of an identifier.
    pub what: &'static str,
    /// Cells that hold it.
    pub cells: u64,
    /// The first record that does, from 1, the header included.
    pub first: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { column, what, cells, first } = self;
        let cells = if *cells == 1 { "1 cell".into() } else { format!("{cells} cells") };
        match column {
            None => write!(f, "header: {what} in {cells}"),
            Some(column) => write!(f, "column {column:?}: {what} in {cells}, first in record {first}"),
        }
    }
}

/// How an original is called in a [`Finding`].
pub const ORIGINAL: &str = "original of a masked column";
/// Cells of a column that have to be alike, if a number alone proves nothing: one in so many.
const COMPANY: u64 = 2;
/// What fields beyond the header are called.
const BEYOND: &str = "beyond the header";

/// Looks through the cells of a table.
pub struct Scan<'a> {
    originals: &'a Originals,
    search: Search,
    columns: Vec<Column>,
    /// Whether identifiers count that were not masked.
    identifiers: bool,
}

struct Column {
    name: String,
    /// Whether it holds pseudonyms, and nothing to be looked for.
    masked: bool,
    cells: u64,
    originals: (u64, u64),
    kinds: BTreeMap<Kind, Tally>,
}

#[derive(Default)]
struct Tally {
    /// Cells that are such an identifier and nothing else.
    whole: u64,
    within: u64,
    first: u64,
}

impl<'a> Scan<'a> {
    /// A scan of a table with these columns, of which some are masked.
    pub fn new(originals: &'a Originals, columns: impl IntoIterator<Item = (String, bool)>) -> Self {
        let column = |(name, masked)| Column { name, masked, cells: 0, originals: (0, 0), kinds: BTreeMap::new() };
        // What lies beyond the header, in a record of more fields, belongs to no column that is masked.
        let beyond = (BEYOND.to_owned(), false);
        let columns = columns.into_iter().chain([beyond]).map(column).collect();
        Self { originals, search: Search::default(), columns, identifiers: true }
    }

    /// The same for originals alone, whatever else there is.
    #[must_use]
    pub fn originals_only(mut self) -> Self {
        self.identifiers = false;
        self
    }

    /// Looks at a cell of a record, counted from 1.
    pub fn cell(&mut self, column: usize, record: u64, text: &str) {
        let last = self.columns.len().saturating_sub(1);
        let Some(column) = self.columns.get_mut(column.min(last)).filter(|c| !c.masked) else { return };
        if text.is_empty() {
            return;
        }
        column.cells += 1;
        if self.originals.count(text, &mut self.search) > 0 {
            let (cells, first) = &mut column.originals;
            *cells += 1;
            *first = if *cells == 1 { record } else { *first };
        }
        if !self.identifiers {
            return;
        }
        identifiers(text, |kind, whole| {
            let tally = column.kinds.entry(kind).or_default();
            if tally.whole + tally.within == 0 {
                tally.first = record;
            }
            *(if whole { &mut tally.whole } else { &mut tally.within }) += 1;
        });
    }

    /// What was found, also in the names of the columns.
    pub fn finish(mut self) -> Vec<Finding> {
        let mut findings = self.header();
        for (i, column) in self.columns.into_iter().enumerate() {
            // A name that is an original itself, as in a file without a header, is not repeated.
            let is_telling = self.originals.count(&column.name, &mut self.search) > 0;
            let name = Some(if is_telling { format!("#{}", i + 1) } else { column.name });
            let (cells, first) = column.originals;
            if cells > 0 {
                findings.push(Finding { column: name.clone(), what: ORIGINAL, cells, first });
            }
            for (kind, tally) in column.kinds {
                let by_chance = kind.needs_company() && tally.within == 0 && tally.whole * COMPANY < column.cells;
                if !by_chance {
                    let cells = tally.whole + tally.within;
                    findings.push(Finding { column: name.clone(), what: kind.name(), cells, first: tally.first });
                }
            }
        }
        findings
    }

    /// What the names of the columns hold, those of masked ones, too: names are sent.
    fn header(&mut self) -> Vec<Finding> {
        let mut found: BTreeMap<&'static str, u64> = BTreeMap::new();
        for column in &self.columns {
            if self.originals.count(&column.name, &mut self.search) > 0 {
                *found.entry(ORIGINAL).or_default() += 1;
            }
            if self.identifiers {
                identifiers(&column.name, |kind, _| *found.entry(kind.name()).or_default() += 1);
            }
        }
        found.into_iter().map(|(what, cells)| Finding { column: None, what, cells, first: 1 }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(rows: &[&[&str]]) -> Vec<(Option<String>, &'static str, u64, u64)> {
        let originals = Originals::default();
        originals.see(&["Zoé Lefèvre".as_bytes(), b"zoe@example.fr"]);
        let names = ["name", "notes", "number"].map(|n| (n.to_owned(), n == "name"));
        let mut scan = Scan::new(&originals, names);
        for (record, row) in rows.iter().enumerate() {
            row.iter().enumerate().for_each(|(i, cell)| scan.cell(i, record as u64 + 2, cell));
        }
        scan.finish().into_iter().map(|f| (f.column, f.what, f.cells, f.first)).collect()
    }

    #[test]
    fn findings_have_a_place_and_no_value() {
        let found = scan(&[
            &["3bf2a566b1b9ef4e", "", "0612345678"],
            &["3bf2a566b1b9ef4e", "Mme LEFEVRE Zoe", "12"],
            &["3bf2a566b1b9ef4e", "lefevre zoe, zoe@example.fr", "13"],
        ]);
        let notes = Some("notes".to_owned());
        assert_eq!(found, [(notes.clone(), ORIGINAL, 2, 3), (notes, "e-mail address", 1, 4)]);
        assert_eq!(
            scan(&[&["x", "ok", "0612345678"], &["y", "", "0712345678"]]),
            [(Some("number".into()), "telephone number", 2, 2)]
        );
    }

    #[test]
    fn a_header_that_is_data_and_fields_beyond_it_are_looked_through() {
        let originals = Originals::default();
        originals.see(&["Zoé Lefèvre".as_bytes()]);
        let mut scan =
            Scan::new(&originals, [("jean@exemple.fr".into(), true), ("Zoé Lefèvre".into(), false), ("x".into(), true)]);
        scan.cell(1, 2, "Zoé Lefèvre");
        scan.cell(3, 2, "zoe lefevre");
        let found: Vec<String> = scan.finish().iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "header: e-mail address in 1 cell",
                "header: original of a masked column in 1 cell",
                "column \"#2\": original of a masked column in 1 cell, first in record 2",
                "column \"beyond the header\": original of a masked column in 1 cell, first in record 2",
            ]
        );
    }
}
