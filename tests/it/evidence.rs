//! Inspection, risk, manifests, their verification and signature, the report, subject requests.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::env::{Place, fixture};
use super::mask::{ORIGINALS, PERSONAL, token};

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn inspect_names_identifiers_and_shows_no_value() {
    let place = Place::new().unset("HMASK_KEY");
    for file in ["clients.csv", "clients.parquet"] {
        let path = fixture(file);
        let ran = place.run(&["inspect", path.to_str().unwrap(), "--json"]).ok();
        let columns = json(&ran.out)["columns"].as_array().unwrap().clone();
        let class =
            |name: &str| columns.iter().find(|c| c["name"] == name).unwrap()["verdict"]["class"].as_str().unwrap().to_owned();
        assert_eq!((class("nom").as_str(), class("courriel").as_str()), ("direct", "direct"), "{file}");
        for text in [ran.text(), place.run(&["inspect", path.to_str().unwrap()]).ok().text()] {
            assert!(ORIGINALS.iter().all(|o| !text.contains(o)), "{text}");
        }
    }
}

#[test]
fn a_written_policy_masks_the_table_it_was_written_for() {
    let place = Place::new();
    let input = fixture("clients.csv");
    let input = input.to_str().unwrap();
    place.run(&["inspect", input, "--write-policy", "p.toml"]).ok();
    place.run(&["inspect", input, "--write-policy", "p.toml"]).fails(2, "p.toml exists");
    place.run(&["mask", input, "-p", "p.toml", "-o", "o.csv"]).ok();
    let out = String::from_utf8_lossy(&place.read("o.csv")).into_owned();
    for original in ["Lefèvre", "@exemple.fr", "@example.fr"] {
        assert!(!out.contains(original), "{original} in {out}");
    }
    let policy = String::from_utf8(place.read("p.toml")).unwrap();
    assert!(ORIGINALS.iter().all(|o| !policy.contains(o)), "{policy}");
}

#[test]
fn risk_over_a_threshold_is_told_and_nothing_is_sent() {
    let place = Place::new();
    place.write("t.csv", "nom,cp,an,ville\nDurand,75,1980,Paris\nMartin,75,1980,Paris\nPetit,06,1990,Nice\n");
    let ran = place.run(&["risk", "t.csv", "--quasi", "cp,an", "--min-k", "2"]);
    assert!(ran.code == 1 && ran.text().contains("k = 1") && ran.text().contains("does not hold"), "{}", ran.text());
    place.run(&["risk", "t.csv", "--quasi", "cp,an", "--min-k", "1", "--json"]).ok();
    place.run(&["risk", "t.csv", "--quasi", "none"]).fails(2, "no column none");
    place.run(&["risk", "t.csv"]).fails(2, "nothing is named");
    let policy = |gate: &str| {
        format!("version = 1\nunlisted = \"keep\"\n[columns]\nnom = \"pseudonym\"\n[gate]\nquasi = [\"cp\", \"an\"]\n{gate}\n")
    };
    let ask = || {
        place.run(&[
            "ask",
            "t.csv",
            "-p",
            "p.toml",
            "SELECT 1 AS x FROM data",
            "--to",
            "local",
            "--manifest",
            "m.json",
            "--force",
        ])
    };
    for gate in ["min_k = 2", "max_unique_share = 0.1", "sensitive = \"ville\"\nmin_l = 2"] {
        place.write("p.toml", policy(gate));
        ask().fails(1, "nothing was sent");
        assert!(!place.path("m.json").exists(), "{gate}");
    }
    place.write("p.toml", policy("min_k = 1\nmax_unique_share = 0.5"));
    ask().ok();
    let risk = json(&place.read("m.json"))["gate"]["risk"].clone();
    assert_eq!((risk["k_min"].clone(), risk["unique_rows"].clone(), risk["groups"].clone()), (1.into(), 1.into(), 2.into()));
    assert_eq!(risk["distribution"].as_array().unwrap().iter().map(|b| b["rows"].as_u64().unwrap()).sum::<u64>(), 3);
}

