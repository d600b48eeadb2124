//! `hmask ask` and `hmask sandbox`: the main job, end to end.

use serde_json::Value;

use super::env::{Place, Ran, fixture};
use super::faults::{Server, rules};
use super::mask::{ORIGINALS, PERSONAL, token};

const TOTAL: &str = "SELECT ville, SUM(montant) AS total FROM data GROUP BY ville ORDER BY total DESC";

fn ask(place: &Place, file: &str, question: &str, more: &[&str]) -> Ran {
    let file = fixture(file);
    place.run(&[&["ask", file.to_str().unwrap(), "-c", PERSONAL, question], more].concat())
}

#[test]
fn a_question_is_answered_and_all_that_was_lent_is_gone() {
    let place = Place::new();
    let ran = ask(&place, "clients.csv", TOTAL, &["--to", "local", "--save-dir", "out", "--manifest", "m.json"]).ok();
    assert!(ran.text().contains("Marseille       | 319.9") && ran.text().contains("result.csv (4 rows)"), "{}", ran.text());
    assert!(
        ran.err.contains("confirmed gone: upload file-") && ran.err.contains("confirmed gone: container cntr_"),
        "{}",
        ran.err
    );
    assert_eq!(String::from_utf8(place.read("out/result.csv")).unwrap().lines().next(), Some("ville,total"));
    let manifest: Value = serde_json::from_slice(&place.read("m.json")).unwrap();
    assert_eq!(manifest["loan"]["confirmed_gone"].as_array().unwrap().len(), 2);
    assert_eq!(manifest["loan"]["may_be_live"], serde_json::json!([]));
    assert_eq!((&manifest["key_id"], &manifest["rows"]), (&"0f1742ee".into(), &6.into()));
    assert_eq!(manifest["columns"].as_array().unwrap().len(), 5);
    assert_eq!(place.temporary(), 0, "something is left in the temporary folder");
    for value in ORIGINALS {
        assert!(!ran.text().contains(value) && !ran.err.contains(value), "{value}");
        assert!(!String::from_utf8(place.read("m.json")).unwrap().contains(value), "{value}");
    }
}

#[test]
fn parquet_and_old_encodings_are_asked_alike() {
    let place = Place::new();
    let count = format!("SELECT COUNT(*) AS n FROM data WHERE nom = '{}'", token("Zoé Lefèvre"));
    let csv = ask(&place, "clients.csv", &count, &["--to", "local"]).ok().text();
    assert!(csv.starts_with("n\n-\n2\n"), "{csv}");
    assert_eq!(ask(&place, "clients.parquet", &count, &["--to", "local"]).ok().text(), csv);
    assert_eq!(
        ask(&place, "clients.windows-1252.csv", &count, &["--to", "local", "--encoding", "windows-1252"]).ok().text(),
        csv
    );
}

#[test]
fn a_question_that_fails_is_no_success_and_leaves_nothing() {
    let server = Server::start(rules([]));
    let place = Place::with_token();
    let ran = ask(&place, "clients.csv", "SELECT nonsense FROM data", &["--to", &server.url()]).fails(4, "");
    assert!(ran.err.contains("the question failed: invalid_prompt"), "{}", ran.err);
    assert!(ran.text().contains("nonsense"), "the service's words are not shown");
    assert_eq!(server.live(), 0);
}

