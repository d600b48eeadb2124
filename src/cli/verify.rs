//! `hmask verify`: recompute what a manifest claims.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use hmask::gate::fingerprint;
use hmask::mask::Normalisation;
use hmask::output::{Existing, Staged};
use hmask::report::sign::PublicKey;
use hmask::report::{ColumnFacts, FileFacts, Manifest, render};
use hmask::table::csv::{CsvOptions, Ragged};
use hmask::table::rows::{self, Looking, Rows};
use hmask::{Columns, Error, Form, Key, Missing, Pseudonymiser, Result, Scope};

use super::args::VerifyArgs;
use super::evidence::signature_of;
use super::io::{Source, apart};
use super::key;
use super::print::Printer;

/// Exit code if something does not hold.
const BROKEN: u8 = 1;
/// Rows of which the pseudonyms are made again.
const SAMPLE: u64 = 10_000;

/// What was found, line by line.
#[derive(Default)]
struct Findings(Vec<(State, String)>);

#[derive(Clone, Copy, PartialEq)]
enum State {
    Holds,
    Broken,
    NotChecked,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Broken => "does not hold",
            Self::NotChecked => "not checked",
        }
    }
}

impl Findings {
    fn note(&mut self, holds: bool, what: impl Into<String>) {
        self.0.push((if holds { State::Holds } else { State::Broken }, what.into()));
    }

    fn skip(&mut self, what: impl Into<String>) {
        self.0.push((State::NotChecked, what.into()));
    }
}

/// Runs the command.
pub(super) fn run(args: &VerifyArgs, printer: &Printer) -> Result<ExitCode> {
    let failed = |path: &Path, e| Error::io(format!("cannot read {}", path.display()), e);
    let read: Vec<&Path> =
        [Some(args.manifest.as_path()), args.input.as_deref(), args.output.as_deref(), args.public_key.as_deref()]
            .into_iter()
            .flatten()
            .collect();
    apart(&args.page.report.as_deref().into_iter().collect::<Vec<_>>(), &read)?;
    let bytes = std::fs::read(&args.manifest).map_err(|e| failed(&args.manifest, e))?;
    let manifest = Manifest::parse(&bytes).map_err(|e| e.in_file(&args.manifest))?;
    let mut findings = Findings::default();
    match &args.public_key {
        Some(path) => {
            let public = PublicKey::from_pem(&std::fs::read(path).map_err(|e| failed(path, e))?)?;
            let signature = signature_of(&args.manifest);
            let signature = std::fs::read(&signature).map_err(|e| failed(&signature, e))?;
            findings.note(public.verifies(&bytes, &signature), "the signature is that of the manifest under this key");
        }
        None => findings.skip("the signature: no --public-key"),
    }
    let what = [("input", args.input.as_deref(), &manifest.input), ("output", args.output.as_deref(), &manifest.output)];
    for (name, path, facts) in what {
        file(name, path, facts, &mut findings)?;
    }
    let known = key::read(&args.key, printer);
    if let Ok(held) = &known {
        findings.note(held.key().id().to_string() == manifest.key_id, "the key is the one that was used");
    } else {
        findings.skip("the key: none is given");
    }
    match (args.input.as_deref(), args.output.as_deref(), known) {
        (Some(input), Some(output), Ok(held)) if manifest.filter.is_none() => {
            tables(args, &manifest, input, output, held.key(), &mut findings)?;
        }
        (Some(_), Some(_), Ok(_)) => findings.skip("the pseudonyms: rows were left out by a condition"),
        _ => findings.skip("counts and pseudonyms: they need --input, --output and the key"),
    }
    if let Some(loan) = &manifest.loan {
        findings.note(loan.may_be_live.is_empty(), "all that was lent is confirmed as gone");
        findings.note(
            loan.expiry_granted.is_none_or(|granted| loan.expiry_asked.is_some_and(|asked| granted <= asked)),
            "the expiry that was granted is no longer than asked",
        );
    }
    if let Some(path) = &args.page.report {
        let mut staged = Staged::create(path, if args.force { Existing::Replace } else { Existing::Refuse })?;
        let value = serde_json::to_value(&manifest).map_err(|e| Error::io("cannot write the report", e.into()))?;
        staged
            .write_all(render(&value, args.page.lang.into()).as_bytes())
            .map_err(|e| Error::io("cannot write the report", e))?;
        staged.persist()?;
        printer.info(&format!("report: {}", path.display()));
    }
    let text = if args.json {
        let all: Vec<_> = findings.0.iter().map(|(s, what)| serde_json::json!({"state": s.word(), "what": what})).collect();
        format!("{:#}\n", serde_json::json!({"task": manifest.task, "checks": all}))
    } else {
        findings.0.iter().map(|(state, what)| format!("{}: {what}\n", state.word())).collect()
    };
    std::io::stdout().write_all(text.as_bytes()).map_err(|e| Error::io("cannot write", e))?;
    let broken = findings.0.iter().any(|(state, _)| *state == State::Broken);
    Ok(if broken { ExitCode::from(BROKEN) } else { ExitCode::SUCCESS })
}

/// Length and hash of a file.
fn file(name: &str, path: Option<&Path>, facts: &FileFacts, findings: &mut Findings) -> Result<()> {
    let Some(path) = path else {
        findings.skip(format!("the {name}: no --{name}"));
        return Ok(());
    };
    if facts.sha256.is_empty() {
        findings.skip(format!("the {name}: it was a pipe"));
        return Ok(());
    }
    let failed = |e| Error::io(format!("cannot read {}", path.display()), e);
    let (bytes, sha256) = fingerprint(&mut File::open(path).map_err(failed)?).map_err(failed)?;
    findings.note(bytes == facts.bytes, format!("the {name} has {} bytes", facts.bytes));
    findings.note(sha256 == facts.sha256, format!("the SHA-256 of the {name} is {}", facts.sha256));
    Ok(())
}

