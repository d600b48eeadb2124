//! `hmask ask`: mask, check, upload with a one-hour expiry, ask, fetch results, delete.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hmask::gate::Cleared;
use hmask::output::{Existing, Staged};
use hmask::remote::client::{Client, Endpoint, Exchange};
use hmask::remote::loan::{Event, Loan, Outcome};
use hmask::remote::openai::{ContainerOptions, EXPIRY, OpenAi, Question};
use hmask::report::{FileFacts, LoanFacts, Manifest, NOT_DELETABLE, VERSION, columns};
use hmask::table::compress::Compression;
use hmask::table::{Format, TableReport, export};
use hmask::{Error, ErrorKind, Form, Result};
use zeroize::Zeroizing;

use super::args::{AskArgs, To};
use super::io::{Source, same_file};
use super::key::TOKEN_VARIABLE;
use super::mask::{Plan, say};
use super::print::Printer;
use super::process;

/// The variable that names the endpoint, and the endpoint without it.
const BASE_URL_VARIABLE: &str = "OPENAI_BASE_URL";
const BASE_URL: &str = "https://api.openai.com/v1";
/// Variables whose values go along as headers, where they are set.
const HEADERS: [(&str, &str); 2] = [("OPENAI_ORG_ID", "openai-organization"), ("OPENAI_PROJECT_ID", "openai-project")];
/// What the model is told, if nothing else.
const INSTRUCTIONS: &str = "A table is mounted as a CSV file below /mnt/data: list that folder to find it. \
    Answer with the python tool, from the table alone. Some columns hold pseudonyms (hex digits): equal values have equal \
    pseudonyms, and nothing else can be read from them. If a file is asked for, write it below /mnt/data and cite it.";

/// The table as it is sent, and what is known of it.
struct Masked {
    cleared: Cleared,
    input: FileFacts,
    report: TableReport,
    form: Form,
    key_id: String,
    scope: String,
}

/// A loan that is over, one way or another.
struct Ended<'a> {
    masked: &'a Masked,
    outcome: Outcome,
    api: OpenAi,
    started: jiff::Timestamp,
}

/// Runs the command.
pub(super) fn run(args: &AskArgs, printer: &Arc<Printer>) -> Result<ExitCode> {
    let started = jiff::Timestamp::now();
    if args.question.trim().is_empty() {
        return Err(Error::usage("the question is empty"));
    }
    if let Some(manifest) = args.manifest.as_deref().filter(|m| same_file(m, &args.file)) {
        return Err(Error::usage(format!("{} is the input", manifest.display())).hint("--manifest OTHER"));
    }
    if let Some(folder) = args.save_dir.as_deref().filter(|d| d.exists() && !d.is_dir()) {
        return Err(Error::usage(format!("{} is no folder", folder.display())));
    }
    if args.table.has_own_dialect() {
        return Err(Error::usage(
            "the recipient reads a CSV with a header and double quotes: no --no-header, --quote, --escape, --comment",
        ));
    }
    // Everything that can be wrong with the call is found before the table is read.
    let endpoint = match &args.to {
        To::Local => None,
        To::OpenAi => Some(openai(None)?),
        To::Url(url) => Some(openai(Some(url))?),
    };
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let manifest = args.manifest.as_deref().map(|path| Staged::create(path, existing)).transpose()?;
    let masked = mask(args, printer)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|e| Error::io("cannot start the network", e))?;
    let lent = runtime.block_on(lend(args, endpoint, &masked, printer));
    // A query or a look-up of a name that is still at work must not hold up what is to be said.
    runtime.shutdown_background();
    let (outcome, api) = lent?;
    finish(&Ended { masked: &masked, outcome, api, started }, manifest, printer)
}

