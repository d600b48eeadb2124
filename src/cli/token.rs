//! `hmask token`: the pseudonym of a value, to find a person's rows in what was sent (articles 15 to 21 of the GDPR).

use std::io::{BufRead, Write};
use std::process::ExitCode;

use hmask::mask::Treatment;
use hmask::policy::Candidate;
use hmask::report::Manifest;
use hmask::{Error, Pseudonymiser, Result, Rules, Scope};
use zeroize::Zeroizing;

use super::args::TokenArgs;
use super::print::Printer;
use super::{key, plan, verify};

/// Runs the command: a value a line from stdin, a pseudonym a line to stdout.
pub(super) fn run(args: &TokenArgs, printer: &Printer) -> Result<ExitCode> {
    let held = key::read(&args.key, printer)?;
    let mask = match (&args.manifest, &args.policy) {
        (Some(path), _) => {
            let bytes = std::fs::read(path).map_err(|e| Error::io(format!("cannot read {}", path.display()), e))?;
            let manifest = Manifest::parse(&bytes).map_err(|e| e.in_file(path))?;
            if held.key().id().to_string() != manifest.key_id {
                return Err(Error::usage(format!("the manifest was written under another key ({})", manifest.key_id)));
            }
            let column = manifest.columns.iter().find(|c| c.name == args.column && c.treatment == "pseudonym");
            let column = column.ok_or_else(|| no_pseudonym(&args.column))?;
            verify::pseudonymiser(column, &manifest, held.key())?
        }
        (None, Some(path)) => {
            let policy = plan::read(path)?;
            let scope = args.form.scope.as_deref().or(policy.scope.as_deref()).unwrap_or("stable");
            let scope = scope_of(scope, printer)?;
            let form = |length: Option<usize>, prefix: Option<&str>| args.form.form(length, prefix, Some(&policy));
            let rules = policy.rules(held.key(), &scope, &form).map_err(|e| e.in_file(path))?;
            of_column(Rules::new(rules, policy.unlisted), &args.column)?
        }
        (None, None) => {
            let scope = scope_of(args.form.scope.as_deref().unwrap_or("stable"), printer)?;
            Pseudonymiser::new(held.key(), &scope, "", args.form.form(None, None, None)?)
        }
    };
    let (mut stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut made = 0;
    loop {
        let mut line = Zeroizing::new(Vec::new());
        if stdin.read_until(b'\n', &mut line).map_err(|e| Error::io("cannot read", e))? == 0 {
            break;
        }
        let value = line.strip_suffix(b"\n").map_or(&line[..], |l| l.strip_suffix(b"\r").unwrap_or(l));
        let token = mask.try_pseudonym(value).map_err(|unfit| Error::malformed(unfit.why).at(|p| p.line = Some(made + 1)))?;
        writeln!(stdout, "{token}").map_err(|e| Error::io("cannot write", e))?;
        made += 1;
    }
    printer.info(&format!("{made} pseudonyms of column {} were made on request (key {})", args.column, held.key().id()));
    Ok(ExitCode::SUCCESS)
}

fn scope_of(text: &str, printer: &Printer) -> Result<Scope> {
    if text == "upload" {
        return Err(
            Error::usage("pseudonyms of the scope upload are of one run: its manifest tells which").hint("--manifest FILE")
        );
    }
    Scope::parse(text, printer.task())
}

fn of_column(rules: Rules, column: &str) -> Result<Pseudonymiser> {
    let rule = rules.resolve(&[Candidate { path: vec![column.to_owned()], number: 0 }], hmask::Missing::Ignore)?.rules;
    let rule = *rule.first().ok_or_else(|| no_pseudonym(column))?;
    match rules.into_treatment(rule) {
        Some(Treatment::Pseudonym(mask)) => Ok(*mask),
        _ => Err(no_pseudonym(column)),
    }
}

fn no_pseudonym(column: &str) -> Error {
    Error::usage(format!("column {column} has no pseudonyms there"))
}
