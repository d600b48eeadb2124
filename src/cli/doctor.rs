//! `hmask doctor`: what stands between this machine and the endpoint, step by step, each with its verdict and the next move.

use std::io::Write;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use hmask::remote::client::{Client, Endpoint, Probe};
use hmask::{Error, Result};
use serde_json::json;

use super::args::DoctorArgs;
use super::endpoint::{self, Manner, Recipient, local};
use super::print::Printer;
use super::{key, plan};

/// A clock that is off by more than this makes an hour's expiry another one.
const SKEW_WARNED: i64 = 60;
const SKEW_REFUSED: i64 = 600;
const CONNECT: Duration = Duration::from_secs(10);
/// Variables that name a proxy, in the order in which they count.
const PROXIES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    Ok,
    /// It works, but somebody should know.
    Note,
    Failed,
    /// An earlier step failed, or it cannot be told.
    Unknown,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

struct Step {
    name: &'static str,
    verdict: Verdict,
    what: String,
    next: Option<String>,
}

/// The steps so far.
#[derive(Default)]
struct Steps(Vec<Step>);

impl Steps {
    fn add(&mut self, name: &'static str, verdict: Verdict, what: impl Into<String>, next: Option<&str>) {
        self.0.push(Step { name, verdict, what: what.into(), next: next.map(Into::into) });
    }

    fn failed(&self, name: &str) -> bool {
        self.0.iter().any(|s| s.name == name && s.verdict == Verdict::Failed)
    }
}

/// Runs the command.
pub(super) fn run(args: &DoctorArgs, printer: &Arc<Printer>) -> Result<ExitCode> {
    let mut steps = Steps::default();
    here(args, printer, &mut steps);
    let endpoint = match Recipient::of(&args.to, args.ca_file.as_deref()) {
        Ok(Recipient::Api(endpoint, azure)) => Some((*endpoint, azure)),
        Ok(Recipient::Local) => None,
        Ok(recipient) => return store(args, recipient, printer, steps),
        Err(error) => {
            let next = error.hints().first().cloned();
            steps.add("token", Verdict::Failed, error.to_string(), next.as_deref());
            return finish(args, &steps);
        }
    };
    if endpoint.is_some() {
        steps.add("token", Verdict::Ok, "an access token is set", None);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|e| Error::io("cannot start the network", e))?;
    runtime.block_on(async {
        let Some((endpoint, azure)) = endpoint else {
            let folder = local::folder(printer.task());
            let sandbox = local::start(&folder).await?;
            let endpoint = local::endpoint(&sandbox)?;
            let done = there(args, endpoint, false, printer, &mut steps).await;
            local::stop(sandbox).await;
            return done;
        };
        there(args, endpoint, azure, printer, &mut steps).await
    })?;
    finish(args, &steps)
}

/// An object store or a folder: whether it can be listed, and whether what is deleted there is gone.
fn store(args: &DoctorArgs, recipient: Recipient, printer: &Arc<Printer>, mut steps: Steps) -> Result<ExitCode> {
    const PATIENCE: Duration = Duration::from_mins(1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|e| Error::io("cannot start the network", e))?;
    runtime.block_on(async {
        let manner = Manner { accept_versioning: false, ..Manner::plain(PATIENCE) };
        let other = match recipient.connect(&manner, printer).await {
            Ok(other) => other,
            Err(error) => return steps.add("settings", Verdict::Failed, error.to_string(), None),
        };
        steps.add("settings", Verdict::Ok, format!("they name {}", other.target().place()), None);
        match other.target().named(printer.task(), &[]).await {
            Ok(_) => steps.add("list", Verdict::Ok, "it can be listed", None),
            Err(error) => {
                let next = "are the credentials set, and the server's name and port right?";
                steps.add("list", Verdict::Failed, error.to_string(), Some(next));
            }
        }
        match other.target().prepare().await {
            Ok(None) => steps.add("deletion", Verdict::Ok, "what is deleted is gone", None),
            Ok(Some(what)) => steps.add("deletion", Verdict::Note, what, None),
            Err(error) => {
                let next = error.hints().first().cloned();
                steps.add("deletion", Verdict::Failed, error.to_string(), next.as_deref());
            }
        }
    });
    finish(args, &steps)
}

