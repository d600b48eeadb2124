//! What a table's columns are, and which of them identify persons: one pass, in parallel, without a value in what is told.
//!
//! Here values are counted; `verdict` says what the counts mean, `suggest` writes the policy that follows from it.

mod suggest;
mod verdict;

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, RandomState};

use cardinality_estimator::CardinalityEstimator;
use serde::Serialize;
pub use suggest::policy;
use twox_hash::XxHash64;
pub use verdict::{Class, Verdict};

use super::detect::identifiers;
use super::identify::{self, Kind, phone};
use super::memo::Memo;
use super::originals::Same;
use crate::table::rows::{self, Rows};

/// Different values whose number is kept, to find the most frequent one.
const COUNTERS: usize = 64;
/// Cells of a column and batch of which more is looked at than can be for all.
const SAMPLE: usize = 64;
/// Characters of a shape.
const SHAPE: usize = 40;
/// Different shapes that are kept of a column.
const SHAPES: usize = 16;
/// The first year that is counted as such.
const FIRST_YEAR: u32 = 1850;
/// Years that are counted.
const YEARS: usize = 300;
/// Countries in which telephone numbers are tried.
const COUNTRIES: [&str; 6] = ["FR", "DE", "ES", "IT", "GB", "US"];

/// Counts the values of a table's columns.
pub struct Inspection {
    /// Makes hashes that nobody can make again.
    seed: u64,
}

/// What some rows hold, or all of them so far.
#[derive(Default)]
pub struct Counts {
    rows: u64,
    columns: Vec<Column>,
}

/// What the values of a column come to.
struct Column {
    cells: u64,
    /// Cells that were looked at closely: identifiers are counted among these.
    looked: u64,
    /// Cells of the row at hand, and rows that have one.
    last_row: Option<u64>,
    rows: u64,
    distinct: CardinalityEstimator<u64>,
    frequent: Frequent,
    kinds: Tally,
    /// Cells that hold an identifier within other text.
    within: Tally,
    integers: u64,
    decimals: u64,
    booleans: u64,
    /// Characters of all cells, and of the longest.
    length: u64,
    longest: usize,
    years: Vec<u32>,
    sampled: u64,
    shapes: HashMap<String, u64>,
    placeholders: u64,
    words: u64,
    phones: [u64; COUNTRIES.len()],
    glance: Glance,
}

/// What one value is.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// Whether it was looked at closely, rather than at a glance.
    close: bool,
    /// A bit for each kind that it is, or holds.
    whole: u64,
    within: u64,
    number: Option<Number>,
    boolean: bool,
    /// If it is a date.
    year: Option<u32>,
}

/// What was seen of a column's values, and whether more has to be.
#[derive(Default)]
struct Glance {
    memo: Memo<Seen>,
    tries: u64,
    /// How many of the tries were of a kind that the first was of.
    alike: u64,
    first: u64,
    turn: u64,
}

/// The most frequent values by their hashes (Misra and Gries, 1982): a number is too low by the share `1 / COUNTERS` at most.
#[derive(Default)]
struct Frequent(HashMap<u64, u64, BuildHasherDefault<Same>>);

/// A number for each kind.
#[derive(Clone, Copy)]
struct Tally([u64; Kind::ALL.len()]);

/// A column as it is told.
#[derive(Clone, Debug, Serialize)]
pub struct Profile {
    /// Its name, as a column list has it.
    pub name: String,
    /// `integer`, `decimal`, `boolean`, `date`, `text`, `empty`; or the file's own type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Cells that hold something.
    pub values: u64,
    /// Rows in which it has no value.
    pub missing: u64,
    /// Different values: an estimate, within about 2 %.
    pub distinct: u64,
    /// The share of the most frequent value, 0 to 1; an estimate from below where there are more than 64 values.
    pub most_frequent: f64,
    /// The share of values that stand for none, among those that were looked at.
    pub placeholders: f64,
    /// The most frequent shapes: letters as `A` and `a`, digits as `9`.
    pub shapes: Vec<String>,
    /// What it means for the persons in the table.
    pub verdict: Verdict,
}

