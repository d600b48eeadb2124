//! `hmask sweep`: deletes whatever interrupted runs left, here or there.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use hmask::remote::journal::{self, Found, Left, Run};
use hmask::remote::lease::Return;
use hmask::remote::sweep;
use hmask::{Error, ErrorKind, Result};

use super::args::{StateArgs, SweepArgs, To};
use super::endpoint::{LOCAL, Manner, Other, Recipient};
use super::print::Printer;
use super::process;

/// How long the sweep before a loan may try the deletion of one thing.
const BEFORE_A_LOAN: Duration = Duration::from_secs(10);
/// How long a small request may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// Runs that are swept at a time.
const AT_A_TIME: usize = 8;

/// Runs the command.
pub(super) fn run(args: &SweepArgs, printer: &Arc<Printer>) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Error::io("cannot start the network", e))?;
    let (mut found, mut unreadable, mut skipped) = (Vec::new(), 0, Skipped::default());
    for run in journal::all(&state_folder(&args.state)?)? {
        match run {
            Found::Alive(task) => printer.info(&format!("{task} is still at work")),
            Found::Unreadable(error) => {
                printer.error(&error);
                unreadable += 1;
            }
            Found::Left(left) if !wanted(args, &left, &mut skipped) => {}
            Found::Left(left) if args.dry_run => printer.info(&would(&left)),
            Found::Left(left) => found.push(*left),
        }
    }
    let many = found.len();
    let sweeps = futures_util::stream::iter(found).map(|left| async {
        let task = left.task.clone();
        one(args, left, printer).await.inspect_err(|error| {
            printer.error(error);
            printer.warn(&format!("{task} may still have something live"));
        })
    });
    let failed = runtime.block_on(sweeps.buffer_unordered(AT_A_TIME).filter(|done| std::future::ready(done.is_err())).count());
    let failed = failed + unreadable;
    if failed > 0 {
        return Err(Error::new(ErrorKind::Live(format!("{failed} interrupted runs could not be swept"))).hint("hmask sweep"));
    }
    if skipped.younger > 0 {
        printer.info(&format!("interrupted runs that are younger: {}", skipped.younger));
    }
    if skipped.elsewhere > 0 && !args.dry_run {
        let what = format!("{} runs of other machines were not swept, as they may be alive there", skipped.elsewhere);
        return Err(Error::new(ErrorKind::Live(what)).hint("hmask sweep --all-hosts"));
    }
    if many == 0 && skipped.younger == 0 && !args.dry_run {
        printer.info("nothing was left behind");
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs that a sweep was told to leave alone.
#[derive(Default)]
struct Skipped {
    younger: usize,
    elsewhere: usize,
}

fn wanted(args: &SweepArgs, left: &Left, skipped: &mut Skipped) -> bool {
    if args.older_than.is_some_and(|age| now().saturating_sub(left.time()) < age.as_secs()) {
        skipped.younger += 1;
        return false;
    }
    let elsewhere = left.run.as_ref().is_some_and(|r| r.host != process::host()) && !args.all_hosts;
    skipped.elsewhere += usize::from(elsewhere);
    !elsewhere
}

fn would(left: &Left) -> String {
    let live: Vec<String> = left.live.iter().map(ToString::to_string).collect();
    let at = left.run.as_ref().map_or("the endpoint of --to", |r| &r.base_url);
    let known = if live.is_empty() { String::new() } else { format!("{}, and ", live.join(", ")) };
    format!("{}: would delete {known}whatever is named hmask-{} at {at}", left.task, left.task)
}

/// Sweeps after one run.
async fn one(args: &SweepArgs, left: Left, printer: &Arc<Printer>) -> Result<()> {
    let task = left.task.clone();
    let base_url = left.run.as_ref().map(|r| r.base_url.clone());
    if base_url.as_deref() == Some(LOCAL) || base_url.is_none() && matches!(args.to, To::Local) {
        // Its endpoint ended with it.
        sweep::clear(left)?;
        printer.info(&format!("{task}: what it left on this machine is gone"));
        return Ok(());
    }
    let recipient = match &base_url {
        Some(name) => Recipient::of_journal(name, args.ca_file.as_deref())?,
        None => Recipient::of(&args.to, args.ca_file.as_deref())?,
    };
    let other = recipient.connect(&Manner::plain(PATIENCE), printer).await?;
    if left.run.as_ref().is_some_and(|run| !is_of(&other, run)) {
        let what = format!(
            "{task} was lent to another account, server or disk than is there now (access token, organisation, project, mount)"
        );
        return Err(Error::new(ErrorKind::Live(what)));
    }
    let by_hand =
        left.unheard.then(|| format!("delete it in the service's log of responses, then remove {}", left.path().display()));
    let Return { gone, left, unknown, .. } = sweep::sweep(other.target(), left, Duration::from_secs(args.delete_for)).await?;
    gone.iter().for_each(|thing| printer.info(&format!("{task}: deleted, and confirmed gone: {thing}")));
    let commands: Vec<String> = left.iter().map(|(thing, _)| other.target().by_hand(thing)).collect();
    let mut why: Vec<String> = left.iter().map(|(thing, why)| format!("{thing} ({why})")).collect();
    why.extend(unknown.iter().map(|what| format!("perhaps {what}")));
    if why.is_empty() {
        if gone.is_empty() {
            printer.info(&format!("{task}: nothing of it is there"));
        }
        return Ok(());
    }
    let live = Error::new(ErrorKind::Live(format!("may still be live at {}: {}", other.target().place(), why.join(", "))));
    Err(commands.into_iter().chain(by_hand).fold(live, Error::hint))
}

/// Whether a run used this account of its endpoint: to another one its uploads are invisible, not gone.
fn is_of(other: &Other, run: &Run) -> bool {
    run.base_url == LOCAL || run.account == other.target().account(&run.task)
}

/// Gives back what earlier runs of this machine and endpoint left. A failure is said, and keeps nobody from lending.
pub(super) async fn own(state: &Path, base_url: &str, other: &Other, printer: &Printer) {
    let host = process::host();
    let is_own = |left: &Left| left.run.as_ref().is_some_and(|r| r.host == host && r.base_url == base_url && is_of(other, r));
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
        if !is_own(&left) {
            continue;
        }
        printer.info(&format!("an earlier run was interrupted; sweeping what {} left", left.task));
        let done = if base_url == LOCAL {
            sweep::clear(*left).map(|()| None)
        } else {
            sweep::sweep(other.target(), *left, BEFORE_A_LOAN).await.map(Some)
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

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    jiff::Timestamp::now().as_second().try_into().unwrap_or(0)
}
