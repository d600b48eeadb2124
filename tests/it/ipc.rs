//! `hmask mask` on Arrow IPC, read back by the `arrow-ipc` crate.

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray, StringViewArray,
};
use arrow_ipc::CompressionType;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::DataType;

use super::env::Place;
use super::mask::token;

fn table() -> RecordBatch {
    let n = 500i64;
    let some = |i: i64| i % 7 != 0;
    let names: Vec<Option<String>> = (0..n).map(|i| some(i).then(|| format!("Zoé Lefèvre {i}"))).collect();
    let of_three: DictionaryArray<Int32Type> = (0..n).map(|i| some(i).then_some(["Ana", "Bob", "Cyd"][i as usize % 3])).collect();
    let lists = ListArray::from_iter_primitive::<arrow_array::types::Int64Type, _, _>((0..n).map(|i| Some(vec![Some(i), None])));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("name", Arc::new(StringArray::from(names.clone()))),
        ("view", Arc::new(StringViewArray::from(names))),
        ("id", Arc::new((0..n).map(|i| some(i).then_some(i * 1_000_003)).collect::<Int64Array>())),
        ("of_three", Arc::new(of_three)),
        ("list", Arc::new(lists)),
        ("kept", Arc::new((0..n).map(|i| i as f64 / 7.0).collect::<Float64Array>())),
        ("kept_view", Arc::new((0..n).map(|i| Some(format!("a text longer than a view {i}"))).collect::<StringViewArray>())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true))).unwrap()
}

/// The table in two batches, as a file or a stream.
fn bytes(is_file: bool, codec: Option<CompressionType>) -> Vec<u8> {
    let table = table();
    let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
    let mut out = Vec::new();
    let halves = [table.slice(0, 300), table.slice(300, 200)];
    if is_file {
        let mut writer = FileWriter::try_new_with_options(&mut out, &table.schema(), options).unwrap();
        writer.write_metadata("written", "by a test");
        halves.iter().for_each(|half| writer.write(half).unwrap());
        writer.finish().unwrap();
    } else {
        let mut writer = StreamWriter::try_new_with_options(&mut out, &table.schema(), options).unwrap();
        halves.iter().for_each(|half| writer.write(half).unwrap());
        writer.finish().unwrap();
    }
    out
}

fn read(bytes: Vec<u8>, is_file: bool) -> RecordBatch {
    let bytes = Cursor::new(bytes);
    let (schema, batches): (_, Vec<RecordBatch>) = if is_file {
        let reader = FileReader::try_new(bytes, None).unwrap();
        assert_eq!(reader.custom_metadata().get("written").map(String::as_str), Some("by a test"));
        (reader.schema(), reader.map(Result::unwrap).collect())
    } else {
        let reader = StreamReader::try_new(bytes, None).unwrap();
        (reader.schema(), reader.map(Result::unwrap).collect())
    };
    assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [300, 200]);
    arrow_select::concat::concat_batches(&schema, &batches).unwrap()
}

fn texts(array: &dyn Array) -> Vec<Option<String>> {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().map(|v| v.map(str::to_owned)).collect(),
        DataType::Utf8View => array.as_string_view().iter().map(|v| v.map(str::to_owned)).collect(),
        other => panic!("{other} is no string"),
    }
}

#[test]
fn masked_leaves_become_tokens_and_nothing_else_changes() {
    let place = Place::new();
    let original = table();
    for is_file in [true, false] {
        for codec in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
            place.write("in.arrow", bytes(is_file, codec));
            place.run(&["mask", "in.arrow", "-c", "name,view,id,of_three,list[]", "-o", "out.arrow", "--force"]).ok();
            let masked = read(place.read("out.arrow"), is_file);
            let names: Vec<Option<String>> = original["name"].as_string::<i32>().iter().map(|v| v.map(token)).collect();
            assert_eq!(texts(&masked["name"]), names);
            assert_eq!((texts(&masked["view"]), masked["view"].data_type()), (names, &DataType::Utf8View));
            let ids = original["id"].as_primitive::<arrow_array::types::Int64Type>();
            assert_eq!(texts(&masked["id"]), ids.iter().map(|v| v.map(|v| token(&v.to_string()))).collect::<Vec<_>>());
            let words = masked["of_three"].as_dictionary::<Int32Type>();
            assert_eq!(words.keys(), original["of_three"].as_dictionary::<Int32Type>().keys(), "indexes stay");
            assert_eq!(texts(words.values()), ["Bob", "Cyd", "Ana"].map(|v| Some(token(v))));
            let list = masked["list"].as_list::<i32>();
            assert_eq!(texts(&list.value(42)), [Some(token("42")), None]);
            for kept in ["kept", "kept_view"] {
                assert_eq!(masked[kept].to_data(), original[kept].to_data(), "{kept}");
            }
            if codec.is_none() {
                let out = place.read("out.arrow");
                assert!(!out.windows(8).any(|w| w == "Lefèvre".as_bytes()), "an original is in the file");
            }
        }
    }
}

#[test]
fn a_pipe_gives_the_same_bytes_as_a_file_on_any_number_of_threads() {
    let place = Place::new();
    let input = bytes(true, Some(CompressionType::ZSTD));
    place.write("in.feather", &input);
    let want = place.run(&["mask", "in.feather", "-c", "name", "-o", "-", "--threads", "1"]).ok().out;
    assert_eq!(place.run_with_input(&["mask", "-", "-c", "name", "-o", "-", "--threads", "3"], &input).ok().out, want);
}

#[test]
fn what_cannot_be_read_with_certainty_is_refused() {
    let place = Place::new();
    let input = bytes(true, None);
    let refused = |what: &str, bytes: &[u8], columns: &str, code: i32| {
        place.write("bad.arrow", bytes);
        let ran = place.run(&["mask", "bad.arrow", "-c", columns, "-o", "out.arrow"]);
        assert_eq!(ran.code, code, "{what}: {}", ran.err);
        assert!(!place.path("out.arrow").exists() && !ran.err.contains("internal"), "{what}: {}", ran.err);
    };
    refused("cut within a batch", &input[..input.len() / 2], "name", 3);
    refused("without its footer", &input[..input.len() - 20], "name", 3);
    refused("nothing", b"ARROW1\0\0", "name", 3);
    refused("a group", &input, "list", 2);
    refused("no such column", &input, "nom", 2);
    refused("Feather 1", b"FEA1\0\0\0\0FEA1", "name", 3);
    let mut trailing = bytes(false, None);
    trailing.extend_from_slice(b"more");
    refused("bytes behind the end of a stream", &trailing, "name", 3);
}