impl Default for Inspection {
    fn default() -> Self {
        Self { seed: RandomState::new().hash_one(0) }
    }
}

impl Inspection {
    /// Counts the values of some rows.
    pub fn rows(&self, rows: &Rows<'_>) -> Counts {
        let mut counts = Counts { rows: rows.len() as u64, columns: Vec::new() };
        for (row, cells) in (0..).zip(rows.iter()) {
            for cell in cells {
                let column = counts.column(cell.column as usize);
                column.rows += u64::from(column.last_row.replace(row) != Some(row));
                column.add(cell.text, XxHash64::oneshot(self.seed, cell.text.as_bytes()));
            }
        }
        counts
    }
}

impl Counts {
    fn column(&mut self, column: usize) -> &mut Column {
        if self.columns.len() <= column {
            self.columns.resize_with(column + 1, Column::default);
        }
        &mut self.columns[column]
    }

    /// Adds what later rows hold.
    pub fn add(&mut self, other: Self) {
        self.rows += other.rows;
        for (i, column) in other.columns.into_iter().enumerate() {
            self.column(i).merge(column);
        }
    }

    /// Rows of the table.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// What the columns of a table are. `this_year` is that of the calendar.
    pub fn profiles(mut self, columns: &rows::Columns, this_year: u32) -> Vec<Profile> {
        let rows = self.rows;
        // A header that holds an identifier is a row of data: no cell of it is shown.
        let is_data = has_identifiers(columns);
        let names = if is_data { vec![String::new(); columns.candidates.len()] } else { columns.names() };
        let beyond = columns.candidates.iter().position(|c| c.path.len() == 1 && c.path[0] == rows::BEYOND);
        let width = names.len();
        (0..width)
            .filter(|i| Some(*i) != beyond || self.columns.get(*i).is_some())
            .collect::<Vec<_>>()
            .into_iter()
            .map(|i| {
                let column = self.column(i);
                let verdict = verdict::of(&names[i], column, this_year);
                Profile {
                    name: if is_data { format!("#{}", i + 1) } else { columns.entry(i) },
                    kind: columns.types.get(i).cloned().flatten().unwrap_or_else(|| column.kind().into()),
                    values: column.cells,
                    missing: rows - column.rows,
                    distinct: column.distinct(),
                    most_frequent: column.most_frequent(),
                    placeholders: share(column.placeholders, column.sampled),
                    shapes: column.shapes(),
                    verdict,
                }
            })
            .collect()
    }
}

