//! `hmask mask` on CSV: what changes, what does not, what is refused.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use hmac::{Hmac, KeyInit, Mac};
use proptest::prelude::*;
use sha2::Sha256;

use super::env::{KEY, Place, fixture};

/// Fixture columns that identify people.
pub const PERSONAL: &str = "client_id,nom,courriel,téléphone,date_naissance";
/// All their values.
pub const ORIGINALS: [&str; 20] = [
    "00042",
    "00107",
    "00311",
    "00312",
    "00518",
    "Zoé Lefèvre",
    "André Müller",
    "Inès O'Neill",
    "Noël Garcia",
    "Chloé Diallo",
    "zoe.lefevre@exemple.fr",
    "andre.muller@exemple.fr",
    "ines@exemple.fr",
    "noel.garcia@exemple.fr",
    "0612345678",
    "0698765432",
    "0700000007",
    "0655555555",
    "1984-02-29",
    "2001-07-14",
];

/// The Python line of the design, by the `hmac` crate.
pub fn token(value: &str) -> String {
    if value.is_empty() {
        return String::new();
    }
    let mut mac = Hmac::<Sha256>::new_from_slice(KEY.as_bytes()).unwrap();
    mac.update(value.as_bytes());
    mac.finalize().into_bytes()[..8].iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn only_the_masked_cells_change() {
    let place = Place::new();
    let text = "\u{feff}id;nom;note\r\n007;\"O\"\"Brien\"; x \n\r\n\"7\";;\"a;\r\nb\"\r8;Zoé;5\" pipe";
    place.write("t.csv", text);
    place.run(&["mask", "t.csv", "-c", "nom", "-o", "o.csv"]).ok();
    let want = text.replace("O\"\"Brien", &token("O\"Brien")).replace("Zoé", &token("Zoé"));
    assert_eq!(String::from_utf8(place.read("o.csv")).unwrap(), want);
    assert_eq!(place.names(), ["o.csv", "t.csv"]);
}

#[test]
fn leading_zeros_nulls_and_empties() {
    let place = Place::new();
    place.write("t.csv", "v,w\n007,1\n7,1\n,1\n\"\",1\nnull,1\nNA,1\nnan,1\n 7,1\n");
    let lines = |args: &[&str]| place.run(&[&["mask", "t.csv", "-c", "v", "-o", "-"], args].concat()).ok().text();
    let want: Vec<String> = ["007", "7", "", "", "null", "NA", "nan", " 7"].map(token).into();
    let want =
        format!("v,w\n{},1\n{},1\n,1\n\"\",1\n{},1\n{},1\n{},1\n{},1\n", want[0], want[1], want[4], want[5], want[6], want[7]);
    assert_eq!(lines(&[]), want);
    assert_eq!(lines(&["--empty", "hash"]).matches("081247dc68bb7faf").count(), 2);
}

#[test]
fn one_thread_gives_what_many_give_and_a_pipe_what_a_file_gives() {
    let place = Place::new();
    let mut text = String::from("id,nom,note\n");
    for i in 0..60_000 {
        text += &format!("{i},nom {},\"ligne {i}\n{}\"\n", i % 977, if i % 3 == 0 { "x,\"\"y\"\"\nz" } else { "" });
    }
    place.write("t.csv", &text);
    let run = |threads| {
        place.run(&["mask", "t.csv", "-c", "nom,id", "-o", "o.csv", "--force", "--threads", threads]).ok();
        place.read("o.csv")
    };
    let one = run("1");
    assert_eq!(run("2"), one);
    assert_eq!(run("7"), one);
    assert_eq!(place.run_with_input(&["mask", "-", "-c", "nom,id", "-o", "-"], text.as_bytes()).ok().out, one);
    assert!(!String::from_utf8(one).unwrap().contains("nom 5"));
}

#[test]
fn encodings_have_the_same_tokens() {
    let place = Place::new();
    let run = |file: &str, args: &[&str]| {
        let file = fixture(file);
        place.run(&[&["mask", file.to_str().unwrap(), "-c", PERSONAL, "-o", "-"], args].concat()).ok().out
    };
    let utf8 = String::from_utf8(run("clients.csv", &[])).unwrap();
    let ansi = run("clients.windows-1252.csv", &["--encoding", "windows-1252"]);
    assert_eq!(encoding_rs::WINDOWS_1252.decode(&ansi).0, utf8);
    for value in ORIGINALS {
        assert!(!utf8.contains(value), "{value}");
    }
    let wide: Vec<u8> = fs::read_to_string(fixture("clients.csv")).unwrap().encode_utf16().flat_map(u16::to_le_bytes).collect();
    let with_mark = [&[0xff, 0xfe], &wide[..]].concat();
    place.write("wide.csv", &with_mark);
    place.run(&["mask", "wide.csv", "-c", PERSONAL, "-o", "wide.out.csv"]).ok();
    let out = place.read("wide.out.csv");
    assert_eq!(encoding_rs::UTF_16LE.decode(&out).0, utf8);
    // A masked cell that does not decode is an error; other bytes pass.
    let file = fixture("clients.windows-1252.csv");
    let refused = place.run(&["mask", file.to_str().unwrap(), "-c", "nom", "-o", "o.csv"]).fails(3, "decode");
    assert!(refused.err.contains("hint: --encoding windows-1252") && refused.err.contains("record 2, line 2"), "{}", refused.err);
    place.run(&["mask", file.to_str().unwrap(), "-c", "client_id", "-o", "o.csv"]).ok();
}

#[test]
fn compressed_files_stay_compressed() {
    let place = Place::new();
    let text = fs::read(fixture("clients.csv")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&text).unwrap();
    place.write("t.csv.gz", gzip.finish().unwrap());
    place.write("t.csv.zst", zstd::encode_all(&text[..], 1).unwrap());
    place.write("t.csv", &text);
    let plain = place.run(&["mask", "t.csv", "-c", "nom", "-o", "-"]).ok().out;
    place.run(&["mask", "t.csv.gz", "t.csv.zst", "-c", "nom", "-o", "."]).fails(2, "is the input");
    fs::create_dir(place.path("out")).unwrap();
    place.run(&["mask", "t.csv.gz", "t.csv.zst", "-c", "nom", "-o", "out"]).ok();
    let mut gunzipped = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(&place.read("out/t.csv.gz")[..]), &mut gunzipped).unwrap();
    assert_eq!(gunzipped, plain);
    assert_eq!(zstd::decode_all(&place.read("out/t.csv.zst")[..]).unwrap(), plain);
    let cut = place.read("t.csv.gz");
    place.write("cut.csv.gz", &cut[..cut.len() - 9]);
    place.run(&["mask", "cut.csv.gz", "-c", "nom", "-o", "cut.out.csv"]).fails(3, "damaged");
    assert!(!place.path("cut.out.csv").exists());
}