/// The endpoint that the environment names, with its token.
fn openai(url: Option<&str>) -> Result<Endpoint> {
    let no_token = || Error::new(ErrorKind::Key(format!("no access token: {TOKEN_VARIABLE} is not set")));
    let token = std::env::var(TOKEN_VARIABLE).map(Zeroizing::new).map_err(|_| {
        no_token().hint(format!("export {TOKEN_VARIABLE}=…")).hint("--to local \"SELECT …\" to try without a third party")
    })?;
    let base = std::env::var(BASE_URL_VARIABLE).ok().filter(|u| !u.is_empty()).unwrap_or_else(|| BASE_URL.into());
    let mut endpoint = Endpoint::new(url.unwrap_or(&base), token)?;
    for (variable, name) in HEADERS {
        if let Ok(value) = std::env::var(variable) {
            endpoint = endpoint.header(name.parse().map_err(|_| Error::usage("no header name"))?, value);
        }
    }
    Ok(endpoint)
}

/// Masks the table into a file without a name: nothing is left of it, however this process ends.
fn mask(args: &AskArgs, printer: &Printer) -> Result<Masked> {
    let mut plan = Plan::new(&args.table, &args.form, &args.key, &args.run, printer)?;
    // What stands before the header is no part of the table for who reads it.
    plan.options.drop_preamble = true;
    let source = Source::open(&args.file, args.table.format.as_deref())?;
    let (name, format) = (source.name.clone(), source.format);
    if format == Format::Ndjson {
        return Err(Error::unsupported("NDJSON cannot be asked about yet; a CSV or Parquet file can").in_file(&name));
    }
    let nameless = || tempfile::tempfile().map_err(|e| Error::io("cannot make a temporary file", e));
    let mut file = nameless()?;
    let report = plan.mask(source, Compression::None, &mut file, &args.run)?;
    say(&report, &name, printer);
    if report.columns.is_empty() {
        return Err(Error::new(ErrorKind::Gate("no column was masked, so the table does not leave".into())).in_file(&name));
    }
    if format == Format::Parquet {
        let mut csv = nameless()?;
        export::parquet_to_csv(file, &mut csv).map_err(|e| e.in_file(&name))?;
        file = csv;
    }
    Ok(Masked {
        cleared: Cleared::check(file)?,
        input: facts(&name)?,
        form: plan.pseudonymiser.form().clone(),
        report,
        key_id: plan.key_id,
        scope: plan.scope.label(),
    })
    // Here the keyed hash goes: nothing of the key is left when the network begins.
}

/// Length and hash of the input, as the manifest has them. A pipe cannot be read twice.
fn facts(name: &Path) -> Result<FileFacts> {
    let shown = name.to_string_lossy().into_owned();
    let failed = |e| Error::io(format!("cannot read {shown}"), e);
    if !name.metadata().is_ok_and(|m| m.is_file()) {
        return Ok(FileFacts { name: None, bytes: 0, sha256: String::new() });
    }
    let (bytes, sha256) = hmask::gate::fingerprint(&mut File::open(name).map_err(failed)?).map_err(failed)?;
    Ok(FileFacts { name: Some(shown), bytes, sha256 })
}

