//! One record: the wanted values, found where they stand. `serde_json` decides what is JSON.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::Entry;
use super::wanted::{Here, below, elements};
use crate::error::{Error, Result};
use crate::mask::canonical;
use crate::policy::{Candidate, LIST_STEP, Rules, Unlisted, not_listed, quote_path};

/// A value that changes.
pub(super) struct Found {
    /// Where it stands in the block, quotes included.
    pub(super) start: usize,
    pub(super) end: usize,
    /// The line of the block, from 0.
    pub(super) line: u64,
    /// The entry of the rules that wants it.
    pub(super) entry: usize,
    /// Its canonical form, within the buffer of all.
    pub(super) canonical: Range<usize>,
    /// Likewise the value that its treatment goes by; empty where there is none.
    pub(super) id: Range<usize>,
    pub(super) is_number: bool,
}

/// What a search has found so far.
pub(super) struct Search<'r> {
    rules: &'r Rules,
    entries: &'r [Entry],
    unlisted: Unlisted,
    pub(super) found: Vec<Found>,
    /// Members and elements that leave, with a comma.
    pub(super) cuts: Vec<Range<usize>>,
    /// Canonical forms, one behind the other.
    pub(super) buffer: Vec<u8>,
    /// Entries that a key of this name was there for, with a null too.
    pub(super) met: Vec<usize>,
    /// Entries of the columns that stay, likewise.
    pub(super) stays: Vec<usize>,
    /// Of the record at hand: where it stands in the block, its line, and the ids that were looked up.
    start: usize,
    line: u64,
    ids: Vec<(usize, Range<usize>)>,
}

/// What a search has filled, for the next one.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) found: Vec<Found>,
    pub(super) buffer: Vec<u8>,
}

/// Where a value stands among the paths that stay: all of it does, or what these places say.
type Kept<'t> = Option<Here<'t>>;

/// Pieces of an object or list: where each ends, and whether it leaves.
#[derive(Default)]
struct Pieces(Vec<(usize, bool)>);

impl Pieces {
    /// What leaves of a text that opens at `open`, the commas between what stays apart.
    fn cuts(&self, text: &str, open: usize, cuts: &mut Vec<Range<usize>>, base: usize) {
        let first = self.0.iter().position(|(_, leaves)| !leaves);
        let mut start = open;
        for (i, (end, leaves)) in self.0.iter().enumerate() {
            if *leaves {
                cuts.push(base + start..base + end);
            } else if Some(i) == first && i > 0 {
                // The first that stays has no comma before it.
                let comma = text[start..].find(',').map_or(start, |at| start + at + 1);
                cuts.push(base + start..base + comma);
            }
            start = *end;
        }
    }
}

impl<'r> Search<'r> {
    /// `memory`, whatever it holds, is used again.
    pub(super) fn new(rules: &'r Rules, entries: &'r [Entry], memory: Memory) -> Self {
        let Memory { mut found, mut buffer } = memory;
        found.clear();
        buffer.clear();
        Self {
            rules,
            entries,
            unlisted: rules.unlisted(),
            found,
            cuts: Vec::new(),
            buffer,
            met: Vec::new(),
            stays: Vec::new(),
            start: 0,
            line: 0,
            ids: Vec::new(),
        }
    }

    /// Looks through a record, which stands at `start` in its block; `here` are the roots of what is wanted.
    ///
    /// # Errors
    /// No JSON object, or a wanted value that is a list, an object, or no text.
    pub(super) fn record(&mut self, record: &str, start: usize, line: u64, here: &Here<'_>) -> Result<()> {
        let raw = record.trim_matches([' ', '\t', '\r', '\n']);
        if !raw.starts_with('{') {
            let _: &RawValue = serde_json::from_str(record).map_err(|e| damaged(&e))?;
            return Err(Error::malformed("the line is no JSON object"));
        }
        (self.start, self.line) = (start, line);
        self.ids.clear();
        let first_cut = self.cuts.len();
        let kept = here.first().and_then(|root| root.only());
        self.value(record, raw, here, kept.as_ref(), &mut Vec::new())?;
        self.cuts[first_cut..].sort_unstable_by_key(|cut| cut.start);
        Ok(())
    }

