//! `hmask mask`: tables in, the same tables out with pseudonyms.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use hmask::report::{FileFacts, Manifest, VERSION, columns, unicode};
use hmask::table::TableReport;
use hmask::{Error, Result};

use super::args::MaskArgs;
use super::evidence::{Distinct, Evidence};
use super::io::{Hashing, Sink, Source, create, default_output, is_dash, same_file, stdout_takes_data};
use super::lending::facts;
use super::plan::Plan;
use super::print::Printer;

/// Runs the command.
pub(super) fn run(args: &MaskArgs, printer: &Printer) -> Result<ExitCode> {
    if let Some(folder) = args.files.iter().find(|f| f.is_dir()) {
        return super::folder::run(folder, args, printer);
    }
    if args.shard.is_some() || args.mask_partitions {
        return Err(Error::usage("--shard and --mask-partitions are for folders"));
    }
    let targets = targets(args)?;
    if let Some(twice) = (1..targets.len()).find(|i| targets[..*i].contains(&targets[*i]) && !is_dash(&targets[*i])) {
        return Err(Error::usage(format!("two inputs would be written to {}", targets[twice].display())));
    }
    for (target, input) in targets.iter().flat_map(|t| args.files.iter().map(move |f| (t, f))) {
        if !is_dash(target) && same_file(target, input) {
            return Err(Error::usage(format!("{} is the input", target.display())).hint("-o OTHER"));
        }
    }
    let first = args.files.first().map_or(Path::new("-"), PathBuf::as_path);
    let others: Vec<&Path> = args.files.iter().chain(&targets).map(PathBuf::as_path).collect();
    let (started, evidence) = (jiff::Timestamp::now(), Evidence::stage(&args.evidence, args.force, first, None, 0, &others)?);
    if evidence.is_wanted() && args.files.len() > 1 {
        return Err(Error::usage("a manifest is of one table").hint("hmask mask FILE --manifest M.json"));
    }
    let mut plan = Plan::new(&args.table, &args.form, &args.key, &args.run, first, printer)?;
    let distinct = if evidence.is_wanted() { Distinct::of(&mut plan.rules) } else { Distinct::default() };
    let mut finished = Vec::new();
    for (file, target) in args.files.iter().zip(targets) {
        let source = Source::open(file, args.table.reading.format.as_deref())?;
        let mut sink = Hashing::new(create(&target, &source, args.force)?, evidence.is_wanted());
        let packing = source.packing(Some(target.as_path()).filter(|t| !is_dash(t)));
        let report = plan.mask(source, packing, &mut sink, &args.run)?;
        sink.flush().map_err(|e| Error::io("cannot write", e))?;
        say(&report, file, printer);
        finished.push((sink, target, report));
    }
    // All or nothing: no file gets its name before all are whole.
    let mut made = None;
    for (sink, target, report) in finished {
        let (sink, facts) = sink.finish();
        if let Sink::File(staged) = sink {
            staged.persist()?;
        }
        let name = Some(target.display().to_string()).filter(|_| !is_dash(&target));
        made = facts.map(|(bytes, sha256)| (FileFacts { name, bytes, sha256 }, report.clone()));
        let to = if is_dash(&target) { "stdout".into() } else { target.display().to_string() };
        printer.info(&format!("{to}: {} rows, {} (key {})", report.rows, changes(&report, &plan), plan.key_id));
    }
    if let Some((output, report)) = made {
        let manifest = manifest(&plan, &report, facts(first)?, output, started, &distinct, printer);
        evidence.write(&manifest, printer)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The manifest of a table that was masked, and not lent.
fn manifest(
    plan: &Plan,
    report: &TableReport,
    input: FileFacts,
    output: FileFacts,
    started: jiff::Timestamp,
    distinct: &Distinct,
    printer: &Printer,
) -> Manifest {
    let policy = plan.policy.as_ref().map(|(_, policy)| policy);
    Manifest {
        version: VERSION,
        task: printer.task().into(),
        tool: concat!("hmask ", env!("CARGO_PKG_VERSION")).into(),
        started: started.to_string(),
        ended: jiff::Timestamp::now().to_string(),
        input,
        output,
        rows: report.rows,
        columns: columns(report, &plan.rules, |rule| distinct.count(rule)),
        dropped: report.dropped.clone(),
        kept: report.kept.clone(),
        unicode: unicode(),
        key_id: plan.key_id.clone(),
        scope: plan.scope.label(),
        filter: plan.filter.clone(),
        policy: plan.policy_facts(),
        recipient: policy.and_then(|p| p.recipient.clone()),
        purpose: policy.and_then(|p| p.purpose.clone()),
        gate: None,
        loan: None,
    }
}

/// What became of the columns: those with pseudonyms, those with less than they had, those that left.
pub(super) fn changes(report: &TableReport, plan: &Plan) -> String {
    let of = |is_pseudonym: bool| {
        let columns = report.columns.iter().map(|c| (c, plan.rules.treatment(c.rule)));
        let columns = columns.filter(|(_, t)| (t.name() == "pseudonym") == is_pseudonym);
        columns
            .map(|(c, t)| {
                if is_pseudonym {
                    format!("{} {}", c.name, c.masked)
                } else {
                    format!("{} {} {}", c.name, t.describe(), c.masked)
                }
            })
            .collect::<Vec<_>>()
    };
    let parts = [("masked", of(true)), ("changed", of(false)), ("dropped", report.dropped.clone())];
    let said: Vec<String> =
        parts.into_iter().filter(|(_, of)| !of.is_empty()).map(|(what, of)| format!("{what}: {}", of.join(", "))).collect();
    if said.is_empty() { "unchanged".into() } else { said.join("; ") }
}

/// Says what the user should know of a masked table.
pub(super) fn say(report: &TableReport, file: &Path, printer: &Printer) {
    let file = file.display();
    for column in &report.missing {
        printer.warn(&format!("{file}: no column {column}"));
    }
    for warning in &report.warnings {
        printer.warn(&format!("{file}: {warning}"));
    }
    if report.long_records > 0 {
        printer.warn(&format!("{file}: surplus fields were dropped from {} records", report.long_records));
    }
    if report.short_records > 0 {
        printer.warn(&format!("{file}: {} records have fewer fields than the header", report.short_records));
    }
}

/// Where each file goes.
fn targets(args: &MaskArgs) -> Result<Vec<PathBuf>> {
    if args.files.iter().filter(|f| is_dash(f)).count() > 1 {
        return Err(Error::usage("stdin can be read once only"));
    }
    match (&args.output, &args.files[..]) {
        (Some(output), [_]) if !output.is_dir() => Ok(vec![output.clone()]),
        (Some(folder), files) => files.iter().map(|f| in_folder(f, folder)).collect(),
        (None, [only]) if is_dash(only) || stdout_takes_data() => Ok(vec![PathBuf::from("-")]),
        (None, files) => Ok(files.iter().map(|f| default_output(f)).collect()),
    }
}

fn in_folder(file: &Path, folder: &Path) -> Result<PathBuf> {
    if !folder.is_dir() {
        return Err(Error::usage(format!("{} is no folder, and there are several files", folder.display()))
            .hint(format!("mkdir {}", folder.display())));
    }
    match file.file_name() {
        Some(name) if !is_dash(file) => Ok(folder.join(name)),
        _ => Err(Error::usage("stdin has no name in a folder").hint("-o FILE")),
    }
}
