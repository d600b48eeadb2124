//! A policy as a file, `hmask.toml`: columns with their treatments, and what a loan must keep to.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::de::{MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::columns::Columns;
use super::rules::{Rule, Unlisted};
use crate::error::{Error, Result};
use crate::mask::{DateForm, Form, Key, Normalisation, Pseudonymiser, Scope, Shift, Treatment};

/// The file's name, under which it is looked for.
pub const NAME: &str = "hmask.toml";
/// The version of the form that is read.
pub const VERSION: u32 = 1;

/// A policy. Columns are named as in a list of columns.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// 1.
    version: u32,
    /// What becomes of columns that are not listed.
    #[serde(default)]
    pub unlisted: Unlisted,
    /// Where a value has the same pseudonym: stable, upload, recipient:NAME or project:NAME.
    pub scope: Option<String>,
    /// To whom tables are lent, as a report names them.
    pub recipient: Option<String>,
    /// What for.
    pub purpose: Option<String>,
    /// The only hosts that may be lent to. Empty: those of the chosen endpoint.
    #[serde(default)]
    pub allow_hosts: Vec<String>,
    /// The form of pseudonyms, where a column has none of its own.
    #[serde(default)]
    pub pseudonym: Defaults,
    /// What must hold before anything is lent.
    #[serde(default)]
    pub gate: Gate,
    /// What becomes of which columns.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Column>"))]
    columns: BTreeMap<String, Spanned<Column>>,
    #[serde(skip)]
    text: String,
}

/// The form of pseudonyms.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// Hex digits, 16 to 64, even.
    pub length: Option<usize>,
    /// Put before each pseudonym.
    pub prefix: Option<String>,
    /// Whether an empty cell is hashed rather than kept.
    #[serde(default)]
    pub hash_empty: bool,
}

/// Thresholds of the gate.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// Columns that identify together.
    #[serde(default)]
    pub quasi: Vec<String>,
    /// The least number of rows that are alike in the quasi-identifiers.
    pub min_k: Option<u64>,
    /// The greatest share of rows that nothing is like, 0 to 1.
    pub max_unique_share: Option<f64>,
    /// A column whose values must differ within each group.
    pub sensitive: Option<String>,
    /// The least number of different values of it in a group.
    pub min_l: Option<u64>,
    /// Columns that may hold what the leak check finds.
    #[serde(default)]
    pub accept_leaks: Vec<String>,
}

/// What becomes of a column: a word such as "keep" or "truncate:2", or a table.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(untagged))]
enum Column {
    Short(String),
    Long(Box<Long>),
}

/// A treatment with what belongs to it.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Long {
    /// What is done.
    treatment: Word,
    /// For a pseudonym: trim, nfc, lower, email, phone:CC, digits, alnum, in their order.
    #[serde(default)]
    normalise: Vec<String>,
    /// For a pseudonym or shift: columns of one domain have the same pseudonym for the same value.
    domain: Option<String>,
    /// Hex digits of a pseudonym, or characters that truncate leaves.
    length: Option<usize>,
    /// Put before each pseudonym.
    prefix: Option<String>,
    /// What redact writes.
    with: Option<String>,
    /// What bucket rounds down to a multiple of.
    step: Option<u64>,
    /// How far a shift moves at most.
    days: Option<u32>,
    /// The column by whose values a shift moves.
    by: Option<String>,
    /// How dates are written, as strftime has it; ISO 8601 otherwise.
    format: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum Word {
    Pseudonym,
    Keep,
    Drop,
    Redact,
    Truncate,
    Year,
    Month,
    Bucket,
    Shift,
}

/// The form of a pseudonym of which a column says so much: its length and its prefix.
type Forms<'f> = dyn Fn(Option<usize>, Option<&str>) -> Result<Form> + 'f;

/// What redact writes unless told otherwise.
const REDACTED: &str = "***";

