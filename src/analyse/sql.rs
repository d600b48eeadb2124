//! SQL over tables.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use polars::prelude::{DataFrame, IntoLazy};
use polars::sql::SQLContext;

use super::frame;
use crate::table::Format;

/// Rows of a result that its text shows.
const SHOWN: usize = 50;

/// A file and the names by which a query can call it.
pub struct Table {
    /// As in `FROM`.
    pub names: Vec<String>,
    /// Where it is.
    pub path: PathBuf,
    /// What it is written in.
    pub format: Format,
}

/// The result of a query.
pub struct Answer {
    /// Its first rows, as people read them.
    pub text: String,
    /// All of it.
    pub csv: Vec<u8>,
    /// Rows of the whole.
    pub rows: usize,
}

/// Why a query has no result. The text may quote cells of the table, as polars does.
#[derive(Debug)]
pub struct QueryError(pub String);

/// Answers a query over these tables, all of which are read into memory.
///
/// # Errors
/// A table that does not read, a query that is none or asks for what is not there.
pub fn query(tables: &[Table], sql: &str) -> Result<Answer, QueryError> {
    // polars reports some of its limits by a panic.
    let run = AssertUnwindSafe(|| run(tables, sql));
    catch_unwind(run).unwrap_or_else(|_| Err(QueryError("the query cannot be carried out".into())))
}

fn run(tables: &[Table], sql: &str) -> Result<Answer, QueryError> {
    let mut context = SQLContext::new();
    for table in tables {
        let frame = frame::read(&table.path, table.format).map_err(QueryError)?.lazy();
        table.names.iter().for_each(|name| context.register(name, frame.clone()));
    }
    let result = context.execute(sql).and_then(polars::prelude::LazyFrame::collect);
    let frame = result.map_err(|e| QueryError(e.to_string()))?;
    let rows = cells(&frame);
    Ok(Answer { text: text(&frame, &rows), csv: csv(&frame, &rows)?, rows: frame.height() })
}

/// The values as texts, row by row; nothing for a null.
fn cells(frame: &DataFrame) -> Vec<Vec<Option<String>>> {
    let value = |row: usize, column: &polars::prelude::Column| {
        let value = column.get(row).ok().filter(|v| !v.is_null())?;
        Some(value.str_value().into_owned())
    };
    (0..frame.height()).map(|row| frame.columns().iter().map(|c| value(row, c)).collect()).collect()
}

/// A small table: names, a rule, rows; numbers to the right.
fn text(frame: &DataFrame, rows: &[Vec<Option<String>>]) -> String {
    let names: Vec<String> = frame.columns().iter().map(|c| c.name().to_string()).collect();
    let numeric: Vec<bool> = frame.columns().iter().map(|c| c.dtype().is_primitive_numeric()).collect();
    let shown = &rows[..rows.len().min(SHOWN)];
    let cell = |row: &[Option<String>], i: usize| row[i].as_deref().unwrap_or("").replace(['\n', '\r'], " ");
    let width = |i: usize| shown.iter().map(|r| cell(r, i).chars().count()).chain([names[i].chars().count()]).max().unwrap_or(0);
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    let line = |value: &dyn Fn(usize) -> String| {
        let pad = |i: usize| {
            let (value, width) = (value(i), widths[i]);
            if numeric[i] { format!("{value:>width$}") } else { format!("{value:<width$}") }
        };
        (0..names.len()).map(pad).collect::<Vec<_>>().join(" | ").trim_end().to_owned() + "\n"
    };
    let mut out = line(&|i| names[i].clone());
    out += &widths.iter().map(|w| "-".repeat(*w)).collect::<Vec<_>>().join("-+-");
    out.push('\n');
    shown.iter().for_each(|row| out += &line(&|i| cell(row, i)));
    if rows.len() > SHOWN {
        out += &format!("… {} more rows\n", rows.len() - SHOWN);
    }
    out
}

fn csv(frame: &DataFrame, rows: &[Vec<Option<String>>]) -> Result<Vec<u8>, QueryError> {
    let failed = |e: csv::Error| QueryError(e.to_string());
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(frame.columns().iter().map(|c| c.name().as_str())).map_err(failed)?;
    for row in rows {
        writer.write_record(row.iter().map(|v| v.as_deref().unwrap_or(""))).map_err(failed)?;
    }
    writer.into_inner().map_err(|e| QueryError(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(text: &str, sql: &str) -> Result<Answer, QueryError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        query(&[Table { names: vec!["data".into(), "clients".into()], path: file.path().into(), format: Format::Csv }], sql)
    }

    #[test]
    fn sums_groups_and_nulls() {
        let table = "ville;montant\nParis;1,50\nLyon;2\nParis;\n";
        let answer =
            ask(table, "SELECT ville, SUM(montant) AS total, COUNT(*) AS n FROM data GROUP BY ville ORDER BY ville").unwrap();
        assert_eq!(String::from_utf8(answer.csv).unwrap(), "ville,total,n\nLyon,2.0,1\nParis,1.5,2\n");
        assert_eq!(answer.text, "ville | total | n\n------+-------+--\nLyon  |   2.0 | 1\nParis |   1.5 | 2\n");
        assert_eq!(ask(table, "SELECT * FROM clients WHERE montant IS NULL").unwrap().rows, 1);
    }

    #[test]
    fn what_is_no_query_is_an_error() {
        for bad in ["What is the total?", "SELECT x FROM data", "SELECT * FROM nowhere", ""] {
            assert!(ask("a\n1\n", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_other_file_can_be_read() {
        for sql in [
            "SELECT * FROM read_csv('/etc/passwd')",
            "SELECT * FROM read_parquet('x')",
            "SELECT * FROM read_ipc('x')",
            "SELECT * FROM '/etc/passwd'",
        ] {
            assert!(ask("a\n1\n", sql).is_err(), "{sql}");
        }
    }

    #[test]
    fn long_results_are_shown_in_part() {
        let table = format!("n\n{}", (0..60).map(|i| format!("{i}\n")).collect::<String>());
        let answer = ask(&table, "SELECT * FROM data").unwrap();
        assert!(answer.text.ends_with("… 10 more rows\n"));
        assert_eq!(answer.csv.iter().filter(|b| **b == b'\n').count(), 61);
    }
}
