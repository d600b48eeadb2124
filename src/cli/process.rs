//! The process as a whole: no core dumps, no peeking by others, nothing left at a signal.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::print::Printer;

/// Whether something of ours may be live remotely, so that a signal must not end the process at once.
static LENDING: AtomicBool = AtomicBool::new(false);
/// Tells the run that a signal came, while lending.
static INTERRUPTED: OnceLock<tokio::sync::watch::Sender<u32>> = OnceLock::new();

/// How long after a signal a Ctrl-C is another one, and not the same.
const IMPATIENCE: Duration = Duration::from_secs(1);
/// Exit code after a signal.
const INTERRUPTED_CODE: i32 = 130;

/// Switches core dumps off and takes over the signals that end a process, and what a panic says.
pub(super) fn harden(printer: &Printer) {
    // The words of a panic can quote a value, those of a library above all: only its place is told.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(String::new, |l| format!(" at {}:{}", l.file(), l.line()));
        let _ = writeln!(std::io::stderr(), "hmask: internal error{place}; please report it");
    }));
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
        let undumpable = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        let no_core = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        if undumpable.is_err() && no_core.is_err() {
            printer.warn("core dumps cannot be switched off, so a crash could write the key to disk");
        }
    }
    #[cfg(not(target_os = "linux"))]
    printer.warn("core dumps are not switched off on this system, so a crash could write the key to disk");
    watch_signals(printer);
}

/// From now on a signal is passed to the run, which has to clean up; see [`interrupted`].
pub(super) fn start_lending() -> tokio::sync::watch::Receiver<u32> {
    let receiver = INTERRUPTED.get_or_init(|| tokio::sync::watch::Sender::new(0)).subscribe();
    LENDING.store(true, Ordering::SeqCst);
    receiver
}

/// Whether something may be live.
pub(super) fn is_lending() -> bool {
    LENDING.load(Ordering::SeqCst)
}

/// From now on a signal ends the process at once again.
pub(super) fn stop_lending() {
    LENDING.store(false, Ordering::SeqCst);
}

/// The name of this machine.
pub(super) fn host() -> String {
    #[cfg(unix)]
    return rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    return std::env::var("COMPUTERNAME").unwrap_or_default();
}

/// Called before and after each line of a journal. Builds for tests end there when told to, as a kill would.
pub(super) fn step() -> hmask::remote::journal::Step {
    #[cfg(all(debug_assertions, unix))]
    {
        let named = |name| std::env::var(name).ok().and_then(|n| n.parse::<u32>().ok());
        let (kill, panic) = (named("HMASK_TEST_KILL_AT"), named("HMASK_TEST_PANIC_AT"));
        if kill.is_some() || panic.is_some() {
            let count = std::sync::atomic::AtomicU32::new(0);
            return Box::new(move || {
                let step = Some(count.fetch_add(1, Ordering::SeqCst) + 1);
                if step == kill {
                    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
                }
                assert!(step != panic, "a panic for tests");
            });
        }
    }
    Box::new(|| {})
}

#[cfg(unix)]
fn watch_signals(printer: &Printer) {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) else {
        printer.warn("signals cannot be caught, so one could leave something behind");
        return;
    };
    std::thread::spawn(move || {
        let mut first = None;
        for signal in signals.forever() {
            if LENDING.load(Ordering::SeqCst)
                && let Some(sender) = INTERRUPTED.get()
            {
                // Wrappers and closing terminals send several: only somebody who presses Ctrl-C again will not wait.
                let again = first.is_some_and(|at: Instant| signal == SIGINT && at.elapsed() >= IMPATIENCE);
                if first.is_none() || again {
                    first.get_or_insert_with(Instant::now);
                    sender.send_modify(|n| *n += 1);
                }
                continue;
            }
            hmask::output::remove_staged();
            // The exit code says what happened; a line of text could land within the caller's own.
            std::process::exit(INTERRUPTED_CODE);
        }
    });
}

#[cfg(not(unix))]
fn watch_signals(_: &Printer) {}
