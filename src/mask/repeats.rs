//! Equal values of a batch are hashed once, where there are many of them.
//!
//! What is remembered are places in the batch, for as long as the batch is hashed: no value, no tag is held longer than without it.

use twox_hash::XxHash64;

use super::hmac::{self, Kernel, KeyState, Tag};

/// Places for values.
const PLACES: usize = 1 << 12;
/// Values that are looked at to find out whether grouping pays.
const SAMPLE: usize = 1 << 12;
/// No value.
const NONE: u32 = u32::MAX;

/// As [`hmac::tags`].
pub(super) fn tags(state: &KeyState, values: &[&[u8]], out: &mut [Tag]) {
    // With sixteen lanes a hash costs no more than a look (docs/performance.md).
    if Kernel::chosen() == Kernel::Avx512 {
        return hmac::tags(state, values, out);
    }
    grouped(state, values, out);
}

fn grouped(state: &KeyState, values: &[&[u8]], out: &mut [Tag]) {
    let mut places = Places::default();
    let sample = &values[..values.len().min(SAMPLE)];
    let again = (0..sample.len()).filter(|i| places.first(sample, *i) != *i).count();
    // A look costs about a third of a hash: half of the values must come again for it to pay.
    if again * 2 < sample.len() || sample.len() < SAMPLE / 8 {
        return hmac::tags(state, values, out);
    }
    let (mut unique, mut of) = (Vec::new(), Vec::with_capacity(values.len()));
    let mut places = Places::default();
    let mut number = vec![0; values.len()];
    for i in 0..values.len() {
        let first = places.first(values, i);
        if first == i {
            number[i] = unique.len() as u32; // a batch has far fewer than 2³² values
            unique.push(values[i]);
        }
        of.push(number[first]);
    }
    let mut tags = vec![Tag::default(); unique.len()];
    hmac::tags(state, &unique, &mut tags);
    for (out, of) in out.iter_mut().zip(of) {
        *out = tags[of as usize];
    }
}

/// For each place the last value that fell there. Values that fall together are told apart by their bytes.
struct Places(Vec<u32>);

impl Default for Places {
    fn default() -> Self {
        Self(vec![NONE; PLACES])
    }
}

impl Places {
    /// An earlier value that is equal to this one, or itself.
    fn first(&mut self, values: &[&[u8]], i: usize) -> usize {
        let value = values[i];
        let place = &mut self.0[(XxHash64::oneshot(0, value) >> 32) as usize % PLACES];
        if values.get(*place as usize) == Some(&value) {
            return *place as usize;
        }
        *place = i as u32;
        i
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_those_of_each_value_alone() {
        let state = KeyState::new(&[7; 40]);
        for distinct in [1, 2, 10, 300, 5000, 100_000] {
            let texts: Vec<String> =
                (0..9000u64).map(|i| (i * 7919 % distinct).to_string().repeat(1 + (i % 3) as usize)).collect();
            let values: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
            let (mut got, mut want) = (vec![Tag::default(); values.len()], vec![Tag::default(); values.len()]);
            grouped(&state, &values, &mut got);
            hmac::tags(&state, &values, &mut want);
            assert!(got == want, "{distinct} distinct values");
        }
        grouped(&state, &[], &mut []);
    }
}
