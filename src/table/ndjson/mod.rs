//! NDJSON: one JSON object a line. Wanted values become strings, every other byte stays.
//!
//! A line end cannot stand within a JSON text, so blocks are cut at line ends and masked independently.

mod read;
mod record;
mod select;
mod wanted;

use std::io::{Read, Write};

pub(super) use read::look;
use record::{Found, Memory, Search};
pub(super) use select::Select;
use wanted::Node;

use super::blocks::{Block, Blocks, Spare};
use super::{ColumnReport, Job, TableReport};
use crate::error::{Error, Result};
use crate::mask::{Texts, Treatment};
use crate::pipeline;
use crate::policy::{Columns, LIST_STEP, Missing, Rule, Rules, Wanted};

/// Bytes of a block.
const BLOCK: usize = 1 << 18;
/// Bytes that a line may have.
const MAX_LINE: usize = 16 << 20;
/// Bytes of output that are held back until every wanted key has been met.
const HELD: usize = 16 << 20;
/// U+FEFF at the start of a file.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Masks NDJSON from `input` to `output`.
///
/// # Errors
/// A line that is no JSON object, a wanted key that holds a list or an object, a key that no record has; `output` may then have been
/// written in part.
pub fn mask(
    input: &mut (dyn Read + Send),
    output: &mut (dyn Write + Send),
    job: &Job<'_>,
    missing: Missing,
) -> Result<TableReport> {
    let tree = Node::new(job.rules)?;
    let entries = Entry::of(job.rules)?;
    let masker = Masker { tree: &tree, rules: job.rules, entries: &entries, spare: Spare::default(), memories: Spare::default() };
    let mut blocks = Blocks::new(input, BLOCK);
    let mut held = Vec::new();
    if blocks.look(MARK.len())?.0.starts_with(MARK) {
        held = blocks.take(MARK.len());
    }
    let mut report = TableReport { columns: entries.iter().map(Entry::report).collect(), ..TableReport::default() };
    let write = |output: &mut (dyn Write + Send), bytes: &[u8]| output.write_all(bytes).map_err(|e| Error::io("cannot write", e));
    // The first lines tell which names are near a wrong one.
    let first = record::paths(blocks.look(BLOCK)?.0);
    let not_met = |name: &str| {
        let unknown = Columns::parse(name).and_then(|columns| columns.resolve(&first, Missing::Error)).err();
        unknown.unwrap_or_else(|| Error::no_column(format!("no record has a key {name}")))
    };
    let (mut lines, mut left) = (0, Vec::new());
    // The columns that stay come behind the entries: they must be there, too.
    let stays: Vec<String> = job.rules.kept().map(Columns::names).unwrap_or_default();
    let optional = entries.iter().map(|e| e.optional).chain(stays.iter().map(|_| false));
    let mut met: Vec<bool> = optional.collect();
    let name = |entry: usize| entries.get(entry).map_or_else(|| stays[entry - entries.len()].clone(), |e| e.name.clone());
    pipeline::ordered(
        job.workers,
        || blocks.next(cut, job.progress, masker.spare.take()),
        |block| masker.mask(block),
        |mut done| {
            if !left.is_empty() || done.bytes.is_some() {
                // A line that is longer than a block.
                left.append(&mut done.bytes.take().unwrap_or_else(|| std::mem::take(&mut done.input)));
                if left.len() > MAX_LINE {
                    return Err(
                        Error::malformed(format!("a line is longer than {MAX_LINE} bytes")).at(|p| p.line = Some(lines + 1))
                    );
                }
                done = masker.mask(Block { bytes: std::mem::take(&mut left), last: done.last });
                if let Some(bytes) = done.bytes.take() {
                    left = bytes;
                    return Ok(());
                }
            }
            if let Some((line, entry, error)) = done.error {
                return Err(error.at(|p| {
                    p.line = Some(lines + line + 1);
                    p.column = entry.map(|e| entries[e].name.clone());
                }));
            }
            masker.spare.give(done.input);
            lines += done.lines;
            report.rows += done.records;
            for (entry, column) in report.columns.iter_mut().enumerate() {
                column.masked += done.masked[entry];
                column.missing += done.met[entry].saturating_sub(done.masked[entry]);
                met[entry] |= done.met[entry] > 0;
            }
            for stays in done.stays {
                met[entries.len() + stays] = true;
            }
            // Nothing is written before it is known that every name means something.
            let unmet = met.iter().position(|met| !met).filter(|_| missing == Missing::Error);
            match unmet {
                None => {
                    if !held.is_empty() {
                        write(output, &std::mem::take(&mut held))?;
                    }
                    write(output, &done.out)?;
                    masker.spare.give(done.out);
                    Ok(())
                }
                Some(entry) if held.len() + done.out.len() > HELD => Err(not_met(&name(entry)).hint("--missing ignore")),
                Some(_) => {
                    held.append(&mut done.out);
                    Ok(())
                }
            }
        },
    )?;
    for (entry, _) in met.iter().enumerate().filter(|(_, met)| !**met) {
        match missing {
            Missing::Error => return Err(not_met(&name(entry))),
            Missing::Ignore => report.missing.push(name(entry)),
        }
    }
    let named = |treatment: &str| entries.iter().filter(|e| e.treatment == treatment).map(|e| e.name.clone()).collect();
    (report.dropped, report.kept) = (named("drop"), named("keep"));
    report.columns = entries.iter().zip(report.columns).filter(|(e, _)| e.changes()).map(|(_, column)| column).collect();
    write(output, &held)?;
    Ok(report)
}

