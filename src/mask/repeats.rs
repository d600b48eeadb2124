//! Values that come again: the tags of those met last are remembered, where that costs less than hashing them again.
//!
//! A memory is of a fixed size, is used by one thread at a time, and is wiped when it goes, with its Pseudonymiser.

use zeroize::Zeroize;

use super::hmac::{self, KeyState, Tag};

/// Values that are remembered at most.
const PLACES: usize = 1 << 12;
/// How often other values may want a place in vain, at most.
const HOLD: u8 = 7;
/// Bytes of a value that is remembered.
const LONGEST: usize = 31;
/// Looks after which it shows whether they pay.
const WINDOW: u32 = 1 << 10;
/// One look in so many must find something: a look and what it leaves behind cost about a quarter of a hash (docs/performance.md).
const WORTH: u32 = 4;
/// Values that are looked up before those that were not found are hashed, and can be found.
const AT_ONCE: usize = 1 << 9;
/// Values of a column that pass unseen after looks that did not pay.
const REST: usize = 1 << 15;

/// The tags of the values met last.
pub(super) struct Memory {
    places: Box<[Place]>,
    /// For each place how often its value has been found, less how often another one would have had it: one that comes again and again
    /// is not displaced by those that come once.
    hold: Box<[u8]>,
    columns: Vec<Gain>,
    /// Of what is looked up at once: where it may be, what is not found, how many these are, and their tags.
    looks: Box<[Look]>,
    unknown: Box<[Unknown]>,
    missed: usize,
    tags: Box<[Tag]>,
}

/// A value that is not found.
#[derive(Clone, Copy, Default)]
struct Unknown {
    /// Its number among those looked up at once.
    index: u32,
    /// Where it will be remembered, or [`NOWHERE`].
    place: u32,
}

/// The place of a value that is not to be remembered.
const NOWHERE: u32 = u32::MAX;

/// One value and its tag: a line of the processor's cache.
#[derive(Clone, Copy, Default, Zeroize)]
#[repr(align(64))]
struct Place {
    value: Short,
    tag: Tag,
}

/// A short value in words, its length in the last byte: equal where the values are, and there alone. 0 is no value.
#[derive(Clone, Copy, Default, Zeroize)]
struct Short([u64; 4]);

/// What looking a value up has come to.
#[derive(Clone, Copy, Default)]
struct Look {
    /// Where it is remembered, or will be; or [`NOWHERE`].
    place: u32,
    found: bool,
}

/// What looks at the values of a column have come to.
#[derive(Clone, Copy, Default)]
struct Gain {
    looks: u32,
    hits: u32,
    /// Values that will pass unseen.
    rest: usize,
}