/// What can be told without a network: the key and the policy.
fn here(args: &DoctorArgs, printer: &Printer, steps: &mut Steps) {
    match key::read(&args.key, printer) {
        Ok(held) => steps.add("key", Verdict::Ok, format!("the key has the id {}", held.key().id()), None),
        Err(error) => {
            let next = error.hints().first().cloned();
            steps.add("key", Verdict::Failed, error.to_string(), next.as_deref());
        }
    }
    let path = args.policy.clone().or_else(|| plan::found(std::path::Path::new("-")));
    match path.map(|path| (plan::read(&path), path)) {
        None => steps.add("policy", Verdict::Ok, "there is none here or above: columns are named by -c", None),
        Some((Ok(_), path)) => steps.add("policy", Verdict::Ok, format!("{} reads", path.display()), None),
        Some((Err(error), _)) => steps.add("policy", Verdict::Failed, error.to_string(), None),
    }
}

/// From the name of the endpoint to what it does.
async fn there(args: &DoctorArgs, endpoint: Endpoint, azure: bool, printer: &Arc<Printer>, steps: &mut Steps) -> Result<()> {
    let host = endpoint.host();
    let is_https = host.starts_with("https://");
    let name = host.split_once("://").map_or(host.as_str(), |(_, rest)| rest).to_owned();
    let address = if name.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|b| b.is_ascii_digit())) {
        name.clone()
    } else {
        format!("{name}:{}", if is_https { 443 } else { 80 })
    };
    let proxy = PROXIES.iter().find(|v| is_https && std::env::var_os(v).is_some_and(|p| !p.is_empty()));
    match proxy {
        None => steps.add("proxy", Verdict::Ok, "none: the endpoint is asked directly", None),
        Some(variable) => steps.add(
            "proxy",
            Verdict::Note,
            format!("{variable} names one"),
            Some("unset it, or list the host in NO_PROXY, if it should not be used"),
        ),
    }
    if proxy.is_none() {
        let (found, connected) =
            tokio::task::spawn_blocking(move || reach(&address)).await.unwrap_or((Err("no answer".into()), None));
        match found {
            Ok(n) => steps.add("dns", Verdict::Ok, format!("{name} has {n} addresses"), None),
            Err(why) => steps.add(
                "dns",
                Verdict::Failed,
                format!("{name}: {why}"),
                Some("is the host right, and is there a network? getent hosts HOST"),
            ),
        }
        match connected {
            Some(Ok(address)) => steps.add("tcp", Verdict::Ok, format!("{address} takes connections"), None),
            Some(Err(why)) => {
                steps.add("tcp", Verdict::Failed, why, Some("a firewall, or a proxy that must be used: export HTTPS_PROXY=…"));
            }
            None => steps.add("tcp", Verdict::Unknown, "not reached", None),
        }
    }
    let client = Client::new(endpoint, endpoint::log(printer))?;
    if steps.failed("dns") || steps.failed("tcp") {
        for name in ["tls", "clock", "authentication", "project", "model", "files", "containers", "quota"] {
            steps.add(name, Verdict::Unknown, "not reached", None);
        }
        return Ok(());
    }
    let model = client.probe(&format!("models/{}", args.model)).await;
    answers(&model, is_https, args, steps);
    if azure {
        steps.add(
            "expiry",
            Verdict::Note,
            "Azure documents 14 days as the least",
            Some("--accept-expiry relies on the deletion alone"),
        );
    }
    for (name, path) in [("files", "files?limit=1"), ("containers", "containers?limit=1")] {
        if model.is_err() || steps.failed("authentication") {
            steps.add(name, Verdict::Unknown, "not reached", None);
            continue;
        }
        match client.probe(path).await {
            Ok(probe) if probe.answer.is_success() => steps.add(name, Verdict::Ok, "they can be listed", None),
            Ok(probe) => steps.add(
                name,
                Verdict::Failed,
                probe.answer.reason(),
                Some("the token needs this right; or the endpoint does not have it"),
            ),
            Err(failure) => steps.add(name, Verdict::Failed, failure.to_string(), None),
        }
    }
    steps.add(
        "quota",
        Verdict::Unknown,
        "only a question shows whether it is used up",
        Some("hmask ask FILE -c COLS \"How many rows?\""),
    );
    Ok(())
}

/// Looks the host up, then connects: how many addresses there are, and which of them answers.
fn reach(address: &str) -> (Result<usize, String>, Option<Result<SocketAddr, String>>) {
    let found: Vec<SocketAddr> = match address.to_socket_addrs() {
        Ok(found) => found.collect(),
        Err(e) => return (Err(e.to_string()), None),
    };
    let mut why = "no address".to_owned();
    for address in &found {
        match TcpStream::connect_timeout(address, CONNECT) {
            Ok(_) => return (Ok(found.len()), Some(Ok(*address))),
            Err(e) => why = format!("{address}: {e}"),
        }
    }
    (Ok(found.len()), Some(Err(why)))
}

