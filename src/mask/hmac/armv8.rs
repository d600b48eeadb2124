//! Two messages at once with the SHA-2 instructions of `ARMv8`: each hides the latency of the other.
//!
//! Source of the order of instructions: Arm Architecture Reference Manual for A-profile, SHA256H, SHA256H2, SHA256SU0, SHA256SU1.

use std::arch::aarch64::{
    uint32x4_t, vaddq_u32, vdupq_n_u32, vld1q_u8, vld1q_u32, vreinterpretq_u8_u32, vreinterpretq_u32_u8, vrev32q_u8,
    vsha256h2q_u32, vsha256hq_u32, vsha256su0q_u32, vsha256su1q_u32, vst1q_u8,
};

use super::lanes::{K, OUTER_BITS, OUTER_PAD, bits, grouped, padded};
use super::{BLOCK, KeyState, Tag};

/// Messages at once.
const LANES: usize = 2;

/// A state: words A B C D and E F G H.
#[derive(Clone, Copy)]
struct Halves(uint32x4_t, uint32x4_t);

/// Whether this machine has what [`tags`] needs.
pub(super) fn available() -> bool {
    std::arch::is_aarch64_feature_detected!("sha2")
}

/// See [`super::tags`].
pub(super) fn tags(key: &KeyState, messages: &[&[u8]], out: &mut [Tag]) {
    assert!(available());
    grouped(key, messages, out, |lanes, blocks| {
        // SAFETY: the feature is available, as asserted above.
        unsafe { group(key, lanes, blocks) }
    });
}

#[target_feature(enable = "neon,sha2")]
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

#[target_feature(enable = "neon,sha2")]
fn halves(state: &[u32; 8]) -> Halves {
    // SAFETY: twice 16 bytes are read from an array of 32 bytes.
    unsafe { Halves(vld1q_u32(state.as_ptr()), vld1q_u32(state[4..].as_ptr())) }
}

/// The state as a digest.
#[target_feature(enable = "neon,sha2")]
fn bytes(Halves(abcd, efgh): Halves) -> Tag {
    let mut out = Tag::default();
    let swapped = |words| vrev32q_u8(vreinterpretq_u8_u32(words));
    // SAFETY: twice 16 bytes are written to an array of 32 bytes.
    unsafe {
        vst1q_u8(out.as_mut_ptr(), swapped(abcd));
        vst1q_u8(out[16..].as_mut_ptr(), swapped(efgh));
    }
    out
}

/// One compression of each state.
#[target_feature(enable = "neon,sha2")]
fn compress(states: &mut [Halves; LANES], blocks: &[[u8; BLOCK]; LANES]) {
    let before = *states;
    // Four words each of the schedule, the oldest first.
    let mut w = [[vdupq_n_u32(0); LANES]; 4];
    for (quarter, words) in w.iter_mut().enumerate() {
        for (words, block) in words.iter_mut().zip(blocks) {
            // SAFETY: 16 bytes are read from one quarter of an array of 64 bytes.
            let bytes = unsafe { vld1q_u8(block[quarter * 16..quarter * 16 + 16].as_ptr()) };
            *words = vreinterpretq_u32_u8(vrev32q_u8(bytes));
        }
    }
    for (i, k) in K.as_chunks::<4>().0.iter().enumerate() {
        // SAFETY: 16 bytes are read from an array of 16 bytes.
        let k = unsafe { vld1q_u32(k.as_ptr()) };
        for lane in 0..LANES {
            if i >= 4 {
                let [a, b, c, d] = [0, 1, 2, 3].map(|j| w[(i + j) % 4][lane]);
                w[i % 4][lane] = vsha256su1q_u32(vsha256su0q_u32(a, b), c, d);
            }
            let Halves(abcd, efgh) = states[lane];
            let sum = vaddq_u32(w[i % 4][lane], k);
            states[lane] = Halves(vsha256hq_u32(abcd, efgh, sum), vsha256h2q_u32(efgh, abcd, sum));
        }
    }
    for (state, before) in states.iter_mut().zip(before) {
        *state = Halves(vaddq_u32(state.0, before.0), vaddq_u32(state.1, before.1));
    }
}
