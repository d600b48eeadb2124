//! Eight messages at once with AVX2: one lane of 32 bits each.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_and_si256, _mm256_andnot_si256, _mm256_loadu_si256, _mm256_or_si256,
    _mm256_permute2x128_si256, _mm256_set_epi32, _mm256_set1_epi32, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi32,
    _mm256_srli_epi32, _mm256_storeu_si256, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi32,
    _mm256_unpacklo_epi64, _mm256_xor_si256,
};

use super::lanes::{K, OUTER_BITS, OUTER_PAD, bits, grouped, padded};
use super::{KeyState, Tag};

/// Messages at once.
const LANES: usize = 8;

/// Words of a block, or of a state, each of all lanes.
type Words<const N: usize> = [__m256i; N];

/// Whether this machine has what [`tags`] needs.
pub(super) fn available() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

/// See [`super::tags`].
pub(super) fn tags(key: &KeyState, messages: &[&[u8]], out: &mut [Tag]) {
    assert!(available());
    grouped(key, messages, out, |lanes, blocks| {
        // SAFETY: the feature is available, as asserted above.
        unsafe { group(key, lanes, blocks) }
    });
}

#[target_feature(enable = "avx2")]
fn group(key: &KeyState, messages: &[&[u8]; LANES], blocks: usize) -> [Tag; LANES] {
    let mut state = key.inner.map(|word| _mm256_set1_epi32(word as i32));
    for number in 0..blocks {
        let mut words = load(messages, number);
        if number + 1 == blocks {
            let lengths = messages.map(|m| bits(m.len()));
            // SAFETY: 32 bytes are read from an array of 32 bytes.
            words[15] = unsafe { _mm256_loadu_si256(lengths.as_ptr().cast()) };
        }
        compress(&mut state, words);
    }
    let mut words = [_mm256_setzero_si256(); 16];
    words[..8].copy_from_slice(&state);
    words[8] = _mm256_set1_epi32(OUTER_PAD as i32);
    words[15] = _mm256_set1_epi32(OUTER_BITS as i32);
    let mut state = key.outer.map(|word| _mm256_set1_epi32(word as i32));
    compress(&mut state, words);
    let mut out = [Tag::default(); LANES];
    for (tag, row) in out.iter_mut().zip(transpose(state)) {
        // SAFETY: 32 bytes are written to an array of 32 bytes.
        unsafe { _mm256_storeu_si256(tag.as_mut_ptr().cast(), swap(row)) };
    }
    out
}

/// Block `number` of each message with its padding, word by word.
#[target_feature(enable = "avx2")]
fn load(messages: &[&[u8]; LANES], number: usize) -> Words<16> {
    let blocks = messages.map(|m| padded(m, number));
    let half = |offset: usize| {
        // SAFETY: 32 bytes are read from either half of an array of 64 bytes.
        transpose(std::array::from_fn(|i| unsafe { swap(_mm256_loadu_si256(blocks[i][offset..offset + 32].as_ptr().cast())) }))
    };
    let mut words = [_mm256_setzero_si256(); 16];
    words[..8].copy_from_slice(&half(0));
    words[8..].copy_from_slice(&half(32));
    words
}

/// The bytes of each word in the other order.
#[target_feature(enable = "avx2")]
fn swap(words: __m256i) -> __m256i {
    let (a, b, c, d) = (0x0c0d_0e0f, 0x0809_0a0b, 0x0405_0607, 0x0001_0203);
    _mm256_shuffle_epi8(words, _mm256_set_epi32(a, b, c, d, a, b, c, d))
}

/// Rows to columns, 8 by 8.
#[target_feature(enable = "avx2")]
fn transpose(rows: Words<8>) -> Words<8> {
    let mut pairs = rows;
    for i in (0..8).step_by(2) {
        pairs[i] = _mm256_unpacklo_epi32(rows[i], rows[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_epi32(rows[i], rows[i + 1]);
    }
    let mut fours = rows;
    for i in (0..8).step_by(4) {
        fours[i] = _mm256_unpacklo_epi64(pairs[i], pairs[i + 2]);
        fours[i + 1] = _mm256_unpackhi_epi64(pairs[i], pairs[i + 2]);
        fours[i + 2] = _mm256_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
        fours[i + 3] = _mm256_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
    }
    let mut columns = rows;
    for i in 0..4 {
        columns[i] = _mm256_permute2x128_si256::<0x20>(fours[i], fours[4 + i]);
        columns[4 + i] = _mm256_permute2x128_si256::<0x31>(fours[i], fours[4 + i]);
    }
    columns
}

#[target_feature(enable = "avx2")]
fn add(a: __m256i, b: __m256i) -> __m256i {
    _mm256_add_epi32(a, b)
}

#[target_feature(enable = "avx2")]
fn xor3(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
    _mm256_xor_si256(_mm256_xor_si256(a, b), c)
}

/// Rotates to the right; `LEFT` is 32 less `RIGHT`.
#[target_feature(enable = "avx2")]
fn ror<const RIGHT: i32, const LEFT: i32>(x: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_srli_epi32::<RIGHT>(x), _mm256_slli_epi32::<LEFT>(x))
}

/// One step of the schedule: `a + σ0(b) + c + σ1(d)`.
#[target_feature(enable = "avx2")]
fn schedule(a: __m256i, b: __m256i, c: __m256i, d: __m256i) -> __m256i {
    let s0 = xor3(ror::<7, 25>(b), ror::<18, 14>(b), _mm256_srli_epi32::<3>(b));
    let s1 = xor3(ror::<17, 15>(d), ror::<19, 13>(d), _mm256_srli_epi32::<10>(d));
    add(add(a, s0), add(c, s1))
}

/// One compression in each lane.
#[target_feature(enable = "avx2")]
fn compress(state: &mut Words<8>, mut w: Words<16>) {
    let mut s = *state;
    for (i, k) in K.as_chunks::<16>().0.iter().enumerate() {
        if i > 0 {
            for t in 0..16 {
                w[t] = schedule(w[t], w[(t + 1) % 16], w[(t + 9) % 16], w[(t + 14) % 16]);
            }
        }
        for (word, k) in w.iter().zip(k) {
            let [a, b, c, d, e, f, g, h] = s;
            let s1 = xor3(ror::<6, 26>(e), ror::<11, 21>(e), ror::<25, 7>(e));
            let choose = _mm256_xor_si256(_mm256_and_si256(e, f), _mm256_andnot_si256(e, g));
            let t1 = add(add(h, add(*word, _mm256_set1_epi32(*k as i32))), add(s1, choose));
            let s0 = xor3(ror::<2, 30>(a), ror::<13, 19>(a), ror::<22, 10>(a));
            let majority = _mm256_xor_si256(_mm256_and_si256(a, _mm256_xor_si256(b, c)), _mm256_and_si256(b, c));
            s = [add(t1, add(s0, majority)), a, b, c, add(d, t1), e, f, g];
        }
    }
    for (word, new) in state.iter_mut().zip(s) {
        *word = add(*word, new);
    }
}