#[test]
fn rows_that_a_condition_leaves_out_are_not_sent() {
    let place = Place::new();
    place.write("t.csv", "nom;age\nDurand;17\nMartin;40\n");
    place.write("t.ndjson", "{\"nom\":\"Durand\",\"age\":17}\n{\"nom\":\"Martin\",\"age\":40}\n");
    let csv = place.run(&["mask", "t.csv", "-c", "nom", "--where", "age > 18", "-o", "-"]).ok().text();
    assert_eq!(csv, format!("nom;age\n{};40\n", token("Martin")));
    let ndjson = place.run(&["mask", "t.ndjson", "-c", "nom", "--where", "age > 18", "-o", "-"]).ok().text();
    assert_eq!(ndjson, format!("{{\"nom\":\"{}\",\"age\":40}}\n", token("Martin")));
    place.run(&["mask", "t.csv", "-c", "nom", "--where", "age >", "-o", "-"]).fails(2, "does not read");
    place.run_with_input(&["mask", "-", "-c", "nom", "--where", "age > 18", "-o", "-"], b"nom;age\n").fails(2, "a pipe");
    let parquet = fixture("clients.parquet");
    let ask = [
        "ask",
        parquet.to_str().unwrap(),
        "-c",
        PERSONAL,
        "--to",
        "local",
        "--accept-leaks",
        "*",
        "SELECT count(*) AS n FROM data",
    ];
    let all = place.run(&ask).ok().text();
    let some = place.run(&[&ask[..], &["--where", "ville = 'Strasbourg'", "--manifest", "m.json"]].concat()).ok().text();
    let count = |text: &str| text.lines().nth(2).unwrap().trim().parse::<u64>().unwrap();
    assert!(count(&some) > 0 && count(&some) < count(&all), "{some} of {all}");
    let manifest = json(&place.read("m.json"));
    assert_eq!((manifest["rows"].as_u64(), manifest["where"].as_str()), (Some(count(&some)), Some("ville = 'Strasbourg'")));
}

#[test]
fn a_manifest_is_verified_signed_and_shown() {
    let place = Place::new();
    let rows: String = (0..500).map(|i| format!("{i},c{}@x.fr,{}\n", i % 40, i % 3)).collect();
    place.write("t.csv", format!("id,mail,n\n{rows}"));
    let openssl =
        |args: &[&str]| Command::new("openssl").args(args).current_dir(place.path("")).output().is_ok_and(|o| o.status.success());
    let signs = openssl(&["genpkey", "-algorithm", "ed25519", "-out", "k.pem"])
        && openssl(&["pkey", "-in", "k.pem", "-pubout", "-out", "p.pem"]);
    let key: &[&str] = if signs { &["--sign-key", "k.pem"] } else { &[] };
    place.write("hmask.toml", "version = 1\nunlisted = \"keep\"\npurpose = \"tri\"\n[columns]\nid = \"pseudonym\"\nmail = { treatment = \"pseudonym\", normalise = [\"email\"], domain = \"m\" }\n");
    place
        .run(&[&["mask", "t.csv", "-o", "o.csv", "--manifest", "m.json", "--report", "r.html", "--lang", "fr"], key].concat())
        .ok();
    let manifest = json(&place.read("m.json"));
    let distinct = |i: usize| manifest["columns"][i]["distinct"].as_u64().unwrap();
    let name = |i: usize| manifest["columns"][i]["name"].as_str().unwrap().to_owned();
    assert_eq!((name(0), name(1), distinct(1)), ("id".into(), "mail".into(), 40));
    assert!((480..=500).contains(&distinct(0)) && manifest["purpose"] == "tri" && manifest["loan"].is_null());
    let html = String::from_utf8(place.read("r.html")).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>\n<html lang=\"fr\">") && html.contains("délégué"), "{html}");
    let verify = |more: &[&str]| place.run(&[&["verify", "m.json", "--input", "t.csv", "--output", "o.csv"], more].concat());
    let ran = verify(&[]).ok();
    assert!(
        ran.text().contains("holds: column mail: the pseudonyms of 500 rows, made again")
            && !ran.text().contains("does not hold"),
        "{}",
        ran.text()
    );
    if signs {
        let ran = verify(&["--public-key", "p.pem"]).ok();
        assert!(ran.text().contains("holds: the signature"), "{}", ran.text());
        assert!(openssl(&[
            "pkeyutl",
            "-verify",
            "-pubin",
            "-inkey",
            "p.pem",
            "-rawin",
            "-in",
            "m.json",
            "-sigfile",
            "m.json.sig"
        ]));
    }
    // One changed token, one changed byte, another key, a changed manifest.
    let masked = String::from_utf8(place.read("o.csv")).unwrap();
    let line = masked.lines().nth(7).unwrap();
    fs::write(place.path("o.csv"), masked.replacen(&line[..16], &token("x"), 1)).unwrap();
    let ran = verify(&[]);
    assert!(ran.code == 1 && ran.text().contains("does not hold: column id: the pseudonyms"), "{}", ran.text());
    assert!(ran.text().contains("does not hold: the SHA-256 of the output"), "{}", ran.text());
    fs::write(place.path("o.csv"), masked).unwrap();
    place.run(&["verify", "m.json"]).ok();
    let other = place.command(&["verify", "m.json"]).env("HMASK_KEY", "f0".repeat(32)).output().unwrap();
    assert_eq!(other.status.code(), Some(1));
    place.write("m.json", serde_json::to_vec(&manifest).unwrap());
    if signs {
        assert_eq!(verify(&["--public-key", "p.pem"]).code, 1);
    }
    place.write("bad.json", "{\"version\":1}");
    place.run(&["verify", "bad.json"]).fails(3, "this is no manifest");
}

