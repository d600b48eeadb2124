//! `hmask check`: does an original of a masked column still occur anywhere in a file?

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use hmask::gate::leaks::{Finding, Scan};
use hmask::gate::originals::Originals;
use hmask::table::compress::{self, Compression};
use hmask::table::{self, Format, Input, Job, TextEncoding, TextLayout, csv, export};
use hmask::{Error, Form, Key, Pseudonymiser, Result, Rules, Scope, pipeline};

use super::args::CheckArgs;
use super::io::{Source, progress};

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
    let source = Source::open(&args.from, args.table.format.as_deref())?;
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
    let new = |names: Vec<String>| {
        let scan = Scan::new(originals, names.into_iter().map(|n| (n, false)));
        if args.identifiers { scan } else { scan.originals_only() }
    };
    let source = Source::open(&args.file, None)?;
    let is_table = Format::from_name(&args.file).is_some();
    match (source.format, source.input) {
        (Format::Parquet, Input::File(file)) => {
            let mut csv = tempfile::tempfile().map_err(|e| Error::io("cannot make a temporary file", e))?;
            export::parquet_to_csv(file, &mut csv)?;
            csv.rewind().map_err(|e| Error::io("cannot read", e))?;
            table(csv, TextLayout::default(), new)
        }
        (Format::Csv, Input::File(file)) if is_table => {
            let layout = layout(&file, &args.file)?;
            table(compress::reader(Box::new(file), compress::MAX_RATIO)?, layout, new)
        }
        (Format::Ipc | Format::Parquet, _) => Err(Error::unsupported("an Arrow file cannot be looked through yet")),
        (_, Input::File(file)) => lines(compress::reader(Box::new(file), compress::MAX_RATIO)?, new),
        (_, Input::Stream(stream)) => lines(compress::reader(stream, compress::MAX_RATIO)?, new),
    }
}

fn table<'o>(input: impl Read, layout: TextLayout, new: impl Fn(Vec<String>) -> Scan<'o>) -> Result<Vec<Finding>> {
    let mut scan = None;
    csv::records(input, layout, |number, record| {
        if record.as_slice().contains('\0') {
            return Err(no_text().at(|p| p.record = Some(number)));
        }
        match &mut scan {
            None => scan = Some(new(record.iter().map(str::to_owned).collect())),
            Some(scan) => record.iter().enumerate().for_each(|(column, cell)| scan.cell(column, number, cell)),
        }
        Ok(())
    })?;
    Ok(scan.map(Scan::finish).unwrap_or_default())
}

/// Any text: a record is a line, in UTF-8, or else in Windows-1252.
fn lines<'o>(input: impl Read, new: impl Fn(Vec<String>) -> Scan<'o>) -> Result<Vec<Finding>> {
    let old = TextEncoding::from_label("windows-1252")?;
    let mut scan = new(vec!["text".into()]);
    let mut reader = BufReader::new(input);
    let mut line = Vec::new();
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
        scan.cell(0, number, &String::from_utf8_lossy(text.as_deref().unwrap_or(&line)));
    }
    Ok(scan.finish())
}

fn no_text() -> Error {
    Error::unsupported("a NUL: this is no text that can be looked through")
}

/// The delimiter that the first line has most of, and the encoding of a byte order mark.
fn layout(file: &File, name: &Path) -> Result<TextLayout> {
    let failed = |e| Error::io(format!("cannot read {}", name.display()), e);
    let mut start = Vec::new();
    let copy = file.try_clone().map_err(failed)?;
    compress::reader(Box::new(copy), compress::MAX_RATIO)?.take(1 << 16).read_to_end(&mut start).map_err(failed)?;
    (&*file).rewind().map_err(failed)?;
    let encoding = TextEncoding::from_mark(&start).map_or(TextEncoding::UTF_8, |(e, _)| e);
    let first: Vec<u8> = start.into_iter().filter(|b| *b != 0).take_while(|b| *b != b'\n').collect();
    let many = |d: &u8| first.iter().filter(|b| *b == d).count();
    let delimiter = [b',', b';', b'\t', b'|'].into_iter().max_by_key(many).filter(|d| many(d) > 0).unwrap_or(b',');
    Ok(TextLayout { encoding, delimiter })
}
