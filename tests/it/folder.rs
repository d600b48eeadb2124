//! `hmask mask` on a folder: every table, laid out as it was, or nothing.

use std::fs;
use std::path::Path;

use super::env::{Place, fixture};
use super::mask::token;

fn data_set(place: &Place) {
    for (folder, id) in [("region=nord", "a1"), ("region=s%C3%BCd", "b2"), ("region=__HIVE_DEFAULT_PARTITION__", "c3")] {
        fs::create_dir_all(place.path("in").join(folder)).unwrap();
        place.write(&format!("in/{folder}/part-0.csv"), format!("id,n\n{id},1\n"));
    }
    fs::create_dir_all(place.path("in/parquet")).unwrap();
    place.write("in/x.ndjson", "{\"id\":\"d4\",\"n\":1}\n");
    place.write("in/_metadata", "ids a1 to d4");
    place.write("in/.x.csv.crc", "crc");
}

fn tree(root: &Path) -> Vec<String> {
    let mut out = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            out.extend(tree(&path).into_iter().map(|n| format!("{name}/{n}")));
        } else {
            out.push(name);
        }
    }
    out.sort();
    out
}

#[test]
fn a_data_set_keeps_its_layout() {
    let place = Place::new();
    data_set(&place);
    let ran = place.run(&["mask", "in", "-c", "id", "-o", "out"]).ok();
    let want =
        ["region=__HIVE_DEFAULT_PARTITION__/part-0.csv", "region=nord/part-0.csv", "region=s%C3%BCd/part-0.csv", "x.ndjson"];
    assert_eq!(tree(&place.path("out")), want);
    assert_eq!(place.read("out/region=nord/part-0.csv"), format!("id,n\n{},1\n", token("a1")).as_bytes());
    assert!(ran.err.contains("_metadata is left out") && ran.err.contains("4 tables, 4 rows, masked: id 4"), "{}", ran.err);
    assert_eq!(place.names(), ["in", "out"]);
    place.run(&["mask", "in", "-c", "id", "-o", "out"]).fails(2, "exists");
    place.run(&["mask", "in", "-c", "id", "-o", "out", "--force"]).ok();
    place.run(&["mask", "in", "-c", "id", "-o", "in/out"]).fails(2, "within the input");
    place.run(&["mask", "in", "-c", "id"]).fails(2, "is a folder");
}

#[test]
fn partitions_are_refused_or_renamed() {
    let place = Place::new();
    data_set(&place);
    fs::remove_file(place.path("in/x.ndjson")).unwrap();
    place.run(&["mask", "in", "-c", "region,id", "-o", "out"]).fails(2, "names of folders");
    place.run(&["mask", "in", "-c", "region,id", "-o", "out", "--mask-partitions"]).ok();
    let mut want = [("nord", ""), ("süd", "")].map(|(v, _)| format!("region={}/part-0.csv", token(v)));
    want.sort();
    let found = tree(&place.path("out"));
    assert!(want.iter().all(|w| found.contains(w)) && found.len() == 3, "{found:?}");
    assert!(found.contains(&"region=__HIVE_DEFAULT_PARTITION__/part-0.csv".to_owned()), "{found:?}");
    let file = place.read(&format!("out/{}", want[0]));
    assert!(!String::from_utf8(file).unwrap().contains("a1"));
}

#[test]
fn a_partition_that_is_a_column_too_is_masked_in_both() {
    let place = Place::new();
    fs::create_dir_all(place.path("in/nom=Ana")).unwrap();
    place.write("in/nom=Ana/x.csv", "nom,b\nAna,1\n");
    place.write("in/nom=Ana/_y.csv", "b\n1\n");
    place.run(&["mask", "in", "-c", "nom", "-o", "out", "--mask-partitions", "--others", "copy"]).ok();
    let folder = format!("out/nom={}", token("Ana"));
    assert_eq!(place.read(&format!("{folder}/x.csv")), format!("nom,b\n{},1\n", token("Ana")).as_bytes());
    assert_eq!(place.read(&format!("{folder}/_y.csv")), b"b\n1\n");
    fs::create_dir_all(place.path("in/in")).unwrap();
    place.write("in/in/x.csv", "nom\nAna\n");
    place.run(&["mask", "in", "-c", "nom", "-o", ".", "--force", "--mask-partitions"]).fails(2, "within the input");
}

#[test]
fn shards_share_a_folder_and_together_are_the_whole() {
    let place = Place::new();
    data_set(&place);
    place.run(&["mask", "in", "-c", "id", "-o", "whole"]).ok();
    for part in ["1/3", "2/3", "3/3"] {
        place.run(&["mask", "in", "-c", "id", "-o", "parts", "--shard", part]).ok();
    }
    assert_eq!(tree(&place.path("whole")), tree(&place.path("parts")));
    let ran = place.run(&["mask", "in", "-c", "id", "-o", "x", "--shard", "4/3"]);
    assert!(ran.code == 2 && ran.err.contains("no part such as 2/3"), "{}", ran.err);
}

#[test]
fn what_is_no_table_and_what_fails_leaves_nothing() {
    let place = Place::new();
    data_set(&place);
    place.write("in/README.md", "about id a1");
    place.run(&["mask", "in", "-c", "id", "-o", "out"]).fails(3, "no table");
    place.run(&["mask", "in", "-c", "id", "-o", "skipped", "--others", "skip"]).ok();
    assert!(!place.path("skipped/README.md").exists());
    place.run(&["mask", "in", "-c", "id", "-o", "copied", "--others", "copy"]).ok();
    assert_eq!(place.read("copied/README.md"), b"about id a1");
    fs::copy(fixture("clients.parquet"), place.path("in/z.parquet")).unwrap();
    let ran = place.run(&["mask", "in", "-c", "id", "-o", "out", "--others", "skip"]).fails(2, "no column id");
    assert!(ran.err.contains("z.parquet"), "{}", ran.err);
    assert_eq!(place.names(), ["copied", "in", "skipped"]);
}