#[test]
fn a_loan_always_leaves_a_manifest_and_subject_requests_find_rows() {
    let place = Place::new();
    place.write("t.csv", "nom,n\n Durand ,1\nMartin,2\n");
    place.write("hmask.toml", "version = 1\nunlisted = \"keep\"\nscope = \"upload\"\n[columns]\nnom = { treatment = \"pseudonym\", normalise = [\"trim\", \"lower\"] }\n");
    let ran = place.run(&["ask", "t.csv", "SELECT nom FROM data WHERE n = 1", "--to", "local"]).ok();
    let answer = ran.text();
    let path = ran.err.lines().find_map(|l| l.strip_prefix("hmask: manifest: ")).unwrap().to_owned();
    let manifest = json(&fs::read(&path).unwrap());
    assert_eq!(
        (manifest["loan"]["answered"].as_bool(), manifest["loan"]["may_be_live"].as_array().unwrap().len()),
        (Some(true), 0)
    );
    let ran = place.run_with_input(&["token", "--column", "nom", "--manifest", &path], b"DURAND\n").ok();
    assert!(answer.contains(ran.text().trim()) && ran.text().trim().len() == 16, "{answer}");
    assert!(ran.err.contains("on request") && !ran.err.contains("DURAND"), "{}", ran.err);
    place.run_with_input(&["token", "--column", "n", "--manifest", &path], b"1\n").fails(2, "has no pseudonyms");
    place.run_with_input(&["token", "--column", "nom", "-p", "hmask.toml"], b"1\n").fails(2, "scope upload");
    assert_eq!(place.run_with_input(&["token", "--column", "x"], b"007\r\n").ok().text(), token("007") + "\n");
}

#[test]
fn what_is_left_out_or_cut_short_does_not_hide_a_leak() {
    let place = Place::new();
    place.write("t.csv", "nom,note,n\nZoé Lefèvre,RAS,1\nJean Martin,vu Zoe LEFEVRE,2\n");
    let ask =
        |more: &[&str]| place.run(&[&["ask", "t.csv", "SELECT 1 AS x FROM data", "--to", "local", "--dry-run"], more].concat());
    ask(&["-c", "nom", "--where", "n = 2"]).fails(1, "original of a masked column");
    ask(&["-c", "nom", "--keep", "note,n"]).fails(1, "original of a masked column");
    place.write("p.toml", "version = 1\nunlisted = \"keep\"\n[columns]\nnom = \"pseudonym\"\nnote = \"truncate:40\"\n");
    ask(&["-p", "p.toml"]).fails(1, "column \"note\": original of a masked column");
    ask(&["-c", "nom,note", "--keep", "n", "--where", "n = 2"]).ok();
}

#[test]
fn prose_is_no_table_and_line_breaks_and_escapes_hide_nothing() {
    let place = Place::new();
    place.write("s.csv", "nom\nZoé Lefèvre\n");
    for (name, text) in [
        ("a.txt", "Le client est Lefèvre, Zoé.\nIl a payé, hier.\n"),
        ("b.txt", "Voici.\nLe client est Lefèvre, Zoé.\n"),
        ("c.md", "Cher Zoé\nLefèvre, bonjour\n"),
        ("d.json", "{\n \"a\": \"Zo\\u00e9 Lef\\u00e8vre\"\n}\n"),
    ] {
        place.write(name, text);
        assert_eq!(place.run(&["check", name, "--from", "s.csv", "-c", "nom"]).code, 1, "{name}");
    }
    place.write("e.md", "Cher Zoé\nbonjour Lefèvre\n");
    place.run(&["check", "e.md", "--from", "s.csv", "-c", "nom"]).ok();
}

