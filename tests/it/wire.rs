//! What hmask sends beside requests of the official clients that were recorded: `HMASK_WIRE` names a folder with `METHOD.bin` files, each
//! one request as it went over the wire. What varies between clients (README of that folder) is not compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::env::{Place, fixture};
use super::mask::PERSONAL;
use super::server::{Fault, Server, route, rules};

/// A request without what varies.
#[derive(Debug, PartialEq)]
struct Shape {
    route: String,
    query: Vec<String>,
    headers: BTreeMap<String, String>,
    parts: Vec<(String, Option<String>, String)>,
    body: Value,
}

const QUERIES: [&str; 4] = ["after", "limit", "order", "purpose"];

impl Shape {
    fn of(request: &[u8]) -> Self {
        let text = String::from_utf8_lossy(request);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let line = head.lines().next().unwrap();
        let query = line.split(' ').nth(1).unwrap().split_once('?').map_or("", |(_, query)| query);
        let query = query.split('&').filter_map(|pair| pair.split('=').next()).filter(|name| !name.is_empty());
        let mut headers = BTreeMap::new();
        for (name, value) in head.lines().skip(1).filter_map(|line| line.split_once(": ")) {
            let value = match name.to_lowercase().as_str() {
                "authorization" => value.split(' ').next().unwrap(),
                "content-type" => value.split(';').next().unwrap(),
                "content-length" => "stated",
                "transfer-encoding" | "idempotency-key" | "openai-organization" | "openai-project" => value,
                _ => continue,
            };
            headers.insert(name.to_lowercase(), value.to_owned());
        }
        if body.is_empty() {
            // Python says the type of a body that is not there.
            headers.remove("content-type");
        }
        let boundary = head.split("boundary=").nth(1).map(|rest| rest.lines().next().unwrap().trim_matches('"'));
        let parts = boundary.map(|boundary| parts(body, boundary)).unwrap_or_default();
        let body = serde_json::from_str(body).map(|body| plain(&body)).unwrap_or_default();
        Self { route: route(line), query: query.map(str::to_owned).collect(), headers, parts, body }
    }
}

/// The parts of a form: disposition, type, and the text of those that are no file.
fn parts(body: &str, boundary: &str) -> Vec<(String, Option<String>, String)> {
    let between = format!("--{boundary}");
    let pieces = body.split(&between).skip(1).take_while(|piece| !piece.starts_with("--"));
    let mut parts: Vec<_> = pieces
        .map(|piece| {
            let (head, text) = piece.trim_start_matches("\r\n").split_once("\r\n\r\n").unwrap();
            let find = |name: &str| head.lines().find_map(|l| l.strip_prefix(name)).map(str::to_owned);
            let disposition = neutral(&find("Content-Disposition: ").unwrap());
            let text = if disposition.contains("filename=") { String::new() } else { text.trim_end_matches("\r\n").to_owned() };
            (disposition, find("Content-Type: "), text)
        })
        .collect();
    parts.sort();
    parts
}

/// A text in which ids and our names are the same in all runs.
fn neutral(text: &str) -> String {
    let is_id = |word: &str| ["file-", "cntr_", "part_", "resp_", "hmask-"].iter().any(|p| word.starts_with(p));
    let cut = |word: &str| word.strip_suffix(".csv").map_or((word.to_owned(), ""), |word| (word.to_owned(), ".csv"));
    let words = text.split_inclusive('"').map(|piece| {
        let (word, quote) = piece.strip_suffix('"').map_or((piece, ""), |word| (word, "\""));
        let (stem, ending) = cut(word);
        if is_id(&stem) { format!("*{ending}{quote}") } else { piece.to_owned() }
    });
    words.collect()
}

/// A body in which ids, names and lengths are the same in all runs.
fn plain(body: &Value) -> Value {
    match body {
        Value::String(text) => neutral(text).into(),
        Value::Array(all) => all.iter().map(plain).collect(),
        Value::Object(all) => {
            let value =
                |(name, value): (&String, &Value)| (name.clone(), if name == "bytes" { json!("*") } else { plain(value) });
            Value::Object(all.iter().map(value).collect())
        }
        other => other.clone(),
    }
}

