//! Three messages at once with the SHA extensions: each hides the latency of the others. Two would do if nothing but rounds were to be
//! done; a fourth gains nothing more.
//!
//! Source of the order of instructions: Intel, "Intel SHA Extensions: New Instructions Supporting the Secure Hash Algorithm" (2013).

use std::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_alignr_epi8, _mm_blend_epi16, _mm_insert_epi32, _mm_loadu_si128, _mm_set_epi8, _mm_setr_epi32,
    _mm_sha256msg1_epu32, _mm_sha256msg2_epu32, _mm_sha256rnds2_epu32, _mm_shuffle_epi8, _mm_shuffle_epi32, _mm_storeu_si128,
};

use super::lanes::{K, OUTER_BITS, OUTER_PAD, bits, grouped, padded};
use super::{BLOCK, KeyState, Tag};

/// Messages at once.
const LANES: usize = 3;

/// A state as the instructions want it: words A B E F and C D G H.
#[derive(Clone, Copy)]
struct Halves(__m128i, __m128i);

/// Whether this machine has what [`tags`] needs.
pub(super) fn available() -> bool {
    std::arch::is_x86_feature_detected!("sha")
        && std::arch::is_x86_feature_detected!("sse4.1")
        && std::arch::is_x86_feature_detected!("ssse3")
}

/// See [`super::tags`].
pub(super) fn tags(key: &KeyState, messages: &[&[u8]], out: &mut [Tag]) {
    assert!(available());
    grouped(key, messages, out, |lanes, blocks| {
        // SAFETY: the features are available, as asserted above.
        unsafe { group(key, lanes, blocks) }
    });
}

#[target_feature(enable = "sha,sse4.1,ssse3")]
fn group(key: &KeyState, messages: &[&[u8]; LANES], blocks: usize) -> [Tag; LANES] {
    let mut states = [halves(&key.inner); LANES];
    for number in 0..blocks {
        let mut words = messages.map(|m| words(&padded(m, number)));
        if number + 1 == blocks {
            for (words, message) in words.iter_mut().zip(messages) {
                words[3] = _mm_insert_epi32::<3>(words[3], bits(message.len()).cast_signed());
            }
        }
        compress(&mut states, words);
    }
    let (pad, length) = (_mm_setr_epi32(OUTER_PAD.cast_signed(), 0, 0, 0), _mm_setr_epi32(0, 0, 0, OUTER_BITS.cast_signed()));
    let outer = states.map(|state| {
        let (abcd, efgh) = in_order(state);
        [abcd, efgh, pad, length]
    });
    states = [halves(&key.outer); LANES];
    compress(&mut states, outer);
    states.map(|state| bytes(state))
}

/// The words of a block, four by four.
#[target_feature(enable = "ssse3")]
fn words(block: &[u8; BLOCK]) -> [__m128i; 4] {
    // SAFETY: 16 bytes are read from one quarter of an array of 64 bytes.
    [0, 16, 32, 48].map(|at| swap(unsafe { _mm_loadu_si128(block[at..at + 16].as_ptr().cast()) }))
}

#[target_feature(enable = "sha,sse4.1,ssse3")]
fn halves(state: &[u32; 8]) -> Halves {
    // SAFETY: twice 16 bytes are read from an array of 32 bytes.
    let (abcd, efgh) = unsafe { (_mm_loadu_si128(state.as_ptr().cast()), _mm_loadu_si128(state[4..].as_ptr().cast())) };
    let (abcd, efgh) = (_mm_shuffle_epi32::<0xb1>(abcd), _mm_shuffle_epi32::<0x1b>(efgh));
    Halves(_mm_alignr_epi8::<8>(abcd, efgh), _mm_blend_epi16::<0xf0>(efgh, abcd))
}

/// The words of a state in their order, four by four.
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn in_order(Halves(abef, cdgh): Halves) -> (__m128i, __m128i) {
    let (feba, dchg) = (_mm_shuffle_epi32::<0x1b>(abef), _mm_shuffle_epi32::<0xb1>(cdgh));
    (_mm_blend_epi16::<0xf0>(feba, dchg), _mm_alignr_epi8::<8>(dchg, feba))
}

/// The state as a digest.
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn bytes(state: Halves) -> Tag {
    let (abcd, efgh) = in_order(state);
    let mut out = Tag::default();
    // SAFETY: twice 16 bytes are written to an array of 32 bytes.
    unsafe {
        _mm_storeu_si128(out.as_mut_ptr().cast(), swap(abcd));
        _mm_storeu_si128(out[16..].as_mut_ptr().cast(), swap(efgh));
    }
    out
}

/// The bytes of each word in the other order.
#[target_feature(enable = "ssse3")]
fn swap(words: __m128i) -> __m128i {
    _mm_shuffle_epi8(words, _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3))
}

/// One compression of each state, of blocks given as words, four by four, the oldest first.
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn compress(states: &mut [Halves; LANES], mut w: [[__m128i; 4]; LANES]) {
    let before = *states;
    for (i, k) in K.as_chunks::<4>().0.iter().enumerate() {
        // SAFETY: 16 bytes are read from an array of 16 bytes.
        let k = unsafe { _mm_loadu_si128(k.as_ptr().cast()) };
        for (w, state) in w.iter_mut().zip(states.iter_mut()) {
            if i >= 4 {
                let [a, b, c, d] = [0, 1, 2, 3].map(|j| w[(i + j) % 4]);
                let sum = _mm_add_epi32(_mm_sha256msg1_epu32(a, b), _mm_alignr_epi8::<4>(d, c));
                w[i % 4] = _mm_sha256msg2_epu32(sum, d);
            }
            let Halves(abef, cdgh) = *state;
            let sum = _mm_add_epi32(w[i % 4], k);
            let cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            let abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32::<0x0e>(sum));
            *state = Halves(abef, cdgh);
        }
    }
    for (state, before) in states.iter_mut().zip(before) {
        *state = Halves(_mm_add_epi32(state.0, before.0), _mm_add_epi32(state.1, before.1));
    }
}
