//! What `ask` and `lend` have in common: mask, check, journal, upload, use, delete, prove.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hmask::gate::originals::Originals;
use hmask::gate::{Cleared, Outgoing};
use hmask::mask::{Treatment, Witness};
use hmask::policy::Policy;
use hmask::remote::journal::{Journal, Run};
use hmask::remote::lease::Lease;
use hmask::remote::loan::{Event, Loan, Outcome};
use hmask::remote::openai::CONTAINER_MINUTES;
use hmask::remote::target::{EXPIRY, Life, Upload};
use hmask::remote::thing::file_name;
use hmask::report::{ColumnFacts, FileFacts, PolicyFacts, columns};
use hmask::table::compress::Compression;
use hmask::table::{Format, Input, TableReport, TextLayout, export};
use hmask::{Columns, Error, ErrorKind, Result};

use super::args::{LentArgs, LoanArgs, UploadFormat};
use super::ended::Ended;
use super::endpoint::{self, Manner, Other, Recipient, local};
use super::evidence::{Distinct, Evidence};
use super::io::Source;
use super::mask::{changes, say};
use super::plan::Plan;
use super::print::Printer;
use super::process;
use super::sweep;

/// The table as it is sent, and what is known of it.
pub(super) struct Masked {
    pub cleared: Cleared,
    pub input: FileFacts,
    pub report: TableReport,
    /// What became of the columns, in words and for the manifest.
    pub changes: String,
    pub columns: Vec<ColumnFacts>,
    pub key_id: String,
    pub scope: String,
    pub policy: Option<PolicyFacts>,
    pub filter: Option<String>,
    pub recipient: Option<String>,
    pub purpose: Option<String>,
}

/// A loan that is about to be made: whatever can be wrong with the call is found, and nothing is sent.
pub(super) struct Lending<'a> {
    args: &'a LoanArgs,
    /// None once it is lent to.
    recipient: Option<Recipient>,
    /// Whether the tables are uploaded before they are used.
    pub upload_first: bool,
    /// Whether the container, if there is one, is the run's own.
    pub own_container: bool,
    /// One for each table.
    pub evidence: Vec<Evidence>,
    pub masked: Vec<Masked>,
    state: PathBuf,
    pub started: jiff::Timestamp,
    pub printer: &'a Arc<Printer>,
}

impl<'a> Lending<'a> {
    /// Looks at the call, then masks the table.
    ///
    /// # Errors
    /// Whatever is wrong with the call or the table.
    pub(super) fn new(table: &'a LentArgs, printer: &'a Arc<Printer>) -> Result<Self> {
        let (started, args) = (jiff::Timestamp::now(), &table.loan);
        let recipient = Recipient::of(&args.to, args.ca_file.as_deref())?;
        if let Some(id) = table.files.iter().filter_map(|f| f.to_str()).find(|f| is_id(f)) {
            return Err(Error::usage(format!(
                "{id} is the id of a file that is there already, and hmask lends only what it has masked"
            )));
        }
        if recipient.reads_csv() && table.table.reading.has_own_dialect() {
            return Err(Error::usage(
                "the recipient reads a CSV with a header and double quotes: no --no-header, --quote, --escape, --comment",
            ));
        }
        let state = sweep::state_folder(&args.state)?;
        let default = state.join("manifests").join(format!("{}.json", printer.task()));
        let default = Some(default).filter(|_| !args.dry_run);
        let inputs: Vec<&Path> = table.files.iter().map(PathBuf::as_path).collect();
        let stage = |(number, file): (usize, &PathBuf)| {
            Evidence::stage(&args.evidence, args.force, file, default.clone(), number, &inputs)
        };
        let evidence = table.files.iter().enumerate().map(stage).collect::<Result<_>>()?;
        let accepted = args.accept_leaks.as_deref().map(Columns::parse).transpose()?;
        let masked = mask(table, accepted, &recipient, printer)?;
        Ok(Self {
            args,
            recipient: Some(recipient),
            upload_first: true,
            own_container: true,
            evidence,
            masked,
            state,
            started,
            printer,
        })
    }

    /// Idle seconds that are asked for a container, where the table is in one of the run's own alone.
    pub(super) fn idle_life(&self) -> Option<u64> {
        (!self.upload_first && self.own_container).then_some(CONTAINER_MINUTES * 60)
    }

