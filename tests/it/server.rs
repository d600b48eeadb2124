//! `hmask sandbox` behind a proxy that breaks things.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::env::{Place, TOKEN};

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
    /// Refused with this status and body; the server never sees it.
    Refuse(u16, &'static str),
    /// Answered with more bytes than any answer has; the server never sees it.
    Huge,
    /// The server carries it out; the answer takes a second.
    Slow,
    /// Sent on to another host.
    Redirect(String),
}

/// The first line of a request, and all of it.
type Seen = (String, Vec<u8>);

/// Requests that begin so, or are those of a route (with `$` behind it), how many of them, and what happens.
pub type Rule = (&'static str, usize, Fault);

pub fn rules<const N: usize>(rules: [Rule; N]) -> Vec<Rule> {
    rules.into()
}

/// The first line of a request without its query and its ids.
pub fn route(line: &str) -> String {
    let path = line.split(" HTTP").next().unwrap().split('?').next().unwrap();
    let is_id = |part: &str| ["file-", "cntr_", "cfile_", "upload_", "resp_"].iter().any(|prefix| part.starts_with(prefix));
    path.split('/').map(|part| if is_id(part) { "*" } else { part }).collect::<Vec<_>>().join("/")
}

fn meets(rule: &Rule, line: &str) -> bool {
    rule.1 > 0 && rule.0.strip_suffix('$').map_or_else(|| line.starts_with(rule.0), |wanted| route(line) == wanted)
}

/// `hmask sandbox` behind a proxy that breaks things.
pub struct Server {
    sandbox: Child,
    proxy: Proxy,
    place: Place,
}

/// What breaks things.
pub struct Proxy {
    upstream: String,
    port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    /// Ids of responses that the server gave, whether they came through or not.
    responses: Arc<Mutex<Vec<String>>>,
    rules: Arc<Mutex<VecDeque<Rule>>>,
}

impl std::ops::Deref for Server {
    type Target = Proxy;

    fn deref(&self) -> &Proxy {
        &self.proxy
    }
}

impl Server {
    pub fn start(rules: Vec<Rule>) -> Self {
        let place = Place::new();
        let mut command = place.command(&["sandbox", "--api-key", TOKEN, "--quiet"]);
        let mut sandbox = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(sandbox.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let begun: serde_json::Value = serde_json::from_str(&line).unwrap();
        let upstream =
            begun["base_url"].as_str().unwrap().strip_prefix("http://").unwrap().strip_suffix("/v1").unwrap().to_owned();
        Self { sandbox, proxy: Proxy::before(upstream, rules), place }
    }

    /// Ends the sandbox as one does; what it has left in its folder for temporary files.
    pub fn stop(mut self) -> usize {
        kill(&self.sandbox, "TERM");
        assert!(self.sandbox.wait().unwrap().success());
        self.place.temporary()
    }
}

impl Proxy {
    /// Before a server at HOST:PORT.
    pub fn before(upstream: String, rules: Vec<Rule>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let responses = Arc::new(Mutex::new(Vec::new()));
        let rules = Arc::new(Mutex::new(VecDeque::from(rules)));
        let (log, said, to, to_come) = (seen.clone(), responses.clone(), upstream.clone(), rules.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (log, said, to, rules) = (log.clone(), said.clone(), to.clone(), to_come.clone());
                std::thread::spawn(move || serve(client, &to, &rules, &log, &said));
            }
        });
        Self { upstream, port, seen, responses, rules }
    }

    #[cfg(feature = "objects")]
    pub fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// From now on this breaks.
    pub fn break_with(&self, rule: Rule) {
        self.rules.lock().unwrap().push_back(rule);
    }

    /// From now on nothing breaks.
    pub fn heal(&self) {
        self.rules.lock().unwrap().clear();
    }

    /// Forgets what came before.
    pub fn forget(&self) {
        self.seen.lock().unwrap().clear();
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
        [self.list("/v1/files"), self.list("/v1/containers")].concat()
    }

    /// The ids of a list.
    pub fn list(&self, path: &str) -> Vec<String> {
        let body = self.call("GET", path, "").1;
        body["data"].as_array().unwrap().iter().map(|o| o["id"].as_str().unwrap().to_owned()).collect()
    }

    /// Ids of responses that were ever answered, and are stored.
    pub fn stored(&self) -> Vec<String> {
        let ids = self.responses.lock().unwrap().clone();
        ids.into_iter().filter(|id| self.call("GET", &format!("/v1/responses/{id}"), "").0 == 200).collect()
    }

    /// What the server says to a request past the faults: its status and its body.
    pub fn call(&self, method: &str, path: &str, body: &str) -> (u16, serde_json::Value) {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = String::from_utf8(forward(&self.upstream, head.as_bytes())).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or_default())
    }

    /// A container of somebody else.
    pub fn container(&self) -> String {
        self.call("POST", "/v1/containers", r#"{"name":"theirs"}"#).1["id"].as_str().unwrap().to_owned()
    }

    /// Uploads a file of somebody else; its id.
    pub fn uploaded(&self) -> String {
        let body = "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nuser_data\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x.csv\"\r\n\r\na\n\r\n--b--\r\n";
        let head = format!(
            "POST /v1/files HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = String::from_utf8(forward(&self.upstream, head.as_bytes())).unwrap();
        let body: serde_json::Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        body["id"].as_str().unwrap().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.sandbox.kill();
        let _ = self.sandbox.wait();
    }
}

pub fn kill(child: &Child, signal: &str) {
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

fn serve(mut client: TcpStream, to: &str, rules: &Mutex<VecDeque<Rule>>, log: &Mutex<Vec<Seen>>, said: &Mutex<Vec<String>>) {
    let Some(request) = read_request(&mut client) else { return };
    let line = String::from_utf8_lossy(&request).lines().next().unwrap_or_default().to_owned();
    log.lock().unwrap().push((line.clone(), request.clone()));
    let fault = {
        let mut rules = rules.lock().unwrap();
        let rule = rules.iter_mut().find(|rule| meets(rule, &line));
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
    let forward = |to: &str, request: &[u8]| {
        let answer = forward(to, request);
        let text = String::from_utf8_lossy(&answer);
        let id = text.find("\"resp_").map(|at| text[at + 1..].chars().take_while(|c| *c != '"').collect());
        said.lock().unwrap().extend(id.filter(|_| line.starts_with("POST /v1/responses")));
        answer
    };
    let answer = match fault {
        None => forward(to, &request),
        Some(Fault::DropBefore) => return,
        Some(Fault::DropAfter) => return drop(forward(to, &request)),
        Some(Fault::Slow) => {
            let answer = forward(to, &request);
            std::thread::sleep(Duration::from_secs(1));
            answer
        }
        Some(Fault::Huge) => {
            // The reader hangs up at some point.
            let _ = client.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{\"id\":\"");
            while client.write_all(&[b'a'; 1 << 13]).is_ok() {}
            return;
        }
        Some(Fault::Refuse(code, body)) => plain_with(code, body),
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
    plain_with(200, body)
}

fn plain_with(status: u16, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
