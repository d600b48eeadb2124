//! Policies: each treatment in CSV, NDJSON and Parquet alike.

use std::fs::File;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Date32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};

use super::env::Place;
use super::mask::token;

const POLICY: &str = r#"version = 1
unlisted = "error"
[columns]
id = { treatment = "pseudonym", domain = "client" }
email = { treatment = "pseudonym", normalise = ["email"] }
name = "redact"
cp = "truncate:2"
born = "year"
seen = { treatment = "shift", days = 30, by = "id" }
amount = "bucket:100"
notes = "drop"
city = "keep"
last = "drop"
"#;

/// A row of the table, as text; an empty one is missing.
type Row = [String; 10];

fn table(n: i32) -> Vec<Row> {
    let text = |i: i32, every: i32, value: String| if i % every == 0 { String::new() } else { value };
    let date = |days: i32| jiff::civil::date(1970, 1, 1).checked_add(jiff::Span::new().days(days)).unwrap().to_string();
    let row = |i: i32| {
        [
            (i % 97).to_string(),
            text(i, 5, format!(" Client{}@Example.FR", i % 50)),
            text(i, 7, format!("Dupont {}", i % 13)),
            text(i, 11, format!("{:05}", i * 37 % 100_000)),
            text(i, 13, date(i * 11 % 20_000)),
            text(i, 17, date(18_000 + i % 900)),
            text(i, 19, (i * 17 - 500).to_string()),
            format!("note {i}"),
            text(i, 3, "Nîmes".into()),
            text(i, 2, "x".into()),
        ]
    };
    (0..n).map(row).collect()
}

const NAMES: [&str; 10] = ["id", "email", "name", "cp", "born", "seen", "amount", "notes", "city", "last"];

fn csv_of(rows: &[Row]) -> String {
    std::iter::once(NAMES.join(";")).chain(rows.iter().map(|r| r.join(";"))).map(|line| line + "\n").collect()
}

fn ndjson_of(rows: &[Row]) -> String {
    let value = |name: &str, text: &str| match name {
        _ if text.is_empty() => serde_json::Value::Null,
        "id" | "amount" => text.parse::<i64>().unwrap().into(),
        _ => text.into(),
    };
    let line = |row: &Row| {
        let members: Vec<String> = NAMES.iter().zip(row).map(|(n, v)| format!("\"{n}\": {}", value(n, v))).collect();
        format!("{{{}}}\n", members.join(", "))
    };
    rows.iter().map(line).collect()
}

fn parquet_of(rows: &[Row], place: &Place, name: &str, properties: WriterProperties) {
    let text = |i: usize| rows.iter().map(move |r| Some(r[i].as_str()).filter(|t| !t.is_empty()));
    let days = |t: &str| {
        let date: jiff::civil::Date = t.parse().unwrap();
        (date - jiff::civil::date(1970, 1, 1)).get_days()
    };
    let column = |i: usize| -> ArrayRef {
        match NAMES[i] {
            "id" | "amount" => Arc::new(text(i).map(|t| t.map(|t| t.parse::<i64>().unwrap())).collect::<Int64Array>()),
            "born" | "seen" => Arc::new(text(i).map(|t| t.map(days)).collect::<Date32Array>()),
            _ => Arc::new(text(i).collect::<StringArray>()),
        }
    };
    let batch = RecordBatch::try_from_iter_with_nullable((0..10).map(|i| (NAMES[i], column(i), true))).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(place.path(name)).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn read(place: &Place, name: &str) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(place.path(name)).unwrap()).unwrap();
    let schema = reader.schema().clone();
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    arrow_select::concat::concat_batches(&schema, &batches).unwrap()
}

/// The columns of a masked CSV, by name.
fn columns(csv: &str) -> Vec<(String, Vec<String>)> {
    let mut reader = csv::ReaderBuilder::new().delimiter(b';').from_reader(csv.as_bytes());
    let names: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    names.into_iter().enumerate().map(|(i, n)| (n, records.iter().map(|r| r[i].to_owned()).collect())).collect()
}