#[test]
fn nothing_is_sent_when_the_call_or_the_table_is_wrong() {
    let place = Place::new();
    ask(&place, "clients.csv", TOTAL, &[]).fails(2, "OPENAI_API_KEY is not set");
    let server = Server::start(rules([]));
    let place = Place::with_token();
    ask(&place, "clients.csv", " ", &["--to", &server.url()]).fails(2, "the question is empty");
    ask(&place, "clients.windows-1252.csv", TOTAL, &["--to", &server.url()]).fails(2, "no column");
    ask(&place, "clients.csv", TOTAL, &["--to", "http://example.com/v1"]).fails(2, "must be https");
    ask(&place, "clients.csv", TOTAL, &["--to", "https://example.com/v1?key=sk-x"]).fails(2, "must not hold a query");
    place.write("empty.csv", "a,b\n1,2\n1\n");
    place.run(&["ask", "empty.csv", "-c", "a", TOTAL, "--to", &server.url()]).fails(3, "record 3");
    let file = place.write("t.csv", "a\n1\n");
    let t = file.to_str().unwrap();
    let lend = |more: &[&str]| place.run(&[&["ask", t, TOTAL, "--to", &server.url()], more].concat());
    lend(&["-c", "zz", "--missing", "ignore"]).fails(1, "no column was masked");
    lend(&["-c", "a", "--manifest", "t.csv", "--force"]).fails(2, "is the input");
    lend(&["-c", "a", "--save-dir", "t.csv"]).fails(2, "no folder");
    lend(&["-c", "#1", "--no-header"]).fails(2, "--no-header");
    lend(&["-c", "a", "--format", "ndjson"]).fails(3, "NDJSON");
    assert_eq!(place.read("t.csv"), b"a\n1\n");
    assert_eq!(server.requests(), Vec::<String>::new());
}

#[test]
fn requests_are_those_of_the_contract() {
    let server = Server::start(rules([]));
    let place = Place::with_token().set("OPENAI_ORG_ID", "org-1");
    ask(
        &place,
        "clients.csv",
        TOTAL,
        &["--to", &server.url(), "--memory", "4g", "--allow-domain", "example.com", "--model", "m"],
    )
    .ok();
    let uploads = server.bodies("POST /v1/files");
    let upload = String::from_utf8_lossy(&uploads[0]);
    let head: Vec<&str> = upload.split("\r\n").filter(|l| l.starts_with("Content-") || l.starts_with("content-length")).collect();
    let parts: Vec<&str> = head.iter().copied().filter(|l| l.starts_with("Content-")).collect();
    assert_eq!(
        parts[..3],
        [
            "Content-Disposition: form-data; name=\"purpose\"",
            "Content-Disposition: form-data; name=\"expires_after[anchor]\"",
            "Content-Disposition: form-data; name=\"expires_after[seconds]\"",
        ]
    );
    assert!(
        parts[3].starts_with("Content-Disposition: form-data; name=\"file\"; filename=\"hmask-") && parts[3].ends_with(".csv\"")
    );
    assert_eq!(parts[4..], ["Content-Type: text/csv"]);
    assert!(upload.to_lowercase().contains("content-length: ") && !upload.to_lowercase().contains("transfer-encoding"));
    assert!(!upload.contains("clients"), "the name of the file was sent");
    let json = |request: &str| -> Value {
        let bodies = server.bodies(request);
        let text = String::from_utf8_lossy(&bodies[0]).into_owned();
        serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
    };
    let container = json("POST /v1/containers");
    assert_eq!(container["expires_after"], serde_json::json!({"anchor": "last_active_at", "minutes": 20}));
    assert_eq!(container["network_policy"], serde_json::json!({"type": "allowlist", "allowed_domains": ["example.com"]}));
    assert_eq!((&container["memory_limit"], container["file_ids"].as_array().unwrap().len()), (&"4g".into(), 1));
    let question = json("POST /v1/responses");
    assert_eq!(
        (&question["store"], &question["model"], &question["tool_choice"]),
        (&false.into(), &"m".into(), &"required".into())
    );
    assert_eq!(question["include"], serde_json::json!(["code_interpreter_call.outputs"]));
    assert!(upload.contains("openai-organization: org-1"));
}

#[test]
fn the_sandbox_takes_its_data_with_it() {
    let server = Server::start(rules([]));
    assert_eq!(server.upload(), 200);
    assert_eq!(server.live(), 1);
    assert_eq!(server.stop(), 0);
}

#[test]
fn help_and_man_name_every_option() {
    let place = Place::new();
    for command in ["mask", "ask", "sandbox", "keygen"] {
        assert!(place.run(&[command, "--help"]).ok().text().contains("Usage: hmask"), "{command}");
    }
    assert!(place.run(&["man"]).ok().text().contains(".TH hmask"));
    assert!(place.run(&["completions", "bash"]).ok().text().contains("hmask"));
    place.run(&[]).fails_usage();
}
