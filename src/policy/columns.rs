//! Columns as they are typed: a list, resolved against a header or schema.

use std::fmt;

use crate::error::{Error, Result};

/// The step of a path into a list, as in `phones[]`.
pub const LIST_STEP: &str = "[]";

/// A list of columns as typed behind `-c`: names, `#N`, globs, nested paths, comma separated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns(Vec<Selector>);

/// One entry of [`Columns`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Selector {
    /// `#3`: the third column, from 1.
    Number(usize),
    /// `tel_*`: the pieces between the stars.
    Glob(Vec<String>),
    /// `email`, `"a,b"`, `contact.email`, `phones[]`: names and [`LIST_STEP`]s.
    Path(Vec<String>),
}

/// What to do with a listed column that the table does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// An error before the first output byte.
    #[default]
    Error,
    /// A warning, for jobs over mixed files.
    Ignore,
}

/// A column of a table that a list can name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its name, or the steps to a nested leaf. Empty where the name cannot be read: then its number alone names it.
    pub path: Vec<String>,
    /// The number of its top-level column, from 1.
    pub number: usize,
}

/// An entry of a list, for formats whose columns show only while they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'c> {
    /// A column by its number, from 1.
    Number(usize),
    /// The pieces between the stars of a name.
    Glob(&'c [String]),
    /// Names and [`LIST_STEP`]s.
    Path(&'c [String]),
}

/// The outcome of [`Columns::resolve`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// Indexes into the candidates, in order, each once.
    pub found: Vec<usize>,
    /// Entries of the list that nothing matched, as typed. Empty unless missing columns are ignored.
    pub missing: Vec<String>,
}

impl Columns {
    /// Parses a list; a comma, dot, star or bracket within double quotes belongs to a name.
    ///
    /// # Errors
    /// An empty entry or a quote that is not closed.
    ///
    /// ```
    /// let columns = hmask::Columns::parse(r#"email,#3,tel_*,contact.email,phones[],"nom, complet""#)?;
    /// assert_eq!(columns.to_string(), r#"email,#3,tel_*,contact.email,phones[],"nom, complet""#);
    /// # Ok::<(), hmask::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        let mut selectors = Vec::new();
        let mut entry = Entry::default();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let tail = &rest[c.len_utf8()..];
            rest = match c {
                '"' => entry
                    .quoted(tail)
                    .ok_or_else(|| Error::usage(format!("a quote in the column list {text:?} is not closed")))?,
                ',' => {
                    selectors.push(entry.finish(text)?);
                    tail
                }
                '.' => {
                    entry.open = false;
                    tail
                }
                '[' if tail.starts_with(']') => {
                    entry.steps.push(LIST_STEP.into());
                    entry.open = false;
                    &tail[1..]
                }
                _ => {
                    entry.push(c);
                    tail
                }
            };
        }
        selectors.push(entry.finish(text)?);
        Ok(Self(selectors))
    }

    /// The entries, to be matched one by one.
    pub(super) fn selectors(&self) -> &[Selector] {
        &self.0
    }

    /// Whether an entry names the candidate, or a group that it lies in.
    pub fn covers(&self, candidate: &Candidate, all: &[Candidate]) -> bool {
        self.0.iter().any(|s| s.covers(candidate, all))
    }

    /// The entries in their order.
    pub fn wanted(&self) -> impl Iterator<Item = Wanted<'_>> {
        self.0.iter().map(|selector| match selector {
            Selector::Number(n) => Wanted::Number(*n),
            Selector::Glob(pieces) => Wanted::Glob(pieces),
            Selector::Path(steps) => Wanted::Path(steps),
        })
    }

    /// The entries as typed.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }

    /// Whether an entry names this top-level column, by its name or a glob.
    pub fn names_alone(&self, name: &str) -> bool {
        self.0.iter().any(|s| match s {
            Selector::Path(steps) => matches!(&steps[..], [only] if only == name),
            Selector::Glob(pieces) => glob(pieces, name),
            Selector::Number(_) => false,
        })
    }

    /// The list without the entries that name one of these columns exactly; none if nothing is left.
    #[must_use]
    pub fn without(mut self, names: &[String]) -> Option<Self> {
        self.0.retain(|s| !matches!(s, Selector::Path(steps) if matches!(&steps[..], [only] if names.contains(only))));
        if self.0.is_empty() { None } else { Some(self) }
    }

    /// Whether every entry names a column by its number.
    pub fn only_numbers(&self) -> bool {
        self.0.iter().all(|s| matches!(s, Selector::Number(_)))
    }

    /// Whether each entry matches at least one of the candidates.
    pub fn fit(&self, candidates: &[Candidate]) -> bool {
        self.0.iter().all(|s| candidates.iter().any(|c| s.matches(c, candidates)))
    }

    /// The candidates that the list names. A name that several columns bear means all of them.
    ///
    /// # Errors
    /// An entry that matches nothing, with the nearest names as hints, unless `missing` says to ignore it.
    pub fn resolve(&self, candidates: &[Candidate], missing: Missing) -> Result<Resolved> {
        let mut hit = vec![false; candidates.len()];
        let mut resolved = Resolved::default();
        for selector in &self.0 {
            let mut any = false;
            for (candidate, hit) in candidates.iter().zip(&mut hit) {
                if selector.matches(candidate, candidates) {
                    (any, *hit) = (true, true);
                }
            }
            match missing {
                _ if any => {}
                Missing::Ignore => resolved.missing.push(selector.to_string()),
                Missing::Error => return Err(selector.not_found(candidates)),
            }
        }
        resolved.found = hit.iter().enumerate().filter_map(|(i, hit)| hit.then_some(i)).collect();
        Ok(resolved)
    }
}

