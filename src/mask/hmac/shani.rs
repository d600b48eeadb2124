//! Two messages at once with the SHA extensions: each hides the latency of the other.
//!
//! Source of the order of instructions: Intel, "Intel SHA Extensions: New Instructions Supporting the Secure Hash Algorithm" (2013).

use std::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_alignr_epi8, _mm_blend_epi16, _mm_loadu_si128, _mm_set_epi8, _mm_sha256msg1_epu32,
    _mm_sha256msg2_epu32, _mm_sha256rnds2_epu32, _mm_shuffle_epi8, _mm_shuffle_epi32, _mm_storeu_si128,
};

use super::lanes::{K, OUTER_BITS, OUTER_PAD, bits, grouped, padded};
use super::{BLOCK, KeyState, Tag};

/// Messages at once.
const LANES: usize = 2;

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
        let mut padded = messages.map(|m| padded(m, number));
        if number + 1 == blocks {
            for (block, message) in padded.iter_mut().zip(messages) {
                block[BLOCK - 4..].copy_from_slice(&bits(message.len()).to_be_bytes());
            }
        }
        compress(&mut states, &padded);
    }
    let outer = states.map(|state| {
        let mut block = [0; BLOCK];
        block[..32].copy_from_slice(&bytes(state));
        block[32..36].copy_from_slice(&OUTER_PAD.to_be_bytes());
        block[BLOCK - 4..].copy_from_slice(&OUTER_BITS.to_be_bytes());
        block
    });
    states = [halves(&key.outer); LANES];
    compress(&mut states, &outer);
    states.map(|state| bytes(state))
}

#[target_feature(enable = "sha,sse4.1,ssse3")]
fn halves(state: &[u32; 8]) -> Halves {
    // SAFETY: twice 16 bytes are read from an array of 32 bytes.
    let (abcd, efgh) = unsafe { (_mm_loadu_si128(state.as_ptr().cast()), _mm_loadu_si128(state[4..].as_ptr().cast())) };
    let (abcd, efgh) = (_mm_shuffle_epi32::<0xb1>(abcd), _mm_shuffle_epi32::<0x1b>(efgh));
    Halves(_mm_alignr_epi8::<8>(abcd, efgh), _mm_blend_epi16::<0xf0>(efgh, abcd))
}

/// The state as a digest.
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn bytes(Halves(abef, cdgh): Halves) -> Tag {
    let (feba, dchg) = (_mm_shuffle_epi32::<0x1b>(abef), _mm_shuffle_epi32::<0xb1>(cdgh));
    let (abcd, efgh) = (_mm_blend_epi16::<0xf0>(feba, dchg), _mm_alignr_epi8::<8>(dchg, feba));
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

/// One compression of each state.
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn compress(states: &mut [Halves; LANES], blocks: &[[u8; BLOCK]; LANES]) {
    let before = *states;
    // Four words each of the schedule, the oldest first.
    let mut w = [[_mm_set_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0); LANES]; 4];
    for (quarter, words) in w.iter_mut().enumerate() {
        for (words, block) in words.iter_mut().zip(blocks) {
            // SAFETY: 16 bytes are read from one quarter of an array of 64 bytes.
            *words = swap(unsafe { _mm_loadu_si128(block[quarter * 16..quarter * 16 + 16].as_ptr().cast()) });
        }
    }
    for (i, k) in K.as_chunks::<4>().0.iter().enumerate() {
        // SAFETY: 16 bytes are read from an array of 16 bytes.
        let k = unsafe { _mm_loadu_si128(k.as_ptr().cast()) };
        for lane in 0..LANES {
            if i >= 4 {
                let [a, b, c, d] = [0, 1, 2, 3].map(|j| w[(i + j) % 4][lane]);
                let sum = _mm_add_epi32(_mm_sha256msg1_epu32(a, b), _mm_alignr_epi8::<4>(d, c));
                w[i % 4][lane] = _mm_sha256msg2_epu32(sum, d);
            }
            let Halves(abef, cdgh) = states[lane];
            let sum = _mm_add_epi32(w[i % 4][lane], k);
            let cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            let abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32::<0x0e>(sum));
            states[lane] = Halves(abef, cdgh);
        }
    }
    for (state, before) in states.iter_mut().zip(before) {
        *state = Halves(_mm_add_epi32(state.0, before.0), _mm_add_epi32(state.1, before.1));
    }
}
