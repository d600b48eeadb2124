//! `hmask ask`: mask, check, upload with a one-hour expiry, ask, fetch results, delete.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use hmask::remote::asking::{Answered, Asking};
use hmask::remote::openai::{ContainerOptions, Question};
use hmask::{Error, Result};

use super::args::AskArgs;
use super::lending::Lending;
use super::print::Printer;

/// What the model is told, if nothing else.
const INSTRUCTIONS: &str = "A table is mounted as a CSV file below /mnt/data: list that folder to find it. \
    Answer with the python tool, from the table alone. Some columns hold pseudonyms (hex digits): equal values have equal \
    pseudonyms, and nothing else can be read from them. If a file is asked for, write it below /mnt/data and cite it.";

/// Runs the command.
pub(super) fn run(args: &AskArgs, printer: &Arc<Printer>) -> Result<ExitCode> {
    if args.question.trim().is_empty() {
        return Err(Error::usage("the question is empty"));
    }
    if let Some(folder) = args.save_dir.as_deref().filter(|d| d.exists() && !d.is_dir()) {
        return Err(Error::usage(format!("{} is no folder", folder.display())));
    }
    let lending = Lending::new(&args.lent, printer)?;
    if args.lent.loan.dry_run {
        lending.dry_run();
        return Ok(ExitCode::SUCCESS);
    }
    let question = Question {
        text: args.question.clone(),
        model: args.model.clone(),
        instructions: args.instructions.clone().unwrap_or_else(|| INSTRUCTIONS.into()),
    };
    let container = ContainerOptions { memory: args.memory.clone(), domains: args.allow_domain.clone() };
    let ended = lending.carry_out(Duration::from_secs(args.timeout), async |loan, lease, upload| {
        let save = args.save_dir.clone();
        Asking { loan, question: &question, container: &container, save }.ask(lease, upload).await
    })?;
    let words = |answer: &Result<Answered>| match answer {
        Ok(answered) => Some(answered.text.clone()),
        Err(error) => error.answer().map(str::to_owned),
    };
    ended.finish(
        |answer| words(answer).map_or(Ok(()), |text| show(&text)),
        |answered| {
            let incomplete = || Error::remote("not every file of the answer could be saved");
            if answered.complete { Ok(ExitCode::SUCCESS) } else { Err(incomplete()) }
        },
    )
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