/// The requests of every way to ask.
fn all_requests() -> Vec<Vec<u8>> {
    let file = fixture("clients.csv");
    let ways: [(Vec<super::server::Rule>, &[&str]); 7] = [
        (rules([]), &["--save-dir", "out", "--memory", "4g", "--allow-domain", "example.com"]),
        (rules([]), &["--stream", "--step", "SELECT 1 AS one FROM data"]),
        (rules([("POST /v1/uploads/*/complete$", usize::MAX, Fault::Status(400))]), &["--whole=100"]),
        (rules([]), &["--container", "CONTAINER"]),
        (rules([]), &["--via=container", "--container", "CONTAINER"]),
        (rules([("POST /v1/files", 1, Fault::DropAfter)]), &[]),
        (rules([]), &["--attach=message", "--chain", "--step", "SELECT 1 AS one FROM data"]),
    ];
    let sent = |(rules, more): (Vec<super::server::Rule>, &[&str])| {
        let server = Server::start(rules);
        let theirs = server.container();
        let more: Vec<&str> = more.iter().map(|word| if *word == "CONTAINER" { &theirs } else { *word }).collect();
        let args = ["ask", file.to_str().unwrap(), "-c", PERSONAL, "SELECT COUNT(*) AS n FROM data", "--to", &server.url()];
        Place::with_token().run(&[&args[..], &more].concat());
        server.bodies("")
    };
    ways.into_iter().flat_map(sent).collect()
}

#[test]
#[expect(clippy::print_stderr, clippy::disallowed_methods, reason = "the judge is not part of the project")]
fn requests_are_valid_by_the_description_of_the_api() {
    let Ok(judge) = std::env::var("HMASK_TEST_PRISM") else {
        eprintln!("skipped: HMASK_TEST_PRISM names no HOST:PORT of a validating server");
        return;
    };
    let (mut judged, mut routes) = (0, BTreeMap::new());
    for request in all_requests() {
        let text = String::from_utf8_lossy(&request).into_owned();
        // A mock server cannot stream; the rest of the question is judged all the same.
        let line = text.lines().next().unwrap().to_owned();
        let (head, body) = request.split_at(text.find("\r\n\r\n").unwrap() + 4);
        let mut body = body.to_vec();
        if let Ok(mut json) = serde_json::from_slice::<Value>(&body) {
            json.as_object_mut().unwrap().remove("stream");
            body = json.to_string().into_bytes();
        }
        let head = String::from_utf8_lossy(head).into_owned();
        let keep = |l: &&str| !l.to_lowercase().starts_with("content-length") && !l.is_empty();
        let lines: Vec<&str> = head.split("\r\n").skip(1).filter(keep).collect();
        let first = line.replacen("/v1/", "/", 1);
        let head = format!("{first}\r\n{}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", lines.join("\r\n"), body.len());
        let answer = super::server::forward(&judge, &[head.as_bytes(), &body].concat());
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status: u16 = answer.split(' ').nth(1).unwrap().parse().unwrap();
        assert!((200..300).contains(&status), "{line}: {answer}");
        *routes.entry(route(&line)).or_insert(0) += 1;
        judged += 1;
    }
    assert!(routes.len() >= 18, "{routes:?}");
    eprintln!("{judged} requests of {} kinds are valid", routes.len());
}

