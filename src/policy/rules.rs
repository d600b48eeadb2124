//! Treatments for the columns of a table, resolved against its header or schema.

use super::columns::{Candidate, Columns, Missing, Selector, quote_path};
use crate::error::{Error, Result};
use crate::mask::{Pseudonymiser, Treatment};

/// What becomes of all columns of a table.
pub struct Rules {
    all: Vec<Rule>,
    unlisted: Unlisted,
    only: Option<Columns>,
    /// Names of columns that need not be there.
    optional: Vec<String>,
}

/// What becomes of some columns.
pub struct Rule {
    /// Which.
    pub columns: Columns,
    /// What.
    pub treatment: Treatment,
    /// Whether it stands above all rules that do not.
    pub overrides: bool,
}

/// What becomes of a column that no rule names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Unlisted {
    /// The table is refused.
    #[default]
    Error,
    /// It stays as it is.
    Keep,
    /// It leaves the table.
    Drop,
}

/// The outcome of [`Rules::resolve`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assigned {
    /// Indexes into the candidates whose values change, in order, each once.
    pub found: Vec<usize>,
    /// For each of these its rule.
    pub rules: Vec<usize>,
    /// For each of these the candidate whose values its treatment needs beside its own.
    pub by: Vec<Option<usize>>,
    /// Candidates that leave the table, in order.
    pub dropped: Vec<usize>,
    /// Entries that nothing matched, as typed. Empty unless missing columns are ignored.
    pub missing: Vec<String>,
}

impl Rules {
    /// Pseudonyms for these columns; all others stay.
    pub fn pseudonyms(columns: Columns, mask: Pseudonymiser) -> Self {
        let rule = Rule { columns, treatment: Treatment::Pseudonym(Box::new(mask)), overrides: false };
        Self::new(vec![rule], Unlisted::Keep)
    }

    /// Rules, of which one that names a column outright stands above a pattern.
    pub fn new(rules: Vec<Rule>, unlisted: Unlisted) -> Self {
        Self { all: rules, unlisted, only: None, optional: Vec::new() }
    }

    /// The same, for tables that need not have columns of these names.
    #[must_use]
    pub fn optional(mut self, names: &[String]) -> Self {
        self.optional = names.to_vec();
        self
    }

    /// Whether an entry names a column that need not be there.
    pub fn is_optional(&self, entry: &str) -> bool {
        self.optional.iter().any(|name| quote_path(std::slice::from_ref(name)) == entry)
    }

    /// The rule that names this top-level column, by its name or a pattern.
    pub fn naming(&self, name: &str) -> Option<usize> {
        self.rule(&Candidate { path: vec![name.to_owned()], number: 0 }, &[]).ok().flatten()
    }

    /// The same, without all columns but these.
    #[must_use]
    pub fn only(mut self, columns: Option<Columns>) -> Self {
        self.only = columns;
        self
    }

    /// Takes the restriction to some columns away, or puts it back.
    pub fn swap_only(&mut self, only: Option<Columns>) -> Option<Columns> {
        std::mem::replace(&mut self.only, only)
    }

    /// What becomes of a column that no rule names, and that stays.
    pub fn unlisted(&self) -> Unlisted {
        if self.only.is_some() { Unlisted::Keep } else { self.unlisted }
    }

    /// The columns that stay, if not all that are not dropped do.
    pub fn kept(&self) -> Option<&Columns> {
        self.only.as_ref()
    }

    /// The rules in their order.
    pub fn all(&self) -> &[Rule] {
        &self.all
    }

    /// The rules, to be changed.
    pub fn all_mut(&mut self) -> &mut [Rule] {
        &mut self.all
    }

    /// Takes the treatment of a rule out.
    pub fn into_treatment(self, rule: usize) -> Option<Treatment> {
        self.all.into_iter().nth(rule).map(|r| r.treatment)
    }

    /// The treatment of a rule.
    pub fn treatment(&self, rule: usize) -> &Treatment {
        &self.all[rule].treatment
    }

