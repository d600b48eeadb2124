//! `hmask ask` and `hmask sandbox`: the main job, end to end.

use serde_json::Value;

use super::env::{Place, Ran, fixture};
use super::mask::{ORIGINALS, PERSONAL, token};
use super::server::{Server, rules};

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
    lend(&["-c", "a", "--format", "ndjson"]).fails(3, "no JSON");
    lend(&["-c", "a", "--attach", "message", "--via", "container"]).fails(2, "no container");
    place.run(&["ask", t, "-c", "a", TOTAL, "--to", "azure"]).fails(2, "AZURE_OPENAI_ENDPOINT is not set");
    place.run(&["ask", "cfile_12ab", "-c", "a", TOTAL, "--to", &server.url()]).fails(2, "there already");
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
    server.uploaded();
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

#[test]
fn steps_are_asked_in_one_container_and_answers_come_as_a_stream() {
    let place = Place::new();
    place.write("t.csv", "nom,n\nDurand,1\nMartin,2\n");
    let ask = |more: &[&str]| {
        place.run(&[&["ask", "t.csv", "-c", "nom", "SELECT SUM(n) AS s FROM data", "--to", "local", "-v"], more].concat())
    };
    let steps: &[&str] = &["--step", "SELECT MAX(n) AS m FROM data", "--step", "SELECT MIN(n) AS least FROM data"];
    let plain = ask(steps).ok();
    let streamed = ask(&[steps, &["--stream", "--save-code", "code.sql"]].concat()).ok();
    for ran in [&plain, &streamed] {
        let text = ran.text();
        assert!(text.find('3').unwrap() < text.find('2').unwrap() && text.contains("least"), "{text}");
        let posts = |path: &str| {
            ran.err.lines().filter(|l| l.contains("POST http://127.0.0.1") && l.contains(&format!("/v1/{path}:"))).count()
        };
        assert_eq!((posts("files"), posts("containers"), posts("responses")), (1, 1, 3), "{}", ran.err);
    }
    assert_eq!(plain.text(), streamed.text());
    let code = String::from_utf8(place.read("code.sql")).unwrap();
    assert!(
        code.contains("# question 1, call 1\nSELECT SUM(n)") && code.contains("# question 3, call 1\nSELECT MIN(n)"),
        "{code}"
    );
    let failed = ask(&["--step", "SELECT nothing FROM data", "--stream"]).fails_at(4);
    assert!(failed.contains("confirmed gone: container") && failed.contains("confirmed gone: upload"), "{failed}");
}

#[test]
fn doctor_says_what_stands_in_the_way() {
    let place = Place::new();
    let step = |ran: &super::env::Ran, name: &str| {
        let steps: serde_json::Value = serde_json::from_slice(&ran.out).unwrap();
        let found = steps.as_array().unwrap().iter().find(|s| s["step"] == name).cloned();
        found.map_or_else(|| "none".into(), |s| s["verdict"].as_str().unwrap().to_owned())
    };
    let ran = place.run(&["doctor", "--to", "local", "--json"]).ok();
    for name in ["key", "dns", "tcp", "clock", "authentication", "model", "files", "containers"] {
        assert_eq!(step(&ran, name), "ok", "{name}");
    }
    let ran = place.run(&["doctor", "--json"]);
    assert_eq!((ran.code, step(&ran, "token").as_str()), (2, "failed"));
    let place = Place::with_token();
    place.write("hmask.toml", "version = 9\n");
    let ran = place.run(&["doctor", "--to", "http://127.0.0.1:9/v1", "--json"]);
    assert_eq!(
        (ran.code, step(&ran, "policy").as_str(), step(&ran, "tcp").as_str(), step(&ran, "model").as_str()),
        (2, "failed", "failed", "unknown")
    );
    assert!(!ran.text().contains(super::env::TOKEN));
}