    /// Says what would be sent.
    pub(super) fn dry_run(&self) {
        let to = self.recipient.as_ref().map(Recipient::host).unwrap_or_default();
        let ends = match &self.recipient {
            Some(Recipient::Folder(_)) => String::new(),
            Some(Recipient::Store(..)) => format!(", with an address that is good for {EXPIRY} s"),
            _ if self.upload_first => format!(", to expire after {EXPIRY} s"),
            _ => self.idle_life().map(|s| format!(", to expire after {s} idle seconds")).unwrap_or_default(),
        };
        for (number, Masked { cleared, report, changes, .. }) in self.masked.iter().enumerate() {
            self.printer.info(&format!(
                "would send {} to {to}: {} rows, {} bytes, SHA-256 {}, {changes}{ends}; nothing was sent",
                file_name(self.printer.task(), number, cleared.ending()),
                report.rows,
                cleared.bytes(),
                cleared.sha256(),
            ));
        }
    }

    /// Lends the table, lets `use_it` use it, and gives it back. An answer may take `patience`.
    ///
    /// # Errors
    /// What keeps the loan from beginning, and a second signal. Whatever happens later is in the outcome.
    pub(super) fn carry_out<T>(
        mut self,
        patience: Duration,
        use_it: impl AsyncFnOnce(&Other, &Loan<'_>, &mut Lease<'_>, &[Upload]) -> Result<T>,
    ) -> Result<Ended<'a, T>> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(|e| Error::io("cannot start the network", e))?;
        let lent = runtime.block_on(self.lend(patience, use_it));
        // A query or a look-up of a name that is still at work must not hold up what is to be said.
        runtime.shutdown_background();
        let (outcome, other) = lent?;
        Ok(Ended { lending: self, outcome, other })
    }

    /// The other side; the embedded endpoint is started.
    async fn begin(&mut self, journal: &mut Option<Journal>, patience: Duration) -> Result<(Other, Option<local::Sandbox>)> {
        let manner = Manner {
            patience,
            accept_expiry: self.args.accepts.accept_expiry,
            accept_versioning: self.args.accepts.accept_versioning,
            whole: self.args.whole,
        };
        let recipient = self.recipient.take().ok_or_else(|| Error::usage("this was lent already"))?;
        let name = recipient.name();
        let begin = |account: &str| {
            let (task, host, pid) = (self.printer.task(), process::host(), std::process::id());
            let run = Run::new(task, account, &name, &host, pid, sweep::now());
            Journal::create(&self.state, run, sweep::now, process::step())
        };
        if !matches!(recipient, Recipient::Local) {
            let other = recipient.connect(&manner, self.printer).await?;
            *journal = Some(begin(&other.target().account(self.printer.task()))?);
            return Ok((other, None));
        }
        let folder = local::folder(self.printer.task());
        journal.insert(begin("")?).folder(&folder)?;
        let sandbox = local::start(&folder).await?;
        let api = endpoint::api(local::endpoint(&sandbox)?, false, &manner, self.printer)?;
        Ok((Other::Api(Box::new(api)), Some(sandbox)))
    }

    async fn lend<T>(
        &mut self,
        patience: Duration,
        use_it: impl AsyncFnOnce(&Other, &Loan<'_>, &mut Lease<'_>, &[Upload]) -> Result<T>,
    ) -> Result<(Outcome<T>, Other)> {
        let printer = self.printer;
        let name = self.recipient.as_ref().map(Recipient::name).unwrap_or_default();
        let mut journal = None;
        let begun = self.begin(&mut journal, patience).await;
        let (other, local, journal) = match (begun, journal) {
            (Ok((other, local)), Some(journal)) => (other, local, journal),
            // Nothing has been sent: there is nothing to sweep.
            (Err(error), Some(journal)) => return journal.close().and(Err(error)),
            (begun, None) => return Err(begun.err().unwrap_or_else(|| Error::usage("there is no journal"))),
        };
        sweep::own(&self.state, &name, &other, printer).await;
        let cleared: Vec<&Cleared> = self.masked.iter().map(|m| &m.cleared).collect();
        // What is over there at this moment, for the case that the user does not want to wait.
        let live = Mutex::new(Vec::new());
        let note = |thing: String| live.lock().unwrap_or_else(PoisonError::into_inner).push(thing);
        let tell = |event: Event<'_>| {
            match &event {
                Event::Lent(file) => note(file.thing.to_string()),
                Event::Container(id) => note(format!("container {id}")),
                _ => {}
            }
            describe(&event, printer);
        };
        let loan = Loan {
            target: other.target(),
            cleared: &cleared,
            upload_first: self.upload_first,
            accept_expiry: self.args.accepts.accept_expiry,
            task: printer.task(),
            patience: Duration::from_secs(self.args.delete_for),
            tell: &tell,
        };
        let signals = process::start_lending();
        let interrupted = signalled(signals.clone(), 1, || printer.warn("interrupted; deleting what was lent"));
        let used = loan
            .run(journal, interrupted, async |lease: &mut Lease<'_>, files: &[Upload]| use_it(&other, &loan, lease, files).await);
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
        Ok((outcome, other))
    }
}

