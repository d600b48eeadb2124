//! What `ask` and `lend` have in common: mask, check, journal, upload, use, delete, prove.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hmask::gate::originals::Originals;
use hmask::gate::{Cleared, Outgoing};
use hmask::output::{Existing, Staged};
use hmask::remote::client::{Client, Endpoint, Exchange};
use hmask::remote::journal::{self, Found, Journal, Left, Run};
use hmask::remote::lease::{Lease, Return, file_name};
use hmask::remote::loan::{Event, Loan, Outcome};
use hmask::remote::openai::{EXPIRY, FileObject, OpenAi};
use hmask::remote::sweep;
use hmask::report::{FileFacts, LoanFacts, Manifest, NOT_DELETABLE, VERSION, columns};
use hmask::table::compress::Compression;
use hmask::table::{Format, TableReport, export};
use hmask::{Columns, Error, ErrorKind, Form, Result};
use zeroize::Zeroizing;

use super::args::{FormArgs, KeyArgs, LoanArgs, RunArgs, StateArgs, TableArgs, To};
use super::io::{Source, same_file};
use super::key::TOKEN_VARIABLE;
use super::mask::{Plan, say};
use super::print::Printer;
use super::process;

/// The variable that names the endpoint, and the endpoint without it.
pub(super) const BASE_URL_VARIABLE: &str = "OPENAI_BASE_URL";
const BASE_URL: &str = "https://api.openai.com/v1";
/// Variables whose values go along as headers, where they are set.
const HEADERS: [(&str, &str); 2] = [("OPENAI_ORG_ID", "openai-organization"), ("OPENAI_PROJECT_ID", "openai-project")];
/// What a journal says of a run whose endpoint ended with it.
pub(super) const LOCAL: &str = "local";

/// The table to lend, and how it is masked.
pub(super) struct Table<'a> {
    pub file: &'a Path,
    pub how: &'a TableArgs,
    pub form: &'a FormArgs,
    pub key: &'a KeyArgs,
    pub run: &'a RunArgs,
}

/// The table as it is sent, and what is known of it.
pub(super) struct Masked {
    cleared: Cleared,
    input: FileFacts,
    report: TableReport,
    form: Form,
    key_id: String,
    scope: String,
}

/// A loan that is about to be made: whatever can be wrong with the call is found, and nothing is sent.
pub(super) struct Lending<'a> {
    args: &'a LoanArgs,
    endpoint: Option<Endpoint>,
    manifest: Option<Staged>,
    masked: Masked,
    state: PathBuf,
    started: jiff::Timestamp,
    printer: &'a Arc<Printer>,
}

/// A loan that is over, one way or another.
pub(super) struct Ended<'a, T> {
    lending: Lending<'a>,
    pub outcome: Outcome<T>,
    api: OpenAi,
}

impl<'a> Lending<'a> {
    /// Looks at the call, then masks the table.
    ///
    /// # Errors
    /// Whatever is wrong with the call or the table.
    pub(super) fn new(table: &Table<'_>, args: &'a LoanArgs, printer: &'a Arc<Printer>) -> Result<Self> {
        let started = jiff::Timestamp::now();
        if let Some(manifest) = args.manifest.as_deref().filter(|m| same_file(m, table.file)) {
            return Err(Error::usage(format!("{} is the input", manifest.display())).hint("--manifest OTHER"));
        }
        if table.how.has_own_dialect() {
            return Err(Error::usage(
                "the recipient reads a CSV with a header and double quotes: no --no-header, --quote, --escape, --comment",
            ));
        }
        let endpoint = endpoint(&args.to)?;
        let state = state_folder(&args.state)?;
        let existing = if args.force { Existing::Replace } else { Existing::Refuse };
        let manifest = args.manifest.as_deref().map(|path| Staged::create(path, existing)).transpose()?;
        let accepted = args.accept_leaks.as_deref().map(Columns::parse).transpose()?;
        let masked = mask(table, accepted.as_ref(), printer)?;
        Ok(Self { args, endpoint, manifest, masked, state, started, printer })
    }

