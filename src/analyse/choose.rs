//! Which rows meet a condition in SQL, by polars.

use polars::prelude::{DataFrame, IntoLazy, LazyFrame};
use polars::sql::{SQLContext, sql_expr};

use super::frame::{gather, typed};
use crate::error::{Error, Result};
use crate::table::rows::Looking;
use crate::table::{Format, Input};

/// For each row of a table whether the condition holds; where it is unknown, as with a null, it does not.
///
/// The columns that the condition may name are read into memory, with types that never change a value: `007` stays text.
///
/// # Errors
/// A table that does not read, or a condition that is none or does not fit the columns. No error quotes a cell.
pub fn choose(sql: &str, input: Input, format: Format, looking: &Looking<'_>) -> Result<Vec<bool>> {
    let _syntax = sql_expr(sql).map_err(|e| Error::usage(format!("the condition does not read: {e}")))?;
    // A decimal comma is read as such where it cannot be a delimiter.
    let delimiter = looking.options.delimiter.unwrap_or(b';');
    let (rows, columns) = gather(input, format, looking, &|name| names(sql, name))?;
    let series: Vec<_> = columns.iter().map(|(name, values)| typed(name, values, delimiter)).collect();
    if series.is_empty() {
        return Err(Error::usage("the condition names no column of the table"));
    }
    let no_fit = || Error::usage("the condition does not fit the columns, or is no condition");
    let frame = DataFrame::new(rows, series).map_err(|_| no_fit())?;
    // polars' words about a value that does not fit may quote it.
    let mut context = SQLContext::new();
    context.register("data", frame.lazy());
    let query = format!("SELECT ({sql}) AS chosen FROM data");
    let chosen = context.execute(&query).and_then(LazyFrame::collect).map_err(|_| no_fit())?;
    let chosen = chosen.column("chosen").and_then(|c| c.bool().cloned()).map_err(|_| no_fit())?;
    if chosen.len() != rows {
        return Err(no_fit());
    }
    Ok(chosen.iter().map(|c| c == Some(true)).collect())
}

/// Whether a condition may name a column: a quote within its name is doubled there.
fn names(sql: &str, name: &str) -> bool {
    sql.contains(name) || sql.contains(&name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::csv::CsvOptions;

    fn chosen(sql: &str, csv: &str) -> Result<String> {
        let options = CsvOptions::default();
        let looking = Looking { options: &options, workers: 2, progress: &|_| {} };
        let input = Input::Stream(Box::new(std::io::Cursor::new(csv.to_owned())));
        Ok(choose(sql, input, Format::Csv, &looking)?.into_iter().map(|c| if c { '1' } else { '0' }).collect())
    }

    #[test]
    fn conditions_over_typed_columns() {
        let csv =
            "id;age;ville;montant;le jour;code\n1;17;Nîmes;1,5;2024-01-01;007\n2;40;Paris;12,25;2024-06-01;8\n3;;Nîmes;;;9\n";
        for (sql, want) in [
            ("age > 18", "010"),
            ("ville = 'Nîmes'", "101"),
            ("age IS NULL OR montant < 2", "101"),
            ("\"le jour\" >= '2024-02-01'", "010"),
            ("code = '007'", "100"),
            ("ville LIKE 'P%' AND age BETWEEN 30 AND 50", "010"),
            ("NOT (age > 18)", "100"),
        ] {
            assert_eq!(chosen(sql, csv).unwrap_or_else(|e| panic!("{sql}: {e}")), want, "{sql}");
        }
        for bad in ["age >", "nothing = 1", "ville > 3", "age + 1", "COUNT(age) > 1", "CAST(ville AS INT) = 1"] {
            let error = chosen(bad, csv).unwrap_err();
            assert!(error.is_usage() && !error.to_string().contains("Nîmes"), "{bad}: {error}");
        }
    }
}
