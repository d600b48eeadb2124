//! `hmask lend`: mask, check, upload with a one-hour expiry, run a command or wait, delete.

use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Write};
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use hmask::remote::target::{EXPIRY, Upload};
use hmask::remote::thing::file_name;
use hmask::{Error, Result};
use serde_json::json;
use tokio::io::AsyncBufReadExt;
use tokio::process::Command;

use super::args::{LendArgs, To};
use super::endpoint::BASE_URL_VARIABLE;
use super::key;
use super::key::TOKEN_VARIABLE;
use super::lending::Lending;
use super::print::Printer;

/// How long a command may take to end that was asked to.
const GRACE: Duration = Duration::from_secs(3);
/// How long a small request may take: there is no question.
const PATIENCE: Duration = Duration::from_mins(1);

/// Runs the command.
pub(super) fn run(args: &LendArgs, printer: &Arc<Printer>) -> Result<ExitCode> {
    if args.lent.key.key_fd.is_some() && !args.command.is_empty() {
        return Err(
            Error::usage("the command would inherit the descriptor of --key-fd, and with it the key").hint("--key-file FILE")
        );
    }
    if args.hold.is_some_and(|time| time.as_secs() > EXPIRY) {
        return Err(Error::usage("what is lent expires after an hour, so it cannot be held for longer").hint("--hold 1h"));
    }
    if args.pass_token && matches!(args.lent.loan.to, To::Store(_)) {
        return Err(Error::usage("there is no access token to pass on; the signed address is all that a reader needs"));
    }
    let lending = Lending::new(&args.lent, printer)?;
    if args.lent.loan.dry_run {
        lending.dry_run();
        return Ok(ExitCode::SUCCESS);
    }
    let task = printer.task();
    let ended = lending.carry_out(PATIENCE, async |other, loan, _, uploads| {
        let [upload, ..] = uploads else { return Err(Error::remote("nothing was lent")) };
        let ids: Vec<&str> = uploads.iter().map(|u| u.id.as_str()).collect();
        let base_url = other.api().map_or_else(|| other.target().place(), |api| api.client().base_url());
        let ending = |number: usize| loan.cleared.get(number).map_or("csv", |c| c.ending());
        let names: Vec<String> = (0..uploads.len()).map(|n| file_name(task, n, ending(n))).collect();
        let mut facts = vec![
            ("HMASK_FILE_ID", upload.id.clone()),
            ("HMASK_FILE_IDS", ids.join(",")),
            ("HMASK_FILE_NAME", names[0].clone()),
            ("HMASK_FILE_EXPIRES_AT", upload.ends_at().map(|s| s.to_string()).unwrap_or_default()),
            ("HMASK_BASE_URL", base_url.clone()),
        ];
        // Whoever has one of these reads the table, until it expires: it goes to the command, and into no log.
        let urls: Vec<&str> = uploads.iter().filter_map(|u| u.url.as_deref()).collect();
        if let [first, ..] = urls[..] {
            facts.extend([("HMASK_FILE_URL", first.to_owned()), ("HMASK_FILE_URLS", urls.join("\n"))]);
        }
        if let Some(time) = args.hold {
            return hold(time, uploads, &names, &base_url).await.map(|()| ExitCode::SUCCESS);
        }
        if args.pass_token {
            let Some(api) = other.api() else { return Err(Error::usage("there is no access token to pass on")) };
            facts.extend([(TOKEN_VARIABLE, api.client().token().to_owned()), (BASE_URL_VARIABLE, base_url)]);
        }
        command(args, &facts).await
    })?;
    ended.finish(|_| Ok(()), |code| Ok(*code))
}

/// Says what is lent, and waits for Enter, a signal, or the time.
async fn hold(time: Duration, uploads: &[Upload], names: &[String], base_url: &str) -> Result<()> {
    let mut stdout = std::io::stdout();
    for (upload, name) in uploads.iter().zip(names) {
        let mut line = json!({"file_id": upload.id, "name": name, "expires_at": upload.ends_at(), "base_url": base_url});
        if let Some(url) = &upload.url {
            line["url"] = json!(url);
        }
        writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(|e| Error::io("cannot write", e))?;
    }
    let enter = async {
        let mut lines = tokio::io::BufReader::new(tokio::io::stdin()).lines();
        // The end of a stdin that is no terminal is nobody who pressed Enter.
        let line = lines.next_line().await;
        if !std::io::stdin().is_terminal() && !matches!(line, Ok(Some(_))) {
            std::future::pending::<()>().await;
        }
    };
    // A signal ends the whole loan.
    tokio::select! {
        () = tokio::time::sleep(time) => {}
        () = enter => {}
    }
    Ok(())
}

/// Runs the command with these variables, and without the key; its exit code.
async fn command(args: &LendArgs, facts: &[(&str, String)]) -> Result<ExitCode> {
    let [program, rest @ ..] = &args.command[..] else { return Err(Error::usage("no command behind --")) };
    let mut command = Command::new(program);
    command.args(rest).kill_on_drop(true);
    secrets(args).into_iter().for_each(|name| {
        command.env_remove(name);
    });
    command.envs(facts.iter().map(|(name, value)| (name, value)));
    let shown = OsStr::to_string_lossy(program).into_owned();
    let mut child = command.spawn().map_err(|e| Error::io(format!("cannot run {shown}"), e))?;
    let mut guard = Guard(child.id());
    let status = child.wait().await.map_err(|e| Error::io(format!("cannot wait for {shown}"), e))?;
    guard.0 = None;
    Ok(code(status))
}

/// Variables that the command must not see.
fn secrets(args: &LendArgs) -> Vec<OsString> {
    let mut names: Vec<OsString> =
        [key::KEY_VARIABLE, key::KEY_FILE_VARIABLE, TOKEN_VARIABLE, key::AZURE_TOKEN_VARIABLE].map(Into::into).into();
    names.extend(key::store_secrets().into_iter().map(Into::into));
    names.extend(args.lent.key.key_env.as_ref().map(Into::into));
    names
}

/// The command's own code; 128 and the number of the signal that ended it, as a shell has it.
fn code(status: ExitStatus) -> ExitCode {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    ExitCode::from(status.code().or_else(|| signal.map(|s| 128 + s)).and_then(|c| u8::try_from(c).ok()).unwrap_or(1))
}

/// Ends the command when the run is interrupted: asked first, then made to.
struct Guard(Option<u32>);

impl Drop for Guard {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(pid) = self.0.and_then(|p| rustix::process::Pid::from_raw(p.cast_signed())) {
            use rustix::process::{Signal, kill_process, test_kill_process};
            let _ = kill_process(pid, Signal::TERM);
            let start = std::time::Instant::now();
            while test_kill_process(pid).is_ok() && start.elapsed() < GRACE {
                let reaped = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG);
                if !matches!(reaped, Ok(None)) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}
