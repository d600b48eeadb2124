//! Where `hmask ask` puts a table: uploads, parts, containers of its own and of the user, messages; whatever it is, it goes.

use serde_json::Value;

use super::env::{Place, Ran, fixture};
use super::mask::{ORIGINALS, PERSONAL};
use super::server::{Fault, Server, rules};

const COUNT: &str = "SELECT COUNT(*) AS n FROM data";
const ANSWER: &str = "n\n-\n6\n";

fn ask(place: &Place, server: &Server, file: &str, more: &[&str]) -> Ran {
    ask_of(place, server, fixture(file).to_str().unwrap(), more)
}

fn ask_of(place: &Place, server: &Server, file: &str, more: &[&str]) -> Ran {
    place.run(&[&["ask", file, "-c", PERSONAL, COUNT, "--to", &server.url()], more].concat())
}

/// `fixtures/clients.csv`, an object a line.
fn ndjson() -> String {
    let mut reader = csv::ReaderBuilder::new().delimiter(b';').from_path(fixture("clients.csv")).unwrap();
    let header = reader.headers().unwrap().clone();
    let object = |record: csv::StringRecord| {
        let pairs = header.iter().zip(&record).map(|(name, value)| (name.to_owned(), Value::from(value)));
        format!("{}\n", Value::Object(pairs.collect()))
    };
    reader.records().map(|record| object(record.unwrap())).collect()
}