/// The values of some columns in the first rows, and how many rows there are.
struct Sampled {
    rows: u64,
    /// Of each column that one name alone bears, the cells of each row of the sample.
    values: BTreeMap<String, Vec<Vec<String>>>,
    /// Values of all rows.
    counts: BTreeMap<String, u64>,
}

fn sample(path: &Path, names: &[String], args: &VerifyArgs, is_output: bool) -> Result<Sampled> {
    let source = Source::open(path, None)?;
    let mut options = CsvOptions { ragged: Ragged::Keep, ..args.reading.csv_options()? };
    if is_output && options.drop_preamble {
        options.skip_lines = 0;
    }
    let looking = Looking { options: &options, workers: 1, progress: &|_| {} };
    let mut sampled = Sampled { rows: 0, values: BTreeMap::new(), counts: BTreeMap::new() };
    let work = |rows: &Rows<'_>| {
        let cell = |c: &rows::Cell<'_>| (c.column, c.text.to_owned());
        rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    // By number first: the names of NDJSON are known at the end.
    let (mut kept, mut counts) = (Vec::new(), BTreeMap::<u32, u64>::new());
    let columns = rows::look(
        source.input,
        source.format,
        &looking,
        |_| Ok(()),
        work,
        |some, _, _| {
            for cells in some {
                cells.iter().for_each(|(column, _)| *counts.entry(*column).or_default() += 1);
                if sampled.rows < SAMPLE {
                    kept.push(cells);
                }
                sampled.rows += 1;
            }
            Ok(())
        },
    )
    .map_err(|e| e.in_file(path))?;
    for name in names {
        let list = Columns::parse(name).or_else(|_| Columns::parse(&hmask::policy::quote_path(std::slice::from_ref(name))))?;
        let found = list.resolve(&columns.candidates, Missing::Ignore)?.found;
        // A name that several columns bear tells nothing of one.
        let [only] = found[..] else { continue };
        let cells = |row: &Vec<(u32, String)>| {
            row.iter().filter(|(c, _)| *c as usize == only).map(|(_, text)| text.clone()).collect::<Vec<_>>()
        };
        sampled.values.insert(name.clone(), kept.iter().map(cells).collect());
        sampled.counts.insert(name.clone(), counts.get(&(only as u32)).copied().unwrap_or(0));
    }
    Ok(sampled)
}

/// Counts, and the pseudonyms of a sample made again.
fn tables(args: &VerifyArgs, manifest: &Manifest, input: &Path, output: &Path, key: &Key, findings: &mut Findings) -> Result<()> {
    let names: Vec<String> = manifest.columns.iter().map(|c| c.name.clone()).collect();
    let (before, after) = (sample(input, &names, args, false)?, sample(output, &names, args, true)?);
    // Blank lines of NDJSON are no rows, but lines all the same.
    let rows = before.rows == after.rows && before.rows >= manifest.rows;
    findings.note(rows, format!("both tables have {} rows", manifest.rows));
    for column in &manifest.columns {
        let name = &column.name;
        let (Some(old), Some(new)) = (before.values.get(name), after.values.get(name)) else {
            findings.skip(format!("column {name}: it is not to be found, or several bear its name"));
            continue;
        };
        let is_pseudonym = column.treatment == "pseudonym";
        let had = column.hash_empty || before.counts.get(name) == Some(&column.masked);
        let has = !is_pseudonym || after.counts.get(name) == Some(&column.masked);
        findings.note(had && has, format!("column {name} has {} values", column.masked));
        if !is_pseudonym {
            findings.skip(format!("column {name}: of {} no sample is made again", column.treatment));
            continue;
        }
        let mask = pseudonymiser(column, manifest, key)?;
        // A binary value that is no text cannot be shown as one, and is passed over.
        let one = |(old, new): (&String, &String)| {
            old.contains('\u{fffd}') || mask.try_pseudonym(old.as_bytes()).is_ok_and(|token| token == *new)
        };
        let equal = |(old, new): &(&Vec<String>, &Vec<String>)| match (&old[..], &new[..]) {
            ([], []) => !column.hash_empty,
            ([], [new]) => column.hash_empty && mask.pseudonym_of_empty() == *new,
            (old, new) => old.len() == new.len() && old.iter().zip(new).all(one),
        };
        let wrong = old.iter().zip(new).filter(|pair| !equal(pair)).count();
        findings.note(wrong == 0, format!("column {name}: the pseudonyms of {} rows, made again", old.len()));
    }
    Ok(())
}

/// What made the pseudonyms of a column.
///
/// # Errors
/// A manifest that says what cannot be.
pub(super) fn pseudonymiser(column: &ColumnFacts, manifest: &Manifest, key: &Key) -> Result<Pseudonymiser> {
    let scope = match manifest.scope.strip_prefix("upload:") {
        Some(task) => Scope::Upload(task.into()),
        None => Scope::parse(&manifest.scope, &manifest.task)?,
    };
    let form = Form::new(column.digits.unwrap_or(16), &column.prefix, column.hash_empty)?;
    Ok(Pseudonymiser::new(key, &scope, &column.domain, form).normalised(Normalisation::parse(&column.normalise)?))
}