/// Whether a name is that of something that the service holds.
fn is_id(name: &str) -> bool {
    let id = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphanumeric());
    ["cfile_", "file-"].iter().any(|prefix| name.strip_prefix(prefix).is_some_and(id)) && !Path::new(name).exists()
}

/// A table that is masked, and not looked through yet.
struct Made {
    name: PathBuf,
    file: File,
    format: Format,
    layout: TextLayout,
    report: TableReport,
    columns: Vec<ColumnFacts>,
    changes: String,
}

/// Masks the tables into files without a name: nothing is left of them, however this process ends. Then looks through all of them for
/// originals of any.
fn mask(args: &LentArgs, accepted: Option<Columns>, recipient: &Recipient, printer: &Printer) -> Result<Vec<Masked>> {
    let originals = Arc::new(Originals::default());
    let witness = originals.clone();
    let first = args.files.first().map_or(Path::new("-"), PathBuf::as_path);
    let mut plan = Plan::new(&args.table, &args.form, &args.key, &args.run, first, printer)?;
    let listed = match &plan.policy {
        Some((name, policy)) => {
            allowed(policy, recipient).map_err(|e| e.in_file(name))?;
            policy.accepted()?
        }
        None => None,
    };
    let accepted = accepted.or(listed);
    let witness: Witness = Arc::new(move |values: &[&[u8]]| witness.see(values));
    plan.witness(&witness);
    // What stands before the header is no part of the table for who reads it.
    plan.options.drop_preamble = true;
    let made = args.files.iter().map(|file| make(file, args, recipient, &mut plan, printer)).collect::<Result<Vec<_>>>()?;
    let quasi = plan.policy.as_ref().map(|(_, policy)| policy.quasi().map(|quasi| (policy, quasi))).transpose()?;
    let quasi = quasi.and_then(|(policy, quasi)| quasi.map(|quasi| (policy, quasi)));
    let check = |made: Made| {
        let Made { name, file, format, layout, report, columns, changes } = made;
        if format != Format::Csv && quasi.is_some() {
            return Err(Error::usage("the risk that a policy bounds is measured on a CSV")
                .hint("--upload-format csv")
                .in_file(&name));
        }
        let measure =
            quasi.clone().map(|(policy, quasi)| super::risk::measure(policy, quasi, layout, plan.workers)).transpose()?;
        let outgoing = Outgoing {
            format,
            layout,
            max_bytes: recipient.max_bytes(),
            // What truncation leaves can be a whole value: it is looked through.
            masked: report
                .columns
                .iter()
                .filter(|c| !matches!(plan.rules.treatment(c.rule), Treatment::Truncate(..)))
                .map(|c| (c.number, c.name.clone()))
                .collect(),
            originals: &originals,
            accepted: accepted.as_ref(),
            workers: plan.workers,
            risk: measure.as_deref(),
        };
        Ok(Masked {
            cleared: Cleared::check(file, &outgoing).map_err(|e| e.in_file(&name))?,
            input: facts(&name)?,
            changes,
            columns,
            report,
            policy: plan.policy_facts(),
            filter: plan.filter.clone(),
            recipient: plan.policy.as_ref().and_then(|(_, p)| p.recipient.clone()),
            purpose: plan.policy.as_ref().and_then(|(_, p)| p.purpose.clone()),
            key_id: plan.key_id.clone(),
            scope: plan.scope.label(),
        })
    };
    made.into_iter().map(check).collect()
    // Here the keyed hash goes: nothing of the key is left when the network begins.
}

/// Reads a table as a whole, so that the leak check also knows the originals of rows and columns that are left out.
fn see_all(file: &Path, args: &LentArgs, plan: &mut Plan) -> Result<()> {
    let source = Source::open(file, args.table.reading.format.as_deref())?;
    if matches!(source.input, Input::Stream(_)) {
        return Err(Error::usage("--keep and --where read the table twice, and a pipe can be read once only").in_file(file));
    }
    let (only, filter) = (plan.rules.swap_only(None), plan.filter.take());
    let seen = plan.mask(source, Compression::None, &mut std::io::sink(), &args.run);
    plan.rules.swap_only(only);
    plan.filter = filter;
    seen.map(drop)
}