#[test]
fn a_missing_column_is_an_error_with_the_nearest_names_before_any_output() {
    let place = Place::new();
    place.write("t.csv", "email,e_mail,ville\na,b,c\n");
    let ran = place.run(&["mask", "t.csv", "-c", "emial", "-o", "o.csv", "-d", ","]).fails(2, "no column emial");
    assert!(ran.err.contains("hint: -c email\n"), "{}", ran.err);
    let ran = place.run(&["mask", "t.csv", "-c", "emial", "-o", "-"]).fails(2, "no column emial");
    assert!(ran.out.is_empty());
    assert_eq!(place.names(), ["t.csv"]);
    let ran = place.run(&["mask", "t.csv", "-c", "emial,ville", "-o", "-", "--missing", "ignore"]).ok();
    assert_eq!(ran.text(), format!("email,e_mail,ville\na,b,{}\n", token("c")));
    assert!(ran.err.contains("warning: t.csv: no column emial"), "{}", ran.err);
}

#[test]
fn what_cannot_be_read_with_certainty_is_refused_with_its_place() {
    let cases: [(&str, &[&str], &str); 11] = [
        ("a,b\n1,SECRETVALUE\n1\n", &[], "record 3, line 3: 1 fields where the header has 2"),
        ("a,b\n1,2,SECRETVALUE\n", &[], "record 2, line 2: 3 fields"),
        ("a,b\n1,\"SECRETVALUE\n", &[], "record 2, line 2, column \"b\": a quote is not closed"),
        ("a,b\n1,\"SECRETVALUE\"x\n", &[], "text after a closing quote"),
        ("a,b\n1,SECRET\0VALUE\n", &[], "a NUL"),
        ("", &[], "no header"),
        ("\n\r\n", &[], "no header"),
        ("b\nSECRETVALUE,x\n", &[], "a , outside of quotes"),
        ("x\na,b\n1,2\n", &["--skip-lines", "5"], "fewer lines"),
        ("a,b\n1,2\n", &["-d", ";;"], "not one character"),
        ("a,b\n1,2\n", &["--encoding", "utf-7"], "encoding"),
    ];
    let place = Place::new();
    for (start, says) in [("ARROW1\0\0", "content is arrow"), ("PK\x03\x04", "Excel")] {
        let foreign = place.write("foreign.csv", start);
        place.run(&["mask", "foreign.csv", "-c", "b", "-o", "o.csv"]).fails(3, says);
        fs::remove_file(foreign).unwrap();
    }
    for (text, args, says) in cases {
        place.write("t.csv", text);
        let ran = place.run(&[&["mask", "t.csv", "-c", "b", "-o", "o.csv"], args].concat());
        let code = if args.is_empty() { 3 } else { 2 };
        let ran = ran.fails(code, says);
        assert!(!ran.err.contains("SECRET"), "{}", ran.err);
        assert_eq!(place.names(), ["t.csv"], "{text:?}");
    }
}

