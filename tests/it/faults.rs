//! Faults between hmask and the endpoint: after each, what is live is what exit code and message say.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::env::{Place, Ran, TOKEN, fixture};
use super::mask::PERSONAL;

/// What happens to a request on its way.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The connection closes; the server never sees the request.
    DropBefore,
    /// The server carries it out, its answer is lost.
    DropAfter,
    /// Answered with this status; the server never sees it.
    Status(u16),
    /// The server carries it out, but the answer has this status.
    StatusAfter(u16),
    /// Half of the answer's body, then the connection closes.
    Truncate,
    /// So many events of a stream, then it ends as if that were all.
    Events(usize),
    /// The server carries it out; the answer never comes.
    Stall,
    /// In the answer's body, this text instead of that one.
    Replace(&'static str, &'static str),
    /// Answered with this body; the server never sees it.
    Answer(&'static str),
    /// Sent on to another host.
    Redirect(String),
}

/// The first line of a request, and all of it.
type Seen = (String, Vec<u8>);

/// Requests that begin so, how many of them, and what happens.
pub type Rule = (&'static str, usize, Fault);

pub fn rules<const N: usize>(rules: [Rule; N]) -> Vec<Rule> {
    rules.into()
}

/// `hmask sandbox` behind a proxy that breaks things.
pub struct Server {
    sandbox: Child,
    upstream: String,
    port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    rules: Arc<Mutex<VecDeque<Rule>>>,
    place: Place,
}

impl Server {
    pub fn start(rules: Vec<Rule>) -> Self {
        let place = Place::new();
        let mut command = place.command(&["sandbox", "--api-key", TOKEN, "--quiet"]);
        let mut sandbox = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(sandbox.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: serde_json::Value = serde_json::from_str(&line).unwrap();
        let upstream =
            said["base_url"].as_str().unwrap().strip_prefix("http://").unwrap().strip_suffix("/v1").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let rules = Arc::new(Mutex::new(VecDeque::from(rules)));
        let (log, to, to_come) = (seen.clone(), upstream.clone(), rules.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (log, to, rules) = (log.clone(), to.clone(), to_come.clone());
                std::thread::spawn(move || serve(client, &to, &rules, &log));
            }
        });
        Self { sandbox, upstream, port, seen, rules, place }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// From now on nothing breaks.
    pub fn heal(&self) {
        self.rules.lock().unwrap().clear();
    }

    /// Requests that reached the proxy, without their bodies.
    pub fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|r| r.0.clone()).collect()
    }

    /// Heads and bodies of the requests that begin so.
    pub fn bodies(&self, begins: &str) -> Vec<Vec<u8>> {
        self.seen.lock().unwrap().iter().filter(|r| r.0.starts_with(begins)).map(|r| r.1.clone()).collect()
    }

    /// Uploads and containers that the server holds.
    pub fn live(&self) -> usize {
        self.live_ids().len()
    }

    pub fn live_ids(&self) -> Vec<String> {
        let list = |path: &str| {
            let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
            let answer = String::from_utf8(forward(&self.upstream, head.as_bytes())).unwrap();
            let body: serde_json::Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
            body["data"].as_array().unwrap().iter().map(|o| o["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        [list("/v1/files"), list("/v1/containers")].concat()
    }

    /// Uploads a file of its own; the status.
    pub fn upload(&self) -> u16 {
        let body = "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nuser_data\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x.csv\"\r\n\r\na\n\r\n--b--\r\n";
        let head = format!(
            "POST /v1/files HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = String::from_utf8(forward(&self.upstream, head.as_bytes())).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// Ends the sandbox as one does; what it has left in its folder for temporary files.
    pub fn stop(mut self) -> usize {
        kill(&self.sandbox, "TERM");
        assert!(self.sandbox.wait().unwrap().success());
        self.place.temporary()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.sandbox.kill();
        let _ = self.sandbox.wait();
    }
}

fn kill(child: &Child, signal: &str) {
    let status = std::process::Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

/// One request whole: its head says how long its body is.
fn read_request(client: &mut TcpStream) -> Option<Vec<u8>> {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let head = request.windows(4).position(|w| w == b"\r\n\r\n").map(|at| at + 4);
        if let Some(head) = head {
            let text = String::from_utf8_lossy(&request[..head]).to_lowercase();
            let length = text.split("content-length: ").nth(1).and_then(|t| t.split("\r\n").next()?.parse().ok()).unwrap_or(0);
            if request.len() >= head + length {
                return Some(request);
            }
        }
        match client.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(n) => request.extend_from_slice(&buffer[..n]),
        }
    }
}

pub fn forward(to: &str, request: &[u8]) -> Vec<u8> {
    let mut upstream = TcpStream::connect(to).unwrap();
    upstream.write_all(request).unwrap();
    let mut answer = Vec::new();
    upstream.read_to_end(&mut answer).unwrap();
    answer
}

fn serve(mut client: TcpStream, to: &str, rules: &Mutex<VecDeque<Rule>>, log: &Mutex<Vec<Seen>>) {
    let Some(request) = read_request(&mut client) else { return };
    let line = String::from_utf8_lossy(&request).lines().next().unwrap_or_default().to_owned();
    log.lock().unwrap().push((line.clone(), request.clone()));
    let fault = {
        let mut rules = rules.lock().unwrap();
        let rule = rules.iter_mut().find(|r| line.starts_with(r.0) && r.1 > 0);
        rule.map(|r| {
            r.1 -= 1;
            r.2.clone()
        })
    };
    // One connection a request, so that the end of the answer is the end of the connection.
    let at = request.windows(2).position(|w| w == b"\r\n").unwrap() + 2;
    let request = [&request[..at], b"Connection: close\r\n", &request[at..]].concat();
    let status = |code: u16| {
        format!("HTTP/1.1 {code} Fault\r\nRetry-After: 0\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}").into_bytes()
    };
    let answer = match fault {
        None => forward(to, &request),
        Some(Fault::DropBefore) => return,
        Some(Fault::DropAfter) => return drop(forward(to, &request)),
        Some(Fault::Status(code)) => status(code),
        Some(Fault::StatusAfter(code)) => {
            forward(to, &request);
            status(code)
        }
        Some(Fault::Events(n)) => {
            let answer = String::from_utf8(forward(to, &request)).unwrap();
            let (_, body) = answer.split_once("\r\n\r\n").unwrap();
            let events: String = body.split_inclusive("\n\n").take(n).collect();
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{events}").into_bytes()
        }
        Some(Fault::Truncate) => {
            let answer = forward(to, &request);
            let head = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
            answer[..head + (answer.len() - head) / 2].to_vec()
        }
        Some(Fault::Stall) => {
            forward(to, &request);
            std::thread::sleep(Duration::from_mins(1));
            return;
        }
        Some(Fault::Replace(from, by)) => {
            let answer = String::from_utf8(forward(to, &request)).unwrap();
            let (_, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(body.contains(from), "{body}");
            plain(&body.replacen(from, by, 1))
        }
        Some(Fault::Answer(body)) => plain(body),
        Some(Fault::Redirect(url)) => {
            format!("HTTP/1.1 307 Gone\r\nLocation: {url}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
        }
    };
    let _ = client.write_all(&answer);
}

fn plain(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

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

#[expect(clippy::disallowed_methods, reason = "the table is written only when asked for")]
/// Each fault at each step: the exit code, and what is live afterwards.
#[test]
fn after_each_fault_nothing_is_live_or_the_exit_code_says_so() {
    let no_expiry = Fault::Replace("\"expires_at\"", "\"expired_at\"");
    let still_there = Fault::Answer("{\"id\":\"x\"}");
    let cases: Vec<(Rule, i32, usize)> = vec![
        (("POST /v1/files", 1, Fault::DropBefore), 0, 0),
        (("POST /v1/files", 1, Fault::DropAfter), 0, 0),
        (("POST /v1/files", 1, Fault::Status(429)), 0, 0),
        (("POST /v1/files", 1, Fault::Status(503)), 0, 0),
        (("POST /v1/files", 1, Fault::Truncate), 0, 0),
        (("POST /v1/files", ALWAYS, Fault::Status(500)), 4, 0),
        (("POST /v1/files", ALWAYS, Fault::StatusAfter(500)), 4, 0),
        (("POST /v1/files", ALWAYS, Fault::StatusAfter(502)), 4, 0),
        (("POST /v1/files", ALWAYS, Fault::DropAfter), 4, 0),
        (("POST /v1/files", 1, Fault::Status(401)), 4, 0),
        (("POST /v1/files", 1, no_expiry), 4, 0),
        (("POST /v1/files", 1, Fault::Replace("\"expires_at\":1", "\"expires_at\":9")), 4, 0),
        (("POST /v1/files", 1, Fault::Replace("\"bytes\":", "\"bytes\":1")), 4, 0),
        (("POST /v1/containers", 1, Fault::DropAfter), 0, 0),
        (("POST /v1/containers", ALWAYS, Fault::DropAfter), 4, 0),
        (("POST /v1/containers", ALWAYS, Fault::Status(500)), 4, 0),
        (("POST /v1/containers", 1, Fault::Status(400)), 4, 0),
        (("POST /v1/containers", 1, Fault::Replace("\"disabled\"", "\"allowlist\"")), 4, 0),
        (("POST /v1/responses", 1, Fault::Status(500)), 4, 0),
        (("POST /v1/responses", 1, Fault::StatusAfter(500)), 4, 0),
        (("POST /v1/responses", 1, Fault::DropBefore), 4, 0),
        (("POST /v1/responses", 1, Fault::DropAfter), 4, 0),
        (("POST /v1/responses", 1, Fault::Truncate), 4, 0),
        (("POST /v1/responses", 1, Fault::Answer("<html>")), 4, 0),
        (("POST /v1/responses", 1, Fault::Answer("{}")), 4, 0),
        (("POST /v1/responses", 1, Fault::Status(429)), 0, 0),
        (("GET /v1/containers/", 1, Fault::Status(500)), 0, 0),
        (("DELETE /v1/files", 2, Fault::Status(500)), 0, 0),
        (("DELETE /v1/files", 1, Fault::DropAfter), 0, 0),
        (("DELETE /v1/containers", 2, Fault::DropBefore), 0, 0),
        (("DELETE /v1/containers", 1, Fault::StatusAfter(500)), 0, 0),
        (("DELETE /v1", ALWAYS, Fault::DropAfter), 0, 0),
        (("DELETE /v1", ALWAYS, Fault::StatusAfter(502)), 0, 0),
        (("DELETE /v1/files", ALWAYS, Fault::Status(500)), 5, 1),
        (("DELETE /v1/containers", ALWAYS, Fault::DropBefore), 5, 1),
        (("DELETE /v1", ALWAYS, Fault::Status(429)), 5, 2),
        (("GET /v1/files/", ALWAYS, still_there), 5, 0),
    ];
    let mut table = String::new();
    for (rule, code, live) in cases {
        let server = Server::start(rules([rule.clone()]));
        let place = Place::with_token();
        let ran = ask_from(&place, &server);
        assert_eq!(ran.code, code, "{rule:?}: {}", ran.err);
        let ids = server.live_ids();
        assert_eq!(ids.len(), live, "{rule:?}: {ids:?} after\n{}", ran.err);
        if code == 5 {
            assert!(ran.err.contains("may still be live"), "{rule:?}: {}", ran.err);
            assert!(
                ids.iter().all(|id| ran.err.contains(&format!("{id} (")) && ran.err.contains("hint: curl -X DELETE")),
                "{rule:?}: {}",
                ran.err
            );
        }
        assert!(!ran.err.contains(TOKEN), "{}", ran.err);
        server.heal();
        let swept = place.run(&["sweep"]).ok();
        assert_eq!(server.live(), 0, "{rule:?}: {}", swept.err);
        table += &row(&rule, ids.len(), ran.code, server.live());
    }
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/loan.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (head, rest) = text.split_once("|---|---|---|---|---|\n").unwrap();
    let tail = rest.split_once("\n\n").map_or("", |(_, tail)| tail);
    let want = format!("{head}|---|---|---|---|---|\n{table}\n{tail}");
    if std::env::var_os("HMASK_BLESS").is_some() {
        std::fs::write(&page, &want).unwrap();
    }
    assert!(text == want, "the table of docs/loan.md is not what happens: HMASK_BLESS=1 cargo test faults writes it");
}

/// A row of the table in docs/loan.md.
fn row((request, times, fault): &Rule, live: usize, code: i32, after: usize) -> String {
    let times = match *times {
        ALWAYS => "always".into(),
        1 => "once".into(),
        n => format!("{n} times"),
    };
    let fault = match fault {
        Fault::Events(n) => format!("stream ends after {n} events"),
        Fault::DropBefore => "connection closes before it arrives".into(),
        Fault::DropAfter => "carried out, answer lost".into(),
        Fault::Status(status) => format!("answered {status}, not carried out"),
        Fault::StatusAfter(status) => format!("carried out, answered {status}"),
        Fault::Truncate => "carried out, answer cut".into(),
        Fault::Stall => "carried out, never answered".into(),
        Fault::Replace(from, by) => format!("answer with `{by}` for `{from}`"),
        Fault::Answer(body) => format!("answered `{body}`, not carried out"),
        Fault::Redirect(_) => "redirected to another host".into(),
    };
    format!("| `{request}` | {fault}, {times} | {live} | {code} | {after} |\n")
}

#[test]
fn an_upload_of_unknown_fate_that_cannot_be_looked_for_is_said_to_be_live() {
    let server = Server::start(rules([("POST /v1/files", 1, Fault::DropAfter), ("GET /v1/files?", ALWAYS, Fault::Status(500))]));
    let ran = ask(&server);
    assert_eq!((ran.code, server.live()), (5, 1), "{}", ran.err);
    assert!(ran.err.contains("perhaps something named hmask-"), "{}", ran.err);
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

/// A run that is waiting for its answer.
fn waiting(server: &Server, place: &Place) -> Child {
    let args = args(&server.url());
    let mut command = place.command(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
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
