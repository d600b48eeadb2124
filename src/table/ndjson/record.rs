//! One record: the wanted values, found where they stand. `serde_json` decides what is JSON.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::wanted::{Here, below, elements};
use crate::error::{Error, Result};
use crate::mask::canonical;
use crate::policy::{Candidate, LIST_STEP};

/// A value that is to be masked.
pub(super) struct Found {
    /// Where it stands in the record, quotes included.
    pub(super) start: usize,
    pub(super) end: usize,
    /// The entry of the column list that wants it.
    pub(super) entry: usize,
    /// Its canonical form, within the buffer of all.
    pub(super) canonical: std::ops::Range<usize>,
}

/// What a search has found so far.
#[derive(Default)]
pub(super) struct Search {
    pub(super) found: Vec<Found>,
    /// Canonical forms, one behind the other.
    pub(super) buffer: Vec<u8>,
    /// Entries that a key of this name was there for, with a null too.
    pub(super) met: Vec<usize>,
}

impl Search {
    /// Looks through a record; `here` are the roots of what is wanted.
    ///
    /// # Errors
    /// No JSON object, or a wanted value that is a list, an object, or no text.
    pub(super) fn record(&mut self, record: &str, here: &Here<'_>) -> Result<()> {
        // Looked at as a whole first, so that what is not wanted is JSON, too.
        let raw: &RawValue = serde_json::from_str(record).map_err(|e| damaged(&e))?;
        if !raw.get().starts_with('{') {
            return Err(Error::malformed("the line is no JSON object"));
        }
        self.value(record, raw.get(), here)
    }

    fn value(&mut self, record: &str, raw: &str, here: &Here<'_>) -> Result<()> {
        match raw.as_bytes().first() {
            Some(b'n') => {}
            Some(b'{') if here.iter().any(|node| node.has_members()) => {
                for (key, value) in members(raw)? {
                    let mut ends = Vec::new();
                    let next = below(here, &key, &mut ends);
                    self.child(record, value.get(), &next, &ends)?;
                }
            }
            Some(b'[') if here.iter().any(|node| node.has_elements()) => {
                let items: Vec<&RawValue> = serde_json::from_str(raw).map_err(|e| damaged(&e))?;
                let mut ends = Vec::new();
                let next = elements(here, &mut ends);
                for item in items.iter().filter(|_| !next.is_empty()) {
                    self.child(record, item.get(), &next, &ends)?;
                }
            }
            // Something is wanted within this value, which has another shape: passing it on would pass it in clear.
            _ => return Err(Error::unsupported("a value within a wanted path has another shape than the path")),
        }
        Ok(())
    }

    fn child(&mut self, record: &str, raw: &str, next: &Here<'_>, ends: &[usize]) -> Result<()> {
        if let Some(entry) = ends.first() {
            self.met.extend(ends);
            self.end(record, raw, *entry)
        } else if next.is_empty() {
            Ok(())
        } else {
            self.value(record, raw, next)
        }
    }

    /// A wanted value.
    fn end(&mut self, record: &str, raw: &str, entry: usize) -> Result<()> {
        let start = self.buffer.len();
        match raw.as_bytes().first() {
            Some(b'n') => return Ok(()),
            Some(b't') => canonical::boolean(&mut self.buffer, true),
            Some(b'f') => canonical::boolean(&mut self.buffer, false),
            Some(b'"') => {
                let text: Text<'_> =
                    serde_json::from_str(raw).map_err(|_| Error::malformed("a string is no text: half of a surrogate pair"))?;
                self.buffer.extend_from_slice(text.0.as_bytes());
            }
            Some(b'[') => return Err(Error::unsupported("the key holds a list; its elements are named KEY[]")),
            Some(b'{') => return Err(Error::unsupported("the key holds an object; its members are named KEY.NAME")),
            _ => number(raw, &mut self.buffer),
        }
        // Both are parts of one text.
        let at = raw.as_ptr().addr() - record.as_ptr().addr();
        let canonical = start..self.buffer.len();
        self.found.push(Found { start: at, end: at + raw.len(), entry, canonical });
        Ok(())
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

/// The members of an object in their order, a key that comes twice included.
fn members(raw: &str) -> Result<Vec<(Cow<'_, str>, &RawValue)>> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(Cow<'de, str>, &'de RawValue)>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
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
    reader.deserialize_map(Members).map_err(|e| damaged(&e))
}

/// A text that is borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