    /// Says what would be sent.
    pub(super) fn dry_run(&self) {
        let Masked { cleared, report, .. } = &self.masked;
        let to = self.endpoint.as_ref().map_or_else(|| "the embedded endpoint".into(), Endpoint::host);
        let columns: Vec<String> = report.columns.iter().map(|c| format!("{} {}", c.name, c.masked)).collect();
        self.printer.info(&format!(
            "would send {} to {to}: {} rows, {} bytes, SHA-256 {}, masked: {}, to expire after {EXPIRY} s; nothing was sent",
            file_name(self.printer.task()),
            report.rows,
            cleared.bytes(),
            cleared.sha256(),
            columns.join(", ")
        ));
    }

    /// Lends the table, lets `use_it` use it, and gives it back. An answer may take `patience`.
    ///
    /// # Errors
    /// What keeps the loan from beginning, and a second signal. Whatever happens later is in the outcome.
    pub(super) fn carry_out<T>(
        mut self,
        patience: Duration,
        use_it: impl AsyncFnOnce(&Loan<'_>, &mut Lease<'_>, &FileObject) -> Result<T>,
    ) -> Result<Ended<'a, T>> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(|e| Error::io("cannot start the network", e))?;
        let lent = runtime.block_on(self.lend(patience, use_it));
        // A query or a look-up of a name that is still at work must not hold up what is to be said.
        runtime.shutdown_background();
        let (outcome, api) = lent?;
        Ok(Ended { lending: self, outcome, api })
    }

    async fn lend<T>(
        &mut self,
        patience: Duration,
        use_it: impl AsyncFnOnce(&Loan<'_>, &mut Lease<'_>, &FileObject) -> Result<T>,
    ) -> Result<(Outcome<T>, OpenAi)> {
        let (printer, masked) = (self.printer, &self.masked);
        let base_url = self.endpoint.as_ref().map_or_else(|| LOCAL.to_owned(), Endpoint::base_url);
        let mut journal =
            Journal::create(&self.state, run(printer.task(), self.endpoint.as_ref(), &base_url), now, process::step())?;
        let (endpoint, local) = if let Some(endpoint) = self.endpoint.take() {
            (endpoint, None)
        } else {
            let folder = local::folder(printer.task());
            journal.folder(&folder)?;
            let local = local::start(&folder).await?;
            (local::endpoint(&local)?, Some(local))
        };
        let api = api(endpoint, patience, printer)?;
        sweep_own(&self.state, &base_url, &api, printer).await;
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
            patience: Duration::from_secs(self.args.delete_for),
            tell: &tell,
        };
        let signals = process::start_lending();
        let interrupted = signalled(signals.clone(), 1, || printer.warn("interrupted; deleting what was lent"));
        let used =
            loan.run(journal, interrupted, async |lease: &mut Lease<'_>, file: &FileObject| use_it(&loan, lease, file).await);
        let mut outcome = tokio::select! {
            outcome = used => outcome,
            () = signalled(signals, 2, || {}) => {
                // A second signal: the user will not wait for the deletion.
                let live = live.lock().unwrap_or_else(PoisonError::into_inner).join(", ");
                let what = format!("interrupted twice; these may still be live: {live}, and whatever is named hmask-{}", printer.task());
                return Err(Error::new(ErrorKind::Live(what)).hint("hmask sweep"));
            }
        };
        if outcome.returned.is_complete() {
            process::stop_lending();
        }
        if let Some(local) = local {
            local::stop(local).await;
        }
        outcome.returned.close();
        Ok((outcome, api))
    }
}

/// This run, for its journal.
fn run(task: &str, endpoint: Option<&Endpoint>, base_url: &str) -> Run {
    let account = endpoint.map(|e| e.account(task)).unwrap_or_default();
    Run::new(task, &account, base_url, &process::host(), std::process::id(), now())
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    jiff::Timestamp::now().as_second().try_into().unwrap_or(0)
}

/// The API behind an endpoint, with each request logged.
pub(super) fn api(endpoint: Endpoint, patience: Duration, printer: &Arc<Printer>) -> Result<OpenAi> {
    let logger = printer.clone();
    Ok(OpenAi::new(Client::new(endpoint, move |e: &Exchange| logger.exchange(e))?, patience))
}