#[test]
#[expect(clippy::print_stderr, clippy::disallowed_methods, reason = "the recordings are not part of the project")]
fn requests_equal_those_of_the_official_client() {
    let Some(folder) = std::env::var_os("HMASK_WIRE").map(PathBuf::from) else {
        eprintln!("skipped: HMASK_WIRE names no recordings");
        return;
    };
    let recorded = |name: &str| Shape::of(&fs::read(folder.join(format!("{name}.bin"))).unwrap());
    let file = fixture("clients.csv");
    let sent = |rules: Vec<super::server::Rule>, more: &[&str]| {
        let server = Server::start(rules);
        let theirs = if more.contains(&"CONTAINER") { server.container() } else { String::new() };
        let place = Place::with_token().set("OPENAI_ORG_ID", "org-test").set("OPENAI_PROJECT_ID", "proj_test");
        let more: Vec<&str> = more.iter().map(|word| if *word == "CONTAINER" { &theirs } else { *word }).collect();
        let args = ["ask", file.to_str().unwrap(), "-c", PERSONAL, "SELECT COUNT(*) AS n FROM data", "--to", &server.url()];
        place.run(&[&args[..], &more].concat());
        let mut shapes: Vec<Shape> = server.bodies("").iter().map(|request| Shape::of(request)).collect();
        shapes.iter_mut().for_each(|shape| {
            shape.query.retain(|name| QUERIES.contains(&name.as_str()));
        });
        shapes
    };
    let plain = sent(rules([]), &[]);
    let small = sent(rules([("POST /v1/uploads/*/complete$", usize::MAX, Fault::Status(400))]), &["--whole=100"]);
    let theirs = sent(rules([]), &["--container", "CONTAINER"]);
    let inside = sent(rules([]), &["--via=container"]);
    let orphans = sent(rules([("POST /v1/files", 1, Fault::DropAfter)]), &[]);
    let chain = sent(rules([]), &["--chain", "--step", "SELECT 1 AS one FROM data"]);
    let mut compared = 0;
    for (shapes, name) in [
        (&plain, "files.create"),
        (&plain, "files.delete"),
        (&plain, "files.retrieve"),
        (&plain, "containers.create"),
        (&plain, "containers.delete"),
        (&plain, "containers.retrieve"),
        (&plain, "containers.files.list"),
        (&inside, "containers.files.create.multipart"),
        (&theirs, "containers.files.create.by-id"),
        (&theirs, "containers.files.delete"),
        (&theirs, "containers.files.retrieve"),
        (&small, "uploads.create"),
        (&small, "uploads.parts.create"),
        (&small, "uploads.complete"),
        (&small, "uploads.cancel"),
        (&chain, "responses.delete"),
        (&chain, "responses.retrieve"),
    ] {
        let mut want = recorded(name);
        // Into a container one can put an upload or a file: a form or JSON.
        let alike = |shape: &&Shape| shape.route == want.route && shape.body.is_null() == want.body.is_null();
        let is = shapes.iter().find(alike).unwrap_or_else(|| panic!("{name} is not sent"));
        // The recorded one has one part.
        if name == "uploads.complete" {
            assert!(is.body["part_ids"].as_array().unwrap().len() > 1);
            want.body = is.body.clone();
        }
        assert_eq!(is, &want, "{name}");
        compared += 1;
    }
    for (shapes, name) in [(&orphans, "files.list"), (&orphans, "containers.list")] {
        let want = recorded(name);
        let is = shapes.iter().find(|s| s.route == want.route).unwrap();
        assert!(is.query.iter().all(|name| QUERIES.contains(&name.as_str())) && is.headers == want.headers, "{name}: {is:?}");
        compared += 1;
    }
    // Questions: what is asked is another thing, what it is asked with is the same.
    for (shapes, name, number) in [
        (&plain, "responses.create.container-id", 0),
        (&chain, "responses.create.stream", 0),
        (&chain, "responses.create.previous", 1),
    ] {
        let want = recorded(name);
        let is = shapes.iter().filter(|s| s.route == want.route).nth(number).unwrap();
        assert_eq!(is.headers, want.headers, "{name}");
        for key in ["include", "stream", "previous_response_id"].iter().filter(|key| !want.body[**key].is_null()) {
            assert_eq!(is.body[*key], want.body[*key], "{name}: {key}");
        }
        let kinds =
            |body: &Value| (body["model"].is_string(), body["tools"][0]["type"].clone(), body["tools"].as_array().map(Vec::len));
        assert_eq!(kinds(&is.body), kinds(&want.body), "{name}");
        compared += 1;
    }
    eprintln!("{compared} requests are those of the official client");
}
