//! `hmask check`: does an original of a masked column still occur anywhere in a file?

use std::io::{BufRead, BufReader, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;

use hmask::gate::leaks::{Finding, Search, Tallies};
use hmask::gate::originals::Originals;
use hmask::table::compress::{self, Compression};
use hmask::table::csv::{CsvOptions, Ragged};
use hmask::table::rows::{self, Looking, Rows};
use hmask::table::{self, Format, Input, Job, TextEncoding};
use hmask::{Error, Form, Key, Pseudonymiser, Result, Rules, Scope, pipeline};

use super::args::CheckArgs;
use super::io::{Source, progress};

/// Characters on both sides of a line break among which a split value is looked for.
const SPLIT: usize = 200;
/// Exit code if something was found.
const FOUND: u8 = 1;

/// Runs the command.
pub(super) fn run(args: &CheckArgs) -> Result<ExitCode> {
    let originals = Arc::new(Originals::default());
    read_originals(args, &originals)?;
    let findings = look(args, &originals).map_err(|e| e.in_file(&args.file))?;
    let mut stdout = std::io::stdout().lock();
    let facts = originals.facts();
    let line = format!(
        "{} original values looked for; not looked for: {} too short, {} that stand for none",
        facts.looked_for, facts.too_short, facts.placeholders
    );
    let lines = findings.iter().map(ToString::to_string).chain([line]);
    lines.into_iter().try_for_each(|l| writeln!(stdout, "{l}")).map_err(|e| Error::io("cannot write", e))?;
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
}

/// Masks the source into nothing, under a key that nobody knows: what matters is which values it sees.
fn read_originals(args: &CheckArgs, originals: &Arc<Originals>) -> Result<()> {
    let columns = args.table.columns()?.ok_or_else(|| Error::usage("no columns are named").hint("-c COLS"))?;
    let options = args.table.csv_options()?;
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|e| Error::io("the system gives no random bytes", std::io::Error::other(e)))?;
    let witness = originals.clone();
    let pseudonymiser = Pseudonymiser::new(&Key::new(random.to_vec())?, &Scope::Stable, "", Form::default())
        .witnessed(Arc::new(move |values| witness.see(values)));
    let source = Source::open(&args.from, args.table.reading.format.as_deref())?;
    let bar = progress(args.run.progress, source.size);
    let advance = |n| bar.inc(n);
    let workers = pipeline::workers(args.run.threads.map(usize::from));
    let rules = Rules::pseudonyms(columns, pseudonymiser);
    let job = Job { rules: &rules, workers, progress: &advance };
    let done = table::mask(source.input, &mut std::io::sink(), source.format, Compression::None, &job, &options);
    bar.finish_and_clear();
    done.map(drop).map_err(|e| e.in_file(&args.from))
}

fn look(args: &CheckArgs, originals: &Originals) -> Result<Vec<Finding>> {
    let search = Search::new(originals, Vec::new());
    let search = if args.identifiers { search } else { search.originals_only() };
    let source = Source::open(&args.file, None)?;
    // A .txt is prose more often than a table.
    let is_prose = args.file.extension().is_some_and(|e| e.eq_ignore_ascii_case("txt"));
    let is_table = !is_prose && Format::from_name(&args.file).is_some() || matches!(source.format, Format::Parquet | Format::Ipc);
    if !is_table {
        return match source.input {
            Input::File(file) => lines(compress::reader(Box::new(file), compress::MAX_RATIO)?, &search),
            Input::Stream(stream) => lines(compress::reader(stream, compress::MAX_RATIO)?, &search),
        };
    }
    let options = CsvOptions { ragged: Ragged::Keep, ..args.table.csv_options()? };
    let bar = progress(args.run.progress, source.size);
    let advance = |n| bar.inc(n);
    let looking =
        Looking { options: &options, workers: pipeline::workers(args.run.threads.map(usize::from)), progress: &advance };
    let mut tallies = Tallies::default();
    let work = |rows: &Rows<'_>| search.rows(rows);
    let columns = rows::look(
        source.input,
        source.format,
        &looking,
        |_| Ok(()),
        work,
        |found, first, _| {
            tallies.add(found, first);
            Ok(())
        },
    );
    bar.finish_and_clear();
    let columns = columns?;
    Ok(search.finish(tallies, &columns.names(), &columns.metadata))
}

/// Any text: a record is a line, in UTF-8, or else in Windows-1252.
fn lines(input: impl Read, search: &Search<'_>) -> Result<Vec<Finding>> {
    let old = TextEncoding::from_label("windows-1252")?;
    let mut tallies = Tallies::default();
    let mut reader = BufReader::new(input);
    let mut line = Vec::new();
    let mut before = String::new();
    for number in 1.. {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(|e| Error::io("cannot read", e))? == 0 {
            break;
        }
        if line.contains(&0) {
            return Err(no_text().at(|p| p.line = Some(number)));
        }
        // Five bytes that Windows-1252 does not have are lost at the most.
        let text = TextEncoding::UTF_8.decode(&line).or_else(|| old.decode(&line));
        let text = String::from_utf8_lossy(text.as_deref().unwrap_or(&line));
        tallies.add(search.rows(&Rows::one(&text)), number);
        // What a line break splits: the end of one line and the start of the next.
        let joined = format!("{before} {}", text.chars().take(SPLIT).collect::<String>());
        if search.finds_original(&joined) && !search.finds_original(&before) && !search.finds_original(&text) {
            tallies.add(search.rows(&Rows::one(&joined)), number);
        }
        let length = text.chars().count();
        before = text.trim_end().chars().skip(length.saturating_sub(SPLIT)).collect();
    }
    Ok(search.finish(tallies, &["text".into()], &[]))
}

fn no_text() -> Error {
    Error::unsupported("a NUL: this is no text that can be looked through")
}
