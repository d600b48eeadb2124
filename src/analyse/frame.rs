//! A table as a polars frame: a CSV by the `csv` crate, with types that never change a value.
//!
//! A column is numeric only if every value reads as it is written: `007` stays text. polars' own reader would take it for 7, and its
//! feature would pull in a network client.

use std::fs;
use std::path::Path;

use polars::prelude::{Column, DataFrame, DataType, IntoColumn, NamedFrom, Series};

use crate::error::Result;
use crate::table::csv::CsvOptions;
use crate::table::rows::{self, Looking};
use crate::table::{Format, Input, TextEncoding};

/// The names of some columns, and the values of each.
pub(super) type Texts = Vec<(String, Vec<Option<String>>)>;

/// Rows and columns of a file, or why it is no table. The reason names no value.
pub(super) fn read(path: &Path, format: Format) -> Result<DataFrame, String> {
    if format == Format::Csv {
        return read_csv(path);
    }
    let failed = |e: &dyn std::fmt::Display| format!("the table cannot be read: {e}");
    let file = fs::File::open(path).map_err(|e| failed(&e))?;
    let options = CsvOptions::default();
    let looking = Looking { options: &options, workers: crate::pipeline::workers(None), progress: &|_| {} };
    let (rows, columns) = gather(Input::File(file), format, &looking, &|_| true).map_err(|e| failed(&e))?;
    let columns = columns.iter().map(|(name, values)| typed(name, values, b',')).collect();
    DataFrame::new(rows, columns).map_err(|e| failed(&e))
}

/// The rows of a table and the values of its wanted columns, of lists the first elements.
///
/// # Errors
/// A table that does not read.
pub(super) fn gather(
    input: Input,
    format: Format,
    looking: &Looking<'_>,
    wanted: &(dyn Fn(&str) -> bool + Sync),
) -> Result<(usize, Texts)> {
    let mut columns: Vec<Vec<Option<String>>> = Vec::new();
    let mut rows = 0;
    // Of a table whose columns are known beforehand only those are gathered that are wanted.
    let known = std::sync::OnceLock::new();
    let found = rows::look(
        input,
        format,
        looking,
        |columns| {
            let is_wanted = columns.names().iter().map(|name| wanted(name)).collect::<Vec<_>>();
            drop(known.set(is_wanted));
            Ok(())
        },
        |some| {
            let is_wanted = |c: &&rows::Cell<'_>| known.get().and_then(|n| n.get(c.column as usize)).is_none_or(|wanted| *wanted);
            let cells =
                |row: &[rows::Cell<'_>]| row.iter().filter(is_wanted).map(|c| (c.column as usize, c.text.to_owned())).collect();
            some.iter().map(cells).collect::<Vec<Vec<(usize, String)>>>()
        },
        |some, _, _| {
            for cells in some {
                for (column, text) in cells {
                    if columns.len() <= column {
                        columns.resize_with(column + 1, Vec::new);
                    }
                    if columns[column].len() <= rows {
                        columns[column].resize(rows, None);
                        columns[column].push(Some(text));
                    }
                }
                rows += 1;
            }
            Ok(())
        },
    )?;
    columns.resize_with(found.candidates.len(), Vec::new);
    let named = unique(found.names()).into_iter().zip(columns).filter(|(name, _)| wanted(name));
    let full = named.map(|(name, mut values)| {
        values.resize(rows, None);
        (name, values)
    });
    Ok((rows, full.collect()))
}

fn read_csv(path: &Path) -> Result<DataFrame, String> {
    let bytes = fs::read(path).map_err(|e| format!("the table cannot be read: {}", e.kind()))?;
    let text = decode(&bytes);
    let delimiter = delimiter(&text);
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(text.as_bytes());
    let names: Vec<String> = reader.headers().map_err(|e| describe(&e))?.iter().map(str::to_owned).collect();
    let mut columns: Vec<Vec<Option<String>>> = vec![Vec::new(); names.len()];
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(|e| describe(&e))? {
        for (column, value) in columns.iter_mut().zip(&record) {
            column.push(Some(value.to_owned()).filter(|v| !v.is_empty()));
        }
    }
    let rows = columns.first().map_or(0, Vec::len);
    let columns = unique(names).into_iter().zip(columns).map(|(name, values)| typed(&name, &values, delimiter)).collect();
    DataFrame::new(rows, columns).map_err(|e| format!("the table cannot be read: {e}"))
}

/// UTF-8 if it is; by its mark if it has one; else Windows-1252, which reads anything.
fn decode(bytes: &[u8]) -> String {
    let (encoding, mark) = TextEncoding::from_mark(bytes).unwrap_or((TextEncoding::UTF_8, 0));
    match encoding.decode(&bytes[mark..]) {
        Some(text) => String::from_utf8_lossy(&text).into_owned(),
        None => encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned(),
    }
}

/// The delimiter under which the header has most fields.
fn delimiter(text: &str) -> u8 {
    let fields = |delimiter: &u8| {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).delimiter(*delimiter).from_reader(text.as_bytes());
        let first = reader.records().next();
        first.and_then(Result::ok).map_or(0, |record| record.len())
    };
    // The comma wins a draw: max_by_key takes the last.
    b"|\t;,".iter().copied().max_by_key(fields).unwrap_or(b',')
}

