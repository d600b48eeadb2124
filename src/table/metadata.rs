//! Metadata of columnar files that tell what was masked: of a field, and of the file.

/// Whether an entry of a field's metadata says what a masked value was: an extension type (UUID, JSON, …) says what a string is not, and
/// polars lists all values of an Enum.
pub(super) fn says_what_it_was(key: &str) -> bool {
    key.starts_with("ARROW:extension:") || key.starts_with("_PL_ENUM")
}

/// What the user should know of an entry of the file's metadata, which is kept.
pub(super) fn warning(key: &[u8], value: &[u8]) -> Option<String> {
    // Spark's attributes list the labels of an index, Hugging Face's features those of a class, GeoParquet's a box, pandas' range index its
    // bounds, which may be numbers of persons.
    let telling: [&[u8]; 3] = [b"org.apache.spark.sql.parquet.row.metadata", b"huggingface", b"geo"];
    let tells = telling.contains(&key) || key == b"pandas" && has_range(value);
    tells.then(|| format!("the metadata {} was kept; it can list values", String::from_utf8_lossy(key)))
}

/// Whether pandas' metadata describe an index by bounds other than those of a mere count.
fn has_range(metadata: &[u8]) -> bool {
    let metadata: serde_json::Value = serde_json::from_slice(metadata).unwrap_or_default();
    let indexes = metadata["index_columns"].as_array().into_iter().flatten();
    indexes.filter(|i| i["kind"] == "range").any(|i| i["start"] != 0 || i["step"] != 1 || !i["name"].is_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_an_index_of_pandas_are_seen() {
        let index = |i: &str| format!("{{\"index_columns\": [{i}], \"columns\": []}}");
        let range = "{\"kind\": \"range\", \"name\": null, \"start\": 0, \"stop\": 3, \"step\": 1}";
        assert!(!has_range(index(range).as_bytes()) && !has_range(index("\"id\"").as_bytes()) && !has_range(b"{"));
        assert!(has_range(index(&range.replace("0,", "4711001,")).as_bytes()));
        assert!(has_range(index(&range.replace("null", "\"id\"")).as_bytes()));
    }
}