#[test]
fn no_file_of_a_run_takes_the_place_of_another() {
    let place = Place::new();
    let text = "nom,n\nDurand,1\n";
    place.write("t.csv", text);
    let input = ["t.csv", "-c", "nom", "--force"];
    place.run(&["inspect", "t.csv", "--write-policy", "t.csv", "--force"]).fails(2, "in place of another");
    place
        .run(&[&["ask"], &input[..], &["SELECT 1 AS x FROM data", "--to", "local", "--save-code", "t.csv"]].concat())
        .fails(2, "in place");
    for more in [["--manifest", "o.csv"], ["--report", "o.csv"]] {
        place.run(&[&["mask"], &input[..], &["-o", "o.csv"], &more[..]].concat()).fails(2, "in place of another");
    }
    place
        .run(&[&["mask"], &input[..], &["-o", "o.csv", "--manifest", "m", "--report", "m"]].concat())
        .fails(2, "in place of another");
    place.run(&[&["mask"], &input[..], &["-o", "o.csv", "--manifest", "t.csv"]].concat()).fails(2, "is the input");
    place.run(&["mask", "t.csv", "-c", "nom", "-o", "o.csv", "--manifest", "m.json"]).ok();
    place.run(&["verify", "m.json", "--input", "t.csv", "--report", "t.csv", "--force"]).fails(2, "in place of another");
    assert_eq!(place.read("t.csv"), text.as_bytes());
}

#[test]
fn honest_files_of_any_kind_are_verified() {
    let place = Place::new();
    place.write("t.ndjson", "{\"a\":\"x\",\"l\":[\"p\",\"q\"]}\n\n{\"a\":\"y\",\"l\":[]}\n");
    place.write("t.csv", "préambule\nnom,b\nx,1\n,2\n");
    place.write("p.toml", "version = 1\nunlisted = \"keep\"\n[columns]\nnom = { treatment = \"redact\", with = \"\" }\n");
    let skip = ["--skip-lines", "1", "--drop-preamble"];
    for (input, output, mask, verify) in [
        ("t.ndjson", "o.ndjson", &["-c", "a,l[]"][..], &[][..]),
        ("t.csv", "o.csv", &["-c", "nom", "--empty", "hash", "--skip-lines", "1", "--drop-preamble"], &skip),
        ("t.csv", "o.csv", &["-p", "p.toml", "--skip-lines", "1", "--drop-preamble"], &skip),
    ] {
        place.run(&[&["mask", input, "-o", output, "--manifest", "m.json", "--force"], mask].concat()).ok();
        let ran = place.run(&[&["verify", "m.json", "--input", input, "--output", output], verify].concat());
        assert!(ran.code == 0 && !ran.text().contains("not to be found"), "{mask:?}: {}", ran.text());
    }
    place.run(&["mask", "t.ndjson", "-c", "a", "-o", "o.ndjson", "--manifest", "m.json", "--force"]).ok();
    let masked = String::from_utf8(place.read("o.ndjson")).unwrap();
    place.write("o.ndjson", masked.replace(&token("x"), &token("z")));
    let ran = place.run(&["verify", "m.json", "--input", "t.ndjson", "--output", "o.ndjson"]);
    assert!(ran.code == 1 && ran.text().contains("does not hold: column a: the pseudonyms"), "{}", ran.text());
}

#[test]
fn a_file_without_a_header_is_inspected_without_showing_its_first_row() {
    let place = Place::new();
    place.write("t.csv", "Anna Petit,anna.petit@ex.fr,0699999999\nZoé Lefèvre,zoe@ex.fr,0612345678\n");
    let ran = place.run(&["inspect", "t.csv", "--write-policy", "p.toml"]).ok();
    let policy = String::from_utf8(place.read("p.toml")).unwrap();
    for text in [ran.text(), ran.err, policy] {
        assert!(!text.contains("Petit") && !text.contains("anna") && !text.contains("0699"), "{text}");
    }
}