/// Where the journals are.
///
/// # Errors
/// An environment that names no home.
pub(super) fn state_folder(args: &StateArgs) -> Result<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let state = || absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|h| h.join(".local/state")));
    args.state_dir
        .clone()
        .or_else(|| state().map(|s| s.join("hmask")))
        .ok_or_else(|| Error::usage("no folder for the journal: neither XDG_STATE_HOME nor HOME is set").hint("--state-dir DIR"))
}

/// The endpoint that is meant; none for the embedded one.
///
/// # Errors
/// No access token, or a URL that is none.
pub(super) fn endpoint(to: &To) -> Result<Option<Endpoint>> {
    match to {
        To::Local => Ok(None),
        To::OpenAi => openai(None).map(Some),
        To::Url(url) => openai(Some(url)).map(Some),
    }
}

/// Whether a run used this account of its endpoint: to another one its uploads are invisible, not gone.
pub(super) fn is_of(api: &OpenAi, run: &Run) -> bool {
    run.base_url == LOCAL || run.account == api.client().account(&run.task)
}

/// Gives back what earlier runs of this machine and endpoint left. A failure is said, and keeps nobody from lending.
async fn sweep_own(state: &Path, base_url: &str, api: &OpenAi, printer: &Printer) {
    let host = process::host();
    let own = |left: &Left| left.run.as_ref().is_some_and(|r| r.host == host && r.base_url == base_url && is_of(api, r));
    let found = journal::all(state).unwrap_or_else(|e| {
        printer.warn(&e.to_string());
        Vec::new()
    });
    for found in found {
        let left = match found {
            Found::Left(left) => left,
            Found::Alive(_) => continue,
            Found::Unreadable(error) => {
                printer.warn(&error.to_string());
                continue;
            }
        };
        if !own(&left) {
            continue;
        }
        printer.info(&format!("an earlier run was interrupted; sweeping what {} left", left.task));
        let done = if base_url == LOCAL {
            sweep::clear(*left).map(|()| None)
        } else {
            sweep::sweep(api, *left, Duration::from_secs(10)).await.map(Some)
        };
        match done {
            Ok(returned) if returned.as_ref().is_none_or(Return::is_complete) => {
                let gone = returned.map(|r| r.gone).unwrap_or_default();
                gone.iter().for_each(|thing| printer.info(&format!("deleted, and confirmed gone: {thing}")));
            }
            Ok(_) => printer.warn("what an earlier run left cannot be deleted now: hmask sweep"),
            Err(e) => printer.warn(&e.to_string()),
        }
    }
}

