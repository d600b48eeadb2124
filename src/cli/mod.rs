//! Arguments → plan → run → exit code. The only place that reads the environment and prints.

#![expect(clippy::disallowed_methods, reason = "the environment is read here, and nowhere else")]

mod args;
mod ask;
mod check;
mod doctor;
mod ended;
mod endpoint;
mod environ;
mod evidence;
mod folder;
mod inspect;
mod io;
mod key;
mod lend;
mod lending;
mod mask;
mod plan;
mod print;
mod process;
mod risk;
#[cfg(feature = "analyse")]
mod sandbox;
mod sweep;
mod token;
mod verify;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;

use args::{Cli, Command};
use clap::{CommandFactory, Parser};
use hmask::{Error, ErrorKind, Result};
use print::Printer;

/// Exit code after a panic: the input could not be handled, and no output exists.
const INTERNAL: u8 = 3;

/// Runs the program: never panics outwards, and leaves nothing behind.
pub(crate) fn main() -> ExitCode {
    let stores = key::store_secrets();
    let secrets = [key::KEY_VARIABLE, key::TOKEN_VARIABLE, key::AZURE_TOKEN_VARIABLE].into_iter();
    environ::take(&secrets.chain(stores.iter().map(String::as_str)).collect::<Vec<_>>());
    let cli = Cli::parse();
    let printer = Arc::new(Printer::new(&cli.log));
    process::harden(&printer);
    // What is staged or lent is given back on the way out of a panic, too.
    let panicked = |_| {
        if !process::is_lending() {
            return Ok(ExitCode::from(INTERNAL));
        }
        let what = format!("whatever is named hmask-{} may still be live", printer.task());
        Err(Error::new(ErrorKind::Live(what)).hint("hmask sweep"))
    };
    match catch_unwind(AssertUnwindSafe(|| run(cli, &printer))).unwrap_or_else(panicked) {
        Ok(code) => code,
        Err(error) => {
            printer.error(&error);
            exit_code(&error)
        }
    }
}

fn run(cli: Cli, printer: &Arc<Printer>) -> Result<ExitCode> {
    match cli.command {
        Command::Keygen => key::keygen(),
        Command::Mask(args) => mask::run(&args, printer),
        Command::Ask(args) => ask::run(args, printer),
        Command::Lend(args) => lend::run(&args, printer),
        Command::Check(args) => check::run(&args),
        Command::Inspect(args) => inspect::run(&args, printer),
        #[cfg(feature = "analyse")]
        Command::Risk(args) => risk::run(&args),
        Command::Doctor(args) => doctor::run(&args, printer),
        Command::Verify(args) => verify::run(&args, printer),
        Command::Token(args) => token::run(&args, printer),
        Command::Sweep(args) => sweep::run(&args, printer),
        #[cfg(feature = "analyse")]
        Command::Sandbox(args) => sandbox::run(&args, printer),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "hmask", &mut std::io::stdout());
            Ok(ExitCode::SUCCESS)
        }
        Command::Man => {
            let page = clap_mangen::Man::new(Cli::command());
            page.render(&mut std::io::stdout()).map_err(|e| Error::io("cannot write", e))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The table of exit codes (README.md, section "Exit codes").
fn exit_code(error: &Error) -> ExitCode {
    ExitCode::from(match error.kind() {
        ErrorKind::Gate(_) => 1,
        ErrorKind::Usage(_) | ErrorKind::NoColumn(_) | ErrorKind::Key(_) => 2,
        ErrorKind::Remote(_) => 4,
        ErrorKind::Live(_) => 5,
        ErrorKind::Interrupted => 130,
        _ => 3,
    })
}