#[test]
fn each_treatment_is_the_same_in_csv_ndjson_and_parquet() {
    let rows = table(3000);
    let place = Place::new();
    place.write("hmask.toml", POLICY);
    place.write("t.csv", csv_of(&rows));
    place.write("t.ndjson", ndjson_of(&rows));
    let csv = place.run(&["mask", "t.csv", "-o", "-"]).ok().text();
    let want = columns(&csv);
    let names: Vec<&str> = want.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(names, ["id", "email", "name", "cp", "born", "seen", "amount", "city"]);
    for (i, (name, values)) in want.iter().enumerate() {
        let source = NAMES.iter().position(|n| n == name).unwrap();
        for (row, value) in rows.iter().zip(values) {
            let original = row[source].as_str();
            match name.as_str() {
                _ if original.is_empty() => assert_eq!(value, ""),
                "email" => assert_eq!(*value, token(&original.trim().to_lowercase())),
                "name" => assert_eq!(value, "***"),
                "cp" => assert_eq!(value, &original[..2]),
                "born" => assert_eq!(value, &original[..4]),
                "amount" => assert_eq!(value.parse::<i64>().unwrap(), original.parse::<i64>().unwrap().div_euclid(100) * 100),
                "city" => assert_eq!(value, original),
                "seen" => assert!(value != original, "column {i}"),
                _ => assert!(value.len() == 16 && *value != token(original), "another domain, another token"),
            }
        }
    }
    let json = place.run(&["mask", "t.ndjson", "-o", "-"]).ok().text();
    for (row, line) in json.lines().enumerate() {
        let record: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).unwrap();
        assert_eq!(record.keys().cloned().collect::<std::collections::BTreeSet<_>>().len(), 8);
        assert_eq!(record["amount"].is_number(), !want[6].1[row].is_empty(), "the type is kept");
        for (name, values) in &want {
            let text = match &record[name] {
                serde_json::Value::Null => String::new(),
                serde_json::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(text, values[row], "{name} in row {row}");
        }
    }
    let forms = [
        WriterProperties::builder()
            .set_data_page_row_count_limit(100)
            .set_max_row_group_row_count(Some(700))
            .set_write_batch_size(50),
        WriterProperties::builder().set_dictionary_enabled(false).set_writer_version(WriterVersion::PARQUET_2_0),
        WriterProperties::builder().set_statistics_enabled(EnabledStatistics::Page).set_data_page_row_count_limit(64),
    ];
    for (i, form) in forms.into_iter().enumerate() {
        parquet_of(&rows, &place, "t.parquet", form.build());
        place.run(&["mask", "t.parquet", "-o", "o.parquet", "--force"]).ok();
        let masked = read(&place, "o.parquet");
        assert_eq!(masked.schema().fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>(), names);
        for (name, values) in &want {
            let array = masked.column_by_name(name).unwrap();
            let date = |days: i32| jiff::civil::date(1970, 1, 1).checked_add(jiff::Span::new().days(days)).unwrap().to_string();
            let got: Vec<String> = match array.data_type() {
                DataType::Int64 => {
                    array.as_primitive::<Int64Type>().iter().map(|v| v.map_or(String::new(), |v| v.to_string())).collect()
                }
                DataType::Date32 => array.as_primitive::<Date32Type>().iter().map(|v| v.map_or(String::new(), date)).collect(),
                _ => array.as_string::<i32>().iter().map(|v| v.unwrap_or_default().to_owned()).collect(),
            };
            assert_eq!(got, *values, "{name}, form {i}");
        }
        assert_eq!(masked.column_by_name("seen").unwrap().data_type(), &DataType::Date32);
        assert_eq!(masked.column_by_name("amount").unwrap().data_type(), &DataType::Int64);
        let bytes = place.read("o.parquet");
        assert!(!bytes.windows(5).any(|w| w == b"note "), "a dropped column is in the file");
    }
}