/// Masks one table, in the form that the recipient gets.
fn make(file: &Path, args: &LentArgs, recipient: &Recipient, plan: &mut Plan, printer: &Printer) -> Result<Made> {
    let distinct = Distinct::of(&mut plan.rules);
    let source = Source::open(file, args.table.reading.format.as_deref())?;
    let (name, format) = (source.name.clone(), source.format);
    let sent = match args.loan.upload_format {
        Some(UploadFormat::Csv) if format == Format::Ndjson => {
            let error = Error::unsupported("objects of NDJSON have no form in a CSV; it is sent as it is");
            return Err(error.hint("--upload-format as-is").in_file(&name));
        }
        None if !recipient.reads_csv() => format,
        None if format == Format::Ndjson => format,
        Some(UploadFormat::AsIs) => format,
        _ => Format::Csv,
    };
    if plan.filter.is_some() || plan.rules.kept().is_some() {
        see_all(file, args, plan)?;
    }
    let nameless = || tempfile::tempfile().map_err(|e| Error::io("cannot make a temporary file", e));
    let mut file = nameless()?;
    let converted = sent != format;
    plan.filters_later = converted;
    let keep = if plan.filters_later { plan.chosen(&source)? } else { None };
    let mut report = plan.mask(source, Compression::None, &mut file, &args.run)?;
    say(&report, &name, printer);
    if report.columns.is_empty() && report.dropped.is_empty() {
        return Err(Error::new(ErrorKind::Gate("no column was masked, so the table does not leave".into())).in_file(&name));
    }
    let layout = if converted { TextLayout::default() } else { report.layout.unwrap_or_default() };
    if converted {
        let mut csv = nameless()?;
        export::to_csv(file, format, &mut csv, keep.as_deref()).map_err(|e| e.in_file(&name))?;
        if let Some(keep) = &keep {
            report.rows = keep.iter().filter(|k| **k).count() as u64;
        }
        file = csv;
    }
    let columns = columns(&report, &plan.rules, |rule| distinct.count(rule));
    Ok(Made { changes: changes(&report, plan), name, file, format: sent, layout, report, columns })
}

/// Whether a policy allows the host that the table would go to; the embedded endpoint is none.
fn allowed(policy: &Policy, recipient: &Recipient) -> Result<()> {
    if policy.allow_hosts.is_empty() || matches!(recipient, Recipient::Local) {
        return Ok(());
    }
    for bare in recipient.hosts() {
        let name = bare.rsplit_once(':').map_or(bare.as_str(), |(name, _)| name);
        if !policy.allow_hosts.iter().any(|allowed| *allowed == bare || allowed == name) {
            return Err(Error::usage(format!("the policy does not allow {name}: allow_hosts = {:?}", policy.allow_hosts)));
        }
    }
    Ok(())
}

/// Length and hash of the input, as the manifest has them. A pipe cannot be read twice.
pub(super) fn facts(name: &Path) -> Result<FileFacts> {
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

fn describe(event: &Event<'_>, printer: &Printer) {
    match event {
        Event::Lent(file) => {
            let until = file.ends_at().and_then(|s| jiff::Timestamp::from_second(s.try_into().ok()?).ok());
            let until = until.map_or_else(|| "an unknown time".into(), |t| t.to_string());
            let ends = match file.life {
                Life::Expiring { .. } => format!("expires at {until}"),
                Life::Address(_) => format!("its address is good until {until}"),
                Life::Forever => "stays until it is deleted".into(),
            };
            printer.info(&format!("lent: {}, {} bytes, {ends}", file.thing, file.bytes.unwrap_or(0)));
        }
        Event::LongExpiry(Some(seconds)) => {
            printer.warn(&format!("the other side would keep it for {seconds} s; only the deletion ends the loan"));
        }
        Event::LongExpiry(None) => {
            printer.warn("the other side does not say when it expires; only the deletion ends the loan");
        }
        Event::Keeps(what) => printer.warn(what),
        Event::Container(id) => printer.info(&format!("lent: container {id}")),
        Event::NetworkUnproved => printer.warn("the container does not say whether it can reach a network"),
        Event::Again(why) => printer.warn(&format!("trying again: {why}")),
        Event::Asked => printer.info("asked; waiting for the answer"),
        Event::Interpreting => printer.info("the interpreter runs code"),
        Event::Text(text) => super::ask::show_piece(text),
        Event::Saved(saved) => printer.info(&format!("saved: {} ({} bytes)", saved.path.display(), saved.bytes)),
        Event::NotSaved(why) => printer.warn(why),
        Event::NotWanted(n) => printer.info(&format!("files that the answer made: {n}; --save-dir DIR keeps them")),
    }
}