    /// Whether every entry names a column by its number, and there is one.
    pub fn only_numbers(&self) -> bool {
        self.lists().all(Columns::only_numbers)
    }

    /// Whether nothing is named at all.
    pub fn is_empty(&self) -> bool {
        self.lists().next().is_none()
    }

    /// Whether each entry matches at least one of the candidates.
    pub fn fit(&self, candidates: &[Candidate]) -> bool {
        self.selectors().all(|(_, s)| self.is_optional(&s.to_string()) || candidates.iter().any(|c| s.covers(c, candidates)))
            && self.only.iter().all(|only| only.fit(candidates))
    }

    fn lists(&self) -> impl Iterator<Item = &Columns> {
        self.all.iter().map(|r| &r.columns).chain(&self.only)
    }

    fn selectors(&self) -> impl Iterator<Item = (usize, &Selector)> {
        self.all.iter().enumerate().flat_map(|(i, rule)| rule.columns.selectors().iter().map(move |s| (i, s)))
    }

    /// What becomes of each candidate.
    ///
    /// # Errors
    /// An entry that matches nothing, unless `missing` says to ignore it; a column that two rules want, or none where each must be named.
    pub fn resolve(&self, candidates: &[Candidate], missing: Missing) -> Result<Assigned> {
        let mut assigned = Assigned::default();
        for (rule, selector) in self.selectors() {
            let fits = |c: &Candidate| match self.all[rule].treatment {
                Treatment::Keep | Treatment::Drop => selector.covers(c, candidates),
                _ => selector.matches(c, candidates),
            };
            if !candidates.iter().any(fits) && !self.is_optional(&selector.to_string()) {
                match missing {
                    Missing::Ignore => assigned.missing.push(selector.to_string()),
                    Missing::Error => return Err(selector.not_found(candidates)),
                }
            }
        }
        if let Some(only) = &self.only {
            for selector in only.selectors().iter().filter(|s| !candidates.iter().any(|c| s.covers(c, candidates))) {
                match missing {
                    Missing::Ignore => assigned.missing.push(selector.to_string()),
                    Missing::Error => return Err(selector.not_found(candidates)),
                }
            }
        }
        let mut unlisted = Vec::new();
        for (index, candidate) in candidates.iter().enumerate() {
            let kept = self.only.as_ref().is_none_or(|only| only.covers(candidate, candidates));
            match self.rule(candidate, candidates)? {
                _ if !kept => assigned.dropped.push(index),
                Some(rule) => match &self.all[rule].treatment {
                    Treatment::Keep => {}
                    Treatment::Drop => assigned.dropped.push(index),
                    treatment => {
                        assigned.found.push(index);
                        assigned.rules.push(rule);
                        assigned.by.push(treatment.by().map(|by| find_one(by, candidates)).transpose()?);
                    }
                },
                None if self.only.is_some() || self.unlisted == Unlisted::Keep => {}
                None if self.unlisted == Unlisted::Drop => assigned.dropped.push(index),
                None => unlisted.push(name(candidate)),
            }
        }
        if !unlisted.is_empty() {
            return Err(not_listed(&unlisted));
        }
        if assigned.dropped.len() == candidates.len() && !candidates.is_empty() {
            return Err(Error::usage("no column is left: all of them are dropped"));
        }
        Ok(assigned)
    }

    /// The rule of a candidate: one that names it outright stands above a pattern.
    fn rule(&self, candidate: &Candidate, all: &[Candidate]) -> Result<Option<usize>> {
        let fits = |(rule, selector): &(usize, &Selector)| match self.all[*rule].treatment {
            Treatment::Keep | Treatment::Drop => selector.covers(candidate, all),
            _ => selector.matches(candidate, all),
        };
        for (overrides, exact) in [(true, true), (true, false), (false, true), (false, false)] {
            let ranks = |(rule, s): &(usize, &Selector)| self.all[*rule].overrides == overrides && s.is_exact() == exact;
            let mut fitting = self.selectors().filter(ranks).filter(fits).map(|(rule, _)| rule);
            if let Some(rule) = fitting.next() {
                return match fitting.find(|other| *other != rule) {
                    Some(_) => Err(Error::usage(format!("column {} has two treatments", name(candidate)))),
                    None => Ok(Some(rule)),
                };
            }
        }
        Ok(None)
    }
}

