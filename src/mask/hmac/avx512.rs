//! Sixteen messages at once with AVX-512: one lane of 32 bits each.

use std::arch::x86_64::{
    __m512i, _mm256_storeu_si256, _mm512_add_epi32, _mm512_castsi512_si256, _mm512_mask_blend_epi8, _mm512_maskz_loadu_epi8,
    _mm512_ror_epi32, _mm512_set1_epi8, _mm512_set1_epi32, _mm512_set4_epi32, _mm512_setzero_si512, _mm512_shuffle_epi8,
    _mm512_shuffle_i32x4, _mm512_srli_epi32, _mm512_ternarylogic_epi32, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64,
    _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};

use super::lanes::{K, OUTER_BITS, OUTER_PAD, bits, grouped};
use super::{BLOCK, KeyState, Tag};

/// Messages at once.
const LANES: usize = 16;

/// Words of a block, or of a state, each of all lanes.
type Words<const N: usize> = [__m512i; N];

/// Whether this machine has what [`tags`] needs.
pub(super) fn available() -> bool {
    std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512bw")
}

/// See [`super::tags`].
pub(super) fn tags(key: &KeyState, messages: &[&[u8]], out: &mut [Tag]) {
    assert!(available());
    grouped(key, messages, out, |lanes, blocks| {
        // SAFETY: the features are available, as asserted above.
        unsafe { group(key, lanes, blocks) }
    });
}

#[target_feature(enable = "avx512f,avx512bw")]
fn group(key: &KeyState, messages: &[&[u8]; LANES], blocks: usize) -> [Tag; LANES] {
    let mut state = key.inner.map(|word| _mm512_set1_epi32(word as i32));
    for number in 0..blocks {
        let mut words = load(messages, number);
        if number + 1 == blocks {
            let lengths = messages.map(|m| bits(m.len()));
            words[15] = from_lanes(&lengths);
        }
        compress(&mut state, words);
    }
    let mut words = [_mm512_setzero_si512(); 16];
    words[..8].copy_from_slice(&state);
    words[8] = _mm512_set1_epi32(OUTER_PAD as i32);
    words[15] = _mm512_set1_epi32(OUTER_BITS as i32);
    let mut state = key.outer.map(|word| _mm512_set1_epi32(word as i32));
    compress(&mut state, words);
    store(&state)
}

/// Block `number` of each message with its padding, word by word.
#[target_feature(enable = "avx512f,avx512bw")]
fn load(messages: &[&[u8]; LANES], number: usize) -> Words<16> {
    let end = _mm512_set1_epi8(0x80u8.cast_signed());
    let mut rows = [_mm512_setzero_si512(); LANES];
    for (row, message) in rows.iter_mut().zip(messages) {
        let Some(rest) = message.get(number * BLOCK..) else { continue };
        // A shift by 64 bits or more leaves nothing: no bit is set for a whole block.
        let after = 1u64.checked_shl(rest.len() as u32).unwrap_or(0);
        // SAFETY: only bytes within `rest` are read, as the mask has a bit for each of its first 64 bytes and for no other.
        let bytes = unsafe { _mm512_maskz_loadu_epi8(after.wrapping_sub(1), rest.as_ptr().cast()) };
        *row = swap(_mm512_mask_blend_epi8(after, bytes, end));
    }
    transpose(rows)
}

/// A vector of these lanes.
#[target_feature(enable = "avx512f,avx512bw")]
fn from_lanes(lanes: &[u32; LANES]) -> __m512i {
    // SAFETY: 64 bytes are read from an array of 64 bytes.
    unsafe { _mm512_maskz_loadu_epi8(u64::MAX, lanes.as_ptr().cast()) }
}

/// The states of all lanes as tags.
#[target_feature(enable = "avx512f,avx512bw")]
fn store(state: &Words<8>) -> [Tag; LANES] {
    let mut rows = [_mm512_setzero_si512(); 16];
    rows[..8].copy_from_slice(state);
    let mut out = [Tag::default(); LANES];
    for (tag, row) in out.iter_mut().zip(transpose(rows)) {
        // SAFETY: 32 bytes are written to an array of 32 bytes.
        unsafe { _mm256_storeu_si256(tag.as_mut_ptr().cast(), _mm512_castsi512_si256(swap(row))) };
    }
    out
}

/// The bytes of each word in the other order.
#[target_feature(enable = "avx512f,avx512bw")]
fn swap(words: __m512i) -> __m512i {
    _mm512_shuffle_epi8(words, _mm512_set4_epi32(0x0c0d_0e0f, 0x0809_0a0b, 0x0405_0607, 0x0001_0203))
}