/// An entry while it is parsed.
#[derive(Default)]
struct Entry {
    steps: Vec<String>,
    /// Whether the last step goes on.
    open: bool,
    quoted: bool,
}

impl Entry {
    fn push(&mut self, c: char) {
        self.last().push(c);
    }

    fn last(&mut self) -> &mut String {
        if !self.open {
            self.steps.push(String::new());
            self.open = true;
        }
        let end = self.steps.len() - 1; // pushed above, or open because one is there
        &mut self.steps[end]
    }

    /// Takes a name up to its closing quote; returns what follows.
    fn quoted<'t>(&mut self, mut rest: &'t str) -> Option<&'t str> {
        self.quoted = true;
        loop {
            let end = rest.find('"')?;
            self.last().push_str(&rest[..end]);
            rest = &rest[end + 1..];
            match rest.strip_prefix('"') {
                Some(more) => {
                    self.push('"');
                    rest = more;
                }
                None => return Some(rest),
            }
        }
    }

    fn finish(&mut self, text: &str) -> Result<Selector> {
        let Self { steps, quoted, .. } = std::mem::take(self);
        if steps.is_empty() || steps.iter().any(std::string::String::is_empty) && !quoted {
            return Err(Error::usage(format!("an entry of the column list {text:?} is empty")));
        }
        if let ([only], false) = (&steps[..], quoted) {
            if let Some(number) = only.strip_prefix('#').and_then(|n| n.parse().ok()) {
                return Ok(Selector::Number(number));
            }
            if only.contains('*') {
                return Ok(Selector::Glob(only.split('*').map(Into::into).collect()));
            }
        }
        Ok(Selector::Path(steps))
    }
}

impl Selector {
    /// Whether it was meant for this column alone, rather than for all of a pattern.
    pub(super) fn is_exact(&self) -> bool {
        !matches!(self, Self::Glob(_))
    }

    /// Whether it names the candidate, or a group that the candidate lies in.
    pub(super) fn covers(&self, candidate: &Candidate, all: &[Candidate]) -> bool {
        let within = match self {
            Self::Number(n) => candidate.number == *n,
            Self::Glob(pieces) => candidate.path.first().is_some_and(|name| glob(pieces, name)),
            Self::Path(steps) => candidate.path.starts_with(steps),
        };
        within || self.matches(candidate, all)
    }

    pub(super) fn matches(&self, candidate: &Candidate, all: &[Candidate]) -> bool {
        match self {
            Self::Number(n) => candidate.number == *n && candidate.path.len() <= 1,
            Self::Glob(pieces) => candidate.path.len() == 1 && glob(pieces, &candidate.path[0]),
            // A path as it stands first, so that `a.b` is the leaf b of a where there is one, else a column named so.
            Self::Path(steps) => {
                candidate.path == *steps
                    || steps.len() > 1
                        && candidate.path.len() == 1
                        && candidate.path[0] == join(steps)
                        && !all.iter().any(|c| c.path == *steps)
            }
        }
    }

    pub(super) fn not_found(&self, candidates: &[Candidate]) -> Error {
        let width = candidates.iter().map(|c| c.number).max().unwrap_or(0);
        match self {
            Self::Number(n) if (1..=width).contains(n) => {
                let Some(group) = candidates.iter().find(|c| c.number == *n) else {
                    return Error::usage(format!("no column #{n}"));
                };
                Error::usage(format!("column #{n} is a group, not a leaf")).hint(format!("-c {}", quote_path(&group.path)))
            }
            Self::Number(n) => Error::no_column(format!("no column #{n}: there are {width} columns")),
            Self::Glob(_) => Error::no_column(format!("no column matches {self}")),
            Self::Path(steps) => {
                if let Some(leaf) = candidates.iter().find(|c| c.path.len() > steps.len() && c.path.starts_with(steps)) {
                    return Error::usage(format!("column {self} is a group, not a leaf"))
                        .hint(format!("-c {}", quote_path(&leaf.path)));
                }
                let error = Error::no_column(format!("no column {self}"));
                nearest(&join(steps), candidates).into_iter().fold(error, |e, name| e.hint(format!("-c {name}")))
            }
        }
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, selector) in self.0.iter().enumerate() {
            write!(f, "{}{selector}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(n) => write!(f, "#{n}"),
            Self::Glob(pieces) => f.write_str(&pieces.join("*")),
            Self::Path(steps) => f.write_str(&quote_path(steps)),
        }
    }
}

