//! How well rows hide among others: k-anonymity and l-diversity, exact, on tables larger than memory.
//!
//! A row is known by a 128-bit hash of its quasi-identifiers under a random key, so memory holds no value. polars adds up equal ones
//! as they come. If there are more groups than memory should hold, the table is read again for each part of them.
//!
//! Source: Samarati and Sweeney, "Protecting privacy when disclosing information" (1998), for k; Machanavajjhala et al., "l-diversity"
//! (2007), for distinct l-diversity.

use std::hash::{BuildHasher, Hasher, RandomState};

use polars::prelude::{Column, DataFrame, IntoColumn, IntoLazy, NamedFrom, PolarsError, Series, col, lit};

use crate::error::{Error, Result};
use crate::policy::{Columns, Missing};
use crate::report::{Bin, RiskFacts, Thresholds};
use crate::table::rows::{self, Looking, Rows};
use crate::table::{Format, Input};

/// Rows that are gathered before equal ones are added up.
const PENDING: usize = 1 << 18;
/// Groups that memory holds at a time.
const GROUPS: usize = 1 << 20;
/// Bounds of the bins that are told, each up to the next.
const BINS: [u64; 7] = [1, 2, 3, 4, 5, 10, 100];

/// What is measured.
pub struct Risk<'a> {
    /// The columns that identify together.
    pub quasi: &'a Columns,
    /// A column whose values should differ within each group.
    pub sensitive: Option<&'a Columns>,
    /// Groups that memory holds at a time; none for the default.
    pub groups: Option<usize>,
}

/// A row by its hashes: two of its group, one of its sensitive value.
type Row = [u64; 3];

/// One part of all groups: those whose hash leaves this rest.
#[derive(Clone, Copy)]
struct Part {
    rest: u64,
    of: u64,
}

/// What is known of the groups that were through.
#[derive(Default)]
struct Sums {
    rows: u64,
    groups: u64,
    k_min: Option<u64>,
    l_min: Option<u64>,
    bins: [u64; BINS.len()],
}

impl Risk<'_> {
    /// Reads a table, once for each part of its groups that fits into memory. `open` opens it anew each time.
    ///
    /// # Errors
    /// A table that does not read, or columns that are not there.
    pub fn measure(&self, looking: &Looking<'_>, open: &mut dyn FnMut() -> Result<(Input, Format)>) -> Result<RiskFacts> {
        let random = [RandomState::new(), RandomState::new(), RandomState::new()];
        let limit = self.groups.unwrap_or(GROUPS);
        let mut parts = vec![Part { rest: 0, of: 1 }];
        let (mut sums, mut names) = (Sums::default(), Vec::new());
        while let Some(part) = parts.pop() {
            let mut pass = Pass { part, limit, parts: Vec::new(), pending: Vec::new(), groups: None };
            let (input, format) = open()?;
            let quasi = std::sync::OnceLock::new();
            let columns = rows::look(
                input,
                format,
                looking,
                |columns| self.resolve(columns).map(|found| drop(quasi.set(found))),
                |rows| quasi.get().map(|(quasi, sensitive)| hashes(rows, quasi, *sensitive, &random)).unwrap_or_default(),
                |some, _, _| pass.take(some),
            )?;
            pass.add_up()?;
            if let Some(groups) = pass.groups.take() {
                sums.add(groups, self.sensitive.is_some()).map_err(|e| failed(&e))?;
            }
            parts.extend(pass.parts);
            let entries = quasi.get().map(|(quasi, _)| quasi.iter().map(|i| columns.entry(*i as usize)).collect());
            names = entries.unwrap_or_default();
        }
        Ok(sums.facts(names, self.sensitive.map(ToString::to_string)))
    }

    /// The numbers of the columns.
    fn resolve(&self, columns: &rows::Columns) -> Result<(Vec<u32>, Option<u32>)> {
        if columns.candidates.is_empty() {
            return Err(Error::unsupported("of NDJSON the risk cannot be told yet; of CSV, Parquet and Arrow it can"));
        }
        let numbers = |of: &Columns| of.resolve(&columns.candidates, Missing::Error).map(|r| r.found);
        let quasi = numbers(self.quasi)?.into_iter().map(|i| i as u32).collect();
        let sensitive = self.sensitive.map(numbers).transpose()?;
        match sensitive.as_deref() {
            None => Ok((quasi, None)),
            Some([only]) => Ok((quasi, Some(*only as u32))),
            Some(_) => Err(Error::usage("the sensitive column must be one")),
        }
    }
}

