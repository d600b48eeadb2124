//! `hmask ask`: mask, check, upload with a one-hour expiry, ask, fetch results, delete.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::CommandFactory;
use clap::error::ErrorKind;
use hmask::output::{Existing, Staged};
use hmask::remote::asking::{Answered, Asking, Venue};
use hmask::remote::openai::{ContainerOptions, Question};
use hmask::{Error, Result};

use super::args::{AskArgs, Attach, Cli, To, Via};
use super::io::apart;
use super::lending::Lending;
use super::print::Printer;

/// What the model is told, if nothing else: where the tables are, and what pseudonyms are.
fn instructions(lending: &Lending<'_>, attach: Attach) -> String {
    let kind = |ending: &str| match ending {
        "csv" => "CSV",
        "parquet" => "Parquet",
        "arrow" => "Arrow IPC",
        _ => "JSON, an object a line",
    };
    let mut kinds: Vec<&str> = lending.masked.iter().map(|m| kind(m.cleared.ending())).collect();
    kinds.dedup();
    let (tables, kinds) =
        (if lending.masked.len() == 1 { "The table is a file" } else { "The tables are files" }, kinds.join(" or "));
    let pseudonyms =
        "Some columns hold pseudonyms (hex digits): equal values have equal pseudonyms, and nothing else can be read from them.";
    match attach {
        Attach::Message => format!("{tables} in this message ({kinds}). Answer from what is in it alone. {pseudonyms}"),
        Attach::Container => format!(
            "{tables} below /mnt/data ({kinds}): list that folder to find what there is. Answer with the python tool, from what is in \
             it alone. {pseudonyms} If a file is asked for, write it below /mnt/data and cite it."
        ),
    }
}

/// Runs the command.
pub(super) fn run(mut args: AskArgs, printer: &Arc<Printer>) -> Result<ExitCode> {
    // The last word is the question: there are as many files before it as one likes.
    let question = args.lent.files.pop().filter(|_| !args.lent.files.is_empty());
    let Some(question) = question.and_then(|q| q.into_os_string().into_string().ok()) else {
        let missing = "the question is missing, or it is no text\n\nUsage: hmask ask [OPTIONS] <FILE> … <QUESTION>";
        Cli::command().error(ErrorKind::MissingRequiredArgument, missing).exit();
    };
    let args = &args;
    if question.trim().is_empty() {
        return Err(Error::usage("the question is empty"));
    }
    if let Some(folder) = args.save_dir.as_deref().filter(|d| d.exists() && !d.is_dir()) {
        return Err(Error::usage(format!("{} is no folder", folder.display())));
    }
    if let To::Store(url) = &args.lent.loan.to {
        return Err(Error::usage(format!("nobody answers at {url}")).hint("hmask lend … -- COMMAND"));
    }
    if args.attach == Attach::Message {
        if args.via == Via::Container || args.container.is_some() || args.save_code.is_some() || args.save_dir.is_some() {
            return Err(Error::usage("with --attach message there is no container, and no code runs"));
        }
        printer.warn("the rows go to the model itself: they are in its context, and can stay in the provider's logs");
    }
    let mut lending = Lending::new(&args.lent, printer)?;
    lending.upload_first = args.via == Via::Files;
    lending.own_container = args.container.is_none();
    if args.lent.loan.dry_run {
        lending.dry_run();
        return Ok(ExitCode::SUCCESS);
    }
    let question = Question {
        text: question,
        model: args.model.clone(),
        instructions: args.instructions.clone().unwrap_or_else(|| instructions(&lending, args.attach)),
        before: Vec::new(),
        // A stream says early what is stored, and what has to be deleted.
        stream: args.stream || args.chain,
        store: args.chain,
        previous: None,
    };
    let inputs: Vec<&Path> = args.lent.files.iter().map(PathBuf::as_path).collect();
    apart(&args.save_code.as_deref().into_iter().collect::<Vec<_>>(), &inputs)?;
    let code = args.save_code.as_deref().map(|path| stage(path, args.lent.loan.force)).transpose()?;
    let options = ContainerOptions { memory: args.memory.clone(), domains: args.allow_domain.clone() };
    let venue = match &args.container {
        _ if args.attach == Attach::Message => Venue::Message,
        Some(id) => Venue::Container(id.clone(), options),
        None => Venue::Fresh(options),
    };
    let ended = lending.carry_out(Duration::from_secs(args.timeout), async |other, loan, lease, uploads| {
        let Some(api) = other.api() else { return Err(Error::usage("nobody answers there")) };
        let (save, show) = (args.save_dir.clone(), args.stream);
        Asking { api, loan, question: &question, venue: &venue, steps: &args.step, show, save }.ask(lease, uploads).await
    })?;
    let words = |answer: &Result<Answered>| match answer {
        Ok(answered) if answered.streamed => Some(String::new()),
        Ok(answered) => Some(answered.texts.join("\n\n")),
        Err(error) => error.answer().map(str::to_owned),
    };
    ended.finish(
        |answer| words(answer).map_or(Ok(()), |text| show(&text)),
        |answered| {
            if let Some(staged) = code {
                save_code(staged, &answered.code)?;
            }
            let incomplete = || Error::remote("not every file of the answer could be saved");
            if answered.complete { Ok(ExitCode::SUCCESS) } else { Err(incomplete()) }
        },
    )
}

fn stage(path: &Path, force: bool) -> Result<Staged> {
    Staged::create(path, if force { Existing::Replace } else { Existing::Refuse })
}

/// Writes the code that ran, so that somebody can look it through.
fn save_code(mut staged: Staged, code: &[Vec<String>]) -> Result<()> {
    for (question, calls) in code.iter().enumerate() {
        for (call, text) in calls.iter().enumerate() {
            let (question, call) = (question + 1, call + 1);
            let written = writeln!(staged, "# question {question}, call {call}\n{}\n", text.trim_end());
            written.map_err(|e| Error::io("cannot write the code", e))?;
        }
    }
    staged.persist()
}

/// Prints the answer; on a terminal without what could steer it.
fn show(text: &str) -> Result<()> {
    let stdout = std::io::stdout();
    let plain = plain(text);
    let end = if plain.ends_with('\n') { "" } else { "\n" };
    stdout.lock().write_all(format!("{plain}{end}").as_bytes()).map_err(|e| Error::io("cannot write", e))
}

/// Prints a piece of the answer as it comes. A reader who has gone does not stop the loan.
pub(super) fn show_piece(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(plain(text).as_bytes()).and_then(|()| stdout.flush());
}

fn plain(text: &str) -> String {
    use std::io::IsTerminal;
    let steers = |c: &char| c.is_control() && !matches!(c, '\n' | '\t');
    if std::io::stdout().is_terminal() { text.chars().filter(|c| !steers(c)).collect() } else { text.into() }
}