    fn value<'t>(
        &mut self,
        record: &'t str,
        raw: &'t str,
        here: &Here<'_>,
        kept: Option<&Here<'_>>,
        path: &mut Vec<Cow<'t, str>>,
    ) -> Result<()> {
        // Both are parts of one text.
        let offset = |part: &str| part.as_ptr().addr() - record.as_ptr().addr();
        let is_root = path.is_empty();
        match raw.as_bytes().first() {
            Some(b'n') => {}
            Some(b'{') if is_root || here.iter().chain(kept.into_iter().flatten()).any(|node| node.has_members()) => {
                // The root is read to its end, so that what is not wanted is JSON, too.
                let members = members(if is_root { record } else { raw })?;
                let mut pieces = Pieces(Vec::with_capacity(members.len()));
                for (key, value) in members {
                    let (mut ends, mut stays) = (Vec::new(), Vec::new());
                    let next = below(here, &key, &mut ends);
                    let next_kept = kept.map(|kept| below(kept, &key, &mut stays));
                    path.push(key);
                    let leaves = self.child(record, value.get(), (&next, &ends), (next_kept, &stays), !here.is_empty(), path)?;
                    path.pop();
                    pieces.0.push((offset(value.get()) + value.get().len(), leaves));
                }
                pieces.cuts(record, offset(raw) + 1, &mut self.cuts, self.start);
            }
            Some(b'[') if here.iter().chain(kept.into_iter().flatten()).any(|node| node.has_elements()) => {
                let items: Vec<&RawValue> = serde_json::from_str(raw).map_err(|e| damaged(&e))?;
                let (mut ends, mut stays) = (Vec::new(), Vec::new());
                let next = elements(here, &mut ends);
                let next_kept = kept.map(|kept| elements(kept, &mut stays));
                let mut pieces = Pieces::default();
                path.push(LIST_STEP.into());
                for item in items {
                    let leaves =
                        self.child(record, item.get(), (&next, &ends), (next_kept.clone(), &stays), !here.is_empty(), path)?;
                    pieces.0.push((offset(item.get()) + item.get().len(), leaves));
                }
                path.pop();
                pieces.cuts(record, offset(raw) + 1, &mut self.cuts, self.start);
            }
            // Something is wanted within this value, which has another shape: passing it on would pass it in clear.
            _ => return Err(Error::unsupported("a value within a wanted path has another shape than the path")),
        }
        Ok(())
    }

    /// Looks at a member or element; says whether it leaves.
    fn child<'t>(
        &mut self,
        record: &'t str,
        raw: &'t str,
        (next, ends): (&Here<'_>, &[usize]),
        (kept, stays): (Kept<'_>, &[usize]),
        among_listed: bool,
        path: &mut Vec<Cow<'t, str>>,
    ) -> Result<bool> {
        // Stays as a whole where nothing leaves at all, or where a path that stays ends here.
        let kept = kept.filter(|_| stays.is_empty());
        self.met.extend(ends);
        self.stays.extend(stays);
        if kept.as_ref().is_some_and(Vec::is_empty) {
            return Ok(true);
        }
        if let Some(entry) = ends.iter().find(|e| self.entries[**e].overrides).or(ends.first()) {
            match self.entries[*entry].treatment {
                "keep" => {}
                "drop" => return Ok(true),
                _ => self.end(record, raw, *entry)?,
            }
            return Ok(false);
        }
        if !next.is_empty() || kept.is_some() {
            self.value(record, raw, next, kept.as_ref(), path)?;
            return Ok(false);
        }
        match self.unlisted {
            Unlisted::Error if among_listed => Err(not_listed(&[quote_path(path)])),
            Unlisted::Drop if among_listed => Ok(true),
            _ => Ok(false),
        }
    }

    /// A wanted value.
    fn end(&mut self, record: &str, raw: &str, entry: usize) -> Result<()> {
        let start = self.buffer.len();
        if !scalar(raw, &mut self.buffer)? {
            return Ok(());
        }
        let canonical = start..self.buffer.len();
        let at = self.start + raw.as_ptr().addr() - record.as_ptr().addr();
        let is_number = matches!(raw.as_bytes().first(), Some(b'-' | b'0'..=b'9'));
        let id = self.id(record, entry)?;
        self.found.push(Found { start: at, end: at + raw.len(), line: self.line, entry, canonical, id, is_number });
        Ok(())
    }

    /// The value that the treatment of an entry goes by, looked up once a record.
    fn id(&mut self, record: &str, entry: usize) -> Result<Range<usize>> {
        let Some(path) = &self.entries[entry].by else { return Ok(0..0) };
        let rule = self.entries[entry].rule;
        if let Some((_, id)) = self.ids.iter().find(|(r, _)| *r == rule) {
            return Ok(id.clone());
        }
        debug_assert!(self.rules.treatment(rule).by().is_some());
        let start = self.buffer.len();
        let mut raw = record.trim();
        for step in path {
            let Some((_, value)) =
                (if raw.starts_with('{') { members(raw)? } else { Vec::new() }).into_iter().rfind(|(k, _)| k == step)
            else {
                raw = "null";
                break;
            };
            raw = value.get();
        }
        scalar(raw, &mut self.buffer)?;
        let id = start..self.buffer.len();
        self.ids.push((rule, id.clone()));
        Ok(id)
    }
}