impl<'de> Deserialize<'de> for Column {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Column;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a treatment such as \"pseudonym\", or a table with one")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Column, E> {
                Ok(Column::Short(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Column, A::Error> {
                Long::deserialize(MapAccessDeserializer::new(map)).map(|long| Column::Long(Box::new(long)))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl Policy {
    /// Parses a policy.
    ///
    /// # Errors
    /// What is wrong, with line, column, and the place in the text.
    pub fn parse(text: &str) -> Result<Self> {
        let mut policy: Self = toml::from_str(text).map_err(|e| at(text, e.span().unwrap_or(0..0), e.message()))?;
        if policy.version != VERSION {
            return Err(Error::usage(format!("the policy has version {}; this hmask reads version {VERSION}", policy.version)));
        }
        text.clone_into(&mut policy.text);
        Ok(policy)
    }

    /// What the gate measures: the quasi-identifiers as a column list, and a sensitive column.
    ///
    /// # Errors
    /// A list that does not read, or thresholds without quasi-identifiers.
    pub fn quasi(&self) -> Result<Option<(Columns, Option<Columns>)>> {
        let Gate { quasi, min_k, max_unique_share, sensitive, min_l, .. } = &self.gate;
        if quasi.is_empty() {
            if min_k.is_some() || max_unique_share.is_some() || min_l.is_some() {
                return Err(Error::usage("[gate] has thresholds, but no quasi = […]"));
            }
            return Ok(None);
        }
        if min_l.is_some() && sensitive.is_none() {
            return Err(Error::usage("[gate] has min_l, but no sensitive = \"…\""));
        }
        let sensitive = sensitive.as_deref().map(Columns::parse).transpose()?;
        Ok(Some((Columns::parse(&quasi.join(","))?, sensitive)))
    }

    /// Columns that may hold what the leak check finds.
    ///
    /// # Errors
    /// A list that does not read.
    pub fn accepted(&self) -> Result<Option<Columns>> {
        let list = &self.gate.accept_leaks;
        if list.is_empty() { Ok(None) } else { Columns::parse(&list.join(",")).map(Some) }
    }

    /// Whether a column is listed.
    pub fn is_listed(&self, name: &str) -> bool {
        self.columns.keys().any(|k| k == name)
    }

    /// SHA-256 of the policy's text in hex digits.
    pub fn sha256(&self) -> String {
        crate::mask::sha256(self.text.as_bytes())
    }

    /// The policy's rules under a key. `form` makes the form of pseudonyms of what a column says of it.
    ///
    /// # Errors
    /// A treatment that lacks what it needs, with its place.
    pub fn rules(&self, key: &Key, scope: &Scope, form: &Forms<'_>) -> Result<Vec<Rule>> {
        let rule = |(name, column): (&String, &Spanned<Column>)| {
            let columns = Columns::parse(name)?;
            let treatment = match column.get_ref() {
                Column::Short(text) => Long::short(text)?.treatment(key, scope, form),
                Column::Long(long) => long.treatment(key, scope, form),
            };
            Ok(Rule { columns, treatment: treatment?, overrides: false })
        };
        let each = self.columns.iter().map(|(name, column)| {
            rule((name, column)).map_err(|e: Error| {
                let error = at(&self.text, column.span(), &e.to_string());
                e.hints().iter().fold(error, |error, hint| error.hint(hint.clone()))
            })
        });
        each.collect()
    }
}

impl Long {
    fn new(treatment: Word) -> Self {
        Self {
            treatment,
            normalise: Vec::new(),
            domain: None,
            length: None,
            prefix: None,
            with: None,
            step: None,
            days: None,
            by: None,
            format: None,
        }
    }

    /// From a word, with a number behind a colon where it needs one.
    fn short(text: &str) -> Result<Self> {
        let (word, number) = text.split_once(':').map_or((text, None), |(word, number)| (word, Some(number)));
        let reader: serde::de::value::StrDeserializer<'_, serde::de::value::Error> =
            serde::de::IntoDeserializer::into_deserializer(word);
        let known = Word::deserialize(reader);
        let mut long = Self::new(known.map_err(|_| {
            Error::usage(format!("no treatment is called {word:?}"))
                .hint("pseudonym, keep, drop, redact, truncate:N, year, month, bucket:N, { treatment = \"shift\", days = N, by = \"COLUMN\" }")
        })?);
        let Some(number) = number else { return Ok(long) };
        let wrong =
            || Error::usage(format!("{text:?}: a number is expected behind the colon of truncate and bucket, and nowhere else"));
        match long.treatment {
            Word::Truncate => long.length = Some(number.parse().map_err(|_| wrong())?),
            Word::Bucket => long.step = Some(number.parse().map_err(|_| wrong())?),
            _ => return Err(wrong()),
        }
        Ok(long)
    }

    fn treatment(&self, key: &Key, scope: &Scope, form: &Forms<'_>) -> Result<Treatment> {
        let is = |words: &[Word]| words.contains(&self.treatment);
        // A key that its treatment does not know would say something that is not done.
        let misplaced = [
            ("normalise", !self.normalise.is_empty(), is(&[Word::Pseudonym])),
            ("domain", self.domain.is_some(), is(&[Word::Pseudonym, Word::Shift])),
            ("length", self.length.is_some(), is(&[Word::Pseudonym, Word::Truncate])),
            ("prefix", self.prefix.is_some(), is(&[Word::Pseudonym])),
            ("with", self.with.is_some(), is(&[Word::Redact])),
            ("step", self.step.is_some(), is(&[Word::Bucket])),
            ("days", self.days.is_some(), is(&[Word::Shift])),
            ("by", self.by.is_some(), is(&[Word::Shift])),
            ("format", self.format.is_some(), is(&[Word::Year, Word::Month, Word::Shift])),
        ];
        if let Some((name, ..)) = misplaced.iter().find(|(_, there, fits)| *there && !fits) {
            return Err(Error::usage(format!("{name} does not belong to this treatment")));
        }
        let needs = |what: &str| Error::usage(format!("this treatment needs {what}"));
        let domain = self.domain.as_deref().unwrap_or("");
        let dates = || self.format.as_deref().map_or_else(|| Ok(DateForm::default()), DateForm::new);
        Ok(match self.treatment {
            Word::Keep => Treatment::Keep,
            Word::Drop => Treatment::Drop,
            Word::Pseudonym => {
                let mask = Pseudonymiser::new(key, scope, domain, form(self.length, self.prefix.as_deref())?);
                Treatment::Pseudonym(Box::new(mask.normalised(Normalisation::parse(&self.normalise)?)))
            }
            Word::Redact => {
                let text = self.with.as_deref().unwrap_or(REDACTED);
                if text.contains(|c: char| c.is_control() || "\"'\\,;|`=@".contains(c)) {
                    return Err(Error::usage(
                        "what redact writes has no quote, backslash, delimiter, = or @ and no control character",
                    ));
                }
                Treatment::Redact(text.to_owned(), None)
            }
            Word::Truncate => Treatment::Truncate(self.length.ok_or_else(|| needs("length"))?, None),
            Word::Year => Treatment::Year(dates()?),
            Word::Month => Treatment::Month(dates()?),
            Word::Bucket => match self.step {
                Some(step) if step > 0 => Treatment::Bucket(step),
                _ => return Err(needs("step, a number above 0")),
            },
            Word::Shift => {
                let days = self.days.ok_or_else(|| needs("days"))?;
                let by = self.by.as_deref().ok_or_else(|| needs("by, the column whose values decide"))?;
                Columns::parse(by)?;
                Treatment::Shift(Box::new(Shift::new(days, dates()?, by, key, scope, domain)?))
            }
        })
    }
}

/// An error with its place in the text: line, column, the line itself and a caret.
fn at(text: &str, span: Range<usize>, message: &str) -> Error {
    let start = text.get(..span.start).unwrap_or(text);
    let line = start.matches('\n').count() + 1;
    let column = start.rsplit('\n').next().unwrap_or("").chars().count();
    let shown = text.lines().nth(line - 1).unwrap_or("");
    let length = text.get(span).unwrap_or("").lines().next().unwrap_or("").chars().count().max(1);
    let message = message.trim().replace('\n', " ");
    Error::usage(format!(
        "line {line}, column {}: {message}\n    {shown}\n    {}{}",
        column + 1,
        " ".repeat(column),
        "^".repeat(length)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::new("0123456789abcdef".repeat(4).into_bytes()).unwrap()
    }

    fn rules(columns: &str) -> Result<Vec<Rule>> {
        let policy = Policy::parse(&format!("version = 1\n[columns]\n{columns}\n"))?;
        policy.rules(&key(), &Scope::Stable, &|length, prefix| Form::new(length.unwrap_or(16), prefix.unwrap_or(""), false))
    }

    #[test]
    fn each_treatment_in_its_short_and_long_form() {
        let rules = rules(
            "a = \"pseudonym\"\nb = \"keep\"\nc = \"drop\"\nd = \"redact\"\ne = \"truncate:2\"\nf = \"year\"\ng = \"month\"\nh = \"bucket:10\"\n\
             i = { treatment = \"shift\", days = 30, by = \"a\" }\nj = { treatment = \"truncate\", length = 3 }\n\
             k = { treatment = \"pseudonym\", normalise = [\"trim\", \"lower\"], domain = \"mail\", length = 20, prefix = \"p_\" }\n\
             \"l,'\\\"m,n\\\"'\" = \"year\"",
        );
        let rules = rules.unwrap_or_else(|e| panic!("{e}"));
        let names: Vec<String> = rules.iter().map(|r| r.treatment.describe()).collect();
        let mut want =
            ["pseudonym", "keep", "drop", "redact", "truncate:2", "year", "month", "bucket:10", "shift:30", "truncate:3"]
                .map(String::from)
                .to_vec();
        want.extend(["pseudonym".into(), "year".into()]);
        assert_eq!(names, want);
        let Treatment::Pseudonym(mask) = &rules[10].treatment else { panic!() };
        let apart = Pseudonymiser::new(&key(), &Scope::Stable, "mail", Form::new(20, "p_", false).unwrap());
        assert_eq!(mask.try_pseudonym(b" X ").unwrap(), apart.pseudonym(b"x"));
    }

    #[test]
    fn what_is_wrong_has_a_line_and_a_caret() {
        for (text, line, caret, words) in [
            ("version = 1\ncolums = 3\n", "line 2, column 1", "^^^^^^", "unknown field `colums`"),
            ("version = 1\n[columns]\na = { treatment = \"keep\", lenght = 3 }\n", "line 3", "^^^^^^", "unknown field `lenght`"),
            ("version = 1\n[columns]\na = \"kep\"\n", "line 3, column 5", "^^^^^", "no treatment is called \"kep\""),
            ("version = 1\n[columns]\na = { treatment = \"truncate\" }\n", "line 3, column 5", "^^^", "needs length"),
            ("version = 1\n[columns]\na = { treatment = \"keep\", step = 3 }\n", "line 3", "^", "step does not belong"),
            ("version = 1\n[columns]\na = \"keep:3\"\n", "line 3", "^", "behind the colon"),
            ("version = 1\n[columns]\na = \"bucket:0\"\n", "line 3", "^", "above 0"),
            ("version = 1\n[columns]\na = 3\n", "line 3", "^", "a treatment such as"),
            ("version = 1\n[columns]\na = { treatment = \"pseudonym\", normalise = [\"upper\"] }\n", "line 3", "^", "upper"),
            ("version = 1\nunlisted = \"keeep\"\n", "line 2, column 12", "^^^^^^^", "keeep"),
            ("version = 1\nversion = 1\n", "line 2", "^", "duplicate"),
            ("unlisted = \"keep\"\n", "line 1", "^", "version"),
            ("version = 2\n", "", "", "version 2"),
        ] {
            let rules = Policy::parse(text).and_then(|p| p.rules(&key(), &Scope::Stable, &|_, _| Ok(Form::default())));
            let Err(error) = rules else { panic!("{text}") };
            let said = error.to_string();
            assert!(error.is_usage() && said.contains(line) && said.contains(caret) && said.contains(words), "{text}: {said}");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "to write the schema anew")]
    fn the_schema_for_editors_is_that_of_the_code() {
        let schema = schemars::schema_for!(Policy);
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/policy.schema.json");
        if std::env::var_os("HMASK_BLESS").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), text, "HMASK_BLESS=1 cargo test schema");
    }
}
