//! Values that come again: the tags of those met last are remembered, where that costs less than hashing them again.
//!
//! A memory is of a fixed size, is used by one thread at a time, and is wiped when it goes, with its Pseudonymiser.

use zeroize::Zeroize;

use super::hmac::{self, KeyState, Tag};

/// Values that are remembered at most.
const PLACES: usize = 1 << 11;
/// Bytes of a value that is remembered.
const LONGEST: usize = 32;
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
    columns: Vec<Gain>,
    /// Of what is looked up at once: what is not found, and its tags.
    unknown: Vec<Unknown>,
    tags: Box<[Tag]>,
}

/// A value that is not found.
struct Unknown {
    /// Its number among those looked up at once.
    index: u32,
    /// Where it will be remembered, or [`NOWHERE`].
    place: u32,
}

/// The place of a value that is not to be remembered.
const NOWHERE: u32 = u32::MAX;

/// One value and its tag.
#[derive(Clone, Copy, Default, Zeroize)]
struct Place {
    value: Short,
    tag: Tag,
}

/// A short value in words, and its length: equal where the values are, and there alone.
#[derive(Clone, Copy, Default, Zeroize)]
struct Short {
    words: [u64; 4],
    /// One more than its bytes; 0 is no value.
    length: u64,
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
        Self { places, columns: Vec::new(), unknown: Vec::with_capacity(AT_ONCE), tags: vec![Tag::default(); AT_ONCE].into() }
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

    /// As [`hmac::tags`]; always of one state. `column` says for each value to which column it belongs, so that one without repeats is
    /// left alone.
    pub(super) fn tags(&mut self, state: &KeyState, values: &[&[u8]], column: impl Fn(usize) -> usize, out: &mut [Tag]) {
        assert_eq!(values.len(), out.len(), "one tag a value");
        for (number, (values, out)) in values.chunks(AT_ONCE).zip(out.chunks_mut(AT_ONCE)).enumerate() {
            let column = |index| column(number * AT_ONCE + index);
            if self.all_rest(values.len(), column) {
                hmac::tags(state, values, out);
            } else {
                self.look_up(values, column, out);
                self.hash_unknown(state, values, out);
            }
        }
    }

    fn look_up(&mut self, values: &[&[u8]], column: impl Fn(usize) -> usize, out: &mut [Tag]) {
        self.unknown.clear();
        for (index, value) in values.iter().enumerate() {
            let column = column(index);
            if column >= self.columns.len() {
                self.columns.resize(column + 1, Gain::default());
            }
            let gain = &mut self.columns[column];
            let unknown = |place| Unknown { index: index as u32, place }; // below AT_ONCE
            if gain.rest > 0 {
                gain.rest -= 1;
                self.unknown.push(unknown(NOWHERE));
            } else if let Some(short) = Short::of(value) {
                let number = short.place();
                let place = &self.places[number];
                if place.value.is(&short) {
                    out[index] = place.tag;
                    gain.hits += 1;
                } else {
                    self.unknown.push(unknown(number as u32));
                }
                gain.looked();
            } else {
                self.unknown.push(unknown(NOWHERE));
            }
        }
    }

    fn hash_unknown(&mut self, state: &KeyState, values: &[&[u8]], out: &mut [Tag]) {
        let unknown: Vec<&[u8]> = self.unknown.iter().map(|u| values[u.index as usize]).collect();
        let tags = &mut self.tags[..unknown.len()];
        hmac::tags(state, &unknown, tags);
        for (Unknown { index, place }, tag) in self.unknown.iter().zip(tags) {
            out[*index as usize] = *tag;
            if let Some(place) = self.places.get_mut(*place as usize)
                && let Some(value) = Short::of(values[*index as usize])
            {
                *place = Place { value, tag: *tag };
            }
        }
    }

    /// Whether all of these values pass unseen.
    fn all_rest(&mut self, values: usize, column: impl Fn(usize) -> usize) -> bool {
        let all = (0..values).all(|i| self.columns.get(column(i)).is_some_and(|gain| gain.rest > 0));
        if all {
            for i in 0..values {
                let rest = &mut self.columns[column(i)].rest;
                *rest = rest.saturating_sub(1);
            }
        }
        all
    }