/// What the first answer says: certificate, clock, authentication, project, model.
fn answers(model: &Result<Probe, hmask::remote::client::Failure>, is_https: bool, args: &DoctorArgs, steps: &mut Steps) {
    let probe = match model {
        Ok(probe) => probe,
        Err(failure) => {
            let next = "a certificate of your house? --ca-file FILE";
            steps.add(if is_https { "tls" } else { "http" }, Verdict::Failed, failure.to_string(), is_https.then_some(next));
            for name in ["clock", "authentication", "project", "model"] {
                steps.add(name, Verdict::Unknown, "not reached", None);
            }
            return;
        }
    };
    match (&probe.certificate, is_https) {
        (Some(sha256), _) => steps.add("tls", Verdict::Ok, format!("the certificate is trusted; its SHA-256 is {sha256}"), None),
        (None, true) => steps.add("tls", Verdict::Ok, "the certificate is trusted", None),
        (None, false) => steps.add("tls", Verdict::Note, "plain http, on this machine", None),
    }
    match probe.skew {
        Some(skew) if skew.abs() > SKEW_REFUSED => steps.add(
            "clock",
            Verdict::Failed,
            format!("this clock and the server's differ by {skew} s"),
            Some("timedatectl set-ntp true"),
        ),
        Some(skew) if skew.abs() > SKEW_WARNED => steps.add(
            "clock",
            Verdict::Note,
            format!("this clock and the server's differ by {skew} s"),
            Some("timedatectl set-ntp true"),
        ),
        Some(skew) => steps.add("clock", Verdict::Ok, format!("this clock and the server's differ by {skew} s"), None),
        None => steps.add("clock", Verdict::Unknown, "the server does not say what time it has", None),
    }
    let answer = &probe.answer;
    match answer.status {
        401 => steps.add("authentication", Verdict::Failed, "the token is not taken", Some("export OPENAI_API_KEY=…")),
        403 => steps.add(
            "authentication",
            Verdict::Failed,
            answer.reason(),
            Some("has the token the right to Files, Containers and Responses?"),
        ),
        500.. => steps.add("authentication", Verdict::Unknown, format!("the server fails (status {})", answer.status), None),
        _ => steps.add("authentication", Verdict::Ok, "the token is taken", None),
    }
    let named = ["OPENAI_ORG_ID", "OPENAI_PROJECT_ID"].into_iter().filter(|v| std::env::var_os(v).is_some()).collect::<Vec<_>>();
    let project = if named.is_empty() { "those of the token".into() } else { format!("as {} say", named.join(" and ")) };
    steps.add("project", if steps.failed("authentication") { Verdict::Unknown } else { Verdict::Ok }, project, None);
    match answer.status {
        200..300 => steps.add("model", Verdict::Ok, format!("{} is there", args.model), None),
        404 => steps.add("model", Verdict::Failed, format!("{} is not there for this project", args.model), Some("--model NAME")),
        401 | 403 => steps.add("model", Verdict::Unknown, "not reached", None),
        _ => steps.add("model", Verdict::Failed, answer.reason(), None),
    }
}

/// Prints the steps; the exit code is that of the first one that failed.
fn finish(args: &DoctorArgs, steps: &Steps) -> Result<ExitCode> {
    let text = if args.json {
        let one = |s: &Step| json!({"step": s.name, "verdict": s.verdict.word(), "what": s.what, "next": s.next});
        format!("{:#}\n", json!(steps.0.iter().map(one).collect::<Vec<_>>()))
    } else {
        let mut text = String::new();
        for step in &steps.0 {
            text += &format!("{:<8} {:<15} {}\n", step.verdict.word(), step.name, step.what);
            step.next.iter().for_each(|next| text += &format!("{:<25}{next}\n", ""));
        }
        text
    };
    std::io::stdout().write_all(text.as_bytes()).map_err(|e| Error::io("cannot write", e))?;
    let failed = steps.0.iter().find(|s| s.verdict == Verdict::Failed);
    Ok(match failed.map(|s| s.name) {
        None => ExitCode::SUCCESS,
        Some("key" | "policy" | "token") => ExitCode::from(2),
        Some(_) => ExitCode::from(4),
    })
}
