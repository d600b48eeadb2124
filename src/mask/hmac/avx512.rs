//! Sixteen messages at once with AVX-512: one lane of 32 bits each.

use std::arch::x86_64::{
    __m512i, _mm256_storeu_si256, _mm512_add_epi32, _mm512_castsi512_si256, _mm512_extracti64x4_epi64, _mm512_inserti64x4,
    _mm512_mask_blend_epi8, _mm512_maskz_loadu_epi8, _mm512_permutex2var_epi64, _mm512_ror_epi32, _mm512_set1_epi8,
    _mm512_set1_epi32, _mm512_set4_epi32, _mm512_setr_epi64, _mm512_setzero_si512, _mm512_shuffle_epi8, _mm512_shuffle_i32x4,
    _mm512_srli_epi32, _mm512_ternarylogic_epi32, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi32,
    _mm512_unpacklo_epi64,
};

use super::lanes::{K, OUTER_BITS, OUTER_PAD, bits, grouped};
use super::{BLOCK, KeyState, Tag};

/// Messages at once.
const LANES: usize = 16;
/// Bytes of half a block: shorter messages leave its other half empty, but for their length.
const HALF: usize = BLOCK / 2;

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
    if messages.iter().all(|m| m.len() < HALF) {
        let lengths = messages.map(|m| bits(m.len()));
        compress_half(&mut state, &load_half(messages), _mm512_setzero_si512(), from_lanes(&lengths));
    } else {
        for number in 0..blocks {
            let mut words = load(messages, number);
            if number + 1 == blocks {
                let lengths = messages.map(|m| bits(m.len()));
                words[15] = from_lanes(&lengths);
            }
            compress(&mut state, words);
        }
    }
    let mut outer = key.outer.map(|word| _mm512_set1_epi32(word as i32));
    let (pad, length) = (_mm512_set1_epi32(OUTER_PAD as i32), _mm512_set1_epi32(OUTER_BITS as i32));
    compress_half(&mut outer, &state, pad, length);
    store(&outer)
}

/// The first bytes of a message that fit into 64 with its padding, and their padding: a bit is set in `after` for the byte behind it.
#[target_feature(enable = "avx512f,avx512bw")]
fn row(rest: &[u8]) -> __m512i {
    // A shift by 64 bits or more leaves nothing: no bit is set for a whole block.
    let after = 1u64.checked_shl(rest.len() as u32).unwrap_or(0);
    // SAFETY: only bytes within `rest` are read, as the mask has a bit for each of its first 64 bytes and for no other.
    let bytes = unsafe { _mm512_maskz_loadu_epi8(after.wrapping_sub(1), rest.as_ptr().cast()) };
    _mm512_mask_blend_epi8(after, bytes, _mm512_set1_epi8(0x80u8.cast_signed()))
}

/// Block `number` of each message with its padding, word by word.
#[target_feature(enable = "avx512f,avx512bw")]
fn load(messages: &[&[u8]; LANES], number: usize) -> Words<16> {
    let mut rows = [_mm512_setzero_si512(); LANES];
    for (to, message) in rows.iter_mut().zip(messages) {
        let Some(rest) = message.get(number * BLOCK..) else { continue };
        *to = swap(row(rest));
    }
    transpose(rows)
}

/// The first half of the only block of each message, which is shorter, with its padding, word by word.
#[target_feature(enable = "avx512f,avx512bw")]
fn load_half(messages: &[&[u8]; LANES]) -> Words<8> {
    let (low, high) = messages.split_at(LANES / 2);
    let mut rows = [_mm512_setzero_si512(); 8];
    for (to, (low, high)) in rows.iter_mut().zip(low.iter().zip(high)) {
        *to = swap(_mm512_inserti64x4::<1>(row(low), _mm512_castsi512_si256(row(high))));
    }
    let fours = fours(&rows);
    // What is now in quarters of a vector: words 0 and 4 of messages 0 to 3, words 0 and 4 of messages 8 to 11; and so on.
    let mut words = rows;
    for i in 0..4 {
        let (a, b) = (fours[i], fours[4 + i]);
        words[i] = _mm512_permutex2var_epi64(a, _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), b);
        words[4 + i] = _mm512_permutex2var_epi64(a, _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15), b);
    }
    words
}