#[test]
fn nested_leaves_leave_with_what_holds_them() {
    let place = Place::new();
    let inner: Vec<(Arc<Field>, ArrayRef)> = vec![
        (Arc::new(Field::new("a", DataType::Utf8, true)), Arc::new(StringArray::from(vec!["SECRET", "y"]))),
        (Arc::new(Field::new("b", DataType::Int64, true)), Arc::new(Int64Array::from(vec![1, 2]))),
    ];
    let s: ArrayRef = Arc::new(StructArray::from(inner.clone()));
    let only: ArrayRef = Arc::new(StructArray::from(inner[..1].to_vec()));
    let list: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(4_242_424_242)]), None]));
    let batch = RecordBatch::try_from_iter_with_nullable([("s", s, true), ("only", only, true), ("l", list, true)]).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(place.path("t.parquet")).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    place.write(
        "p.toml",
        "version = 1\nunlisted = \"keep\"\n[columns]\n\"s.a\" = \"drop\"\nonly = \"drop\"\n\"l[]\" = \"drop\"\n",
    );
    place.run(&["mask", "t.parquet", "-p", "p.toml", "-o", "o.parquet"]).ok();
    let masked = read(&place, "o.parquet");
    assert_eq!(masked.num_columns(), 1);
    let DataType::Struct(fields) = masked.column(0).data_type().clone() else { panic!() };
    assert_eq!(fields.iter().map(|f| f.name().as_str()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(masked.column(0).as_struct().column(0).as_primitive::<Int64Type>().values(), &[1, 2]);
    assert!(!place.read("o.parquet").windows(6).any(|w| w == b"SECRET"));

    place.write(
        "t.ndjson",
        "{\"s\":{\"a\":\"SECRET\",\"b\":1},\"only\":{\"a\":1},\"l\":[1,2]}\n{ \"l\" : [ ] , \"s\" : { \"b\" : 2 , \"a\" : null } , \"only\" : null}\n",
    );
    let out = place.run(&["mask", "t.ndjson", "-p", "p.toml", "-o", "-"]).ok().text();
    assert_eq!(out, "{\"s\":{\"b\":1},\"l\":[]}\n{ \"l\" : [ ] , \"s\" : { \"b\" : 2 }}\n");
    let out = place.run(&["mask", "t.ndjson", "-c", "s.b", "--keep", "s.b", "-o", "-"]).ok().text();
    let b = |n: &str| token(n);
    assert_eq!(out, format!("{{\"s\":{{\"b\":\"{}\"}}}}\n{{ \"s\" : {{ \"b\" : \"{}\" }}}}\n", b("1"), b("2")));
}

#[test]
fn what_the_policy_does_not_list_is_refused_before_anything_is_written() {
    let place = Place::new();
    place.write("hmask.toml", "version = 1\n[columns]\na = \"pseudonym\"\n");
    place.write("t.csv", "a,b\n1,2\n");
    place.write("t.ndjson", "{\"a\":1}\n{\"a\":1,\"b\":2}\n");
    place.run(&["mask", "t.csv", "-o", "o.csv"]).fails(2, "says nothing of b");
    place.run(&["mask", "t.ndjson", "-o", "o.ndjson"]).fails(2, "says nothing of b");
    assert_eq!(place.names(), ["hmask.toml", "t.csv", "t.ndjson"]);
    for (unlisted, want) in [("keep", "a,b\nT,2\n"), ("drop", "a\nT\n")] {
        place.write("hmask.toml", format!("version = 1\nunlisted = \"{unlisted}\"\n[columns]\na = \"pseudonym\"\n"));
        let out = place.run(&["mask", "t.csv", "-o", "-"]).ok().text();
        assert_eq!(out, want.replace('T', &token("1")));
    }
}

#[test]
fn a_policy_is_found_upwards_and_flags_override_it() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("a/b")).unwrap();
    place.write("a/b/t.csv", "x,y\n1,2\n");
    place.write("a/hmask.toml", "version = 1\nscope = \"project:p\"\n[pseudonym]\nlength = 20\nprefix = \"p_\"\n[columns]\nx = \"pseudonym\"\ny = \"keep\"\n");
    let ran = place.run(&["mask", "a/b/t.csv", "-o", "-"]).ok();
    assert!(ran.err.contains("policy: ") && ran.text().starts_with("x,y\np_") && ran.text().len() == 4 + 22 + 3, "{}", ran.err);
    let ran = place.run(&["mask", "a/b/t.csv", "-o", "-", "--length", "16", "--prefix", "", "--scope", "stable"]).ok();
    assert_eq!(ran.text(), format!("x,y\n{},2\n", token("1")));
    for flag in ["--length", "--prefix", "--scope"] {
        assert!(ran.err.contains(&format!("{flag} overrides the policy")), "{}", ran.err);
    }
    let ran = place
        .run(&[
            "mask",
            "a/b/t.csv",
            "-o",
            "-",
            "-c",
            "y",
            "-p",
            "a/hmask.toml",
            "--scope",
            "stable",
            "--prefix",
            "",
            "--length",
            "16",
        ])
        .ok();
    assert_eq!(ran.text(), format!("x,y\n{},{}\n", token("1"), token("2")));
    assert!(ran.err.contains("-c overrides the policy for y"), "{}", ran.err);
    place.write("t.csv", "x,y\n1,2\n");
    place.run(&["mask", "t.csv", "-o", "-"]).fails(2, "no hmask.toml is found");
    place.write("bad.toml", "version = 1\n[columns]\nx = \"pseudonymm\"\n");
    let ran = place.run(&["mask", "t.csv", "-p", "bad.toml", "-o", "-"]).fails_at(2);
    assert!(ran.contains("bad.toml") && ran.contains("line 3, column 5") && ran.contains("^^^^^^^^^^^^"), "{ran}");
}