#[test]
fn ragged_records_are_kept_on_demand() {
    let place = Place::new();
    place.write("t.csv", "a,b\n1,x,surplus,\"more\"\n2\n3,y\n");
    let ran = place.run(&["mask", "t.csv", "-c", "b", "-o", "-", "--ragged", "keep"]).ok();
    assert_eq!(ran.text(), format!("a,b\n1,{}\n2\n3,{}\n", token("x"), token("y")));
    assert!(ran.err.contains("from 1 records") && ran.err.contains("1 records have fewer"), "{}", ran.err);
}

#[test]
fn the_delimiter_is_found_by_the_wanted_columns() {
    let place = Place::new();
    for delimiter in [",", ";", "\t", "|"] {
        place.write("t.csv", format!("a{delimiter}b\n1{delimiter}2\n"));
        assert_eq!(
            place.run(&["mask", "t.csv", "-c", "b", "-o", "-"]).ok().text(),
            format!("a{delimiter}b\n1{delimiter}{}\n", token("2"))
        );
    }
    place.write("t.csv", "a,b;b\n1,2;3\n");
    place.run(&["mask", "t.csv", "-c", "#2", "-o", "o.csv"]).fails(2, "more than one delimiter");
    place.write("t.csv", "a,b\n1,2\n");
    assert_eq!(place.run(&["mask", "t.csv", "-c", "*", "-o", "-"]).ok().text(), format!("a,b\n{},{}\n", token("1"), token("2")));
    place.write("t.csv", "b\n1\n\"2;3\"\n");
    assert_eq!(
        place.run(&["mask", "t.csv", "-c", "b", "-o", "-"]).ok().text(),
        format!("b\n{}\n\"{}\"\n", token("1"), token("2;3"))
    );
    place.write("t.csv", "1|2\n3|4\n");
    assert_eq!(
        place.run(&["mask", "t.csv", "-c", "#1", "--no-header", "-d", "|", "-o", "-"]).ok().text(),
        format!("{}|2\n{}|4\n", token("1"), token("3"))
    );
    place.write("t.csv", "preamble, with \"odd text\na,b\n1,2\n");
    assert_eq!(
        place.run(&["mask", "t.csv", "-c", "b", "--skip-lines", "1", "-o", "-"]).ok().text(),
        format!("preamble, with \"odd text\na,b\n1,{}\n", token("2"))
    );
}

