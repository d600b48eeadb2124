//! The leak check: does anything that was masked, or any other identifier, still stand in what is to be sent?

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

use twox_hash::XxHash64;

use super::detect::{self, identifiers};
use super::identify::{self, Kind};
use super::memo::Memo;
use super::originals::{Looking, Originals};
use crate::table::rows::Rows;

/// Where something was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The names of the columns.
    Header,
    /// What a file says beside its table.
    Metadata,
    /// A column, as it can be named without saying more than is known.
    Column(String),
}

/// What was found in a column, in the header or in metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where.
    pub place: Place,
    /// [`ORIGINAL`], or the kind of an identifier.
    pub what: &'static str,
    /// Cells that hold it.
    pub cells: u64,
    /// The first record that does, from 1, the header included.
    pub first: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, what, cells, first } = self;
        let cells = if *cells == 1 { "1 cell".into() } else { format!("{cells} cells") };
        match place {
            Place::Header => write!(f, "header: {what} in {cells}"),
            Place::Metadata => write!(f, "metadata: {what} in {}", cells.replace("cell", "entry").replace("entrys", "entries")),
            Place::Column(column) => write!(f, "column {column:?}: {what} in {cells}, first in record {first}"),
        }
    }
}

/// How an original is called in a [`Finding`].
pub const ORIGINAL: &str = "original of a masked column";
/// Cells of a column that have to be alike, if a number alone proves nothing: one in so many.
const COMPANY: u64 = 2;
/// The chance that all of a column's numbers are of a kind, and yet none was meant so, below which they are believed.
const BELIEVED: f64 = 1e-4;

/// What is looked for, and where not.
pub struct Search<'o> {
    originals: &'o Originals,
    /// Makes hashes that nobody can make again.
    seed: u64,
    /// For each column whether it holds pseudonyms, and nothing to be looked for.
    masked: Vec<bool>,
    /// Whether identifiers count that were not masked.
    identifiers: bool,
}

/// What some rows hold, or all of them so far.
#[derive(Default)]
pub struct Tallies(Vec<Column>);

#[derive(Default)]
struct Column {
    cells: u64,
    /// Cells that hold an original, and the row of the first.
    originals: (u64, u64),
    kinds: BTreeMap<Kind, Tally>,
}

/// What one cell holds.
#[derive(Clone, Copy, Default)]
struct Seen {
    original: bool,
    /// A bit for each kind that it is, or holds.
    whole: u64,
    within: u64,
}

#[derive(Clone, Copy, Default)]
struct Tally {
    /// Cells that are such an identifier and nothing else.
    whole: u64,
    within: u64,
    first: u64,
}

impl Column {
    fn note(&mut self, seen: Seen, row: u64) {
        self.cells += 1;
        if seen.original {
            let (cells, first) = &mut self.originals;
            *first = if *cells == 0 { row } else { *first };
            *cells += 1;
        }
        let mut kinds = seen.whole | seen.within;
        while kinds != 0 {
            let bit = kinds.trailing_zeros();
            kinds &= kinds - 1;
            let whole = seen.whole >> bit & 1;
            let one = Tally { whole, within: seen.within >> bit & 1 & !whole, first: row };
            self.kinds.entry(Kind::ALL[bit as usize]).or_default().add(one, 0);
        }
    }
}

impl Tally {
    fn add(&mut self, other: Self, offset: u64) {
        if self.whole + self.within == 0 {
            self.first = other.first + offset;
        }
        self.whole += other.whole;
        self.within += other.within;
    }
}

impl<'o> Search<'o> {
    /// Looks for originals and identifiers in columns that are not `masked`.
    pub fn new(originals: &'o Originals, masked: Vec<bool>) -> Self {
        Self { originals, seed: RandomState::new().hash_one(0), masked, identifiers: true }
    }

