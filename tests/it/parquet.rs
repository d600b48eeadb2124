//! `hmask mask` on Parquet, read back by the `parquet` crate.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_schema::DataType;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::env::{Place, fixture};
use super::mask::{ORIGINALS, PERSONAL, token};

fn rows(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let schema = reader.schema().clone();
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    arrow_select::concat::concat_batches(&schema, &batches).unwrap()
}

fn column(batch: &RecordBatch, name: &str) -> Vec<Option<String>> {
    let array = batch.column_by_name(name).unwrap();
    assert_eq!(array.data_type(), &DataType::Utf8, "{name}");
    array.as_string::<i32>().iter().map(|v| v.map(str::to_owned)).collect()
}

#[test]
fn the_same_tokens_as_the_csv() {
    let place = Place::new();
    let input = fixture("clients.parquet");
    place.run(&["mask", input.to_str().unwrap(), "-c", PERSONAL, "-o", "o.parquet"]).ok();
    let csv = place.run(&["mask", fixture("clients.csv").to_str().unwrap(), "-c", PERSONAL, "-o", "-"]).ok().out;
    let mut reader = csv::ReaderBuilder::new().delimiter(b';').from_reader(&csv[..]);
    let headers = reader.headers().unwrap().clone();
    let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let (masked, original) = (rows(&place.path("o.parquet")), rows(&input));
    for (i, name) in headers.iter().enumerate() {
        if PERSONAL.split(',').any(|p| p == name) {
            let want: Vec<Option<String>> = records.iter().map(|r| Some(r[i].to_owned()).filter(|v| !v.is_empty())).collect();
            assert_eq!(column(&masked, name), want, "{name}");
        } else {
            assert_eq!(masked.column_by_name(name), original.column_by_name(name), "{name}");
        }
    }
    let bytes = place.read("o.parquet");
    for value in ORIGINALS {
        assert!(!bytes.windows(value.len()).any(|w| w == value.as_bytes()), "{value} is in the file");
    }
}

/// A table with many pages and row groups, in a form.
fn write(path: &Path, properties: WriterProperties) -> RecordBatch {
    let n = 3000i64;
    let some = |i: i64| i % 7 != 0;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values((0..n).map(|i| i * 37 % 1009)))),
        ("name", Arc::new((0..n).map(|i| some(i).then(|| format!("name-{}", i % 400))).collect::<StringArray>())),
        ("few", Arc::new(StringArray::from_iter_values((0..n).map(|i| format!("few-{}", i % 3))))),
        ("score", Arc::new((0..n).map(|i| some(i + 1).then_some(i as f64 / 8.0)).collect::<Float64Array>())),
        ("flag", Arc::new((0..n).map(|i| Some(i % 2 == 0)).collect::<BooleanArray>())),
        ("at", Arc::new(TimestampMicrosecondArray::from_iter_values((0..n).map(|i| i * 1_500_000)).with_timezone("UTC"))),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    batch
}

#[test]
fn every_form_of_pages_keeps_rows_nulls_and_untouched_bytes() {
    let base = || {
        WriterProperties::builder()
            .set_max_row_group_row_count(Some(1100))
            .set_data_page_row_count_limit(150)
            .set_write_batch_size(50)
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_bloom_filter_enabled(true)
    };
    let forms = [
        ("dictionary", base().build()),
        ("plain zstd", base().set_dictionary_enabled(false).set_compression(Compression::ZSTD(ZstdLevel::default())).build()),
        ("v2 snappy", base().set_writer_version(WriterVersion::PARQUET_2_0).set_compression(Compression::SNAPPY).build()),
        ("v2 delta", {
            let properties = base().set_writer_version(WriterVersion::PARQUET_2_0).set_dictionary_enabled(false);
            properties
                .set_column_encoding("name".into(), Encoding::DELTA_BYTE_ARRAY)
                .set_compression(Compression::LZ4_RAW)
                .build()
        }),
        ("falls back", base().set_dictionary_page_size_limit(600).build()),
    ];
    for (form, properties) in forms {
        let place = Place::new();
        let input = place.path("t.parquet");
        let original = write(&input, properties);
        place.run(&["mask", "t.parquet", "-c", "name,id,score,flag,at", "-o", "o.parquet", "--threads", "1"]).ok();
        place.run(&["mask", "t.parquet", "-c", "name,id,score,flag,at", "-o", "o2.parquet", "--threads", "4"]).ok();
        assert_eq!(place.read("o.parquet"), place.read("o2.parquet"), "{form}");
        let masked = rows(&place.path("o.parquet"));
        assert_eq!(masked.num_rows(), original.num_rows());
        assert_eq!(masked.column_by_name("few"), original.column_by_name("few"), "{form}");
        let texts = |name: &str| -> Vec<Option<String>> {
            let array = original.column_by_name(name).unwrap();
            let text = |i: usize| match name {
                "name" => array.as_string::<i32>().value(i).to_owned(),
                "id" => array.as_primitive::<arrow_array::types::Int64Type>().value(i).to_string(),
                "score" => format!("{:?}", array.as_primitive::<arrow_array::types::Float64Type>().value(i)),
                "flag" => array.as_boolean().value(i).to_string(),
                _ => {
                    let micros = array.as_primitive::<arrow_array::types::TimestampMicrosecondType>().value(i);
                    let (s, half) = (micros / 1_000_000, micros % 1_000_000 != 0);
                    format!("1970-01-01T{:02}:{:02}:{:02}{}Z", s / 3600, s / 60 % 60, s % 60, if half { ".5" } else { "" })
                }
            };
            (0..array.len()).map(|i| array.is_valid(i).then(|| token(&text(i)))).collect()
        };
        for name in ["name", "id", "score", "flag", "at"] {
            assert_eq!(column(&masked, name), texts(name), "{form}: {name}");
        }
        same_untouched_chunks(&input, &place.path("o.parquet"), form);
    }
}

