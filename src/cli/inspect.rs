//! `hmask inspect`: which columns identify persons, without showing a value.

use std::io::Write;
use std::process::ExitCode;

use hmask::gate::inspect::{Counts, Inspection, Profile, has_identifiers, policy};
use hmask::output::{Existing, Staged};
use hmask::table::rows::{self, Columns, Looking, Rows};
use hmask::{Error, Result, pipeline};
use serde_json::json;

use super::args::{InspectArgs, ReadingArgs, RunArgs};
use super::io::{Source, apart, is_dash, progress};
use super::print::Printer;

/// Runs the command.
pub(super) fn run(args: &InspectArgs, printer: &Printer) -> Result<ExitCode> {
    let target = args.write_policy.as_deref();
    apart(&target.into_iter().collect::<Vec<_>>(), &[&args.file])?;
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let staged = target.filter(|t| !is_dash(t)).map(|t| Staged::create(t, existing)).transpose()?;
    let source = Source::open(&args.file, args.reading.format.as_deref())?;
    let inspection = Inspection::default();
    let mut counts = Counts::default();
    let columns = look(
        source,
        &args.reading,
        &args.run,
        |_| Ok(()),
        |rows| inspection.rows(rows),
        |some, _, _| {
            counts.add(some);
            Ok(())
        },
    )?;
    if has_identifiers(&columns) {
        printer.warn("the header holds identifiers: it is a row of data, and columns are shown by number");
    }
    let rows = counts.rows();
    let profiles = counts.profiles(&columns, u32::from(jiff::Zoned::now().year().unsigned_abs()));
    let source = if is_dash(&args.file) { "stdin".into() } else { args.file.display().to_string() };
    if let Some(mut staged) = staged {
        let written = staged.write_all(policy(&source, rows, &profiles).as_bytes());
        written.map_err(|e| Error::io("cannot write the policy", e))?;
        staged.persist()?;
        printer.info(&format!("policy: {}", target.unwrap_or(&args.file).display()));
    }
    let text = if target.is_some_and(is_dash) {
        policy(&source, rows, &profiles)
    } else if args.json {
        format!("{:#}\n", json!({ "rows": rows, "columns": profiles }))
    } else {
        table(rows, &profiles)
    };
    std::io::stdout().write_all(text.as_bytes()).map_err(|e| Error::io("cannot write", e))?;
    Ok(ExitCode::SUCCESS)
}

/// Looks through a table with a progress bar; see [`rows::look`].
///
/// # Errors
/// Its own, with the file's name.
pub(super) fn look<R: Send>(
    source: Source,
    reading: &ReadingArgs,
    run: &RunArgs,
    columns: impl FnOnce(&Columns) -> Result<()>,
    work: impl Fn(&Rows<'_>) -> R + Sync,
    each: impl FnMut(R, u64, u64) -> Result<()> + Send,
) -> Result<Columns> {
    let options = reading.csv_options()?;
    let bar = progress(run.progress, source.size);
    let advance = |n| bar.inc(n);
    let workers = pipeline::workers(run.threads.map(usize::from));
    let looking = Looking { options: &options, workers, progress: &advance };
    let name = source.name;
    let columns = rows::look(source.input, source.format, &looking, columns, work, each);
    bar.finish_and_clear();
    columns.map_err(|e| e.in_file(&name))
}

/// What was found, for people.
fn table(rows: u64, profiles: &[Profile]) -> String {
    let clean = |text: &str| text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect::<String>();
    let head = ["column", "type", "missing", "distinct", "top", "class", "sure", "shapes"].map(String::from);
    let line = |p: &Profile| {
        [
            clean(&p.name),
            clean(&p.kind),
            format!("{:.1} %", 100.0 * p.missing as f64 / rows.max(1) as f64),
            p.distinct.to_string(),
            format!("{:.1} %", 100.0 * p.most_frequent),
            p.verdict.class.name().to_owned(),
            format!("{:.0} %", 100.0 * p.verdict.confidence),
            clean(&p.shapes.join("  ")),
        ]
    };
    let lines: Vec<[String; 8]> = std::iter::once(head).chain(profiles.iter().map(line)).collect();
    let width = |i: usize| lines.iter().map(|l| l[i].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..7).map(width).collect();
    let mut out = format!("{rows} rows, {} columns\n", profiles.len());
    for (number, line) in lines.iter().enumerate() {
        for (i, cell) in line.iter().enumerate() {
            let pad = widths.get(i).map_or(0, |w| w - cell.chars().count());
            // Numbers to the right, texts to the left.
            out += &if matches!(i, 2..=4 | 6) {
                format!("{}{cell}  ", " ".repeat(pad))
            } else {
                format!("{cell}{}  ", " ".repeat(pad))
            };
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
        if let Some(profile) = number.checked_sub(1).and_then(|i| profiles.get(i)) {
            profile.verdict.reasons.iter().for_each(|reason| out += &format!("    {}\n", clean(reason)));
        }
    }
    out
}