#[test]
fn dialects_of_other_programs() {
    let place = Place::new();
    let run = |text: &str, args: &[&str]| {
        place.write("t.csv", text);
        place.run(&[&["mask", "t.csv", "-c", "b", "-o", "-"], args].concat()).ok().text()
    };
    // Excel names its delimiter in a first line of its own.
    assert_eq!(run("sep=;\r\na,x;b\r\n1;2\r\n", &[]), format!("sep=;\r\na,x;b\r\n1;{}\r\n", token("2")));
    assert_eq!(run("a,b\n# no, \"record\n1,2\n", &["--comment", "#"]), format!("a,b\n# no, \"record\n1,{}\n", token("2")));
    let escaped = run("a,b\n1,\"x\\\"y\"\n", &["--escape", "\\"]);
    assert_eq!(escaped, format!("a,b\n1,\"{}\"\n", token("x\"y")));
    let titled = run("\u{feff}title\nby us\na,b\n1,2\n", &["--skip-lines", "2", "--drop-preamble"]);
    assert_eq!(titled, format!("\u{feff}a,b\n1,{}\n", token("2")));
    assert_eq!(run("a'b\n\"1'\"2\n", &["-d", "'", "--quote", ""]), format!("a'b\n\"1'{}\n", token("\"2")));
    place.write("t.csv", format!("a,b\n1,\"{}\n", "x".repeat(3 << 20)));
    place
        .run(&["mask", "t.csv", "-c", "b", "-o", "o.csv", "--max-record", "1000000"])
        .fails(3, "a record is longer than 1000000 bytes");
    place.run(&["mask", "t.csv", "-c", "b", "-o", "o.csv", "-d", "\""]).fails(2, "must differ");
}

#[test]
fn outputs_are_never_replaced_by_accident() {
    let place = Place::new();
    let input = place.write("t.csv", "a\n1\n");
    place.write("o.csv", "precious");
    place.run(&["mask", "t.csv", "-c", "a", "-o", "o.csv"]).fails(2, "exists");
    assert_eq!(place.read("o.csv"), b"precious");
    place.run(&["mask", "t.csv", "-c", "a", "-o", "t.csv", "--force"]).fails(2, "is the input");
    fs::hard_link(&input, place.path("twin.csv")).unwrap();
    place.run(&["mask", "t.csv", "-c", "a", "-o", "twin.csv", "--force"]).fails(2, "is the input");
    assert_eq!(place.read("t.csv"), b"a\n1\n");
    place.run(&["mask", "t.csv", "-c", "a", "-o", "o.csv", "--force"]).ok();
    assert_eq!(place.read("o.csv"), format!("a\n{}\n", token("1")).into_bytes());
    place.run(&["mask", "t.csv", "-c", "a", "-o", "nowhere/o.csv"]).fails(3, "cannot write");
    // A device is written to, and stays what it is.
    place.run(&["mask", "t.csv", "-c", "a", "-o", "/dev/null", "--force"]).ok();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    let append = fs::OpenOptions::new().append(true).open(place.path("t.csv")).unwrap();
    let ran = place.command(&["mask", "t.csv", "-c", "a", "-o", "-"]).stdout(append).output().unwrap();
    assert_eq!((ran.status.code(), place.read("t.csv")), (Some(2), b"a\n1\n".to_vec()));
    // Without -o: beside the input where stdout is no place for data.
    let ran = place.command(&["mask", "t.csv", "-c", "a"]).stdout(Stdio::null()).status().unwrap();
    assert!(ran.success() && place.path("t.masked.csv").exists());
    assert_eq!(place.run(&["mask", "t.csv", "-c", "a"]).ok().text(), format!("a\n{}\n", token("1")));
}