/// The column `few`: its chunks byte for byte, its statistics, and the layout of all row groups.
fn same_untouched_chunks(input: &Path, output: &Path, form: &str) {
    let (one, two) = (open(input), open(output));
    assert_eq!(one.metadata().num_row_groups(), two.metadata().num_row_groups());
    let (a, b) = (std::fs::read(input).unwrap(), std::fs::read(output).unwrap());
    for (x, y) in one.metadata().row_groups().iter().zip(two.metadata().row_groups()) {
        assert_eq!(x.num_rows(), y.num_rows());
        let bytes = |file: &[u8], column: &parquet::file::metadata::ColumnChunkMetaData| {
            let (start, length) = column.byte_range();
            file[start as usize..(start + length) as usize].to_vec()
        };
        assert!(bytes(&a, x.column(2)) == bytes(&b, y.column(2)), "{form}");
        assert_eq!(x.column(2).statistics(), y.column(2).statistics(), "{form}");
        for column in y.columns() {
            assert!(column.bloom_filter_offset().is_some(), "{form}: a bloom filter is missing");
            assert!(column.column_index_offset().is_some() && column.offset_index_offset().is_some(), "{form}");
        }
    }
}

fn open(path: &Path) -> SerializedFileReader<File> {
    SerializedFileReader::new(File::open(path).unwrap()).unwrap()
}

#[test]
fn no_mutation_of_a_file_panics_hangs_or_leaves_an_output() {
    let place = Place::new();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(1100)).set_data_page_row_count_limit(500);
    write(&place.path("t.parquet"), properties.set_compression(Compression::SNAPPY).build());
    let good = place.read("t.parquet");
    let mut seed = 1u64;
    let mut random = |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % n
    };
    let mut refused = 0;
    for _ in 0..150 {
        let mut bad = good.clone();
        // Half of them in the footer, where the numbers are.
        let footer = good.len() - 2000;
        for _ in 0..=random(3) {
            let at = if random(2) == 0 { footer + random(2000) } else { random(good.len()) };
            bad[at] = random(256) as u8;
        }
        if random(8) == 0 {
            bad.truncate(random(good.len()));
        }
        place.write("bad.parquet", &bad);
        let ran = place.run(&["mask", "bad.parquet", "-c", "name,id,flag", "-o", "o.parquet", "--force"]);
        match ran.code {
            // A bit of an untouched column, a name or a statistic: nothing that hmask has to read.
            0 => assert!(place.path("o.parquet").exists()),
            2 | 3 => {
                refused += 1;
                assert!(ran.err.starts_with("hmask: ") && !ran.err.contains("panicked"), "{}", ran.err);
                assert!(!place.path("o.parquet").exists(), "{}", ran.err);
            }
            code => panic!("exit {code}: {}", ran.err),
        }
        let _ = std::fs::remove_file(place.path("o.parquet"));
    }
    assert!(refused > 30, "only {refused} were refused");
}

#[test]
fn what_is_no_leaf_or_no_parquet_is_refused() {
    let place = Place::new();
    place.write("t.parquet", "PAR1 is not enough");
    place.run(&["mask", "t.parquet", "-c", "a", "-o", "o.parquet"]).fails(3, "not a Parquet file");
    let input = fixture("clients.parquet");
    let ran = place.run(&["mask", input.to_str().unwrap(), "-c", "couriel", "-o", "o.parquet"]).fails(2, "no column couriel");
    assert!(ran.err.contains("hint: -c courriel"), "{}", ran.err);
    place.run_with_input(&["mask", "-", "-c", "a", "-o", "-"], &std::fs::read(input).unwrap()).fails(3, "pipe");
    assert_eq!(place.names(), ["t.parquet"]);
}