/// Whether the names of the columns hold identifiers of persons: then they are none, and the file has no header.
pub fn has_identifiers(columns: &rows::Columns) -> bool {
    let is_one = |name: &String| {
        let mut any = false;
        identifiers(name, |_, _| any = true);
        identify::kinds(name, |kind| any |= kind.is_direct());
        any
    };
    columns.names().iter().any(is_one)
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Default for Column {
    fn default() -> Self {
        Self {
            cells: 0,
            looked: 0,
            last_row: None,
            rows: 0,
            distinct: CardinalityEstimator::new(),
            frequent: Frequent::default(),
            kinds: Tally::default(),
            within: Tally::default(),
            integers: 0,
            decimals: 0,
            booleans: 0,
            length: 0,
            longest: 0,
            years: Vec::new(),
            sampled: 0,
            shapes: HashMap::new(),
            placeholders: 0,
            words: 0,
            phones: [0; COUNTRIES.len()],
            glance: Glance::default(),
        }
    }
}

impl Seen {
    /// What is seen at a glance.
    fn glance(text: &str) -> Self {
        Self { number: number(text), boolean: is_boolean(text), ..Self::default() }
    }

    fn of(text: &str) -> Self {
        let mut seen = Self { close: true, ..Self::glance(text) };
        identify::kinds(text, |kind| seen.whole |= 1 << kind as u64);
        if seen.whole >> Kind::Date as u64 & 1 == 1 {
            seen.year = identify::date(text).map(|(year, ..)| year);
        }
        if seen.number.is_none() && seen.whole == 0 {
            identifiers(text, |kind, whole| *(if whole { &mut seen.whole } else { &mut seen.within }) |= 1 << kind as u64);
        }
        seen
    }
}

impl Glance {
    /// Of values that are all alike, or cannot hold an identifier of many digits, one in so many is looked at closely.
    const TURNS: u64 = 4;

    fn look(&mut self, text: &str, hash: u64) -> Seen {
        if self.memo.is_off() {
            self.turn += 1;
            let is_settled = self.first != 0 && self.alike * 100 >= self.tries * 99;
            let skips = !self.turn.is_multiple_of(Self::TURNS) && (is_settled || is_dull(text));
            return if skips { Seen::glance(text) } else { Seen::of(text) };
        }
        let seen = self.memo.look(hash, || Seen::of(text));
        self.tries += 1;
        if self.tries == 1 {
            self.first = seen.whole;
        }
        self.alike += u64::from(seen.whole & self.first != 0);
        seen
    }
}

/// Whether a text holds neither a mailbox nor an address nor a number of many digits.
fn is_dull(text: &str) -> bool {
    const MANY: usize = 8;
    let mut digits = 0;
    for b in text.bytes() {
        match b {
            b'@' | b':' => return false,
            b'0'..=b'9' => digits += 1,
            _ => {}
        }
    }
    digits < MANY
}

impl Column {
    fn add(&mut self, text: &str, hash: u64) {
        self.cells += 1;
        self.length += text.len() as u64;
        self.longest = self.longest.max(text.len());
        self.distinct.insert_hash(hash);
        self.frequent.add(hash);
        let seen = self.glance.look(text, hash);
        self.integers += u64::from(seen.number == Some(Number::Integer));
        self.decimals += u64::from(seen.number == Some(Number::Decimal));
        self.booleans += u64::from(seen.boolean);
        self.looked += u64::from(seen.close);
        self.kinds.note(seen.whole);
        self.within.note(seen.within);
        if let Some(year) = seen.year {
            self.year(year);
        }
        if self.sampled < SAMPLE as u64 {
            self.sampled += 1;
            self.placeholders += u64::from(identify::placeholder(text));
            self.words += text.split_whitespace().count() as u64;
            for (country, count) in COUNTRIES.iter().zip(&mut self.phones) {
                *count += u64::from(phone::e164(text, Some(country)).is_some());
            }
            *self.shapes.entry(shape(text)).or_default() += 1;
            if self.shapes.len() > 2 * SHAPES {
                self.cut_shapes();
            }
        }
    }

    fn year(&mut self, year: u32) {
        if self.years.is_empty() {
            self.years = vec![0; YEARS];
        }
        if let Some(count) = year.checked_sub(FIRST_YEAR).and_then(|i| self.years.get_mut(i as usize)) {
            *count = count.saturating_add(1);
        }
    }

    fn merge(&mut self, other: Self) {
        self.cells += other.cells;
        self.looked += other.looked;
        self.rows += other.rows;
        self.distinct.merge(&other.distinct);
        self.frequent.merge(other.frequent);
        for (mine, others) in [(&mut self.kinds, other.kinds), (&mut self.within, other.within)] {
            mine.0.iter_mut().zip(others.0).for_each(|(mine, n)| *mine += n);
        }
        self.integers += other.integers;
        self.decimals += other.decimals;
        self.booleans += other.booleans;
        self.length += other.length;
        self.longest = self.longest.max(other.longest);
        if self.years.is_empty() {
            self.years = other.years;
        } else {
            self.years.iter_mut().zip(other.years).for_each(|(mine, n)| *mine = mine.saturating_add(n));
        }
        self.sampled += other.sampled;
        other.shapes.into_iter().for_each(|(shape, n)| *self.shapes.entry(shape).or_default() += n);
        self.cut_shapes();
        self.placeholders += other.placeholders;
        self.words += other.words;
        self.phones.iter_mut().zip(other.phones).for_each(|(mine, n)| *mine += n);
    }

    fn cut_shapes(&mut self) {
        let mut counts: Vec<u64> = self.shapes.values().copied().collect();
        if counts.len() > SHAPES {
            counts.sort_unstable_by(|a, b| b.cmp(a));
            let least = counts[SHAPES - 1];
            self.shapes.retain(|_, n| *n >= least);
        }
    }

    fn kind(&self) -> &'static str {
        let dates = self.kinds.of(Kind::Date);
        match self.cells {
            0 => "empty",
            n if self.booleans == n => "boolean",
            n if self.integers == n => "integer",
            n if self.integers + self.decimals == n => "decimal",
            _ if dates == self.looked => "date",
            _ => "text",
        }
    }

    fn distinct(&self) -> u64 {
        (self.distinct.estimate() as u64).min(self.cells)
    }

    fn most_frequent(&self) -> f64 {
        share(self.frequent.0.values().copied().max().unwrap_or(0), self.cells)
    }

    /// The most frequent shapes, of those that stand for at least 5 % of the sample.
    fn shapes(&self) -> Vec<String> {
        const TOLD: usize = 3;
        let mut shapes: Vec<(&String, u64)> = self.shapes.iter().map(|(s, n)| (s, *n)).collect();
        shapes.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        shapes.into_iter().filter(|(_, n)| n * 20 >= self.sampled).take(TOLD).map(|(s, _)| s.clone()).collect()
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self([0; Kind::ALL.len()])
    }
}