#[test]
fn several_files_are_written_all_or_none() {
    let place = Place::new();
    place.write("one.csv", "a\n1\n");
    place.write("two.csv", "a\n\"1\n");
    fs::create_dir(place.path("out")).unwrap();
    place.run(&["mask", "one.csv", "two.csv", "-c", "a", "-o", "out"]).fails(3, "two.csv: record 2");
    assert_eq!(fs::read_dir(place.path("out")).unwrap().count(), 0);
    place.write("two.csv", "a\n1\n");
    place.run(&["mask", "one.csv", "two.csv", "-c", "a", "-o", "out"]).ok();
    assert_eq!(fs::read_dir(place.path("out")).unwrap().count(), 2);
    place.run(&["mask", "one.csv", "./one.csv", "-c", "a", "-o", "out", "--force"]).fails(2, "two inputs");
}

#[test]
fn no_key_of_ndjson_is_misspelt_in_silence() {
    let place = Place::new();
    place.write("t.ndjson", "{\"email\":\"SECRET\",\"n\":1}\n");
    let ran = place.run(&["mask", "t.ndjson", "-c", "emial", "-o", "-"]).fails(2, "no column emial");
    assert!(ran.out.is_empty() && ran.err.contains("hint: -c email"), "{}", ran.err);
    let want = format!("{{\"email\":\"{}\",\"n\":1}}\n", token("SECRET"));
    assert_eq!(place.run(&["mask", "t.ndjson", "-c", "email", "-o", "-"]).ok().text(), want);
}

#[test]
fn names_in_messages_cannot_steer_a_terminal() {
    let place = Place::new();
    place.write("t.csv", "a\u{1b}[31m,b\n1,\"2\n");
    let ran = place.run(&["mask", "t.csv", "-c", "#1", "-d", ",", "-o", "o.csv"]).fails(3, "a quote is not closed");
    assert!(!ran.err.contains('\u{1b}'));
    place.write("t.csv", "a\u{1b}[31m\n1\n");
    assert!(!place.run(&["mask", "t.csv", "-c", "#1", "-o", "o.csv"]).ok().err.contains('\u{1b}'));
}

#[test]
fn a_signal_leaves_nothing() {
    let place = Place::new();
    let fifo = place.path("in.csv");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for signal in ["INT", "TERM", "KILL"] {
        let mut child = place.command(&["mask", "in.csv", "-c", "a", "-o", "o.csv"]).spawn().unwrap();
        // Opened for writing only once the child reads: from then on it is in the middle of its work.
        let mut pipe = fs::OpenOptions::new().write(true).open(&fifo).unwrap();
        pipe.write_all(&[b"a\n", "x\n".repeat(1_500_000).as_bytes()].concat()).unwrap();
        let killed = std::process::Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(killed.unwrap().success());
        let status = child.wait().unwrap();
        assert_eq!(status.code(), if signal == "KILL" { None } else { Some(130) });
        assert_eq!(place.names(), ["in.csv"], "after {signal}");
    }
}

#[test]
fn messages_as_json_carry_the_task() {
    let place = Place::new();
    place.write("t.csv", "a\n1\n");
    let err = place.run(&["mask", "t.csv", "-c", "b", "-o", "-", "--log-format", "json"]).err;
    let line: serde_json::Value = serde_json::from_str(err.trim_end()).unwrap();
    assert_eq!(line["level"], "error");
    assert_eq!(line["task"].as_str().unwrap().len(), 36);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any values at all: what the `csv` crate reads of the output is what the Python line makes of the input.
    #[test]
    fn any_values_become_the_tokens_of_the_python_line(rows in proptest::collection::vec(("[^\0]{0,12}", "[^\0]{0,70}"), 1..40)) {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(["kept", "masked"]).unwrap();
        rows.iter().for_each(|(kept, masked)| writer.write_record([kept, masked]).unwrap());
        let place = Place::new();
        place.write("t.csv", writer.into_inner().unwrap());
        place.run(&["mask", "t.csv", "-c", "masked", "-d", ",", "-o", "o.csv"]).ok();
        let out = place.read("o.csv");
        let mut reader = csv::Reader::from_reader(&out[..]);
        let got: Vec<(String, String)> = reader.deserialize().map(Result::unwrap).collect();
        let want: Vec<(String, String)> = rows.iter().map(|(k, m)| (k.clone(), token(m))).collect();
        prop_assert_eq!(got, want);
    }
}