/// A path in the syntax of a column list.
pub fn quote_path(steps: &[impl AsRef<str>]) -> String {
    let mut out = String::new();
    for step in steps.iter().map(AsRef::as_ref) {
        if step == LIST_STEP {
            out += step;
            continue;
        }
        if !out.is_empty() {
            out.push('.');
        }
        if step.is_empty() || step.starts_with('#') || step.contains(['"', ',', '.', '*', '[']) {
            out += &format!("\"{}\"", step.replace('"', "\"\""));
        } else {
            out += step;
        }
    }
    out
}

fn join(steps: &[String]) -> String {
    let mut out = String::new();
    for step in steps {
        if step != LIST_STEP && !out.is_empty() {
            out.push('.');
        }
        out += step;
    }
    out
}

/// Whether the pieces between stars occur in order, the first at the start and the last at the end.
pub(crate) fn glob(pieces: &[String], name: &str) -> bool {
    let [first, middle @ .., last] = pieces else { return false };
    let Some(mut rest) = name.strip_prefix(first.as_str()) else { return false };
    for piece in middle {
        let Some(at) = rest.find(piece.as_str()) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last.as_str())
}

/// Up to three names that are likely meant, the nearest first.
fn nearest(wanted: &str, candidates: &[Candidate]) -> Vec<String> {
    const NEAR: f64 = 0.6;
    let wanted = wanted.to_lowercase();
    let mut scored: Vec<(f64, String)> = candidates
        .iter()
        .filter(|c| !c.path.is_empty())
        .map(|c| (strsim::normalized_damerau_levenshtein(&wanted, &join(&c.path).to_lowercase()), quote_path(&c.path)))
        .filter(|(score, _)| *score >= NEAR)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(paths: &[&[&str]]) -> Vec<Candidate> {
        let mut out: Vec<Candidate> = Vec::new();
        for path in paths {
            let path: Vec<String> = path.iter().map(|s| (*s).to_owned()).collect();
            let same = out.last().is_some_and(|c| c.path[0] == path[0] && path.len() > 1);
            let number = out.last().map_or(0, |c| c.number) + usize::from(!same);
            out.push(Candidate { path, number });
        }
        out
    }

    fn found(list: &str, candidates: &[Candidate]) -> Vec<usize> {
        Columns::parse(list).unwrap().resolve(candidates, Missing::Error).unwrap().found
    }

    #[test]
    fn names_numbers_globs_and_paths() {
        let t = table(&[&["a"], &["aa"], &["s", "a"], &["s", "b"], &["a.b"], &["l", "[]"], &["a"], &["n, c"]]);
        assert_eq!(found("a", &t), [0, 6]);
        assert_eq!(found("a.b", &t), [4]);
        assert_eq!(found("\"a.b\"", &t), [4]);
        assert_eq!(found("s.a,aa", &t), [1, 2]);
        assert_eq!(found("l[]", &t), [5]);
        assert_eq!(found("a*", &t), [0, 1, 4, 6]);
        assert_eq!(found("#2,#2", &t), [1]);
        assert_eq!(found("\"n, c\"", &t), [7]);
        assert_eq!(found("*", &table(&[&["x"], &["y"]])), [0, 1]);
    }

    #[test]
    fn a_name_that_matches_nothing_is_an_error_with_the_nearest_names() {
        let t = table(&[&["email"], &["e_mail"], &["ville"], &["s", "a"]]);
        let error = Columns::parse("emial").unwrap().resolve(&t, Missing::Error).unwrap_err();
        assert!(error.is_usage());
        assert_eq!(error.hints(), ["-c email", "-c e_mail"]);
        for (list, text) in [("s", "group"), ("#4", "group"), ("#5", "4 columns"), ("z*", "matches")] {
            let error = Columns::parse(list).unwrap().resolve(&t, Missing::Error).unwrap_err().to_string();
            assert!(error.contains(text), "{list}: {error}");
        }
        let resolved = Columns::parse("emial,ville").unwrap().resolve(&t, Missing::Ignore).unwrap();
        assert_eq!((resolved.found, resolved.missing), (vec![2], vec!["emial".into()]));
    }

    #[test]
    fn lists_that_cannot_be_meant_are_refused() {
        for bad in ["", "a,", ",a", "a,,b", "\"a"] {
            assert!(Columns::parse(bad).unwrap_err().is_usage(), "{bad:?}");
        }
    }

    #[test]
    fn parse_and_print_are_inverse() {
        for list in ["a", "a.b[].c", "\"a.b\"", "\"#1\",#1", "x*y", "\"say \"\"hi\"\"\"", "tél,a b", "m[][]"] {
            assert_eq!(Columns::parse(list).unwrap().to_string(), list);
        }
    }
}
