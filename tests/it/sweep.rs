//! `hmask lend` and `hmask sweep`: whatever ends a run, one sweep later nothing of it is anywhere.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::env::{KEY, Place, Ran, TOKEN, fixture};
use super::mask::PERSONAL;
use super::server::{Fault, Server, rules};

const QUESTION: &str = "SELECT COUNT(*) AS n FROM data";
const JOURNALS: &str = "home/.local/state/hmask";

pub fn journals(place: &Place) -> Vec<String> {
    let entries = fs::read_dir(place.path(JOURNALS)).into_iter().flatten();
    entries.map(|e| e.unwrap().file_name().into_string().unwrap()).filter(|name| name != "manifests").collect()
}

fn ask(place: &Place, to: &str) -> Ran {
    let file = fixture("clients.csv");
    place.run(&["ask", file.to_str().unwrap(), "-c", PERSONAL, QUESTION, "--to", to, "--delete-for=1"])
}

fn lend(place: &Place, to: &str, more: &[&str]) -> Ran {
    let file = fixture("clients.csv");
    place.run(&[&["lend", file.to_str().unwrap(), "-c", PERSONAL, "--to", to, "--delete-for=1"], more].concat())
}

/// Moves the journals of all places into one.
pub fn gather(places: &[Place], into: &Place) {
    fs::create_dir_all(into.path(JOURNALS)).unwrap();
    for place in places {
        for name in journals(place) {
            fs::rename(place.path(JOURNALS).join(&name), into.path(JOURNALS).join(&name)).unwrap();
        }
    }
}

/// Kills runs at each step of their journal in turn, until one comes to its end.
pub fn kill_at_each_step(place: impl Fn() -> Place, run: impl Fn(&Place) -> Ran) -> Vec<Place> {
    let mut places = Vec::new();
    for step in 1.. {
        let place = place().set("HMASK_TEST_KILL_AT", &step.to_string());
        let ran = run(&place);
        if ran.code == 0 {
            break;
        }
        assert_eq!(ran.code, -1, "step {step}: {}", ran.err);
        assert_eq!(place.names(), Vec::<String>::new(), "step {step}");
        assert!(journals(&place).len() <= 1, "step {step}");
        places.push(place);
    }
    places
}

#[test]
fn killed_at_any_step_and_swept_once_nothing_is_there() {
    let server = Server::start(rules([]));
    let url = server.url();
    let mut places = kill_at_each_step(Place::with_token, |place| ask(place, &url));
    let asked = places.len();
    places.extend(kill_at_each_step(Place::with_token, |place| lend(place, &url, &["--", "true"])));
    // Begin, intent, live, settled twice, gone twice: before and after each line, and around the end of the journal.
    assert_eq!((asked, places.len() - asked), (20, 12));
    assert!(server.live() > asked / 2, "the kills came too late");
    let place = Place::with_token();
    gather(&places, &place);
    let ran = place.run(&["sweep", "--to", &url]).ok();
    assert_eq!((server.live_ids(), journals(&place)), (vec![], vec![]), "{}", ran.err);
}

#[test]
fn a_run_on_the_embedded_endpoint_leaves_no_folder_once_swept() {
    let places = kill_at_each_step(Place::with_token, |place| ask(place, "local"));
    assert_eq!(places.len(), 22);
    for place in places {
        let place = place.unset("HMASK_TEST_KILL_AT");
        place.run(&["sweep", "--to", "local"]).ok();
        assert_eq!((place.temporary(), journals(&place).len()), (0, 0));
    }
}

#[test]
fn a_journal_that_was_cut_is_enough_for_a_sweep() {
    let server = Server::start(rules([]));
    let (mut places, mut at) = (Vec::new(), 0);
    loop {
        let place = Place::with_token().set("HMASK_TEST_KILL_AT", "12");
        assert_eq!(ask(&place, &server.url()).code, -1);
        let path = place.path(JOURNALS).join(&journals(&place)[0]);
        let whole = fs::read(&path).unwrap();
        if at > whole.len() {
            break;
        }
        fs::write(&path, &whole[..at]).unwrap();
        places.push(place);
        at += 23;
    }
    assert!(places.len() > 20 && server.live() >= places.len(), "{}", places.len());
    let place = Place::with_token();
    gather(&places, &place);
    // Whole, too: the last run was not cut.
    let ran = place.run(&["sweep", "--to", &server.url()]).ok();
    assert_eq!(journals(&place), Vec::<String>::new(), "{}", ran.err);
    let uncut = server.live_ids();
    assert_eq!(uncut.len(), 2, "the last run's, whose journal lies elsewhere: {}", ran.err);
}