/// Rows to columns, 4 by 4, within the quarters of vectors: first within pairs of rows, then of pairs of words.
#[target_feature(enable = "avx512f")]
fn fours<const N: usize>(rows: &Words<N>) -> Words<N> {
    let mut pairs = *rows;
    for i in (0..N).step_by(2) {
        pairs[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    }
    let mut fours = *rows;
    for i in (0..N).step_by(4) {
        fours[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
        fours[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
        fours[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
        fours[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
    }
    fours
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
    let fours = fours(state);
    let mut out = [Tag::default(); LANES];
    for lane in 0..4 {
        // Words 0 to 3, and 4 to 7, of lanes `lane`, `lane + 4`, `lane + 8`, `lane + 12`.
        let (a, b) = (swap(fours[lane]), swap(fours[4 + lane]));
        let near = _mm512_permutex2var_epi64(a, _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), b);
        let far = _mm512_permutex2var_epi64(a, _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15), b);
        for (at, tags) in [(lane, near), (lane + 8, far)] {
            // SAFETY: 32 bytes are written to each of two arrays of 32 bytes.
            unsafe {
                _mm256_storeu_si256(out[at].as_mut_ptr().cast(), _mm512_castsi512_si256(tags));
                _mm256_storeu_si256(out[at + 4].as_mut_ptr().cast(), _mm512_extracti64x4_epi64::<1>(tags));
            }
        }
    }
    out
}

/// The bytes of each word in the other order.
#[target_feature(enable = "avx512f,avx512bw")]
fn swap(words: __m512i) -> __m512i {
    _mm512_shuffle_epi8(words, _mm512_set4_epi32(0x0c0d_0e0f, 0x0809_0a0b, 0x0405_0607, 0x0001_0203))
}

/// Rows to columns, 16 by 16: 4 by 4, then quarters of a vector.
#[expect(clippy::large_types_passed_by_value, reason = "inlined, and then held in registers")]
#[target_feature(enable = "avx512f")]
fn transpose(rows: Words<16>) -> Words<16> {
    let fours = fours(&rows);
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

/// σ0 of the schedule.
#[target_feature(enable = "avx512f")]
fn s0(x: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<XOR3>(_mm512_ror_epi32::<7>(x), _mm512_ror_epi32::<18>(x), _mm512_srli_epi32::<3>(x))
}

/// σ1 of the schedule.
#[target_feature(enable = "avx512f")]
fn s1(x: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<XOR3>(_mm512_ror_epi32::<17>(x), _mm512_ror_epi32::<19>(x), _mm512_srli_epi32::<10>(x))
}

/// The next sixteen words of the schedule.
#[target_feature(enable = "avx512f")]
fn schedule(w: &mut Words<16>) {
    // Each word needs that of two places before, so the order is fixed.
    for t in 0..16 {
        w[t] = add(add(w[t], s0(w[(t + 1) % 16])), add(w[(t + 9) % 16], s1(w[(t + 14) % 16])));
    }
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

/// Sixteen rounds on these words.
macro_rules! rounds {
    ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident, $w:expr, $k:expr) => {
        round!($a $b $c $d $e $f $g $h, $w[0], $k[0]);
        round!($h $a $b $c $d $e $f $g, $w[1], $k[1]);
        round!($g $h $a $b $c $d $e $f, $w[2], $k[2]);
        round!($f $g $h $a $b $c $d $e, $w[3], $k[3]);
        round!($e $f $g $h $a $b $c $d, $w[4], $k[4]);
        round!($d $e $f $g $h $a $b $c, $w[5], $k[5]);
        round!($c $d $e $f $g $h $a $b, $w[6], $k[6]);
        round!($b $c $d $e $f $g $h $a, $w[7], $k[7]);
        round!($a $b $c $d $e $f $g $h, $w[8], $k[8]);
        round!($h $a $b $c $d $e $f $g, $w[9], $k[9]);
        round!($g $h $a $b $c $d $e $f, $w[10], $k[10]);
        round!($f $g $h $a $b $c $d $e, $w[11], $k[11]);
        round!($e $f $g $h $a $b $c $d, $w[12], $k[12]);
        round!($d $e $f $g $h $a $b $c, $w[13], $k[13]);
        round!($c $d $e $f $g $h $a $b, $w[14], $k[14]);
        round!($b $c $d $e $f $g $h $a, $w[15], $k[15]);
    };
}

/// One compression in each lane.
#[target_feature(enable = "avx512f")]
fn compress(state: &mut Words<8>, mut w: Words<16>) {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (i, k) in K.as_chunks::<16>().0.iter().enumerate() {
        if i > 0 {
            schedule(&mut w);
        }
        rounds!(a b c d e f g h, w, k);
    }
    for (word, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = add(*word, new);
    }
}

/// As [`compress`], of a block whose words 9 to 14 are zero: a digest, or a short message. Half of the first schedule falls away.
#[target_feature(enable = "avx512f")]
fn compress_half(state: &mut Words<8>, half: &Words<8>, w8: __m512i, w15: __m512i) {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    let k = K.as_chunks::<16>().0;
    let zero = _mm512_setzero_si512();
    let mut w = [zero; 16];
    w[..8].copy_from_slice(half);
    (w[8], w[15]) = (w8, w15);
    rounds!(a b c d e f g h, w, k[0]);
    // `schedule` without what is zero.
    w[0] = add(w[0], s0(w[1]));
    w[1] = add(add(w[1], s0(w[2])), s1(w15));
    for t in 2..6 {
        w[t] = add(add(w[t], s0(w[t + 1])), s1(w[t - 2]));
    }
    w[6] = add(add(w[6], s0(w[7])), add(w15, s1(w[4])));
    w[7] = add(add(w[7], s0(w8)), add(w[0], s1(w[5])));
    w[8] = add(w8, add(w[1], s1(w[6])));
    for t in 9..14 {
        w[t] = add(w[t - 7], s1(w[t - 2]));
    }
    w[14] = add(s0(w15), add(w[7], s1(w[12])));
    w[15] = add(add(w15, s0(w[0])), add(w[8], s1(w[13])));
    rounds!(a b c d e f g h, w, k[1]);
    for k in &k[2..] {
        schedule(&mut w);
        rounds!(a b c d e f g h, w, k);
    }
    for (word, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = add(*word, new);
    }
}