/// The endpoint that the environment names, with its token.
pub(super) fn openai(url: Option<&str>) -> Result<Endpoint> {
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
fn mask(args: &Table<'_>, accepted: Option<&Columns>, printer: &Printer) -> Result<Masked> {
    let originals = Arc::new(Originals::default());
    let witness = originals.clone();
    let mut plan = Plan::new(args.how, args.form, args.key, args.run, printer)?;
    plan.pseudonymiser = plan.pseudonymiser.witnessed(Arc::new(move |values| witness.see(values)));
    // What stands before the header is no part of the table for who reads it.
    plan.options.drop_preamble = true;
    let source = Source::open(args.file, args.how.format.as_deref())?;
    let (name, format) = (source.name.clone(), source.format);
    if matches!(format, Format::Ndjson | Format::Ipc) {
        return Err(
            Error::unsupported("NDJSON and Arrow files cannot be asked about yet; a CSV or Parquet file can").in_file(&name)
        );
    }
    let nameless = || tempfile::tempfile().map_err(|e| Error::io("cannot make a temporary file", e));
    let mut file = nameless()?;
    let report = plan.mask(source, Compression::None, &mut file, args.run)?;
    say(&report, &name, printer);
    if report.columns.is_empty() {
        return Err(Error::new(ErrorKind::Gate("no column was masked, so the table does not leave".into())).in_file(&name));
    }
    let outgoing = Outgoing {
        layout: report.layout.unwrap_or_default(),
        masked: report.columns.iter().map(|c| c.number).collect(),
        originals: &originals,
        accepted,
    };
    if format == Format::Parquet {
        let mut csv = nameless()?;
        export::parquet_to_csv(file, &mut csv).map_err(|e| e.in_file(&name))?;
        file = csv;
    }
    Ok(Masked {
        cleared: Cleared::check(file, &outgoing).map_err(|e| e.in_file(&name))?,
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

impl<T> Ended<'_, T> {
    /// Says what came of it, writes the manifest and finds the exit code. What may be live outweighs every other failure.
    ///
    /// `shown` is what became of showing the answer, `code` the exit code where all went well.
    ///
    /// # Errors
    /// Those of the disk.
    pub(super) fn finish(
        mut self,
        show: impl FnOnce(&Result<T>) -> Result<()>,
        code: impl FnOnce(&T) -> Result<ExitCode>,
    ) -> Result<ExitCode> {
        let printer = self.lending.printer;
        let live = (!self.outcome.returned.is_complete()).then(|| self.live(printer.task()));
        if let Some(live) = &live {
            // Before anything that could wait for a reader.
            printer.error(live);
        }
        let shown = show(&self.outcome.answer);
        for thing in &self.outcome.returned.gone {
            printer.info(&format!("deleted, and confirmed gone: {thing}"));
        }
        if let Some(error) = &self.outcome.returned.unwritten {
            printer.error(error);
        }
        let written = self.lending.manifest.take().map_or(Ok(()), |staged| self.manifest(printer.task()).write(staged));
        let answered = self.outcome.answer.as_ref().map_err(|e| (e, super::exit_code(e))).map(code);
        let done = match answered {
            Ok(code) => shown.and(written).and(code),
            Err((error, code)) => {
                printer.error(error);
                [shown, written].into_iter().filter_map(Result::err).for_each(|e| printer.error(&e));
                Ok(code)
            }
        };
        match live {
            None => done,
            Some(live) => {
                done.err().into_iter().for_each(|e| printer.error(&e));
                Ok(super::exit_code(&live))
            }
        }
    }

    fn manifest(&self, task: &str) -> Manifest {
        let Masked { cleared, input, report, form, key_id, scope } = &self.lending.masked;
        let Outcome { answer, returned, granted } = &self.outcome;
        let left = returned.left.iter().map(|(thing, why)| format!("{thing} ({why})"));
        Manifest {
            version: VERSION,
            task: task.into(),
            tool: concat!("hmask ", env!("CARGO_PKG_VERSION")).into(),
            started: self.lending.started.to_string(),
            ended: jiff::Timestamp::now().to_string(),
            input: input.clone(),
            output: FileFacts { name: None, bytes: cleared.bytes(), sha256: cleared.sha256() },
            rows: report.rows,
            columns: columns(report, form),
            key_id: key_id.clone(),
            scope: scope.clone(),
            gate: cleared.checked().facts(),
            loan: LoanFacts {
                recipient: self.api.host(),
                remote_name: file_name(task),
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
        let error = error.hint("hmask sweep");
        returned.left.iter().fold(error, |error, (thing, _)| {
            let url = self.api.url(&thing.path());
            error.hint(format!("curl -X DELETE -H \"Authorization: Bearer ${TOKEN_VARIABLE}\" {url}"))
        })
    }
}

/// The embedded endpoint, in builds that have it.
#[cfg(feature = "analyse")]
mod local {
    use std::path::{Path, PathBuf};

    use hmask::Result;
    use hmask::remote::client::Endpoint;
    use hmask::remote::sandbox::Sandbox;
    use zeroize::Zeroizing;

    pub(super) fn folder(task: &str) -> PathBuf {
        Sandbox::folder(task)
    }

    pub(super) async fn start(folder: &Path) -> Result<Sandbox> {
        Sandbox::start((std::net::Ipv4Addr::LOCALHOST, 0).into(), None, folder).await
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
    use std::path::{Path, PathBuf};

    use hmask::remote::client::Endpoint;
    use hmask::{Error, Result};

    pub(super) enum Sandbox {}

    pub(super) fn folder(task: &str) -> PathBuf {
        std::env::temp_dir().join(task)
    }

    pub(super) async fn start(_: &Path) -> Result<Sandbox> {
        std::future::ready(Err(Error::usage("this build has no embedded endpoint (feature analyse)"))).await
    }

    pub(super) fn endpoint(sandbox: &Sandbox) -> Result<Endpoint> {
        match *sandbox {}
    }

    pub(super) async fn stop(sandbox: Sandbox) {
        match sandbox {}
    }
}