/// Names that a frame can bear: an empty one gets its number, a second of a kind a suffix.
fn unique(names: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    let mut rename = |(i, name): (usize, String)| {
        let name = if name.is_empty() { format!("column_{}", i + 1) } else { name };
        let fresh =
            std::iter::once(name.clone()).chain((2..=seen.len() + 2).map(|n| format!("{name}_{n}"))).find(|n| !seen.contains(n));
        let name = fresh.unwrap_or(name);
        seen.insert(name.clone());
        name
    };
    names.into_iter().enumerate().map(&mut rename).collect()
}

pub(super) fn typed(name: &str, values: &[Option<String>], delimiter: u8) -> Column {
    let all = |fits: &dyn Fn(&str) -> bool| values.iter().flatten().all(|v| fits(v)) && values.iter().any(Option::is_some);
    let each = |v: &Option<String>| v.as_deref().map(str::to_owned);
    if all(&is_integer) {
        let numbers: Option<Vec<Option<i64>>> = values.iter().map(|v| v.as_ref().map(|v| v.parse()).transpose().ok()).collect();
        if let Some(numbers) = numbers {
            return Series::new(name.into(), numbers).into_column();
        }
    }
    // A file whose fields are not separated by commas may have them in its numbers.
    let decimal = |v: &str| if delimiter == b',' { v.to_owned() } else { v.replacen(',', ".", 1) };
    // Beyond 15 digits a float would be another number.
    let fits = |v: &str| v.bytes().filter(u8::is_ascii_digit).count() <= 15;
    if all(&|v| is_decimal(&decimal(v)) && fits(v)) {
        let numbers: Vec<Option<f64>> = values.iter().map(|v| v.as_ref().and_then(|v| decimal(v).parse().ok())).collect();
        return Series::new(name.into(), numbers).into_column();
    }
    if all(&|v| days(v).is_some()) {
        let days: Vec<Option<i32>> = values.iter().map(|v| v.as_deref().and_then(days)).collect();
        if let Ok(dates) = Series::new(name.into(), days).cast(&DataType::Date) {
            return dates.into_column();
        }
    }
    Series::new(name.into(), values.iter().map(each).collect::<Vec<_>>()).into_column()
}

/// Whether a text is an integer as a machine would write it: no leading zeros, no plus sign.
fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'))
}

fn is_decimal(text: &str) -> bool {
    match text.split_once('.') {
        Some((whole, fraction)) => is_integer(whole) && !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit()),
        None => is_integer(text),
    }
}

/// Days since 1970-01-01 of a date `YYYY-MM-DD`.
fn days(text: &str) -> Option<i32> {
    let form = |(i, b): (usize, u8)| if i == 4 || i == 7 { b == b'-' } else { b.is_ascii_digit() };
    let date: jiff::civil::Date = text.parse().ok().filter(|_| text.len() == 10 && text.bytes().enumerate().all(form))?;
    Some((date - jiff::civil::date(1970, 1, 1)).get_days())
}

/// What is wrong with a CSV, without any of its text.
fn describe(error: &csv::Error) -> String {
    match error.position() {
        Some(at) => format!("the table is malformed at line {}", at.line()),
        None => "the table is malformed".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(text: &[u8]) -> Vec<(String, DataType)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        let frame = read(file.path(), Format::Csv).unwrap();
        frame.columns().iter().map(|c| (c.name().to_string(), c.dtype().clone())).collect()
    }

    #[test]
    fn types_never_change_a_value() {
        let got =
            types(b"zero;int;dec;date;mixed;big;none\n007;1;1,50;2024-02-29;1;99999999999999999999;\n1;-2;2;2024-03-01;x;1;\n");
        let want = [
            DataType::String,
            DataType::Int64,
            DataType::Float64,
            DataType::Date,
            DataType::String,
            DataType::String,
            DataType::String,
        ];
        assert_eq!(got.iter().map(|c| c.1.clone()).collect::<Vec<_>>(), want);
    }

    #[test]
    fn dates_that_are_none_stay_text() {
        assert_eq!(days("1970-01-02"), Some(1));
        assert_eq!(days("1969-12-31"), Some(-1));
        assert_eq!(days("2023-02-29"), None);
        assert_eq!(days("20240101"), None);
        assert_eq!(types(b"d\n2024-02-29\n2023-02-29\n")[0].1, DataType::String);
    }

    #[test]
    fn names_and_encodings() {
        let names = |text: &[u8]| types(text).into_iter().map(|c| c.0).collect::<Vec<_>>();
        assert_eq!(names(b"pr\xe9nom\tnom\tnom\t\na\tb\tc\td\n"), ["prénom", "nom", "nom_2", "column_4"]);
        assert_eq!(names("\u{feff}é\n1\n".as_bytes()), ["é"]);
    }
}