#[test]
fn the_policy_says_who_may_be_lent_to_and_what_may_be_found() {
    let place = Place::with_token();
    place.write("t.csv", "nom,note\nDurand,vu Durand\n");
    let policy = |more: &str| {
        format!("version = 1\nallow_hosts = [\"api.openai.com\"]\n[columns]\nnom = \"pseudonym\"\nnote = \"keep\"\n{more}")
    };
    place.write("hmask.toml", policy(""));
    let ask = |to: &str| place.run(&["ask", "t.csv", "SELECT 1 AS x FROM data", "--to", to, "--dry-run"]);
    ask("http://127.0.0.1:9/v1").fails(2, "the policy does not allow 127.0.0.1");
    ask("https://api.openai.com/v1").fails(1, "original of a masked column");
    ask("local").fails(1, "original of a masked column");
    place.write("hmask.toml", policy("[gate]\naccept_leaks = [\"note\"]\n"));
    ask("https://api.openai.com/v1").ok();
}

#[test]
fn values_that_a_treatment_cannot_take_have_a_position_and_are_not_told() {
    let place = Place::new();
    for (treatment, value) in [
        ("\"year\"", "SECRET"),
        ("\"bucket:10\"", "SECRET"),
        ("{ treatment = \"pseudonym\", normalise = [\"phone:FR\"] }", "SECRET"),
        ("{ treatment = \"shift\", days = 3, by = \"a\" }", "SECRET"),
    ] {
        place.write("p.toml", format!("version = 1\nunlisted = \"keep\"\n[columns]\nb = {treatment}\n"));
        place.write("t.csv", format!("a,b\n1,\n2,{value}\n"));
        place.write("t.ndjson", format!("{{\"a\":1}}\n{{\"a\":2,\"b\":\"{value}\"}}\n"));
        for (file, at) in [("t.csv", "record 3"), ("t.ndjson", "line 2")] {
            let ran = place.run(&["mask", file, "-p", "p.toml", "-o", "o"]).fails(3, at);
            assert!(ran.err.contains("column \"b\"") && !ran.err.contains("SECRET"), "{}", ran.err);
        }
        assert_eq!(place.names(), ["p.toml", "t.csv", "t.ndjson"]);
    }
}

#[test]
fn of_several_faults_the_first_in_the_file_is_told() {
    let place = Place::new();
    place.write(
        "p.toml",
        "version = 1\nunlisted = \"keep\"\n[columns]\na = \"year\"\nb = { treatment = \"shift\", days = 3, by = \"id\" }\n",
    );
    let refused = |text: &[u8], at: &str| {
        place.write("t.csv", text);
        let ran = place.run(&["mask", "t.csv", "-p", "p.toml", "-o", "o"]).fails(3, at);
        assert!(!ran.err.contains("SECRET") && !ran.err.contains("internal"), "{}", ran.err);
    };
    refused(b"id,a,b\n1,2020-01-01,SECRET\n2,SECRET,2020-01-01\n", "record 2, line 2, column \"b\"");
    refused(b"id,a,b\n1,SECRET,2020-01-01\n2,2020-01-01,SECRET\n", "record 2, line 2, column \"a\"");
    refused(b"id,a,b\n1,2020-01-01,2020-01-01\n\xe9,2020-01-01,2020-01-01\n", "record 3, line 3, column \"id\"");
}