#[test]
fn a_sweep_says_what_it_does_and_leaves_living_runs_alone() {
    let server = Server::start(rules([]));
    let place = Place::with_token();
    place.run(&["sweep"]).ok();
    let file = fixture("clients.csv");
    let mut command = place.command(&["lend", file.to_str().unwrap(), "-c", PERSONAL, "--to", &server.url(), "--hold", "1h"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while server.live() == 0 {
        assert!(start.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(10));
    }
    let ran = place.run(&["sweep"]).ok();
    assert!(ran.err.contains("is still at work") && server.live() == 1, "{}", ran.err);
    child.kill().unwrap();
    let _ = child.wait();

    let ran = place.run(&["sweep", "--dry-run"]).ok();
    assert!(ran.err.contains("would delete upload file-") && server.live() == 1, "{}", ran.err);
    place.run(&["sweep", "--older-than", "1h"]).ok();
    assert_eq!(server.live(), 1);
    let text = fs::read_to_string(place.path(JOURNALS).join(&journals(&place)[0])).unwrap();
    for secret in [TOKEN, KEY, "clients", "courriel"] {
        assert!(!text.contains(secret), "{secret} is in the journal: {text}");
    }
    let ran = place.run(&["sweep"]).ok();
    assert!(ran.err.contains("deleted, and confirmed gone: upload file-"), "{}", ran.err);
    assert_eq!((server.live(), journals(&place).len()), (0, 0));
}

#[test]
fn what_cannot_be_deleted_stays_in_the_journal_and_the_next_run_takes_it_along() {
    let server = Server::start(rules([("DELETE /v1/files", 30, Fault::Status(500))]));
    let place = Place::with_token();
    let ran = ask(&place, &server.url());
    assert_eq!(ran.code, 5, "{}", ran.err);
    assert!(ran.err.contains("hint: hmask sweep"), "{}", ran.err);
    assert_eq!((server.live(), journals(&place).len()), (1, 1));
    let ran = place.run(&["sweep", "--delete-for=0"]);
    assert_eq!(ran.code, 5, "{}", ran.err);
    assert!(ran.err.contains("may still be live at http://127.0.0.1"), "{}", ran.err);
    while place.run(&["sweep", "--delete-for=1"]).code == 5 {}
    assert_eq!((server.live(), journals(&place).len()), (0, 0));

    let other = Place::with_token().set("HMASK_TEST_KILL_AT", "8");
    assert_eq!(ask(&other, &server.url()).code, -1);
    let other = other.unset("HMASK_TEST_KILL_AT");
    let ran = ask(&other, &server.url()).ok();
    assert!(ran.err.contains("an earlier run was interrupted; sweeping"), "{}", ran.err);
    assert_eq!((server.live(), journals(&other).len()), (0, 0));
}

#[test]
fn a_sweep_that_leaves_something_alone_does_not_say_that_there_is_nothing() {
    let server = Server::start(rules([]));
    let place = Place::with_token().set("HMASK_TEST_KILL_AT", "8");
    assert_eq!(ask(&place, &server.url()).code, -1);
    let place = place.unset("HMASK_TEST_KILL_AT");
    let ran = place.run(&["sweep", "--older-than", "1h"]).ok();
    assert!(ran.err.contains("younger: 1") && !ran.err.contains("nothing was left"), "{}", ran.err);
    let path = place.path(JOURNALS).join(&journals(&place)[0]);
    let text = fs::read_to_string(&path).unwrap();
    let at = text.find("\"host\":\"").unwrap() + 8;
    fs::write(&path, format!("{}elsewhere-{}", &text[..at], &text[at..])).unwrap();
    let ran = place.run(&["sweep"]).fails(5, "1 runs of other machines");
    assert!(server.live() == 1 && ran.err.contains("hint: hmask sweep --all-hosts"), "{}", ran.err);
    place.run(&["sweep", "--all-hosts"]).ok();
    assert_eq!(server.live(), 0);
}

#[test]
fn a_command_sees_no_secret_of_a_store() {
    let names = [
        "AWS_TOKEN",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN",
        "AZURE_STORAGE_ACCESS_KEY",
        "AZURE_STORAGE_CONNECTION_STRING",
        "GOOGLE_BEARER_TOKEN",
    ];
    let place = names.iter().fold(Place::new(), |place, name| place.set(name, "of-the-house")).set("AWS_REGION", "eu-west-3");
    let text = lend(&place, "local", &["--", "env"]).ok().text();
    assert!(!text.contains("of-the-house") && text.contains("AWS_REGION=eu-west-3"), "{text}");
}

#[test]
fn what_another_account_lent_is_not_taken_for_gone_and_one_bad_journal_hides_no_other() {
    let server = Server::start(rules([]));
    let place = Place::with_token().set("HMASK_TEST_KILL_AT", "8");
    assert_eq!(ask(&place, &server.url()).code, -1);
    let place = place.unset("HMASK_TEST_KILL_AT").set("OPENAI_ORG_ID", "org-2");
    let ran = place.run(&["sweep"]);
    assert!(ran.code == 5 && ran.err.contains("another account"), "{}", ran.err);
    assert_eq!((server.live(), journals(&place).len()), (1, 1));
    let place = place.unset("OPENAI_ORG_ID");
    fs::create_dir(place.path(JOURNALS).join("hmask-0.jsonl")).unwrap();
    let ran = place.run(&["sweep"]);
    assert_eq!((ran.code, server.live(), journals(&place).len()), (5, 0, 1), "{}", ran.err);
}

#[test]
fn a_run_that_cannot_keep_a_journal_sends_nothing() {
    let server = Server::start(rules([]));
    let place = Place::with_token();
    place.write("file", "");
    let file = fixture("clients.csv");
    let state = place.path("file/below");
    let state = state.to_str().unwrap();
    let args = ["ask", file.to_str().unwrap(), "-c", PERSONAL, QUESTION, "--to", &server.url(), "--state-dir", state];
    place.run(&args).fails(3, "cannot keep a journal");
    assert_eq!(server.requests(), Vec::<String>::new());
}

#[test]
fn a_command_finds_what_is_lent_and_its_exit_code_is_passed_on() {
    let server = Server::start(rules([]));
    let place = Place::with_token().set("MY_KEY", KEY).unset("HMASK_KEY");
    let see = "echo $HMASK_FILE_ID $HMASK_FILE_NAME $HMASK_FILE_EXPIRES_AT $HMASK_BASE_URL; env; exit 7";
    let ran = lend(&place, &server.url(), &["--key-env", "MY_KEY", "--", "sh", "-c", see]);
    assert_eq!((ran.code, server.live(), journals(&place).len()), (7, 0, 0), "{}", ran.err);
    let text = ran.text();
    let words: Vec<&str> = text.lines().next().unwrap().split(' ').collect();
    assert!(words[0].starts_with("file-") && words[1].starts_with("hmask-") && words[2].parse::<u64>().is_ok(), "{text}");
    assert!(words[3].starts_with("http://127.0.0.1"), "{text}");
    assert!(!text.contains(KEY) && !text.contains(TOKEN), "a secret is in the command's environment: {text}");
    assert!(lend(&place, &server.url(), &["--key-env", "MY_KEY", "--pass-token", "--", "env"]).ok().text().contains(TOKEN));
    lend(&place, &server.url(), &["--key-fd", "3", "--", "true"]).fails(2, "would inherit the descriptor");
    let ran = lend(&place, &server.url(), &["--key-env", "MY_KEY", "--", "no-such-command"]);
    assert_eq!((ran.code, server.live()), (3, 0), "{}", ran.err);
    let ran = lend(&place, &server.url(), &["--key-env", "MY_KEY", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!((ran.code, server.live()), (137, 0), "{}", ran.err);
}

#[test]
fn a_held_loan_ends_with_enter_or_the_time() {
    let server = Server::start(rules([]));
    let place = Place::with_token();
    let file = fixture("clients.csv");
    let args = ["lend", file.to_str().unwrap(), "-c", PERSONAL, "--to", &server.url(), "--hold", "1h"];
    let text = place.run_with_input(&args, b"\n").ok().text();
    assert!(serde_json::from_str::<serde_json::Value>(&text).unwrap()["file_id"].as_str().unwrap().starts_with("file-"));
    lend(&place, &server.url(), &["--hold", "100ms"]).ok();
    assert_eq!(server.live(), 0);
    lend(&place, &server.url(), &[]).fails_usage();
    lend(&place, "local", &["--", "sh", "-c", "test -n \"$HMASK_FILE_ID\""]).ok();
}

/// Ends runs at random moments; one sweep then clears up after all of them.
#[test]
fn killed_a_hundred_times_and_swept_once() {
    let server = Server::start(rules([]));
    let file = fixture("clients.csv");
    let (file, url) = (file.to_str().unwrap(), server.url());
    let (mut seed, mut killed, mut places) = (11u32, 0, Vec::new());
    for round in 0..100 {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // A place each: runs would sweep what others left, and here the one sweep at the end is tested.
        let place = Place::with_token();
        let (command, tail): (_, &[&str]) = if round % 2 == 0 { ("ask", &[QUESTION]) } else { ("lend", &["--", "true"]) };
        let mut command = place.command(&[&[command, file, "-c", PERSONAL, "--to", &url], tail].concat());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(u64::from(seed >> 24) / 4));
        let _ = child.kill();
        killed += u32::from(child.wait().unwrap().code().is_none());
        assert_eq!((place.names(), place.temporary()), (vec![], 0));
        places.push(place);
    }
    let place = Place::with_token();
    gather(&places, &place);
    let ran = place.run(&["sweep", "--to", &url]).ok();
    assert_eq!((server.live_ids(), journals(&place)), (vec![], vec![]), "{}", ran.err);
    assert!(killed > 20, "only {killed} runs were killed before their end");
}