/// The hashes of rows. A list counts by all of its elements, and a value that is missing as one of its own.
fn hashes(rows: &Rows<'_>, quasi: &[u32], sensitive: Option<u32>, random: &[RandomState; 3]) -> Vec<Row> {
    let one = |state: &RandomState, cells: &[rows::Cell<'_>], columns: &[u32]| {
        let mut hasher = state.build_hasher();
        for cell in cells.iter().filter(|c| columns.contains(&c.column)) {
            hasher.write_u32(cell.column);
            hasher.write_usize(cell.text.len());
            hasher.write(cell.text.as_bytes());
        }
        hasher.finish()
    };
    let [first, second, third] = random;
    let all = rows.iter().map(|cells| {
        // A missing value adds nothing to a group's diversity; 0 stands for it.
        let l = sensitive.filter(|s| cells.iter().any(|c| c.column == *s)).map_or(0, |s| one(third, cells, &[s]) | 1);
        [one(first, cells, quasi), one(second, cells, quasi), l]
    });
    all.collect()
}

/// One reading of the table.
struct Pass {
    part: Part,
    limit: usize,
    /// Parts that are left to others, since this one had too many groups.
    parts: Vec<Part>,
    pending: Vec<Row>,
    /// Groups with their sensitive values so far: `a`, `b`, `s`, `n`.
    groups: Option<DataFrame>,
}

impl Pass {
    fn take(&mut self, rows: Vec<Row>) -> Result<()> {
        let Part { rest, of } = self.part;
        self.pending.extend(rows.into_iter().filter(|row| row[0] % of == rest));
        if self.pending.len() >= PENDING.min(self.limit) { self.add_up() } else { Ok(()) }
    }

    fn add_up(&mut self) -> Result<()> {
        self.merge().map_err(|e| failed(&e))?;
        while self.groups.as_ref().is_some_and(|g| g.height() > self.limit) {
            // Half of the groups are left to another pass.
            let Part { rest, of } = self.part;
            self.parts.push(Part { rest: rest + of, of: of * 2 });
            self.part.of *= 2;
            let Some(groups) = self.groups.take() else { break };
            self.groups = Some(keep(&groups, self.part).map_err(|e| failed(&e))?);
        }
        Ok(())
    }

    fn merge(&mut self) -> Result<(), PolarsError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let pending = std::mem::take(&mut self.pending);
        let column = |i: usize, name: &str| series(name, pending.iter().map(|row| row[i]).collect());
        let ones = series("n", vec![1; pending.len()]);
        let mut frame = DataFrame::new(pending.len(), vec![column(0, "a"), column(1, "b"), column(2, "s"), ones])?;
        if let Some(groups) = self.groups.take() {
            frame = groups.vstack(&frame)?;
        }
        self.groups = Some(frame.lazy().group_by([col("a"), col("b"), col("s")]).agg([col("n").sum()]).collect()?);
        Ok(())
    }
}

fn series(name: &str, values: Vec<u64>) -> Column {
    Series::new(name.into(), values).into_column()
}

/// The groups of a part.
fn keep(groups: &DataFrame, part: Part) -> Result<DataFrame, PolarsError> {
    let mask = groups.column("a")?.u64()?.iter().map(|a| a.is_some_and(|a| a % part.of == part.rest)).collect();
    groups.filter(&mask)
}

