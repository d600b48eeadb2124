//! Faults between hmask and the endpoint: after each, what is live is what exit code and message say.

use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::env::{Place, Ran, TOKEN, fixture};
use super::mask::PERSONAL;
use super::server::{Fault, Server, kill, route, rules};
use super::sweep::{gather, journals, kill_at_each_step};

const ALWAYS: usize = usize::MAX;
const QUESTION: &str = "SELECT COUNT(*) AS n FROM data";

fn args(url: &str) -> [String; 8] {
    let file = fixture("clients.csv").to_str().unwrap().to_owned();
    ["ask", &file, "-c", PERSONAL, QUESTION, "--to", url, "--delete-for=1"].map(str::to_owned)
}

fn ask(server: &Server) -> Ran {
    ask_from(&Place::with_token(), server)
}

fn ask_from(place: &Place, server: &Server) -> Ran {
    let args = args(&server.url());
    place.run(&args.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A way to ask, and its options.
struct Manner {
    title: &'static str,
    options: &'static [&'static str],
    /// Whether it is done in a container of the user.
    theirs: bool,
}

const MANNERS: [Manner; 5] = [
    Manner { title: "A question", options: &[], theirs: false },
    Manner { title: "A table in parts", options: &["--whole=100"], theirs: false },
    Manner { title: "`--via container`", options: &["--via=container"], theirs: false },
    Manner { title: "`--container ID`", options: &[], theirs: true },
    Manner {
        title: "`--attach message --chain`, two questions",
        options: &["--attach=message", "--chain", "--step", QUESTION],
        theirs: false,
    },
];

/// What can happen to each request.
fn faults() -> Vec<(&'static str, Fault)> {
    vec![
        ("never arrives", Fault::DropBefore),
        ("answer lost", Fault::DropAfter),
        ("answer cut", Fault::Truncate),
        ("done, 500", Fault::StatusAfter(500)),
        ("404", Fault::Status(404)),
        ("429", Fault::Status(429)),
        ("500", Fault::Status(500)),
        ("503", Fault::Status(503)),
        ("`{}`", Fault::Answer("{}")),
        ("`<html>`", Fault::Answer("<html>")),
        ("redirect", Fault::Redirect("http://127.0.0.1:9/v1/files".into())),
        ("endless", Fault::Huge),
        ("slow", Fault::Slow),
    ]
}

/// A server of a manner, with a container of the user where one is needed.
struct Scene {
    server: Server,
    theirs: Option<String>,
}

impl Scene {
    fn new(manner: &Manner) -> Self {
        let server = Server::start(rules([]));
        let theirs = manner.theirs.then(|| server.container());
        Self { server, theirs }
    }

    fn ask(&self, place: &Place, manner: &Manner) -> Ran {
        // Long enough for several tries on a machine that has other things to do.
        let args = args(&self.server.url()).map(|arg| arg.replace("--delete-for=1", "--delete-for=4"));
        let theirs: Vec<&str> = self.theirs.iter().flat_map(|id| ["--container", id]).collect();
        place.run(&[&args.iter().map(String::as_str).collect::<Vec<_>>(), manner.options, &theirs].concat())
    }

    /// Everything that is there and came from hmask.
    fn live(&self) -> Vec<String> {
        let inside = self.theirs.iter().flat_map(|id| self.server.list(&format!("/v1/containers/{id}/files")));
        // What the assistant makes in a container of the user is known by its citation alone.
        let known = |id: &String| {
            self.server.call("GET", &format!("/v1/containers/{}/files/{id}", self.theirs.as_ref().unwrap()), "").1["source"]
                == "user"
        };
        let inside: Vec<String> = inside.filter(known).collect();
        let all = self.server.live_ids().into_iter().filter(|id| Some(id) != self.theirs.as_ref());
        all.chain(inside).chain(self.server.stored()).collect()
    }

    /// Breaks one request, and says how it ended: exit code, and what was live.
    fn suffer(&self, manner: &Manner, route: &'static str, times: usize, fault: &Fault) -> String {
        self.server.break_with((route, times, fault.clone()));
        let place = Place::with_token();
        let ran = self.ask(&place, manner);
        self.server.heal();
        let case = format!("{} {route} {fault:?} {times}", manner.title);
        assert!(!ran.err.contains(TOKEN), "{case}: {}", ran.err);
        assert!(matches!(ran.code, 0 | 4 | 5), "{case}: {} {}", ran.code, ran.err);
        let live = self.live();
        // Nothing is live, or it is said; an answer whose id was never seen cannot be named.
        assert!(live.is_empty() || ran.code == 5 && ran.err.contains("may still be live"), "{case}: {live:?} {}", ran.err);
        let unnamed = |id: &&String| !ran.err.contains(id.as_str()) && !ran.err.contains("perhaps ");
        assert_eq!(live.iter().find(unnamed), None, "{case}: {}", ran.err);
        let swept = place.run(&["sweep"]);
        let after = self.live();
        let unheard = swept.code == 5 && swept.err.contains("an id that was not seen");
        assert!(
            swept.code == 0 && after.is_empty() || unheard && after.iter().all(|id| id.starts_with("resp_")),
            "{case}: {after:?} {}",
            swept.err
        );
        assert_eq!((place.names(), place.temporary()), (vec![], 0), "{case}");
        after.iter().for_each(|id| drop(self.server.call("DELETE", &format!("/v1/responses/{id}"), "")));
        let said = if live.is_empty() { String::new() } else { format!(" ({} live)", live.len()) };
        format!("{}{said}{}", ran.code, if after.is_empty() { "" } else { " *" })
    }
}

/// The requests of a manner, in their order, and how each fault of each of them ended.
fn table(manner: &Manner) -> (String, usize) {
    let scene = Scene::new(manner);
    scene.ask(&Place::with_token(), manner).ok();
    assert_eq!(scene.live(), Vec::<String>::new());
    let mut routes: Vec<&'static str> = Vec::new();
    for line in scene.server.requests() {
        let route = format!("{}$", route(&line));
        if !routes.contains(&route.as_str()) {
            routes.push(route.leak());
        }
    }
    let faults = faults();
    let many = routes.len() * faults.len();
    let (next, cells) = (AtomicUsize::new(0), Mutex::new(vec![String::new(); many]));
    std::thread::scope(|scope| {
        // Most of the time they wait.
        for _ in 0..16 {
            scope.spawn(|| {
                let scene = Scene::new(manner);
                loop {
                    let case = next.fetch_add(1, Ordering::Relaxed);
                    if case >= many {
                        break;
                    }
                    let (route, fault) = (routes[case / faults.len()], &faults[case % faults.len()].1);
                    let once = scene.suffer(manner, route, 1, fault);
                    let always = if matches!(fault, Fault::Slow | Fault::Huge) {
                        once.clone()
                    } else {
                        scene.suffer(manner, route, ALWAYS, fault)
                    };
                    cells.lock().unwrap()[case] = if once == always { once } else { format!("{once}, {always}") };
                }
            });
        }
    });
    let cells = cells.into_inner().unwrap();
    let titles: Vec<&str> = faults.iter().map(|f| f.0).collect();
    let mut text = format!("| request | {} |\n|{}\n", titles.join(" | "), "---|".repeat(titles.len() + 1));
    for (route, row) in routes.iter().zip(cells.chunks(faults.len())) {
        text += &format!("| `{}` | {} |\n", route.trim_end_matches('$').replace("/v1", ""), row.join(" | "));
    }
    (text, many * 2 - routes.len() * 2)
}

/// Each fault at each request of each way to ask: what is live is said, and after a sweep nothing is. With `HMASK_TEST_ALL` all ways are
/// gone through, which takes minutes.
#[test]
#[expect(clippy::disallowed_methods, clippy::print_stderr, reason = "how much is tried is chosen from outside")]
fn after_each_fault_nothing_is_live_or_the_exit_code_says_so() {
    let all = std::env::var_os("HMASK_TEST_ALL").is_some();
    for manner in &MANNERS[..if all { MANNERS.len() } else { 1 }] {
        let (text, many) = table(manner);
        eprintln!("{}: {many} faults survived", manner.title);
        super::env::blessed("docs/loan.md", manner.title, &text);
    }
}

/// Things that an answer can say and that are not so.
#[test]
fn an_answer_that_is_not_what_was_asked_for_ends_the_loan() {
    let no_expiry = Fault::Replace("\"expires_at\"", "\"expired_at\"");
    for rule in [
        ("POST /v1/files", 1, no_expiry),
        ("POST /v1/files", 1, Fault::Status(401)),
        ("POST /v1/files", 1, Fault::Replace("\"expires_at\":1", "\"expires_at\":9")),
        ("POST /v1/files", 1, Fault::Replace("\"bytes\":", "\"bytes\":1")),
        ("POST /v1/containers", 1, Fault::Replace("\"disabled\"", "\"allowlist\"")),
    ] {
        let server = Server::start(rules([rule.clone()]));
        let ran = ask(&server);
        assert_eq!((ran.code, server.live()), (4, 0), "{rule:?}: {}", ran.err);
    }
}

/// Killed before and after each line of the journal, in each way to ask.
#[test]
fn killed_at_any_step_of_any_manner_and_swept_once_nothing_is_there() {
    for manner in &MANNERS {
        let scene = Scene::new(manner);
        let places = kill_at_each_step(Place::with_token, |place| scene.ask(place, manner));
        let before = scene.live().len();
        assert!(places.len() >= 16 && before > 5, "{}: {} kills, {before} live", manner.title, places.len());
        let place = Place::with_token();
        gather(&places, &place);
        let swept = place.run(&["sweep", "--to", &scene.server.url()]);
        let live = scene.live();
        if manner.options.contains(&"--chain") {
            // Killed between a question and the first word of its answer: what is stored by then is said to be.
            assert!(live.iter().all(|id| id.starts_with("resp_")), "{live:?}");
            let unheard = swept.err.matches("an id that was not seen").count();
            assert_eq!((swept.code, unheard, live.len()), (5, 4, 2), "{}", swept.err);
        } else {
            assert_eq!((swept.code, live, journals(&place)), (0, vec![], vec![]), "{}: {}", manner.title, swept.err);
        }
    }
}

/// A panic before and after each line of the journal.
#[test]
fn a_panic_at_any_step_leaves_nothing_that_is_not_said() {
    let manner = &MANNERS[0];
    let scene = Scene::new(manner);
    let (mut given_back, mut said) = (0, 0);
    for step in 1.. {
        let place = Place::with_token().set("HMASK_TEST_PANIC_AT", &step.to_string());
        let ran = scene.ask(&place, manner);
        let live = scene.live();
        assert!(ran.code == 0 || ran.err.contains("internal error"), "step {step}: {}", ran.err);
        match ran.code {
            0 => break,
            // Before anything was sent, or when all is gone.
            3 => assert!(live.is_empty(), "step {step}: {live:?} {}", ran.err),
            4 => given_back += 1,
            5 => said += 1,
            code => panic!("step {step}: {code} {}", ran.err),
        }
        assert!(live.is_empty() || ran.code == 5 && ran.err.contains("hint: hmask sweep"), "step {step}: {live:?} {}", ran.err);
        let swept = place.unset("HMASK_TEST_PANIC_AT");
        swept.run(&["sweep"]).ok();
        assert_eq!((scene.live(), journals(&swept), swept.temporary()), (vec![], vec![], 0), "step {step}");
    }
    assert!(given_back >= 10 && said >= 2, "{given_back} {said}");
}

/// A signal while each request is on its way.
#[test]
fn a_signal_at_any_request_leaves_nothing_that_is_not_swept() {
    let manner = &MANNERS[0];
    let scene = Scene::new(manner);
    scene.ask(&Place::with_token(), manner).ok();
    let mut routes: Vec<String> = scene.server.requests().iter().map(|line| format!("{}$", route(line))).collect();
    routes.dedup();
    assert!(routes.len() >= 8, "{routes:?}");
    for route in routes {
        let route: &'static str = route.leak();
        for signal in ["INT", "TERM", "KILL"] {
            scene.server.forget();
            scene.server.break_with((route, 1, Fault::Slow));
            let place = Place::with_token();
            let child = start(&scene.server, &place);
            let start = Instant::now();
            while !scene.server.requests().iter().any(|line| super::server::route(line) == route.trim_end_matches('$')) {
                assert!(start.elapsed() < Duration::from_secs(30), "{route} was not seen");
                std::thread::sleep(Duration::from_millis(5));
            }
            kill(&child, signal);
            let ran = Ran::of(&child.wait_with_output().unwrap());
            scene.server.heal();
            let live = scene.live();
            assert!(signal == "KILL" || matches!(ran.code, 0 | 130) && live.is_empty(), "{route} {signal}: {live:?} {}", ran.err);
            place.run(&["sweep"]).ok();
            assert_eq!((scene.live(), place.temporary()), (vec![], 0), "{route} {signal}");
        }
    }
}

#[test]
fn an_upload_of_unknown_fate_that_cannot_be_looked_for_is_said_to_be_live() {
    let server = Server::start(rules([("POST /v1/files", 1, Fault::DropAfter), ("GET /v1/files?", ALWAYS, Fault::Status(500))]));
    let ran = ask(&server);
    assert_eq!((ran.code, server.live()), (5, 1), "{}", ran.err);
    assert!(ran.err.contains("perhaps something named hmask-"), "{}", ran.err);
}

#[test]
fn a_list_that_fails_once_does_not_end_the_loan() {
    let server = Server::start(rules([("POST /v1/files", 1, Fault::DropAfter), ("GET /v1/files?", 1, Fault::Status(500))]));
    let ran = ask(&server);
    assert_eq!((ran.code, server.live(), server.bodies("POST /v1/files").len()), (0, 0, 2), "{}", ran.err);
}

#[test]
fn no_other_host_is_contacted() {
    let other = Server::start(rules([]));
    let to = format!("{}/files", other.url());
    let server = Server::start(rules([("POST /v1/files", ALWAYS, Fault::Redirect(to))]));
    assert_eq!(ask(&server).code, 4);
    assert_eq!(other.requests(), Vec::<String>::new());
    assert_eq!(server.live(), 0);
}

fn start(server: &Server, place: &Place) -> Child {
    let args = args(&server.url());
    let mut command = place.command(&args.iter().map(String::as_str).collect::<Vec<_>>());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A run that is waiting for its answer.
fn waiting(server: &Server, place: &Place) -> Child {
    let child = start(server, place);
    let start = Instant::now();
    while server.bodies("POST /v1/responses").is_empty() {
        assert!(start.elapsed() < Duration::from_secs(30), "the question was not asked");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

#[test]
fn a_signal_in_the_middle_gives_back_what_was_lent() {
    for signal in ["INT", "TERM", "HUP"] {
        let server = Server::start(rules([("POST /v1/responses", 1, Fault::Stall)]));
        let place = Place::with_token();
        let child = waiting(&server, &place);
        kill(&child, signal);
        let ran = Ran::of(&child.wait_with_output().unwrap());
        assert_eq!((ran.code, server.live()), (130, 0), "{signal}: {}", ran.err);
        assert_eq!(place.temporary(), 0);
    }
}

#[test]
fn a_second_signal_ends_the_run_and_names_what_is_live() {
    let stalls = rules([("POST /v1/responses", 1, Fault::Stall), ("DELETE /v1", ALWAYS, Fault::Stall)]);
    let server = Server::start(stalls);
    let place = Place::with_token();
    let mut child = waiting(&server, &place);
    kill(&child, "INT");
    // A wrapper that passes the same signal on is nobody in a hurry.
    kill(&child, "TERM");
    kill(&child, "INT");
    std::thread::sleep(Duration::from_millis(1300));
    assert!(child.try_wait().unwrap().is_none(), "two signals at once ended the run");
    kill(&child, "INT");
    let ran = Ran::of(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, 5, "{}", ran.err);
    assert!(ran.err.contains("may still be live: upload file-") && ran.err.contains("container cntr_"), "{}", ran.err);
}

#[test]
fn after_a_kill_the_messages_have_said_what_is_live_and_nothing_is_on_the_disk() {
    let server = Server::start(rules([("POST /v1/responses", 1, Fault::Stall)]));
    let place = Place::with_token();
    let child = waiting(&server, &place);
    kill(&child, "KILL");
    let err = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    let ids = server.live_ids();
    assert_eq!(ids.len(), 2);
    assert!(ids.iter().all(|id| err.contains(id.as_str())), "{err}");
    assert_eq!((place.names(), place.temporary()), (vec![], 0));
}

#[test]
fn a_stream_that_is_cut_after_any_event_is_a_failure_and_leaves_nothing() {
    const ALL: usize = 60;
    let place = Place::with_token();
    place.write("t.csv", "nom,n\nDurand,1\n");
    let mut events = 0;
    for n in 0..ALL {
        let server = Server::start(rules([("POST /v1/responses", ALWAYS, Fault::Events(n))]));
        let ran =
            place.run(&["ask", "t.csv", "-c", "nom", "SELECT n FROM data", "--to", &server.url(), "--stream", "--delete-for=2"]);
        assert_eq!(server.live(), 0, "{n} events: {}", ran.err);
        if ran.code == 0 {
            events = n;
            break;
        }
        assert!(ran.code == 4 && ran.err.contains("cut before its end"), "{n} events: {}", ran.err);
    }
    assert!(events > 10, "a stream of {events} events is none");
}