    /// The same for originals alone, whatever else there is.
    #[must_use]
    pub fn originals_only(mut self) -> Self {
        self.identifiers = false;
        self
    }

    /// Whether a text holds an original.
    pub fn finds_original(&self, text: &str) -> bool {
        self.originals.looking().count(text) > 0
    }

    /// Looks through some rows, which are counted from 0.
    pub fn rows(&self, rows: &Rows<'_>) -> Tallies {
        let mut tallies = Tallies::default();
        let mut looking = self.originals.looking();
        let mut memos: Vec<Memo<Seen>> = Vec::new();
        for (row, cells) in (0..).zip(rows.iter()) {
            for cell in cells {
                let column = cell.column as usize;
                if self.masked.get(column).is_some_and(|masked| *masked) {
                    continue;
                }
                if memos.len() <= column {
                    memos.resize_with(column + 1, Memo::default);
                }
                let hash = XxHash64::oneshot(self.seed, cell.text.as_bytes());
                let seen = memos[column].look(hash, || self.cell(cell.text, &mut looking));
                tallies.column(column).note(seen, row);
            }
        }
        tallies
    }

    fn cell(&self, text: &str, looking: &mut Looking<'_>) -> Seen {
        let mut seen = Seen { original: looking.count(text) > 0, ..Seen::default() };
        if !self.identifiers {
            return seen;
        }
        identifiers(text, |kind, whole| *(if whole { &mut seen.whole } else { &mut seen.within }) |= 1 << kind as u64);
        // Telephone numbers and mailboxes are known above, in sentences, too.
        identify::kinds(text, |kind| {
            if kind.is_direct() && !detect::finds(kind) {
                seen.whole |= 1 << kind as u64;
            }
        });
        seen
    }

    /// What was found in a table with columns of these names, also in the names and in keys and values of its metadata.
    pub fn finish(&self, tallies: Tallies, names: &[String], metadata: &[(String, String)]) -> Vec<Finding> {
        let mut findings = self.texts(&Place::Header, names.iter());
        findings.extend(self.texts(&Place::Metadata, metadata.iter().flat_map(|(key, value)| [key, value])));
        let mut looking = self.originals.looking();
        let beyond = || "beyond the header".to_owned();
        for (i, column) in tallies.0.into_iter().enumerate() {
            let name = names.get(i).cloned().unwrap_or_else(beyond);
            // A name that is an original itself, as in a file without a header, is not repeated.
            let name = Place::Column(if looking.count(&name) > 0 { format!("#{}", i + 1) } else { name });
            let (cells, first) = column.originals;
            if cells > 0 {
                findings.push(Finding { place: name.clone(), what: ORIGINAL, cells, first });
            }
            for (kind, tally) in &column.kinds {
                let cells = tally.whole + tally.within;
                if is_meant(*kind, *tally, column.cells) {
                    findings.push(Finding { place: name.clone(), what: kind.name(), cells, first: tally.first });
                }
            }
        }
        findings
    }

    /// What the names of the columns hold, those of masked ones, too, or what else goes with a table.
    fn texts<'t>(&self, place: &Place, texts: impl Iterator<Item = &'t String>) -> Vec<Finding> {
        let mut looking = self.originals.looking();
        let mut found: BTreeMap<&'static str, u64> = BTreeMap::new();
        for text in texts {
            if looking.count(text) > 0 {
                *found.entry(ORIGINAL).or_default() += 1;
            }
            if self.identifiers {
                identifiers(text, |kind, _| *found.entry(kind.name()).or_default() += 1);
            }
        }
        found.into_iter().map(|(what, cells)| Finding { place: place.clone(), what, cells, first: 1 }).collect()
    }
}