#[test]
fn dropped_columns_leave_csv_files_of_any_layout() {
    let place = Place::new();
    for (text, keep, want) in [
        ("a,b,c\r\n\"1\",\"x,\"\"y\",3\r\n\r\n4,5,6", "a,c", "a,c\r\n\"1\",3\r\n\r\n4,6"),
        ("a,b,c\n1,2,3\n", "b", "b\n2\n"),
        ("a,b,c\n1,,3\n", "b", "b\n\"\"\n"),
        ("a,b,c\n1,2,3\n", "a,b", "a,b\n1,2\n"),
        ("\u{feff}a;b;\n1;2;\n", "b", "\u{feff}b\n2\n"),
        ("sep=;\na;b\n1;2\n", "a", "sep=;\na\n1\n"),
        ("a,\"b\nb\",c\n1,2,3\n", "c,a", "a,c\n1,3\n"),
    ] {
        place.write("t.csv", text);
        place.write("p.toml", "version = 1\nunlisted = \"keep\"\n");
        let out = place.run(&["mask", "t.csv", "-p", "p.toml", "--keep", keep, "-o", "-"]).ok().text();
        assert_eq!(out, want, "{text:?}");
    }
    let wide: Vec<u8> = [0xff, 0xfe].into_iter().chain("é,b,c\r\nx,y,z\r\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    place.write("t.csv", wide);
    let out = place.run(&["mask", "t.csv", "-p", "p.toml", "--keep", "é,c", "-o", "-"]).ok().out;
    let want: Vec<u8> = [0xff, 0xfe].into_iter().chain("é,c\r\nx,z\r\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    assert_eq!(out, want);
    place.write("t.csv", "a,b\n1,2\n");
    assert_eq!(
        place.run(&["mask", "t.csv", "-p", "p.toml", "-o", "-"]).ok().text(),
        "a,b\n1,2\n",
        "nothing listed, nothing changed"
    );
    place.run(&["mask", "t.csv", "-p", "p.toml", "--keep", "a", "--ragged", "keep", "-o", "-"]).fails(2, "--ragged keep");
    place.run(&["mask", "t.csv", "-p", "p.toml", "--keep", "z", "-o", "-"]).fails(2, "no column z");
}

#[test]
fn dictionary_entries_that_become_equal_are_written_out() {
    use arrow_array::types::Int32Type;
    let place = Place::new();
    let values: Vec<Option<&str>> =
        (0..500).map(|i| [Some("1201"), Some("1299"), None, Some("3301"), Some("4401")][i % 5]).collect();
    let categories: arrow_array::DictionaryArray<Int32Type> = values.iter().copied().collect();
    let numbers: Int64Array = (0..500).map(|i| Some(i % 40)).collect();
    let columns: [(&str, ArrayRef, bool); 2] = [("cp", Arc::new(categories), true), ("n", Arc::new(numbers), true)];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(place.path("t.parquet")).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    place.write("p.toml", "version = 1\n[columns]\ncp = \"truncate:2\"\nn = \"bucket:10\"\n");
    place.run(&["mask", "t.parquet", "-p", "p.toml", "-o", "o.parquet"]).ok();
    let masked = read(&place, "o.parquet");
    let texts = arrow_cast::cast(masked.column(0), &DataType::Utf8).unwrap();
    let want: Vec<Option<&str>> = values.iter().map(|v| v.map(|v| &v[..2])).collect();
    assert_eq!(texts.as_string::<i32>().iter().collect::<Vec<_>>(), want);
    let want: Vec<i64> = (0..500).map(|i| i % 40 / 10 * 10).collect();
    assert_eq!(masked.column(1).as_primitive::<Int64Type>().values(), &want[..]);
    // No entry of a dictionary comes twice, as readers of categories want it.
    let bytes = place.read("o.parquet");
    assert!(!bytes.windows(4).any(|w| w == b"1201"));
}

#[test]
fn a_misspelt_column_to_keep_is_an_error_in_ndjson_too() {
    let place = Place::new();
    place.write("t.ndjson", "{\"a\":\"x\",\"b\":1}\n");
    place.run(&["mask", "t.ndjson", "-c", "a", "--keep", "zz", "-o", "o.ndjson"]).fails(2, "zz");
    place.run(&["mask", "t.ndjson", "-c", "a", "--keep", "b.x", "-o", "o.ndjson"]).fails_at(3);
    assert_eq!(place.names(), ["t.ndjson"]);
}