    /// Forgets all values and tags, and leaves nothing of them in memory.
    fn wipe(&mut self) {
        self.places.zeroize();
        self.tags.zeroize();
    }
}

impl Gain {
    fn looked(&mut self) {
        self.looks += 1;
        if self.looks == WINDOW {
            let pays = self.hits * WORTH >= WINDOW;
            *self = Self { rest: if pays { 0 } else { REST }, ..Self::default() };
        }
    }
}

impl Short {
    #[inline]
    fn of(value: &[u8]) -> Option<Self> {
        let n = value.len();
        let words = if let (Some(first), Some(last)) = (value.first_chunk::<8>(), value.last_chunk::<8>()) {
            if n > LONGEST {
                return None;
            }
            // Eight bytes at a time that overlap, the last ones more than once: no branch for each length.
            let word = |at: usize| value[at.min(n - 8)..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            [u64::from_le_bytes(*first), word(8), word(16), u64::from_le_bytes(*last)]
        } else if let (Some(first), Some(last)) = (value.first_chunk::<4>(), value.last_chunk::<4>()) {
            [u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32, 0, 0, 0]
        } else {
            [value.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0, 0, 0]
        };
        Some(Self { words, length: n as u64 + 1 })
    }

    /// Word by word: as a whole they would have to be in memory, and are not.
    #[inline]
    fn is(&self, other: &Self) -> bool {
        let ([a, b, c, d], [e, f, g, h]) = (self.words, other.words);
        (a ^ e) | (b ^ f) | (c ^ g) | (d ^ h) | (self.length ^ other.length) == 0
    }

    /// Where it is remembered. Values that fall together are told apart by their words.
    #[inline]
    fn place(&self) -> usize {
        // Odd numbers of bits without a pattern: the fraction of π, each word of it made odd.
        const ODD: [u64; 4] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7345, 0xa409_3822_299f_31d1, 0x082e_fa98_ec4e_6c89];
        let [a, b, c, d] = self.words;
        let mixed =
            a.wrapping_mul(ODD[0]) ^ b.wrapping_mul(ODD[1]) ^ c.wrapping_mul(ODD[2]) ^ d.wrapping_mul(ODD[3]) ^ self.length;
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
                    memory.tags(&state, values, |i| i % 3, out);
                }
                assert!(got == want, "{distinct} distinct values in batches of {batch}");
            }
        }
        memory.tags(&state, &[], |_| 0, &mut []);
    }

    #[test]
    fn columns_without_repeats_are_left_alone() {
        let state = KeyState::new(&[7; 40]);
        let mut memory = Memory::default();
        let texts: Vec<String> =
            (0..4000).map(|i| if i % 2 == 0 { "Zoé".into() } else { format!("user{i}@exemple.fr") }).collect();
        let values: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        memory.tags(&state, &values, |i| i % 2, &mut vec![Tag::default(); values.len()]);
        assert!(memory.columns[0].rest == 0 && memory.columns[1].rest > 0);
        // Others of a column at rest are not looked at, and not remembered.
        let before: Vec<u64> = memory.places.iter().map(|place| place.value.length).collect();
        memory.tags(&state, &[&b"never met before"[..]; 100], |_| 1, &mut [Tag::default(); 100]);
        assert!(memory.places.iter().map(|place| place.value.length).eq(before));
    }

    #[test]
    fn nothing_is_left_of_a_wiped_memory() {
        let mut memory = Memory::default();
        let texts: Vec<String> = (0..5000).map(|i| (i % 700).to_string()).collect();
        let values: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        memory.tags(&KeyState::new(&[7; 40]), &values, |_| 0, &mut vec![Tag::default(); values.len()]);
        let empty = |place: &Place| place.value.words == [0; 4] && place.value.length == 0 && place.tag == Tag::default();
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
                    let first = seen.entry((short.words, short.length)).or_insert_with(|| value.clone());
                    assert_eq!(*first, value);
                }
            }
        }
        assert!(seen.len() > 1000);
        assert!(Short::of(&[b'x'; LONGEST + 1]).is_none());
    }
}