async fn lend(args: &AskArgs, endpoint: Option<Endpoint>, masked: &Masked, printer: &Arc<Printer>) -> Result<(Outcome, OpenAi)> {
    let local = if endpoint.is_none() { Some(local::start().await?) } else { None };
    let endpoint = match (endpoint, &local) {
        (Some(endpoint), _) => endpoint,
        (None, Some(local)) => local::endpoint(local)?,
        (None, None) => unreachable!("one of the two is there"),
    };
    let logger = printer.clone();
    let client = Client::new(endpoint, move |e: &Exchange| logger.exchange(e))?;
    let api = OpenAi::new(client, Duration::from_secs(args.timeout));
    let question = Question {
        text: args.question.clone(),
        model: args.model.clone(),
        instructions: args.instructions.clone().unwrap_or_else(|| INSTRUCTIONS.into()),
    };
    let container = ContainerOptions { memory: args.memory.clone(), domains: args.allow_domain.clone() };
    // What is over there at this moment, for the case that the user does not want to wait.
    let live = Mutex::new(Vec::new());
    let note = |thing: String| live.lock().unwrap_or_else(PoisonError::into_inner).push(thing);
    let tell = |event: Event<'_>| {
        match &event {
            Event::Lent(file) => note(format!("upload {}", file.id)),
            Event::Container(id) => note(format!("container {id}")),
            _ => {}
        }
        describe(&event, masked, printer);
    };
    let loan = Loan {
        api: &api,
        cleared: &masked.cleared,
        task: printer.task(),
        question: &question,
        container: &container,
        save: args.save_dir.clone(),
        patience: Duration::from_secs(args.delete_for),
        tell: &tell,
    };
    let signals = process::start_lending();
    let run = loan.run(signalled(signals.clone(), 1, || printer.warn("interrupted; deleting what was lent")));
    let outcome = tokio::select! {
        outcome = run => outcome,
        () = signalled(signals, 2, || {}) => {
            // A second signal: the user will not wait for the deletion.
            let live = live.lock().unwrap_or_else(PoisonError::into_inner).join(", ");
            return Err(Error::new(ErrorKind::Live(format!("interrupted twice; these may still be live: {live}, and whatever is named hmask-{}", printer.task()))));
        }
    };
    if outcome.returned.is_complete() {
        process::stop_lending();
    }
    if let Some(local) = local {
        local::stop(local).await;
    }
    Ok((outcome, api))
}

/// Ready once so many signals have come.
async fn signalled(mut signals: tokio::sync::watch::Receiver<u32>, count: u32, then: impl Fn()) {
    while *signals.borrow() < count {
        if signals.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
    then();
}

fn describe(event: &Event<'_>, masked: &Masked, printer: &Printer) {
    match event {
        Event::Lent(file) => {
            let until = file.expires_at.and_then(|s| jiff::Timestamp::from_second(s.try_into().ok()?).ok());
            let until = until.map_or_else(|| "an unknown time".into(), |t| t.to_string());
            printer.info(&format!("lent: upload {}, {} bytes, expires at {until}", file.id, masked.cleared.bytes()));
        }
        Event::Container(id) => printer.info(&format!("lent: container {id}")),
        Event::NetworkUnproved => printer.warn("the container does not say whether it can reach a network"),
        Event::Again(why) => printer.warn(&format!("trying again: {why}")),
        Event::Asked => printer.info("asked; waiting for the answer"),
        Event::Saved(saved) => printer.info(&format!("saved: {} ({} bytes)", saved.path.display(), saved.bytes)),
        Event::NotSaved(why) => printer.warn(why),
        Event::NotWanted(n) => printer.info(&format!("files that the answer made: {n}; --save-dir DIR keeps them")),
    }
}

/// Says what came of it, writes the manifest and finds the exit code. What may be live outweighs every other failure.
fn finish(ended: &Ended<'_>, manifest: Option<Staged>, printer: &Printer) -> Result<ExitCode> {
    let Outcome { answer, returned, .. } = &ended.outcome;
    let words = match answer {
        Ok(answered) => Some(answered.text.as_str()),
        Err(error) => error.answer(),
    };
    if !returned.is_complete() {
        // Before anything that could wait for a reader.
        printer.error(&ended.live(printer.task()));
    }
    let shown = words.map_or(Ok(()), show);
    for thing in &returned.gone {
        printer.info(&format!("deleted, and confirmed gone: {thing}"));
    }
    let written = manifest.map_or(Ok(()), |staged| ended.manifest(printer.task()).write(staged));
    let answered = match answer {
        Ok(answered) if answered.complete => Ok(()),
        Ok(_) => Err(&Error::remote("not every file of the answer could be saved")),
        Err(error) => Err(error),
    };
    if !returned.is_complete() {
        [answered, shown.as_ref().map(drop), written.as_ref().map(drop)].into_iter().for_each(|r| {
            if let Err(error) = r {
                printer.error(error);
            }
        });
        return Ok(super::exit_code(&ended.live(printer.task())));
    }
    if let Err(error) = answered {
        printer.error(error);
        return Ok(super::exit_code(error));
    }
    shown.and(written).map(|()| ExitCode::SUCCESS)
}

impl Ended<'_> {
    fn manifest(&self, task: &str) -> Manifest {
        let Masked { cleared, input, report, form, key_id, scope } = self.masked;
        let Outcome { answer, returned, granted } = &self.outcome;
        let left = returned.left.iter().map(|(thing, why)| format!("{thing} ({why})"));
        Manifest {
            version: VERSION,
            task: task.into(),
            tool: concat!("hmask ", env!("CARGO_PKG_VERSION")).into(),
            started: self.started.to_string(),
            ended: jiff::Timestamp::now().to_string(),
            input: input.clone(),
            output: FileFacts { name: None, bytes: cleared.bytes(), sha256: cleared.sha256() },
            rows: report.rows,
            columns: columns(report, form),
            key_id: key_id.clone(),
            scope: scope.clone(),
            loan: LoanFacts {
                recipient: self.api.host(),
                remote_name: format!("hmask-{task}.csv"),
                expiry_asked: EXPIRY,
                expiry_granted: *granted,
                answered: answer.is_ok(),
                confirmed_gone: returned.gone.iter().map(ToString::to_string).collect(),
                may_be_live: left.chain(returned.unknown.clone()).collect(),
                not_deletable: NOT_DELETABLE,
            },
        }
    }

    /// The error that names what may be live, and how to delete it by hand.
    fn live(&self, task: &str) -> Error {
        let returned = &self.outcome.returned;
        let mut what: Vec<String> = returned.left.iter().map(|(thing, why)| format!("{thing} ({why})")).collect();
        what.extend(returned.unknown.as_ref().map(|why| format!("perhaps something named hmask-{task} ({why})")));
        let error = Error::new(ErrorKind::Live(format!("may still be live at {}: {}", self.api.host(), what.join(", "))));
        returned.left.iter().fold(error, |error, (thing, _)| {
            let url = self.api.url(&thing.path());
            error.hint(format!("curl -X DELETE -H \"Authorization: Bearer ${TOKEN_VARIABLE}\" {url}"))
        })
    }
}