/// Behind the last line end, or nowhere.
fn cut(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|b| *b == b'\n').map_or(bytes.len(), |at| at + 1)
}

/// A path that a rule names.
struct Entry {
    name: String,
    rule: usize,
    treatment: &'static str,
    /// The path whose value its treatment needs beside its own.
    by: Option<Vec<String>>,
    overrides: bool,
    optional: bool,
}

impl Entry {
    /// The entries of all rules, in the order in which the tree numbers them.
    fn of(rules: &Rules) -> Result<Vec<Self>> {
        let mut entries = Vec::new();
        for (rule, Rule { columns, treatment, overrides }) in rules.all().iter().enumerate() {
            let by = treatment.by().map(Columns::parse).transpose()?;
            let by = match by.as_ref().map(|by| by.wanted().collect::<Vec<_>>()).as_deref() {
                None => None,
                Some([Wanted::Path(steps)]) if !steps.iter().any(|s| s == LIST_STEP) => Some(steps.to_vec()),
                Some(_) => return Err(Error::usage("a shift goes by one key of the record, not by elements of a list")),
            };
            for name in columns.names() {
                let optional = rules.is_optional(&name);
                entries.push(Self { name, rule, treatment: treatment.name(), by: by.clone(), overrides: *overrides, optional });
            }
        }
        Ok(entries)
    }

    fn changes(&self) -> bool {
        !matches!(self.treatment, "keep" | "drop")
    }

    fn report(&self) -> ColumnReport {
        ColumnReport { name: self.name.clone(), rule: self.rule, ..ColumnReport::default() }
    }
}

struct Masker<'a> {
    tree: &'a Node,
    rules: &'a Rules,
    entries: &'a [Entry],
    /// Buffers of blocks, and of what was made of them.
    spare: Spare<Vec<u8>>,
    memories: Spare<Memory>,
}

/// What became of a block.
struct Done {
    input: Vec<u8>,
    last: bool,
    /// The block itself, where it ends within a line and is not the last.
    bytes: Option<Vec<u8>>,
    out: Vec<u8>,
    lines: u64,
    records: u64,
    /// For each entry how many values changed, and how many were there.
    masked: Vec<u64>,
    met: Vec<u64>,
    /// Entries of the columns that stay which were there.
    stays: Vec<usize>,
    /// The line from 0, the entry of the column list if one is at fault, and what is wrong.
    error: Option<(u64, Option<usize>, Error)>,
}