/// The error for columns that no rule names.
pub(crate) fn not_listed(columns: &[String]) -> Error {
    const SHOWN: usize = 5;
    let more = columns.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let shown = columns[..columns.len().min(SHOWN)].join(", ");
    Error::usage(format!("the policy says nothing of {shown}{more}"))
        .hint("unlisted = \"keep\" or \"drop\", or a line for each column")
}

fn name(candidate: &Candidate) -> String {
    if candidate.path.is_empty() { format!("#{}", candidate.number) } else { quote_path(&candidate.path) }
}

fn find_one(by: &str, candidates: &[Candidate]) -> Result<usize> {
    match Columns::parse(by)?.resolve(candidates, Missing::Error)?.found[..] {
        [only] => Ok(only),
        _ => Err(Error::usage(format!("a shift goes by one column, and {by} are several"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(names: &[&str]) -> Vec<Candidate> {
        let path = |name: &str| name.split('.').map(Into::into).collect();
        names.iter().enumerate().map(|(i, name)| Candidate { path: path(name), number: i + 1 }).collect()
    }

    fn rules(rules: &[(&str, Treatment)], unlisted: Unlisted) -> Rules {
        let rule = |(columns, treatment): &(&str, Treatment)| Rule {
            columns: Columns::parse(columns).unwrap(),
            treatment: match treatment {
                Treatment::Keep => Treatment::Keep,
                Treatment::Drop => Treatment::Drop,
                _ => Treatment::Truncate(2, None),
            },
            overrides: false,
        };
        Rules::new(rules.iter().map(rule).collect(), unlisted)
    }

    #[test]
    fn an_outright_name_stands_above_a_pattern() {
        let t = table(&["a1", "a2", "b", "c.d", "c.e"]);
        let r = rules(&[("a*", Treatment::Truncate(2, None)), ("a2", Treatment::Keep), ("c", Treatment::Drop)], Unlisted::Keep);
        let assigned = r.resolve(&t, Missing::Error).unwrap();
        assert_eq!((assigned.found, assigned.rules, assigned.dropped), (vec![0], vec![0], vec![3, 4]));
        let two = rules(&[("b", Treatment::Keep), ("#3", Treatment::Drop)], Unlisted::Keep);
        assert!(two.resolve(&t, Missing::Error).unwrap_err().to_string().contains("two treatments"));
    }

    #[test]
    fn what_is_not_listed_is_refused_kept_or_dropped() {
        let t = table(&["a", "b", "c"]);
        let refused = rules(&[("a", Treatment::Keep)], Unlisted::Error).resolve(&t, Missing::Error).unwrap_err();
        assert!(refused.is_usage() && refused.to_string().contains("b, c"), "{refused}");
        let dropped = rules(&[("a", Treatment::Keep)], Unlisted::Drop).resolve(&t, Missing::Error).unwrap().dropped;
        assert_eq!(dropped, [1, 2]);
        let only = rules(&[("a", Treatment::Truncate(2, None))], Unlisted::Error).only(Some(Columns::parse("a,c").unwrap()));
        let assigned = only.resolve(&t, Missing::Error).unwrap();
        assert_eq!((assigned.found, assigned.dropped), (vec![0], vec![1]));
        assert!(rules(&[("*", Treatment::Drop)], Unlisted::Keep).resolve(&t, Missing::Error).unwrap_err().is_usage());
        assert!(rules(&[("z", Treatment::Keep)], Unlisted::Keep).resolve(&t, Missing::Error).unwrap_err().is_usage());
    }
}
