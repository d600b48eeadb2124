//! The Arrow schema that Arrow's writers leave in a Parquet file's metadata: masked fields become strings there, too.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_ipc::convert::try_fb_to_schema;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::policy::LIST_STEP;
use crate::table::metadata::says_what_it_was;

/// The key of the metadata.
pub(super) const KEY: &[u8] = b"ARROW:schema";

/// The schema with the leaves at these paths as strings and without those that are gone, encoded as it was; nothing where it cannot be
/// read.
pub(super) fn masked(encoded: &[u8], strings: &[Vec<String>], gone: &[Vec<String>]) -> Option<Vec<u8>> {
    const CONTINUATION: [u8; 8] = [255; 8];
    let bytes = BASE64_STANDARD.decode(encoded).ok()?;
    let message = if bytes.starts_with(&CONTINUATION[..4]) { bytes.get(8..)? } else { &bytes };
    let schema = try_fb_to_schema(arrow_ipc::root_as_message(message).ok()?.header_as_schema()?).ok()?;
    let paths = Paths { strings: strings.iter().map(Vec::as_slice).collect(), gone: gone.iter().map(Vec::as_slice).collect() };
    let schema = Schema::new_with_metadata(fields(schema.fields(), &paths), schema.metadata().clone());
    Some(parquet::arrow::encode_arrow_schema(&schema).into_bytes())
}

/// What changes below a place.
struct Paths<'p> {
    strings: Vec<&'p [String]>,
    gone: Vec<&'p [String]>,
}

impl<'p> Paths<'p> {
    /// What changes below a step.
    fn below(&self, step: &str) -> Self {
        let below =
            |paths: &[&'p [String]]| paths.iter().filter(|p| p.first().is_some_and(|s| s == step)).map(|p| &p[1..]).collect();
        Self { strings: below(&self.strings), gone: below(&self.gone) }
    }

    fn is_empty(&self) -> bool {
        self.strings.is_empty() && self.gone.is_empty()
    }
}

/// Fields of a struct, or the columns: paths begin with their names.
fn fields(fields: &Fields, paths: &Paths<'_>) -> Fields {
    fields.iter().filter_map(|one| field(one, &paths.below(one.name()))).collect()
}

/// A field after the change; none if nothing is left of it.
fn field(field: &FieldRef, paths: &Paths<'_>) -> Option<FieldRef> {
    if paths.is_empty() {
        return Some(field.clone());
    }
    let mut changed = Field::clone(field).with_data_type(changed_type(field.data_type(), paths)?);
    if paths.strings.iter().any(|p| p.is_empty()) {
        let metadata = field.metadata().iter().filter(|(k, _)| !says_what_it_was(k));
        let metadata: HashMap<String, String> = metadata.map(|(k, v)| (k.clone(), v.clone())).collect();
        changed = changed.with_metadata(metadata);
    }
    Some(Arc::new(changed))
}

fn changed_type(data_type: &DataType, paths: &Paths<'_>) -> Option<DataType> {
    if paths.gone.iter().any(|p| p.is_empty()) {
        return None;
    }
    if paths.strings.iter().any(|p| p.is_empty()) {
        return Some(string_like(data_type));
    }
    let element = |one: &FieldRef| field(one, &paths.below(LIST_STEP));
    Some(match data_type {
        DataType::Struct(inner) => {
            let left = fields(inner, paths);
            if left.is_empty() && !inner.is_empty() {
                return None;
            }
            DataType::Struct(left)
        }
        DataType::List(field) => DataType::List(element(field)?),
        DataType::LargeList(field) => DataType::LargeList(element(field)?),
        DataType::ListView(field) => DataType::ListView(element(field)?),
        DataType::LargeListView(field) => DataType::LargeListView(element(field)?),
        DataType::FixedSizeList(field, n) => DataType::FixedSizeList(element(field)?, *n),
        DataType::Map(entries, sorted) => {
            // The path goes by `key` and `value`, whatever the entries are named.
            let DataType::Struct(pair) = entries.data_type() else { return Some(data_type.clone()) };
            let renamed = pair.iter().zip(["key", "value"]).filter_map(|(one, name)| field(one, &paths.below(name)));
            let renamed: Fields = renamed.collect();
            if renamed.is_empty() {
                return None;
            }
            let entries = Field::clone(entries).with_data_type(DataType::Struct(renamed));
            DataType::Map(Arc::new(entries), *sorted)
        }
        other => other.clone(),
    })
}

/// The string type that takes the place of a type: of the same family where it has one.
fn string_like(data_type: &DataType) -> DataType {
    match data_type {
        DataType::LargeUtf8 | DataType::LargeBinary => DataType::LargeUtf8,
        DataType::Utf8View | DataType::BinaryView => DataType::Utf8View,
        DataType::Dictionary(index, value) => DataType::Dictionary(index.clone(), Box::new(string_like(value))),
        _ => DataType::Utf8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_paths_change() {
        let inner = Fields::from(vec![Field::new("x", DataType::Int32, true), Field::new("y", DataType::Int32, true)]);
        let list = DataType::new_list(DataType::Struct(inner), true);
        let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::LargeUtf8));
        let schema = Schema::new(vec![
            Field::new("a", DataType::Int64, false),
            Field::new("l", list, true),
            Field::new("d", dictionary.clone(), true).with_metadata(HashMap::from([
                ("_PL_ENUM_VALUES2".to_owned(), "5;ALICE3;BOB".to_owned()),
                ("k".to_owned(), "v".to_owned()),
            ])),
            Field::new("b", DataType::Date32, true),
        ]);
        let encoded = parquet::arrow::encode_arrow_schema(&schema);
        let path = |p: &[&str]| p.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let paths = [path(&["a"]), path(&["l", "[]", "x"]), path(&["d"])];
        let out = masked(encoded.as_bytes(), &paths, &[path(&["b"]), path(&["l", "[]", "y"])]).unwrap();
        let bytes = BASE64_STANDARD.decode(out).unwrap();
        let got = try_fb_to_schema(arrow_ipc::root_as_message(&bytes[8..]).unwrap().header_as_schema().unwrap()).unwrap();
        assert_eq!(got.field(0), &Field::new("a", DataType::Utf8, false));
        assert_eq!(got.field(2).data_type(), &dictionary);
        assert!(got.field(2).metadata().iter().all(|(k, _)| k == "k"), "the values of an Enum are left");
        assert_eq!(got.fields().len(), 3, "b is gone");
        let DataType::List(element) = got.field(1).data_type() else { panic!() };
        let DataType::Struct(fields) = element.data_type() else { panic!() };
        assert_eq!((fields.len(), fields[0].data_type()), (1, &DataType::Utf8));
        assert!(masked(b"not base64!", &[], &[]).is_none());
    }
}