/// Rows to columns, 16 by 16: first within pairs of rows, then of pairs of words, then of quarters of a vector.
#[expect(clippy::large_types_passed_by_value, reason = "inlined, and then held in registers")]
#[target_feature(enable = "avx512f")]
fn transpose(rows: Words<16>) -> Words<16> {
    let mut pairs = rows;
    for i in (0..16).step_by(2) {
        pairs[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    }
    let mut fours = rows;
    for i in (0..16).step_by(4) {
        fours[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
        fours[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
        fours[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
        fours[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
    }
    let mut columns = rows;
    for i in 0..4 {
        let [a, b, c, d] = [fours[i], fours[4 + i], fours[8 + i], fours[12 + i]];
        let (ab_low, cd_low) = (_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0x44>(c, d));
        let (ab_high, cd_high) = (_mm512_shuffle_i32x4::<0xee>(a, b), _mm512_shuffle_i32x4::<0xee>(c, d));
        columns[i] = _mm512_shuffle_i32x4::<0x88>(ab_low, cd_low);
        columns[4 + i] = _mm512_shuffle_i32x4::<0xdd>(ab_low, cd_low);
        columns[8 + i] = _mm512_shuffle_i32x4::<0x88>(ab_high, cd_high);
        columns[12 + i] = _mm512_shuffle_i32x4::<0xdd>(ab_high, cd_high);
    }
    columns
}

/// `a ⊕ b ⊕ c`.
const XOR3: i32 = 0x96;
/// Ch of SHA-256: of each bit of the first, the second where it is set, else the third.
const CHOOSE: i32 = 0xca;
/// Maj of SHA-256: of each bit, what two of the three have.
const MAJORITY: i32 = 0xe8;

#[target_feature(enable = "avx512f")]
fn add(a: __m512i, b: __m512i) -> __m512i {
    _mm512_add_epi32(a, b)
}

/// One step of the schedule: `a + σ0(b) + c + σ1(d)`.
#[target_feature(enable = "avx512f")]
fn schedule(a: __m512i, b: __m512i, c: __m512i, d: __m512i) -> __m512i {
    let s0 = _mm512_ternarylogic_epi32::<XOR3>(_mm512_ror_epi32::<7>(b), _mm512_ror_epi32::<18>(b), _mm512_srli_epi32::<3>(b));
    let s1 = _mm512_ternarylogic_epi32::<XOR3>(_mm512_ror_epi32::<17>(d), _mm512_ror_epi32::<19>(d), _mm512_srli_epi32::<10>(d));
    add(add(a, s0), add(c, s1))
}

/// One round of SHA-256 (FIPS 180-4, section 6.2.2, step 3) on a state whose names have been turned instead of its words.
macro_rules! round {
    ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident, $word:expr, $k:expr) => {
        let s1 =
            _mm512_ternarylogic_epi32::<XOR3>(_mm512_ror_epi32::<6>($e), _mm512_ror_epi32::<11>($e), _mm512_ror_epi32::<25>($e));
        let s0 =
            _mm512_ternarylogic_epi32::<XOR3>(_mm512_ror_epi32::<2>($a), _mm512_ror_epi32::<13>($a), _mm512_ror_epi32::<22>($a));
        let kw = add($word, _mm512_set1_epi32($k as i32));
        let t1 = add(add($h, kw), add(s1, _mm512_ternarylogic_epi32::<CHOOSE>($e, $f, $g)));
        $d = add($d, t1);
        $h = add(t1, add(s0, _mm512_ternarylogic_epi32::<MAJORITY>($a, $b, $c)));
    };
}

/// One compression in each lane.
#[target_feature(enable = "avx512f")]
fn compress(state: &mut Words<8>, mut w: Words<16>) {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (i, k) in K.as_chunks::<16>().0.iter().enumerate() {
        if i > 0 {
            // Each word needs that of two places before, so the order is fixed.
            for t in 0..16 {
                w[t] = schedule(w[t], w[(t + 1) % 16], w[(t + 9) % 16], w[(t + 14) % 16]);
            }
        }
        round!(a b c d e f g h, w[0], k[0]);
        round!(h a b c d e f g, w[1], k[1]);
        round!(g h a b c d e f, w[2], k[2]);
        round!(f g h a b c d e, w[3], k[3]);
        round!(e f g h a b c d, w[4], k[4]);
        round!(d e f g h a b c, w[5], k[5]);
        round!(c d e f g h a b, w[6], k[6]);
        round!(b c d e f g h a, w[7], k[7]);
        round!(a b c d e f g h, w[8], k[8]);
        round!(h a b c d e f g, w[9], k[9]);
        round!(g h a b c d e f, w[10], k[10]);
        round!(f g h a b c d e, w[11], k[11]);
        round!(e f g h a b c d, w[12], k[12]);
        round!(d e f g h a b c, w[13], k[13]);
        round!(c d e f g h a b, w[14], k[14]);
        round!(b c d e f g h a, w[15], k[15]);
    }
    for (word, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = add(*word, new);
    }
}