impl Tally {
    /// Counts a value of these kinds.
    fn note(&mut self, mut kinds: u64) {
        while kinds != 0 {
            self.0[kinds.trailing_zeros() as usize] += 1;
            kinds &= kinds - 1;
        }
    }

    fn of(&self, kind: Kind) -> u64 {
        self.0[kind as usize]
    }

    /// The kinds that there are some of.
    fn some(&self) -> impl Iterator<Item = (Kind, u64)> {
        Kind::ALL.iter().map(|kind| (*kind, self.of(*kind))).filter(|(_, n)| *n > 0)
    }
}

impl Frequent {
    fn add(&mut self, hash: u64) {
        if let Some(count) = self.0.get_mut(&hash) {
            *count += 1;
        } else if self.0.len() < COUNTERS {
            self.0.insert(hash, 1);
        } else {
            self.0.retain(|_, count| {
                *count -= 1;
                *count > 0
            });
        }
    }

    fn merge(&mut self, other: Self) {
        other.0.into_iter().for_each(|(hash, n)| *self.0.entry(hash).or_default() += n);
        if self.0.len() > COUNTERS {
            let mut counts: Vec<u64> = self.0.values().copied().collect();
            counts.sort_unstable_by(|a, b| b.cmp(a));
            let least = counts[COUNTERS];
            self.0.retain(|_, count| {
                *count = count.saturating_sub(least);
                *count > 0
            });
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Number {
    Integer,
    Decimal,
}

/// A number as tables have them: with a sign, a point or comma, and blanks between thousands.
fn number(text: &str) -> Option<Number> {
    const LONGEST: usize = 24;
    let digits = text.trim_ascii().strip_prefix(['-', '+']).unwrap_or(text.trim_ascii());
    if digits.len() > LONGEST || !digits.bytes().next()?.is_ascii_digit() {
        return None;
    }
    let mut points = 0;
    let mut last = 0;
    for b in digits.bytes() {
        match b {
            b'0'..=b'9' => {}
            b'.' | b',' => points += 1,
            b' ' if last != b' ' => {}
            _ => return None,
        }
        last = b;
    }
    match points {
        // What begins with a zero is a code.
        0 if digits.len() > 1 && digits.starts_with('0') => None,
        0 => Some(Number::Integer),
        1 => Some(Number::Decimal),
        _ => None,
    }
}

fn is_boolean(text: &str) -> bool {
    const WORDS: [&str; 10] = ["true", "false", "yes", "no", "oui", "non", "vrai", "faux", "ja", "nein"];
    text.len() <= 5 && WORDS.iter().any(|w| w.eq_ignore_ascii_case(text))
}

/// Letters as `A` and `a`, digits as `9`, blanks and the marks of numbers, names and addresses as they are, all else as `?`.
fn shape(text: &str) -> String {
    let one = |c: char| match c {
        c if c.is_numeric() => '9',
        c if c.is_uppercase() => 'A',
        c if c.is_alphabetic() => 'a',
        ' ' | '.' | '-' | '/' | ':' | ',' | '@' | '\'' | '+' | '(' | ')' | '_' | '"' | '&' | ';' => c,
        _ => '?',
    };
    let mut chars = text.chars();
    let mut out: String = chars.by_ref().take(SHAPE).map(one).collect();
    if chars.next().is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::csv::CsvOptions;
    use crate::table::rows::{Looking, look};
    use crate::table::{Format, Input};

    pub(super) fn inspect(csv: String) -> Vec<Profile> {
        let inspection = Inspection::default();
        let options = CsvOptions { delimiter: Some(b';'), chunk: 4096, ..CsvOptions::default() };
        let looking = Looking { options: &options, workers: 2, progress: &|_| {} };
        let mut counts = Counts::default();
        let input = Input::Stream(Box::new(std::io::Cursor::new(csv)));
        let columns = look(
            input,
            Format::Csv,
            &looking,
            |_| Ok(()),
            |rows| inspection.rows(rows),
            |some, _, _| {
                counts.add(some);
                Ok(())
            },
        );
        counts.profiles(&columns.unwrap(), 2026)
    }

    #[test]
    fn counts_are_those_of_the_values() {
        let rows = |i: u32| {
            format!(
                "{};{};{};{}\n",
                i,
                i % 5,
                if i.is_multiple_of(4) { "" } else { "x" },
                if i.is_multiple_of(3) { "A" } else { "b-1" }
            )
        };
        let csv = "id;five;some;mark\n".to_owned() + &(0..6000).map(rows).collect::<String>();
        let profiles = inspect(csv);
        assert_eq!(profiles.iter().map(|p| p.kind.as_str()).collect::<Vec<_>>(), ["integer", "integer", "text", "text"]);
        assert!((5800..=6000).contains(&profiles[0].distinct) && profiles[0].most_frequent < 0.02, "{:?}", profiles[0]);
        assert_eq!((profiles[1].distinct, profiles[1].missing), (5, 0));
        assert!((profiles[1].most_frequent - 0.2).abs() < 1e-9);
        assert_eq!((profiles[2].missing, profiles[2].values), (1500, 4500));
        assert_eq!(profiles[3].shapes, ["a-9", "A"]);
    }

    #[test]
    fn shapes_and_numbers_tell_no_value() {
        assert_eq!(shape("Zoé Lefèvre-2"), "Aaa Aaaaaaa-9");
        assert_eq!(shape("東京\u{1}"), "aa?");
        assert_eq!(shape(&"a".repeat(50)), format!("{}…", "a".repeat(40)));
        for (text, want) in [
            ("12", Some(Number::Integer)),
            ("-1 234,5", Some(Number::Decimal)),
            ("1.2.3", None),
            ("007", None),
            ("0", Some(Number::Integer)),
            ("a1", None),
            ("", None),
        ] {
            assert!(number(text) == want, "{text}");
        }
    }

    #[test]
    fn the_most_frequent_value_is_found_among_many() {
        let mut all = Frequent::default();
        for chunk in 0..10u64 {
            let mut some = Frequent::default();
            (0..1000u64).for_each(|i| some.add(if i.is_multiple_of(4) { 7 } else { chunk * 1000 + i + 100 }));
            all.merge(some);
        }
        let most = all.0.get(&7).copied().unwrap_or(0);
        assert!((2300..=2500).contains(&most), "{most}");
    }
}
