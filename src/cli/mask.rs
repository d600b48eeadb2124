//! `hmask mask`: tables in, the same tables out with pseudonyms.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use hmask::mask::Kernel;
use hmask::table::compress::Compression;
use hmask::table::csv::CsvOptions;
use hmask::table::{self, Job, TableReport};
use hmask::{Columns, Error, Pseudonymiser, Result, Scope, pipeline};

use super::args::{FormArgs, KeyArgs, MaskArgs, RunArgs, TableArgs};
use super::io::{Sink, Source, create, default_output, is_dash, progress, same_file, stdout_takes_data};
use super::key;
use super::print::Printer;

/// Everything that masking needs, read from arguments and environment.
pub(super) struct Plan {
    pub columns: Columns,
    pub options: CsvOptions,
    pub pseudonymiser: Pseudonymiser,
    pub scope: Scope,
    pub key_id: String,
    pub workers: usize,
}

impl Plan {
    /// Checks the arguments and reads the key, which is dropped once the hash is keyed.
    ///
    /// # Errors
    /// Arguments that do not fit, or no key.
    pub(super) fn new(table: &TableArgs, form: &FormArgs, key: &KeyArgs, run: &RunArgs, printer: &Printer) -> Result<Self> {
        let (columns, options, form_of) = (table.columns()?, table.csv_options()?, form.form()?);
        choose_kernel(run, printer)?;
        let scope = Scope::parse(&form.scope, printer.task())?;
        let held = key::read(key, printer)?;
        Ok(Self {
            columns,
            options,
            pseudonymiser: Pseudonymiser::new(held.key(), &scope, "", form_of),
            key_id: held.key().id().to_string(),
            scope,
            workers: pipeline::workers(run.threads.map(usize::from)),
        })
    }

    /// Masks one table into `output`, compressed as `packing` says.
    ///
    /// # Errors
    /// Whatever makes the table uncertain or cannot be read or written, with the file's name.
    pub(super) fn mask(
        &self,
        source: Source,
        packing: Compression,
        output: &mut dyn Write,
        run: &RunArgs,
    ) -> Result<TableReport> {
        let bar = progress(run.progress, source.size);
        let advance = |n| bar.inc(n);
        let job = Job { columns: &self.columns, pseudonymiser: &self.pseudonymiser, workers: self.workers, progress: &advance };
        let name = source.name;
        let report = table::mask(source.input, output, source.format, packing, &job, &self.options);
        bar.finish_and_clear();
        report.map_err(|e| e.in_file(&name))
    }
}

/// Takes the kernel that was asked for, and says so if a faster one gives wrong answers.
fn choose_kernel(run: &RunArgs, printer: &Printer) -> Result<()> {
    if let Some(name) = &run.kernel {
        let kernel = Kernel::ALL.into_iter().find(|k| k.name() == name);
        if !kernel.is_some_and(Kernel::force) {
            return Err(Error::usage(format!("this machine has no kernel {name}")));
        }
    } else if let Some(kernel) = Kernel::passed_over() {
        printer.warn(&format!("the kernel {} gives wrong answers on this machine and is not used", kernel.name()));
    }
    Ok(())
}

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
    let plan = Plan::new(&args.table, &args.form, &args.key, &args.run, printer)?;
    let mut finished = Vec::new();
    for (file, target) in args.files.iter().zip(targets) {
        let source = Source::open(file, args.table.format.as_deref())?;
        let mut sink = create(&target, &source, args.force)?;
        let packing = source.packing(Some(target.as_path()).filter(|t| !is_dash(t)));
        let report = plan.mask(source, packing, &mut sink, &args.run)?;
        sink.flush().map_err(|e| Error::io("cannot write", e))?;
        say(&report, file, printer);
        finished.push((sink, target, report));
    }
    // All or nothing: no file gets its name before all are whole.
    for (sink, target, report) in finished {
        if let Sink::File(staged) = sink {
            staged.persist()?;
        }
        let columns: Vec<String> = report.columns.iter().map(|c| format!("{} {}", c.name, c.masked)).collect();
        let to = if is_dash(&target) { "stdout".into() } else { target.display().to_string() };
        printer.info(&format!("{to}: {} rows, masked: {} (key {})", report.rows, columns.join(", "), plan.key_id));
    }
    Ok(ExitCode::SUCCESS)
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