fn body(server: &Server, request: &str, number: usize) -> Value {
    let text = String::from_utf8_lossy(&server.bodies(request)[number]).into_owned();
    serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// What the requests were, without their ids and hosts.
fn routes(server: &Server) -> Vec<String> {
    server.requests().iter().map(|line| super::server::route(line)).collect()
}

#[test]
fn a_message_holds_the_rows_and_has_no_container() {
    let server = Server::start(rules([]));
    let place = Place::with_token();
    let steps = ["--attach", "message", "--step", "SELECT MIN(montant) AS least FROM data"];
    let ran = ask(&place, &server, "clients.csv", &steps).ok();
    assert!(ran.text().starts_with(ANSWER) && ran.text().contains("least"), "{}", ran.text());
    assert!(ran.err.contains("the rows go to the model itself"), "{}", ran.err);
    assert_eq!(server.bodies("POST /v1/containers").len(), 0);
    for number in [0, 1] {
        let question = body(&server, "POST /v1/responses", number);
        assert!(question["tools"].is_null() && question["store"] == false);
        let part = &question["input"][0]["content"][0];
        assert!(part["type"] == "input_file" && part["file_id"].as_str().unwrap().starts_with("file-"), "{part}");
    }
    assert_eq!(server.live(), 0);
    ask(&place, &server, "clients.csv", &["--attach", "message", "--save-dir", "out"]).fails(2, "no container");
}

#[test]
fn a_table_can_go_into_a_container_alone() {
    let server = Server::start(rules([]));
    let place = Place::with_token();
    let ran = ask(&place, &server, "clients.csv", &["--via", "container", "--manifest", "m.json"]).ok();
    assert!(ran.text().starts_with(ANSWER), "{}", ran.text());
    assert_eq!((server.bodies("POST /v1/files").len(), server.live()), (0, 0));
    assert!(routes(&server).contains(&"POST /v1/containers/*/files".into()));
    let manifest: Value = serde_json::from_slice(&place.read("m.json")).unwrap();
    assert_eq!((&manifest["loan"]["expiry_asked"], &manifest["loan"]["may_be_live"]), (&1200.into(), &serde_json::json!([])));
}

#[test]
fn a_container_of_the_user_stays_and_what_was_put_into_it_goes() {
    let server = Server::start(rules([]));
    let place = Place::with_token();
    let theirs = server.container();
    let files = format!("/v1/containers/{theirs}/files");
    let put = server.call("POST", &files, &format!("{{\"file_id\":\"{}\"}}", server.uploaded())).0;
    assert_eq!(put, 200);
    let before = server.list(&files);
    for via in ["files", "container"] {
        let more = ["--container", &theirs, "--via", via, "--save-dir", via];
        let ran = ask(&place, &server, "clients.csv", &more).ok();
        assert!(ran.text().starts_with(ANSWER) && place.path(&format!("{via}/result.csv")).exists(), "{}", ran.text());
        assert_eq!(server.list(&files), before, "{via}: {}", ran.err);
        assert!(ran.err.contains("confirmed gone: file cfile_"), "{}", ran.err);
    }
    // A gateway may call it by another name.
    server.break_with(("POST /v1/responses", 1, Fault::Replace("cntr_", "cntr_of_a_gateway_")));
    ask(&place, &server, "clients.csv", &["--container", &theirs]);
    assert_eq!(server.list("/v1/containers"), std::slice::from_ref(&theirs));
    assert_eq!(server.list(&files), before);
    // What an answer made goes, too, when the next question fails, or the run is killed.
    ask(&place, &server, "clients.csv", &["--container", &theirs, "--step", "SELECT nothing FROM data"]).fails(4, "");
    assert_eq!(server.list(&files), before);
    let killed = Place::with_token().set("HMASK_TEST_KILL_AT", "16");
    assert_eq!(ask(&killed, &server, "clients.csv", &["--container", &theirs]).code, -1);
    assert!(server.list(&files).len() > before.len());
    killed.unset("HMASK_TEST_KILL_AT").run(&["sweep"]).ok();
    assert_eq!(server.list(&files), before);
    server.call("DELETE", &format!("/v1/containers/{theirs}"), "");
    let ran = ask(&place, &server, "clients.csv", &["--container", &theirs]).fails(4, "the container cannot be used");
    assert!(ran.err.contains("20 idle minutes"), "{}", ran.err);
    assert_eq!(server.live(), 1, "the file that was there already: {}", ran.err);
}

#[test]
fn answers_that_follow_each_other_are_stored_and_deleted() {
    let server = Server::start(rules([]));
    let place = Place::with_token();
    let ran = ask(&place, &server, "clients.csv", &["--chain", "--step", "SELECT MAX(montant) AS most FROM data"]).ok();
    assert!(ran.text().starts_with(ANSWER) && ran.text().contains("most"), "{}", ran.text());
    assert_eq!(ran.err.matches("confirmed gone: response resp_").count(), 2, "{}", ran.err);
    let (first, second) = (body(&server, "POST /v1/responses", 0), body(&server, "POST /v1/responses", 1));
    assert!(first["store"] == true && first["previous_response_id"].is_null());
    assert!(second["previous_response_id"].as_str().unwrap().starts_with("resp_") && second["input"].is_string());
    assert_eq!((server.live(), server.stored().len()), (0, 0));

    // One whose id was never seen cannot be deleted: that is said, by the run and by each sweep.
    let server = Server::start(rules([("POST /v1/responses", 1, Fault::DropAfter)]));
    let ran = ask(&place, &server, "clients.csv", &["--chain"]);
    assert!(ran.code == 5 && ran.err.contains("perhaps an answer that was stored under an id that was not seen"), "{}", ran.err);
    assert_eq!((server.live(), server.stored().len()), (0, 1));
    let ran = place.run(&["sweep"]).fails(5, "not seen");
    assert!(ran.err.contains("hint: delete it in the service's log of responses, then remove "), "{}", ran.err);
}

#[test]
fn a_large_table_goes_in_parts_which_are_cancelled_on_failure() {
    let server = Server::start(rules([]));
    let place = Place::with_token();
    let ran = ask(&place, &server, "clients.csv", &["--whole", "100"]).ok();
    assert!(ran.text().starts_with(ANSWER), "{}", ran.text());
    let created = body(&server, "POST /v1/uploads", 0);
    assert_eq!(created["expires_after"], serde_json::json!({"anchor": "created_at", "seconds": 3600}));
    let parts = routes(&server).iter().filter(|r| *r == "POST /v1/uploads/*/parts").count();
    assert_eq!(parts, usize::try_from(created["bytes"].as_u64().unwrap().div_ceil(100)).unwrap());
    assert_eq!(server.live(), 0);

    let server = Server::start(rules([("POST /v1/uploads/*/parts$", 1, Fault::Status(400))]));
    let ran = ask(&place, &server, "clients.csv", &["--whole", "100"]).fails(4, "the upload failed: status 400");
    assert!(ran.err.contains("confirmed gone: upload in parts upload_"), "{}", ran.err);
    assert!(routes(&server).contains(&"POST /v1/uploads/*/cancel".into()));
}

#[test]
fn a_table_goes_as_it_is_on_demand() {
    for (file, more, name) in [
        ("clients.parquet", &["--upload-format", "as-is"][..], ".parquet"),
        ("clients.ndjson", &[], ".json"),
        ("clients.parquet", &[], ".csv"),
    ] {
        let server = Server::start(rules([]));
        let place = Place::with_token();
        let path = if file.ends_with("json") { place.write(file, ndjson()) } else { fixture(file) };
        let ran = ask_of(&place, &server, path.to_str().unwrap(), more).ok();
        assert!(ran.text().starts_with(ANSWER), "{file}: {}", ran.text());
        let upload = String::from_utf8_lossy(&server.bodies("POST /v1/files")[0]).into_owned();
        assert!(upload.contains(&format!("{name}\"\r\n")), "{file}");
        assert!(ORIGINALS.iter().all(|value| !upload.contains(value)), "{file}");
        assert_eq!(server.live(), 0);
    }
    let server = Server::start(rules([]));
    let place = Place::with_token();
    place.write("t.ndjson", ndjson());
    ask_of(&place, &server, "t.ndjson", &["--upload-format", "csv"]).fails(3, "--upload-format as-is");
    assert_eq!(server.requests(), Vec::<String>::new());
}

#[test]
fn azure_has_its_own_header_purpose_and_expiry() {
    let token = super::env::TOKEN;
    let server = Server::start(rules([]));
    let place = Place::new().set("AZURE_OPENAI_ENDPOINT", &server.url()).set("AZURE_OPENAI_API_KEY", token);
    let file = fixture("clients.csv");
    let ask =
        |more: &[&str]| place.run(&[&["ask", file.to_str().unwrap(), "-c", PERSONAL, COUNT, "--to", "azure"], more].concat());
    assert!(ask(&[]).ok().text().starts_with(ANSWER));
    let upload = String::from_utf8_lossy(&server.bodies("POST /v1/files")[0]).into_owned();
    assert!(upload.contains(&format!("api-key: {token}\r\n")) && !upload.to_lowercase().contains("authorization: bearer"));
    assert!(upload.contains("\r\n\r\nassistants\r\n"));
    assert_eq!(server.live(), 0);

    // Where one hour is refused nothing is lent, unless a longer life is accepted.
    let one_hour_refused = || Server::start(rules([("POST /v1/files", 1, Fault::Status(400))]));
    let server = one_hour_refused();
    let place = Place::new().set("AZURE_OPENAI_API_KEY", token);
    let ask = |to: String, more: &[&str]| {
        place.run(
            &[&["ask", file.to_str().unwrap(), "-c", PERSONAL, COUNT, "--to", &to, "--manifest", "m.json", "--force"], more]
                .concat(),
        )
    };
    ask(format!("azure:{}", server.url()), &[]).fails(4, "the upload failed: status 400");
    let server = one_hour_refused();
    let ran = ask(format!("azure:{}", server.url()), &["--accept-expiry"]).ok();
    assert!(ran.err.contains("1209600 s"), "{}", ran.err);
    assert_eq!((server.bodies("POST /v1/files").len(), server.live()), (2, 0));
    let manifest: Value = serde_json::from_slice(&place.read("m.json")).unwrap();
    assert_eq!(manifest["loan"]["expiry_granted"], 1_209_600);
}

#[test]
fn a_container_that_is_over_or_out_of_memory_is_explained() {
    for (words, hint) in [
        (r#"{"error":{"message":"Container is expired.","type":"invalid_request_error","code":null}}"#, "20 idle minutes"),
        (r#"{"error":{"message":"There was an issue with your request. Please check","code":null}}"#, "--memory 4g, 16g or 64g"),
    ] {
        let server = Server::start(rules([("POST /v1/responses", 1, Fault::Refuse(400, words))]));
        let ran = ask(&Place::with_token(), &server, "clients.csv", &[]).fails(4, "the question failed: status 400");
        assert!(ran.err.contains(hint), "{}", ran.err);
        assert_eq!(server.live(), 0);
    }
}