impl Sums {
    /// Adds a part's groups.
    fn add(&mut self, groups: DataFrame, diverse: bool) -> Result<(), PolarsError> {
        let sums = [col("n").sum().alias("k"), col("s").filter(col("s").neq(lit(0u64))).count().alias("l")];
        let groups = groups.lazy().group_by([col("a"), col("b")]).agg(sums).collect()?;
        let (k, l) = (groups.column("k")?.u64()?, groups.column("l")?.u32()?);
        for (k, l) in k.iter().zip(l.iter()) {
            let (Some(k), Some(l)) = (k, l) else { continue };
            self.groups += 1;
            self.rows += k;
            self.k_min = Some(self.k_min.map_or(k, |least| least.min(k)));
            if diverse {
                self.l_min = Some(self.l_min.map_or(l.into(), |least| least.min(l.into())));
            }
            let bin = BINS.iter().rposition(|from| k >= *from).unwrap_or(0);
            self.bins[bin] += k;
        }
        Ok(())
    }

    fn facts(self, quasi: Vec<String>, sensitive: Option<String>) -> RiskFacts {
        let ends = BINS.iter().skip(1).map(|next| Some(next - 1)).chain([None]);
        let bins = BINS.iter().zip(ends).zip(self.bins);
        RiskFacts {
            quasi,
            rows: self.rows,
            groups: self.groups,
            k_min: self.k_min.unwrap_or(0),
            unique_rows: self.bins[0],
            distribution: bins.map(|((k, to), rows)| Bin { k: *k, to, rows }).collect(),
            sensitive,
            l_min: self.l_min,
            thresholds: Thresholds::default(),
        }
    }
}

fn failed(error: &PolarsError) -> Error {
    Error::unsupported(format!("the groups cannot be counted: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::csv::CsvOptions;

    fn measure(csv: &str, quasi: &str, sensitive: Option<&str>, groups: Option<usize>) -> RiskFacts {
        let options = CsvOptions { chunk: 4096, ..CsvOptions::default() };
        let looking = Looking { options: &options, workers: 2, progress: &|_| {} };
        let quasi = Columns::parse(quasi).unwrap();
        let sensitive = sensitive.map(|s| Columns::parse(s).unwrap());
        let risk = Risk { quasi: &quasi, sensitive: sensitive.as_ref(), groups };
        let mut open = || Ok((Input::Stream(Box::new(std::io::Cursor::new(csv.to_owned()))), Format::Csv));
        risk.measure(&looking, &mut open).unwrap()
    }

    #[test]
    fn a_table_that_can_be_counted_by_hand() {
        let facts = measure("z,y,s\n1,1985,a\n1,1985,b\n1,1985,a\n2,1985,a\n,1985,a\n,1985,a\n", "z,y", Some("s"), None);
        assert_eq!((facts.rows, facts.groups, facts.k_min, facts.unique_rows, facts.l_min), (6, 3, 1, 1, Some(1)));
        let bins: Vec<u64> = facts.distribution.iter().map(|b| b.rows).collect();
        assert_eq!(bins, [1, 2, 3, 0, 0, 0, 0]);
        assert_eq!((facts.distribution[0].to, facts.distribution[4].to, facts.distribution[6].to), (Some(1), Some(9), None));
        assert_eq!(measure("z,s\n1,a\n1,b\n", "z", Some("s"), None).l_min, Some(2));
        assert_eq!(measure("z,s\n1,a\n1,\n2,\n", "z", Some("s"), None).l_min, Some(0));
    }

    #[test]
    fn parts_of_the_groups_add_up_to_the_whole() {
        let csv =
            "a,b,s\n".to_owned() + &(0..5000u64).map(|i| format!("{},{},{}\n", i * i % 1009, i % 3, i % 7)).collect::<String>();
        let whole = measure(&csv, "a,b", Some("s"), None);
        assert_eq!((whole.rows, whole.distribution.iter().map(|b| b.rows).sum::<u64>()), (5000, 5000));
        for limit in [300, 1000] {
            assert_eq!(measure(&csv, "a,b", Some("s"), Some(limit)), whole, "{limit} groups at a time");
        }
    }
}
