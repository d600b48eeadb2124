//! The wanted paths as a tree, to be followed while a record is read.

use crate::error::{Error, Result};
use crate::policy::{Columns, LIST_STEP, Rules, Wanted};

/// A node of the tree: what is wanted from here on.
#[derive(Default)]
pub(super) struct Node {
    /// The entries of the rules that end here.
    ends: Vec<usize>,
    children: Vec<(String, Node)>,
    /// The elements of a list.
    elements: Option<Box<Node>>,
    globs: Vec<(Vec<String>, usize)>,
    /// The columns that stay, where others leave.
    only: Option<Box<Node>>,
}

/// Places in the tree where a value stands; several when entries of the list overlap.
pub(super) type Here<'t> = Vec<&'t Node>;

impl Node {
    /// The tree of all rules.
    ///
    /// # Errors
    /// A column by its number: keys have none.
    pub(super) fn new(rules: &Rules) -> Result<Self> {
        let mut root = Self::default();
        let mut first = 0;
        for rule in rules.all() {
            root.add_all(&rule.columns, |i| first + i)?;
            first += rule.columns.wanted().count();
        }
        if let Some(columns) = rules.kept() {
            let mut only = Self::default();
            only.add_all(columns, |i| i)?;
            root.only = Some(Box::new(only));
        }
        Ok(root)
    }

    fn add_all(&mut self, columns: &Columns, entry: impl Fn(usize) -> usize) -> Result<()> {
        for (i, wanted) in columns.wanted().enumerate() {
            match wanted {
                Wanted::Number(n) => {
                    return Err(Error::usage(format!("#{n}: keys of JSON have no number")).hint("-c NAME"));
                }
                Wanted::Glob(pieces) => self.globs.push((pieces.to_vec(), entry(i))),
                Wanted::Path(steps) => self.add(steps, entry(i)),
            }
        }
        Ok(())
    }

    /// The places of the columns that stay, if others leave.
    pub(super) fn only(&self) -> Option<Here<'_>> {
        self.only.as_ref().map(|only| vec![&**only])
    }

    /// Whether anything is wanted of the members of an object here.
    pub(super) fn has_members(&self) -> bool {
        !self.children.is_empty() || !self.globs.is_empty()
    }

    /// Whether anything is wanted of the elements of a list here.
    pub(super) fn has_elements(&self) -> bool {
        self.elements.is_some()
    }

    fn add(&mut self, steps: &[String], entry: usize) {
        let Some((step, rest)) = steps.split_first() else { return self.ends.push(entry) };
        if step == LIST_STEP {
            return self.elements.get_or_insert_default().add(rest, entry);
        }
        let at = self.children.iter().position(|(name, _)| name == step).unwrap_or_else(|| {
            self.children.push((step.clone(), Self::default()));
            self.children.len() - 1
        });
        self.children[at].1.add(rest, entry);
    }
}

/// The places below a key; `ends` gets the entries that end there.
pub(super) fn below<'t>(here: &Here<'t>, key: &str, ends: &mut Vec<usize>) -> Here<'t> {
    let mut next = Here::new();
    for node in here {
        next.extend(node.children.iter().filter(|(name, _)| name == key).map(|(_, child)| child));
    }
    // What names a key outright stands above a pattern.
    ends.extend(next.iter().flat_map(|node| &node.ends));
    for node in here {
        ends.extend(node.globs.iter().filter(|(pieces, _)| crate::policy::glob(pieces, key)).map(|(_, entry)| *entry));
    }
    next
}

/// The places of the elements of a list; `ends` gets the entries that end there.
pub(super) fn elements<'t>(here: &Here<'t>, ends: &mut Vec<usize>) -> Here<'t> {
    let next: Here<'t> = here.iter().filter_map(|node| node.elements.as_deref()).collect();
    ends.extend(next.iter().flat_map(|node| &node.ends));
    next
}