impl Default for Memory {
    fn default() -> Self {
        let places = vec![Place::default(); PLACES].into();
        let (looks, unknown) = (vec![Look::default(); AT_ONCE].into(), vec![Unknown::default(); AT_ONCE].into());
        Self {
            places,
            hold: vec![0; PLACES].into(),
            columns: Vec::new(),
            looks,
            unknown,
            missed: 0,
            tags: vec![Tag::default(); AT_ONCE].into(),
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl Memory {
    /// Values of a batch that a memory is worth its making for.
    pub(super) const LEAST: usize = 64;

    /// As [`hmac::tags`]; always of one state. `column` says where the values are from, so that one without repeats is left alone.
    pub(super) fn tags(&mut self, state: &KeyState, values: &[&[u8]], column: usize, out: &mut [Tag]) {
        assert_eq!(values.len(), out.len(), "one tag a value");
        if column >= self.columns.len() {
            self.columns.resize(column + 1, Gain::default());
        }
        let (mut values, mut out) = (values, out);
        while !values.is_empty() {
            let rest = self.columns[column].rest;
            let n = if rest > 0 { rest } else { AT_ONCE }.min(values.len());
            let (these, others) = values.split_at(n);
            let (tags, other_tags) = out.split_at_mut(n);
            if rest > 0 {
                hmac::tags(state, these, tags);
                self.columns[column].rest -= n;
            } else {
                self.look_up(these, column, tags);
                self.hash_unknown(state, these, tags);
            }
            (values, out) = (others, other_tags);
        }
    }

    /// Puts down the tags that are remembered, and what is not found.
    fn look_up(&mut self, values: &[&[u8]], column: usize, out: &mut [Tag]) {
        // First all places are looked at, with nothing that waits for what is found there; nor is that a branch, which nobody could
        // foretell.
        let mut found_all = 0;
        for (value, look) in values.iter().zip(&mut self.looks) {
            *look = Look { place: NOWHERE, found: false };
            if let Some(short) = Short::of(value) {
                let place = short.place();
                let found = self.places[place].value.is(&short);
                *look = Look { place: place as u32, found };
                let hold = &mut self.hold[place];
                *hold = (*hold + u8::from(found)).min(HOLD);
                found_all += u32::from(found);
            }
        }
        self.columns[column].looked(values.len() as u32, found_all);
        let mut missed = 0;
        for (index, (look, out)) in self.looks.iter().zip(out).enumerate() {
            *out = self.places[look.place as usize % PLACES].tag; // of another value, unless it is found: then its own will take this place
            self.unknown[missed] = Unknown { index: index as u32, place: look.place };
            missed += usize::from(!look.found);
        }
        self.missed = missed;
    }

    fn hash_unknown(&mut self, state: &KeyState, values: &[&[u8]], out: &mut [Tag]) {
        let missed = &self.unknown[..self.missed];
        let unknown: Vec<&[u8]> = missed.iter().map(|u| values[u.index as usize]).collect();
        let tags = &mut self.tags[..unknown.len()];
        hmac::tags(state, &unknown, tags);
        for (Unknown { index, place }, tag) in missed.iter().zip(tags) {
            out[*index as usize] = *tag;
            let Some(hold) = self.hold.get_mut(*place as usize) else { continue };
            if *hold > 0 {
                *hold -= 1;
            } else if let Some(value) = Short::of(values[*index as usize]) {
                self.places[*place as usize] = Place { value, tag: *tag };
            }
        }
    }

    /// Forgets all values and tags, and leaves nothing of them in memory.
    fn wipe(&mut self) {
        self.places.zeroize();
        self.tags.zeroize();
        self.hold.zeroize();
        self.looks.iter_mut().for_each(|look| look.place.zeroize());
        self.unknown.iter_mut().for_each(|unknown| unknown.place.zeroize());
    }
}

impl Gain {
    fn looked(&mut self, looks: u32, hits: u32) {
        self.looks += looks;
        self.hits += hits;
        if self.looks >= WINDOW {
            let pays = self.hits * WORTH >= self.looks;
            *self = Self { rest: if pays { 0 } else { REST }, ..Self::default() };
        }
    }
}

impl Short {
    #[inline]
    fn of(value: &[u8]) -> Option<Self> {
        let n = value.len();
        if n > LONGEST {
            return None;
        }
        let length = (n as u64 + 1) << 56;
        Some(Self(if let (Some(first), Some(last)) = (value.first_chunk::<8>(), value.last_chunk::<8>()) {
            // Eight bytes at a time that overlap, the last ones more than once: no branch for each length. Of the last eight the first is
            // in another word, too, and makes room for the length.
            let word = |at: usize| value[at.min(n - 8)..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            [u64::from_le_bytes(*first), word(8), word(16), u64::from_le_bytes(*last) >> 8 | length]
        } else if let (Some(first), Some(last)) = (value.first_chunk::<4>(), value.last_chunk::<4>()) {
            [u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32, 0, 0, length]
        } else {
            [value.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0, 0, length]
        }))
    }

    /// Word by word: as a whole they would have to be in memory, and are not.
    #[inline]
    fn is(&self, other: &Self) -> bool {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        (a ^ e) | (b ^ f) | (c ^ g) | (d ^ h) == 0
    }

    /// Where it is remembered. Values that fall together are told apart by their words.
    #[inline]
    fn place(&self) -> usize {
        // Odd numbers of bits without a pattern: the fraction of π, each word of it made odd.
        const ODD: [u64; 4] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7345, 0xa409_3822_299f_31d1, 0x082e_fa98_ec4e_6c89];
        let [a, b, c, d] = self.0;
        let mixed = a.wrapping_mul(ODD[0]) ^ b.wrapping_mul(ODD[1]) ^ c.wrapping_mul(ODD[2]) ^ d.wrapping_mul(ODD[3]);
        (mixed >> (u64::BITS - PLACES.ilog2())) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_those_of_each_value_alone() {
        let state = KeyState::new(&[7; 40]);
        let mut memory = Memory::default();
        for distinct in [1, 2, 10, 300, 5000, 100_000] {
            let texts: Vec<String> = (0..9000u64).map(|i| (i * 7919 % distinct).to_string().repeat((i % 9) as usize)).collect();
            let values: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
            let (mut got, mut want) = (vec![Tag::default(); values.len()], vec![Tag::default(); values.len()]);
            hmac::tags(&state, &values, &mut want);
            for batch in [values.len(), 100, 7] {
                got.fill(Tag::default());
                for (values, out) in values.chunks(batch).zip(got.chunks_mut(batch)) {
                    memory.tags(&state, values, batch % 3, out);
                }
                assert!(got == want, "{distinct} distinct values in batches of {batch}");
            }
        }
        memory.tags(&state, &[], 0, &mut []);
    }

    #[test]
    fn columns_without_repeats_are_left_alone() {
        let state = KeyState::new(&[7; 40]);
        let mut memory = Memory::default();
        let texts: Vec<String> = (0..4000).map(|i| format!("user{i}@exemple.fr")).collect();
        let values: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        memory.tags(&state, &vec![&b"Zo\xc3\xa9"[..]; 4000], 0, &mut vec![Tag::default(); 4000]);
        memory.tags(&state, &values, 1, &mut vec![Tag::default(); 4000]);
        assert!(memory.columns[0].rest == 0 && memory.columns[1].rest > 0);
        // Others of a column at rest are not looked at, and not remembered.
        let before: Vec<u64> = memory.places.iter().map(|place| place.value.0[3] >> 56).collect();
        memory.tags(&state, &[&b"never met before"[..]; 100], 1, &mut [Tag::default(); 100]);
        assert!(memory.places.iter().map(|place| place.value.0[3] >> 56).eq(before));
    }

    #[test]
    fn nothing_is_left_of_a_wiped_memory() {
        let mut memory = Memory::default();
        let texts: Vec<String> = (0..5000).map(|i| (i % 700).to_string()).collect();
        let values: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        memory.tags(&KeyState::new(&[7; 40]), &values, 0, &mut vec![Tag::default(); values.len()]);
        let empty = |place: &Place| place.value.0 == [0; 4] && place.tag == Tag::default();
        assert!(memory.places.iter().filter(|place| !empty(place)).count() > 300);
        memory.wipe();
        assert!(memory.places.iter().all(empty) && memory.tags.iter().all(|tag| *tag == Tag::default()));
    }

    /// Different values are different words, whatever their bytes.
    #[test]
    fn no_two_values_are_taken_for_one() {
        let mut seen = std::collections::HashMap::new();
        for byte in [0u8, 1, b'a'] {
            for length in 0..=LONGEST {
                for (at, other) in (0..=length).flat_map(|at| [0, 1, 0xff].map(|other| (at, other))) {
                    let mut value = vec![byte; length];
                    value.get_mut(at).into_iter().for_each(|b| *b = other);
                    let short = Short::of(&value).unwrap();
                    let first = seen.entry(short.0).or_insert_with(|| value.clone());
                    assert_eq!(*first, value);
                }
            }
        }
        assert!(seen.len() > 1000);
        assert!(Short::of(&[b'x'; LONGEST + 1]).is_none());
    }
}