/// Appends the canonical form of a scalar; says whether there is one, which null has not.
fn scalar(raw: &str, out: &mut Vec<u8>) -> Result<bool> {
    match raw.as_bytes().first() {
        Some(b'n') => return Ok(false),
        Some(b't') => canonical::boolean(out, true),
        Some(b'f') => canonical::boolean(out, false),
        Some(b'"') => {
            let text: Text<'_> =
                serde_json::from_str(raw).map_err(|_| Error::malformed("a string is no text: half of a surrogate pair"))?;
            out.extend_from_slice(text.0.as_bytes());
        }
        Some(b'[') => return Err(Error::unsupported("the key holds a list; its elements are named KEY[]")),
        Some(b'{') => return Err(Error::unsupported("the key holds an object; its members are named KEY.NAME")),
        _ => number(raw, out),
    }
    Ok(true)
}

/// Appends a text as a JSON string.
pub(super) fn string(text: &[u8], out: &mut Vec<u8>) {
    if text.iter().all(|b| matches!(b, 0x20..=0x7e) && !matches!(b, b'"' | b'\\')) {
        out.push(b'"');
        out.extend_from_slice(text);
        out.push(b'"');
    } else {
        // Texts come from strings: a writer into memory does not fail.
        let _ = serde_json::to_writer(out, &String::from_utf8_lossy(text));
    }
}

/// The paths of the first record, for hints; none where it is not JSON.
pub(super) fn paths(text: &[u8]) -> Vec<Candidate> {
    let line = text.split(|b| *b == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
    let mut paths = Vec::new();
    if let Ok(value) = serde_json::from_slice(line) {
        collect(&value, &mut Vec::new(), &mut paths);
    }
    paths
}

fn collect(value: &serde_json::Value, path: &mut Vec<String>, out: &mut Vec<Candidate>) {
    match value {
        serde_json::Value::Object(members) => {
            for (name, value) in members {
                path.push(name.clone());
                collect(value, path, out);
                path.pop();
            }
        }
        serde_json::Value::Array(items) => {
            path.push(LIST_STEP.into());
            items.first().into_iter().for_each(|item| collect(item, path, out));
            path.pop();
        }
        _ => out.push(Candidate { path: path.clone(), number: 0 }),
    }
}

/// Integers by their spelling, however long; others as floats.
fn number(raw: &str, out: &mut Vec<u8>) {
    if raw.contains(['.', 'e', 'E']) {
        // JSON's grammar lies within that of Rust; too large a number becomes inf.
        canonical::float64(out, raw.parse().unwrap_or(f64::NAN));
    } else {
        out.extend_from_slice(if raw == "-0" { b"0" } else { raw.as_bytes() });
    }
}

fn damaged(error: &serde_json::Error) -> Error {
    // Its words name what was expected, not what was there; only the place is taken all the same.
    Error::malformed(format!("the line is no JSON, at character {}", error.column()))
}

/// The members of an object in their order, a key that comes twice included; nothing but blanks may stand around it.
fn members(raw: &str) -> Result<Vec<(Cow<'_, str>, &RawValue)>> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(Cow<'de, str>, &'de RawValue)>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::with_capacity(16);
            while let Some(Text(key)) = map.next_key()? {
                members.push((key, map.next_value()?));
            }
            Ok(members)
        }
        fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
            Err(serde::de::Error::custom("a list"))
        }
    }
    let mut reader = serde_json::Deserializer::from_str(raw);
    let members = reader.deserialize_map(Members).map_err(|e| damaged(&e))?;
    reader.end().map_err(|e| damaged(&e))?;
    Ok(members)
}

/// A text that is borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