/// Whether cells are identifiers, rather than numbers that happen to have their form.
fn is_meant(kind: Kind, tally: Tally, cells: u64) -> bool {
    let is_certain = kind.chance() <= 0.0 || matches!(kind, Kind::Iban) || tally.within > 0;
    let has_company = tally.whole * COMPANY >= cells;
    // What is told by its form alone, such as a telephone number, needs no more than company.
    let by_form = matches!(kind, Kind::Phone | Kind::Card | Kind::FrNir);
    let is_believed = kind.chance().powf(tally.whole as f64) < BELIEVED;
    is_certain || has_company && (by_form || is_believed && tally.whole * 10 >= cells * 9)
}

impl Tallies {
    fn column(&mut self, column: usize) -> &mut Column {
        if self.0.len() <= column {
            self.0.resize_with(column + 1, Column::default);
        }
        &mut self.0[column]
    }

    /// Adds what later rows hold, of which the first is the record `first`.
    pub fn add(&mut self, other: Self, first: u64) {
        for (i, other) in other.0.into_iter().enumerate() {
            let column = self.column(i);
            column.cells += other.cells;
            if column.originals.0 == 0 && other.originals.0 > 0 {
                column.originals.1 = other.originals.1 + first;
            }
            column.originals.0 += other.originals.0;
            for (kind, tally) in other.kinds {
                column.kinds.entry(kind).or_default().add(tally, first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::csv::CsvOptions;
    use crate::table::rows::{Looking as Look, look};
    use crate::table::{Format, Input};

    fn scan(csv: &str, masked: &[bool]) -> Vec<String> {
        let originals = Originals::default();
        originals.see(&["Zoé Lefèvre".as_bytes(), b"zoe@example.fr"]);
        let search = Search::new(&originals, masked.to_vec());
        let mut tallies = Tallies::default();
        let options = CsvOptions { delimiter: Some(b','), ragged: crate::table::csv::Ragged::Keep, ..CsvOptions::default() };
        let looking = Look { options: &options, workers: 1, progress: &|_| {} };
        let input = Input::Stream(Box::new(std::io::Cursor::new(csv.to_owned())));
        let columns = look(
            input,
            Format::Csv,
            &looking,
            |_| Ok(()),
            |rows| search.rows(rows),
            |found, first, _| {
                tallies.add(found, first);
                Ok(())
            },
        );
        search.finish(tallies, &columns.unwrap().names(), &[]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn findings_have_a_place_and_no_value() {
        let masked = [true, false, false];
        let found = scan(
            "name,notes,number\n3bf2a566b1b9ef4e,,0612345678\n3bf2a566b1b9ef4e,Mme LEFEVRE Zoe,12\n\
             3bf2a566b1b9ef4e,\"lefevre zoe, zoe@example.fr\",13\n",
            &masked,
        );
        assert_eq!(
            found,
            [
                "column \"notes\": original of a masked column in 2 cells, first in record 3",
                "column \"notes\": e-mail address in 1 cell, first in record 4",
            ]
        );
        let found = scan("name,notes,number\nx,ok,0612345678\ny,,0712345678\n", &masked);
        assert_eq!(found, ["column \"number\": telephone number in 2 cells, first in record 2"]);
    }

    #[test]
    fn a_header_that_is_data_and_fields_beyond_it_are_looked_through() {
        let found = scan("jean@exemple.fr,Zoé Lefèvre,x\n1,Zoé Lefèvre,2,zoe lefevre\n", &[true, false, true]);
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

    #[test]
    fn national_numbers_need_a_whole_column() {
        let column = |values: &[&str]| format!("n\n{}\n", values.join("\n"));
        assert_eq!(
            scan(&column(&["80010972207", "91061949632", "80010972207"]), &[false]),
            ["column \"n\": Polish PESEL number in 3 cells, first in record 2"]
        );
        assert!(scan(&column(&["80010972207", "12345678901", "98765432109"]), &[false]).is_empty());
        assert_eq!(
            scan(&column(&["https://zoe:x@example.com/", "y"]), &[false])[1],
            "column \"n\": URL with a user in 1 cell, first in record 2"
        );
    }
}