impl Masker<'_> {
    fn mask(&self, block: Block) -> Done {
        let mut done = Done {
            input: Vec::new(),
            last: block.last,
            bytes: None,
            out: Vec::new(),
            lines: 0,
            records: 0,
            masked: vec![0; self.entries.len()],
            met: vec![0; self.entries.len()],
            stays: Vec::new(),
            error: None,
        };
        if !block.last && block.bytes.last() != Some(&b'\n') {
            done.bytes = Some(block.bytes);
            return done;
        }
        let here = vec![self.tree];
        let mut search = Search::new(self.rules, self.entries, self.memories.take());
        let mut start = 0;
        for line in block.bytes.split_inclusive(|b| *b == b'\n') {
            let text = line.strip_suffix(b"\n").map_or(line, |l| l.strip_suffix(b"\r").unwrap_or(l));
            if !text.trim_ascii().is_empty() {
                let read = simdutf8::basic::from_utf8(text).map_err(|_| Error::malformed("the line is not UTF-8"));
                if let Err(error) = read.and_then(|text| search.record(text, start, done.lines, &here)) {
                    let entry = search.met.last().copied().filter(|_| matches!(error.kind(), crate::ErrorKind::Unsupported(_)));
                    done.error = Some((done.lines, entry, error));
                    done.input = block.bytes;
                    return done;
                }
                done.records += 1;
            }
            done.lines += 1;
            start += line.len();
        }
        search.stays.sort_unstable();
        search.stays.dedup();
        done.stays = std::mem::take(&mut search.stays);
        for entry in &search.met {
            done.met[*entry] += 1;
        }
        if let Err((line, entry, error)) = self.write(&block.bytes, &mut search, &mut done) {
            done.error = Some((line, Some(entry), error));
        }
        self.memories.give(Memory { found: search.found, buffer: search.buffer });
        done.input = block.bytes;
        done
    }

    fn write(&self, bytes: &[u8], search: &mut Search<'_>, done: &mut Done) -> Result<(), (u64, usize, Error)> {
        let treatment = |found: &Found| self.rules.treatment(self.entries[found.entry].rule);
        // Empty values stay, unless they are wanted.
        let mut found = std::mem::take(&mut search.found);
        found.retain(|f| !f.canonical.is_empty() || treatment(f).takes_empty());
        let mut texts = Vec::new();
        for rule in 0..self.rules.all().len() {
            let mine: Vec<&Found> = found.iter().filter(|f| self.entries[f.entry].rule == rule).collect();
            let mut out = Texts::default();
            if !mine.is_empty() {
                let values: Vec<&[u8]> = mine.iter().map(|f| &search.buffer[f.canonical.clone()]).collect();
                let ids: Vec<&[u8]> = mine.iter().map(|f| &search.buffer[f.id.clone()]).collect();
                let applied = self.rules.treatment(rule).apply(&values, &ids, &mut out);
                applied.map_err(|unfit| (mine[unfit.index].line, mine[unfit.index].entry, Error::malformed(unfit.why)))?;
            }
            texts.push(out);
        }
        let mut next: Vec<_> = texts.iter().map(Texts::iter).collect();
        let mut cuts = search.cuts.iter().peekable();
        let mut copied = 0;
        done.out = self.spare.take();
        done.out.clear();
        done.out.reserve(bytes.len());
        for found in &found {
            while let Some(cut) = cuts.next_if(|cut| cut.start <= found.start) {
                done.out.extend_from_slice(&bytes[copied..cut.start]);
                copied = cut.end;
            }
            let Some(text) = next[self.entries[found.entry].rule].next() else { break };
            done.out.extend_from_slice(&bytes[copied..found.start]);
            copied = found.end;
            if found.is_number && matches!(treatment(found), Treatment::Bucket(_)) {
                done.out.extend_from_slice(text);
            } else {
                record::string(text, &mut done.out);
            }
            done.masked[found.entry] += 1;
        }
        for cut in cuts {
            done.out.extend_from_slice(&bytes[copied..cut.start]);
            copied = cut.end;
        }
        done.out.extend_from_slice(&bytes[copied..]);
        drop(next);
        search.found = found;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Columns, Form, Key, Pseudonymiser, Scope};

    fn run(text: &str, columns: &str) -> Result<String> {
        let key = Key::new("0123456789abcdef".repeat(4).into_bytes())?;
        let mask = Pseudonymiser::new(&key, &Scope::Stable, "", Form::default());
        let job = Job { rules: &Rules::pseudonyms(Columns::parse(columns)?, mask), workers: 2, progress: &|_| {} };
        let mut out = Vec::new();
        super::mask(&mut text.as_bytes(), &mut out, &job, Missing::Error)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn token(value: &str) -> String {
        let key = Key::new("0123456789abcdef".repeat(4).into_bytes()).unwrap();
        Pseudonymiser::new(&key, &Scope::Stable, "", Form::default()).pseudonym(value.as_bytes())
    }

    #[test]
    fn only_the_wanted_values_change() {
        let text = "\u{feff}{ \"v\" : \"007\" , \"n\":1.50, \"c\":{\"t\":[7, null,\"\", {\"t\":1}]} }\r\n\n{\"v\":null,\"v\":\"Zo\\u00e9\"}";
        let want =
            text.replace("\"007\"", &format!("\"{}\"", token("007"))).replace("\"Zo\\u00e9\"", &format!("\"{}\"", token("Zoé")));
        assert_eq!(run(text, "v").unwrap(), want);
        assert_eq!(
            run("{\"c\":{\"t\":[7,null,\"\"]}}\n", "c.t[]").unwrap(),
            format!("{{\"c\":{{\"t\":[\"{}\",null,\"\"]}}}}\n", token("7"))
        );
    }

    #[test]
    fn types_in_canonical_form() {
        let cases = [
            ("true", "true"),
            ("-0", "0"),
            ("12345678901234567890123", "12345678901234567890123"),
            ("1.50", "1.5"),
            ("-0.0", "-0.0"),
            ("1e400", "inf"),
            ("\"a\\nb\"", "a\nb"),
        ];
        for (json, canonical) in cases {
            assert_eq!(run(&format!("{{\"v\":{json}}}"), "v").unwrap(), format!("{{\"v\":\"{}\"}}", token(canonical)), "{json}");
        }
    }

    #[test]
    fn globs_overlaps_and_missing_keys() {
        let text = "{\"tel_1\":\"1\",\"tel_2\":\"2\",\"x\":\"3\"}\n";
        let want = format!("{{\"tel_1\":\"{}\",\"tel_2\":\"{}\",\"x\":\"3\"}}\n", token("1"), token("2"));
        assert_eq!(run(text, "tel_*,tel_1").unwrap(), want);
        let error = run(text, "tel_3").unwrap_err();
        assert!(error.is_usage() && error.hints().contains(&"-c tel_1".to_owned()), "{error}");
        assert!(run(text, "#1").unwrap_err().is_usage());
    }

    #[test]
    fn a_wanted_path_of_another_shape_is_no_way_out() {
        for (columns, bad) in
            [("t[]", "{\"t\":\"S\"}"), ("c.e", "{\"c\":[{\"e\":\"S\"}]}"), ("c.e", "{\"c\":\"S\"}"), ("t[]", "{\"t\":[[\"S\"]]}")]
        {
            let good = "{\"t\":[\"1\"],\"c\":{\"e\":\"1\"}}\n";
            let error = run(&format!("{good}{bad}\n"), columns).unwrap_err();
            assert_eq!(error.position().line, Some(2), "{columns} {bad}: {error}");
            assert!(run(&format!("{good}{{\"t\":null,\"c\":null}}\n{{}}\n"), columns).is_ok());
        }
    }

    #[test]
    fn nothing_is_written_when_a_key_is_not_there() {
        let key = Key::new("0123456789abcdef".repeat(4).into_bytes()).unwrap();
        let mut out = Vec::new();
        for columns in ["emial", "a.x", "email,x"] {
            let mask = Pseudonymiser::new(&key, &Scope::Stable, "", Form::default());
            let rules = Rules::pseudonyms(Columns::parse(columns).unwrap(), mask);
            let job = Job { rules: &rules, workers: 2, progress: &|_| {} };
            let text = "{\"email\":\"SECRET\",\"a\":{\"b\":1}}\n".repeat(100_000);
            assert!(super::mask(&mut text.as_bytes(), &mut out, &job, Missing::Error).unwrap_err().is_usage());
            assert!(out.is_empty(), "{columns}");
        }
    }

    #[test]
    fn what_is_no_record_is_refused_with_its_line() {
        for bad in [
            "{\"v\":1",
            "[1]",
            "1",
            "{\"v\":{}}",
            "{\"v\":[1]}",
            "{\"v\":\"\\ud800\"}",
            "{\"v\":1}{\"v\":2}",
            "{\"v\":01}",
            "{'v':1}",
        ] {
            let error = run(&format!("{{\"v\":1}}\n{bad}\n"), "v").unwrap_err();
            assert_eq!(error.position().line, Some(2), "{bad}: {error}");
        }
    }

    #[test]
    fn blocks_and_lines_longer_than_blocks() {
        let long = "x".repeat(3 << 20);
        let text: String = (0..40_000).map(|i| format!("{{\"v\":\"{i}\",\"w\":\"é{i}\"}}\n")).collect();
        let text = format!("{text}{{\"v\":\"a\",\"w\":\"{long}\"}}\n{text}");
        let out = run(&text, "v").unwrap();
        assert_eq!(out.lines().count(), 80_001);
        assert!(out.ends_with(&format!("{{\"v\":\"{}\",\"w\":\"é39999\"}}\n", token("39999"))));
        assert!(out.contains(&format!("{{\"v\":\"{}\",\"w\":\"{long}\"}}\n", token("a"))));
    }
}
