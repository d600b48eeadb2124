//! A dictionary of a masked chunk, and the pages of indices that keep their bytes.

use super::index::Bounds;
use super::levels::{hybrid, short};
use super::parts::Parts;
use crate::error::{Error, Result};

/// A dictionary after masking.
#[derive(Default)]
pub(super) struct Dictionary {
    /// What it holds now; or what it held, where each row changes on its own.
    pub tokens: Vec<Vec<u8>>,
    /// Whether two of its entries have become equal: readers of categories refuse that, so its pages are written without it.
    pub unfolds: bool,
    /// For each entry its place in the order of the tokens, and for each place an entry.
    rank: Vec<u32>,
    order: Vec<u32>,
}

impl Dictionary {
    /// One whose entries are looked up and change row by row.
    pub(super) fn of_originals(entries: Vec<Vec<u8>>) -> Self {
        Self { tokens: entries, ..Self::default() }
    }

    /// One of tokens, which its pages are to point to.
    pub(super) fn new<'t>(tokens: impl Iterator<Item = &'t [u8]>) -> Self {
        let tokens: Vec<Vec<u8>> = tokens.map(<[u8]>::to_vec).collect();
        // Their first bytes decide, all but always.
        let first = |token: &[u8]| token.iter().chain(&[0; 8]).take(8).fold(0, |word: u64, byte| word << 8 | u64::from(*byte));
        let mut order: Vec<(u64, u32)> = tokens.iter().zip(0..).map(|(token, entry)| (first(token), entry)).collect();
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| tokens[a.1 as usize].cmp(&tokens[b.1 as usize])));
        let order: Vec<u32> = order.into_iter().map(|(_, entry)| entry).collect();
        let mut rank = vec![0; tokens.len()];
        order.iter().enumerate().for_each(|(place, entry)| rank[*entry as usize] = place as u32);
        let unfolds = order.windows(2).any(|pair| tokens[pair[0] as usize] == tokens[pair[1] as usize]);
        Self { tokens, unfolds, rank, order }
    }

    fn token_at(&self, rank: u32) -> Vec<u8> {
        self.tokens[self.order[rank as usize] as usize].clone()
    }
}

/// Looks at every index of a page: how many stand for a token, and the least and greatest of these.
pub(super) fn indices(parts: &Parts<'_>, dictionary: Option<&Dictionary>) -> Result<(u64, Option<Bounds>)> {
    if parts.present == 0 {
        return Ok((0, None));
    }
    let dictionary = dictionary.ok_or_else(|| Error::malformed("damaged page: indices without a dictionary"))?;
    let (width, runs) = parts.values.split_first().ok_or_else(short)?;
    let (mut masked, mut least, mut greatest) = (0, u32::MAX, 0);
    // No two entries are equal, so only the first in order can be the empty text.
    let first_token = u32::from(dictionary.order.first().is_some_and(|entry| dictionary.tokens[*entry as usize].is_empty()));
    let mut each = |index: u32, times: usize| {
        let rank = *dictionary
            .rank
            .get(index as usize)
            .ok_or_else(|| Error::malformed("damaged page: an index beyond the dictionary"))?;
        if rank >= first_token {
            masked += times as u64;
        }
        (least, greatest) = (least.min(rank), greatest.max(rank));
        Ok(())
    };
    if *width == 0 && runs.is_empty() {
        each(0, parts.present)?; // one entry needs no bit; some writers leave the runs out
    } else {
        hybrid(runs, (*width).into(), parts.present, each)?;
    }
    Ok((masked, Some((dictionary.token_at(least), dictionary.token_at(greatest)))))
}