/// Prints the answer; on a terminal without what could steer it.
fn show(text: &str) -> Result<()> {
    use std::io::IsTerminal;
    let stdout = std::io::stdout();
    let steers = |c: &char| c.is_control() && !matches!(c, '\n' | '\t');
    let plain: String = if stdout.is_terminal() { text.chars().filter(|c| !steers(c)).collect() } else { text.into() };
    let end = if plain.ends_with('\n') { "" } else { "\n" };
    stdout.lock().write_all(format!("{plain}{end}").as_bytes()).map_err(|e| Error::io("cannot write", e))
}

/// The embedded endpoint, in builds that have it.
#[cfg(feature = "analyse")]
mod local {
    use hmask::Result;
    use hmask::remote::client::Endpoint;
    use hmask::remote::sandbox::Sandbox;
    use zeroize::Zeroizing;

    pub(super) async fn start() -> Result<Sandbox> {
        Sandbox::start((std::net::Ipv4Addr::LOCALHOST, 0).into(), None).await
    }

    pub(super) fn endpoint(sandbox: &Sandbox) -> Result<Endpoint> {
        Endpoint::new(sandbox.base_url(), Zeroizing::new(sandbox.api_key().to_owned()))
    }

    pub(super) async fn stop(sandbox: Sandbox) {
        sandbox.stop().await;
    }
}

#[cfg(not(feature = "analyse"))]
#[expect(clippy::unused_async, reason = "the same calls as in builds that have it")]
mod local {
    use hmask::remote::client::Endpoint;
    use hmask::{Error, Result};

    pub(super) enum Sandbox {}

    pub(super) async fn start() -> Result<Sandbox> {
        std::future::ready(Err(Error::usage("this build has no embedded endpoint (feature analyse)"))).await
    }

    pub(super) fn endpoint(sandbox: &Sandbox) -> Result<Endpoint> {
        match *sandbox {}
    }

    pub(super) async fn stop(sandbox: Sandbox) {
        match sandbox {}
    }
}