#[test]
fn an_own_certificate_is_trusted_where_it_is_named() {
    let place = Place::with_token();
    let openssl = |args: &[&str]| {
        std::process::Command::new("openssl").args(args).current_dir(place.path("")).output().is_ok_and(|o| o.status.success())
    };
    place.write("ext", "subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n");
    let made =
        openssl(&[
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj",
            "/CN=ca",
        ]) && openssl(&["req", "-newkey", "rsa:2048", "-nodes", "-keyout", "k.pem", "-out", "k.csr", "-subj", "/CN=localhost"])
            && openssl(&[
                "x509",
                "-req",
                "-in",
                "k.csr",
                "-CA",
                "ca.pem",
                "-CAkey",
                "ca.key",
                "-CAcreateserial",
                "-out",
                "c.pem",
                "-days",
                "2",
                "-extfile",
                "ext",
            ]);
    if !made {
        return; // without openssl there is nobody to speak TLS with
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = std::process::Command::new("openssl")
        .args(["s_server", "-accept", &format!("127.0.0.1:{port}"), "-key", "k.pem", "-cert", "c.pem", "-www", "-quiet"])
        .current_dir(place.path(""))
        .stdin(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let url = format!("https://localhost:{port}/v1");
    let tls = |more: &[&str]| {
        let ran = place.run(&[&["doctor", "--to", &url, "--json"], more].concat());
        let steps: serde_json::Value = serde_json::from_slice(&ran.out).unwrap();
        steps.as_array().unwrap().iter().find(|s| s["step"] == "tls").unwrap().clone()
    };
    let (without, with) = (tls(&[]), tls(&["--ca-file", "ca.pem"]));
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!((without["verdict"].as_str(), with["verdict"].as_str()), (Some("failed"), Some("ok")), "{without} {with}");
    assert!(with["what"].as_str().unwrap().contains("SHA-256"));
    place.run(&["doctor", "--to", &url, "--ca-file", "k.csr", "--json"]).fails_at(2);
}

#[test]
fn several_tables_are_lent_together_and_looked_through_for_each_other() {
    let place = Place::new();
    place.write("a.csv", "nom,n\nDurand,1\nMartin,2\n");
    place.write("b.csv", "nom;ville\nDurand;Paris\nMartin;Lyon\n");
    let join = "SELECT a.n, b.ville FROM data_1 a JOIN data_2 b ON a.nom = b.nom ORDER BY a.n";
    let ran = place.run(&["ask", "a.csv", "b.csv", "-c", "nom", join, "--to", "local", "--manifest", "m.json"]).ok();
    let text = ran.text();
    assert!(text.contains("Paris") && text.find("Paris") < text.find("Lyon"), "{text}");
    assert_eq!(ran.err.matches("confirmed gone: upload").count(), 2, "{}", ran.err);
    for (file, input) in [("m.json", "a.csv"), ("m-2.json", "b.csv")] {
        let manifest: Value = serde_json::from_slice(&place.read(file)).unwrap();
        assert_eq!((manifest["input"]["name"].as_str(), manifest["loan"]["answered"].as_bool()), (Some(input), Some(true)));
        assert_eq!(manifest["loan"]["confirmed_gone"].as_array().unwrap().len(), 3);
    }
    // What was masked in one stands in the other.
    place.write("b.csv", "nom,note\nPetit,vu avec Durand\n");
    let ran = place.run(&["ask", "a.csv", "b.csv", "-c", "nom", join, "--to", "local"]).fails(1, "b.csv");
    assert!(ran.err.contains("original of a masked column") && !ran.err.contains("Durand"), "{}", ran.err);
    place.write("b.csv", "nom,ville\nPetit,Paris\n");
    let ran = place.run(&["lend", "a.csv", "b.csv", "-c", "nom", "--to", "local", "--", "sh", "-c", "echo $HMASK_FILE_IDS"]).ok();
    assert_eq!(ran.text().trim().split(',').count(), 2);
    place.run(&["ask", "-c", "nom", join, "--to", "local"]).fails_usage();
}
