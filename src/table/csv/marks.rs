//! Where the fields of a text end, by arithmetic on bit masks: a bit for each of 64 bytes.
//!
//! That quotes open and close by turns, so that a running exclusive or tells what lies within them, is an idea of simdjson: G. Langdale,
//! D. Lemire, "Parsing Gigabytes of JSON per Second" (2019), section 3.1.1.
//!
//! What compares bytes, and what puts places down, is one for all machines or that of AVX-512 or AVX2: their instructions need a call
//! that is `unsafe` unless the machine has been asked for them.

use wide::u8x64;

/// Bytes looked at in one step.
const STEP: usize = 64;
/// Places put down at once, whether or not there are so many: to ask after each would cost more.
const AT_ONCE: usize = 8;
/// The same with AVX-512.
const AT_ONCE_512: usize = 16;
/// Places that are needed beyond one for each byte.
pub(super) const ROOM: usize = STEP + AT_ONCE_512;

/// What is found in a text: ends of fields, ends of records among them, and LFs within quotes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub count: usize,
    pub records: usize,
    pub within_quotes: usize,
}

/// A text and what structures it.
#[derive(Clone, Copy)]
struct Text<'t> {
    bytes: &'t [u8],
    delimiter: u8,
    quote: Option<u8>,
}

/// Finds where all fields end, by a delimiter or LF, or none if something is not as it should be: a NUL, a CR without its LF, a quote
/// within a field or behind its end.
pub(super) fn marks(bytes: &[u8], delimiter: u8, quote: Option<u8>, ends: &mut [u32]) -> Option<Marks> {
    let text = Text { bytes, delimiter, quote };
    #[cfg(target_arch = "x86_64")]
    if x86::has_avx512() {
        return x86::avx512(text, ends);
    } else if x86::has_avx2() {
        return x86::avx2(text, ends);
    }
    anywhere(text, ends)
}

/// On any machine.
fn anywhere(text: Text<'_>, ends: &mut [u32]) -> Option<Marks> {
    let equal = |block: &[u8; STEP], byte: u8| u8x64::new(*block).simd_eq(u8x64::splat(byte)).to_bitmask();
    text.marks(ends, equal, running_xor, put_down)
}

/// For each bit whether the number of bits set up to it is odd.
#[expect(clippy::inline_always, reason = "called for each 64 bytes: a call of its own would cost more than its work")]
#[inline(always)]
fn running_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// Puts down the places of the bits that are set, `base` more each.
#[expect(clippy::inline_always, reason = "called for each 64 bytes: a call of its own would cost more than its work")]
#[inline(always)]
fn put_down(mut bits: u64, base: u32, to: &mut [u32]) -> Option<()> {
    let mut at = 0;
    while bits != 0 {
        for place in to.get_mut(at..)?.first_chunk_mut::<AT_ONCE>()? {
            *place = base + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
        }
        at += AT_ONCE;
    }
    Some(())
}

impl Text<'_> {
    /// See [`marks`]; `equal` sets a bit for each byte that equals the one given, `odd` is a running exclusive or, `put` puts places down.
    #[expect(clippy::inline_always, reason = "compiled for the instructions of its caller")]
    #[inline(always)]
    fn marks(
        self,
        ends: &mut [u32],
        equal: impl Fn(&[u8; STEP], u8) -> u64,
        odd: impl Fn(u64) -> u64,
        put: impl Fn(u64, u32, &mut [u32]) -> Option<()>,
    ) -> Option<Marks> {
        let mut before = Before { within: 0, ended: 1, closed: 0, cr: 0 };
        let mut marks = Marks::default();
        let (blocks, rest) = self.bytes.as_chunks::<STEP>();
        let mut tail = [b' '; STEP]; // a blank could be the delimiter: then the last bytes are no whole record, and nothing is lost
        tail[..rest.len()].copy_from_slice(rest);
        for (number, block) in blocks.iter().chain(std::iter::once(&tail)).enumerate() {
            let are = |byte| equal(block, byte);
            let bits = Bits { feeds: are(b'\n'), returns: are(b'\r'), quotes: self.quote.map_or(0, are) };
            let structure = before.step(bits, are(self.delimiter), &odd).filter(|_| are(0) == 0)?;
            put(structure, (number * STEP) as u32, ends.get_mut(marks.count..)?)?;
            marks.count += structure.count_ones() as usize;
            marks.records += (bits.feeds & structure).count_ones() as usize;
            if bits.feeds & !structure != 0 {
                marks.within_quotes += (bits.feeds & !structure).count_ones() as usize;
            }
        }
        Some(marks)
    }
}

/// Which of 64 bytes are LF, CR and quotes.
#[derive(Clone, Copy)]
struct Bits {
    feeds: u64,
    returns: u64,
    quotes: u64,
}

/// What the steps before have left behind.
struct Before {
    /// All bits set within quotes.
    within: u64,
    /// Whether the last byte ended a field, was a closing quote, or a CR.
    ended: u64,
    closed: u64,
    cr: u64,
}

impl Before {
    /// All that ends a field among 64 bytes; none if something is not as it should be.
    #[expect(clippy::inline_always, reason = "the loop around it keeps all of this in registers")]
    #[inline(always)]
    fn step(&mut self, bits: Bits, delimiters: u64, odd: impl Fn(u64) -> u64) -> Option<u64> {
        let Bits { feeds, returns, quotes } = bits;
        let within = odd(quotes) ^ self.within;
        let structure = (delimiters | feeds) & !within;
        let (opening, closing) = (quotes & within, quotes & !within);
        let (after_end, after_close) = (structure << 1 | self.ended, closing << 1 | self.closed);
        // An LF behind each CR; a quote that opens where a field begins, or makes a double of the one before; one that closes before the
        // end of a field, or is half of a double.
        let stray = (returns << 1 | self.cr) & !feeds
            | opening & !(after_end | after_close)
            | after_close & !(structure | opening | returns);
        *self = Self {
            within: (within.cast_signed() >> (u64::BITS - 1)).cast_unsigned(),
            ended: structure >> (u64::BITS - 1),
            closed: closing >> (u64::BITS - 1),
            cr: returns >> (u64::BITS - 1),
        };
        (stray == 0).then_some(structure)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::is_x86_feature_detected as has;
    use std::arch::x86_64::{
        __m256i, __m512i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm256_cmpeq_epi8, _mm256_movemask_epi8,
        _mm256_set1_epi8, _mm512_add_epi32, _mm512_castsi512_si128, _mm512_cmpeq_epi8_mask, _mm512_cvtepu8_epi32,
        _mm512_maskz_compress_epi8, _mm512_set1_epi8, _mm512_set1_epi32,
    };

    use super::{AT_ONCE_512, Marks, STEP, Text, put_down};

    pub(super) fn has_avx512() -> bool {
        has!("avx512f") && has!("avx512bw") && has!("avx512vbmi2") && has_common()
    }

    pub(super) fn has_avx2() -> bool {
        has!("avx2") && has_common()
    }

    fn has_common() -> bool {
        has!("bmi1") && has!("bmi2") && has!("pclmulqdq") && has!("popcnt")
    }

    pub(super) fn avx512(text: Text<'_>, ends: &mut [u32]) -> Option<Marks> {
        assert!(has_avx512());
        // SAFETY: the machine has these instructions, as asserted above; nothing else is unsafe about them.
        #[expect(unsafe_code, reason = "vector instructions")]
        unsafe {
            with_avx512(text, ends)
        }
    }

    pub(super) fn avx2(text: Text<'_>, ends: &mut [u32]) -> Option<Marks> {
        assert!(has_avx2());
        // SAFETY: the machine has these instructions, as asserted above; nothing else is unsafe about them.
        #[expect(unsafe_code, reason = "vector instructions")]
        unsafe {
            with_avx2(text, ends)
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi1,bmi2,pclmulqdq,popcnt")]
    fn with_avx512(text: Text<'_>, ends: &mut [u32]) -> Option<Marks> {
        let load = |block: &[u8; STEP]| bytemuck::cast::<[u8; STEP], __m512i>(*block);
        let equal = |block: &[u8; STEP], byte: u8| _mm512_cmpeq_epi8_mask(load(block), _mm512_set1_epi8(byte.cast_signed()));
        let numbers = load(&std::array::from_fn(|i| i as u8));
        let put = |bits: u64, base: u32, to: &mut [u32]| {
            let base = _mm512_set1_epi32(base.cast_signed());
            // The numbers of the bits that are set, one behind the other.
            let mut places = _mm512_maskz_compress_epi8(bits, numbers);
            let (mut at, count) = (0, bits.count_ones() as usize);
            loop {
                let wide = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(places));
                *to.get_mut(at..)?.first_chunk_mut::<AT_ONCE_512>()? = bytemuck::cast(_mm512_add_epi32(base, wide));
                at += AT_ONCE_512;
                if at >= count {
                    return Some(());
                }
                places = _mm512_maskz_compress_epi8(u64::MAX << AT_ONCE_512, places);
            }
        };
        text.marks(ends, equal, |bits| running_xor(bits), put)
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,pclmulqdq,popcnt")]
    fn with_avx2(text: Text<'_>, ends: &mut [u32]) -> Option<Marks> {
        let equal = |block: &[u8; STEP], byte: u8| {
            let byte = _mm256_set1_epi8(byte.cast_signed());
            let [low, high] = bytemuck::cast::<[u8; STEP], [__m256i; 2]>(*block)
                .map(|half| u64::from(_mm256_movemask_epi8(_mm256_cmpeq_epi8(half, byte)).cast_unsigned()));
            low | high << 32
        };
        text.marks(ends, equal, |bits| running_xor(bits), put_down)
    }

    /// A product without carries by a number all of whose bits are set.
    #[inline]
    #[target_feature(enable = "pclmulqdq")]
    fn running_xor(bits: u64) -> u64 {
        let product = _mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, bits.cast_signed()), _mm_set_epi64x(0, -1));
        _mm_cvtsi128_si64(product).cast_unsigned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_or_counts_bits() {
        for bits in [0, 1, 0b1001, 1 << 63 | 1 << 5, u64::MAX, 0x0123_4567_89ab_cdef] {
            let want = (0..64).fold(0, |odd, i| odd | u64::from((bits & u64::MAX >> (63 - i)).count_ones() % 2) << i);
            assert_eq!(running_xor(bits), want);
        }
    }

    /// Whatever the instructions, the same is found, in the same places.
    #[test]
    fn all_kinds_of_instructions_agree() {
        use proptest::prelude::*;
        type Way = fn(Text<'_>, &mut [u32]) -> Option<Marks>;
        let mut ways: Vec<(&str, Way)> = Vec::new();
        #[cfg(target_arch = "x86_64")]
        ways.extend([("avx512", x86::avx512 as Way)].into_iter().filter(|_| x86::has_avx512()));
        #[cfg(target_arch = "x86_64")]
        ways.extend([("avx2", x86::avx2 as Way)].into_iter().filter(|_| x86::has_avx2()));
        let pieces = proptest::sample::select(
            b"a||,|\n|\r\n|\"\"|\"x,\ny\"|,,,,,,,,,,,,,,,,,,,,,,,,,,,|\xc3\xa9|long enough to fill most of a block of bytes|\"|\r|\0"
                .split(|b| *b == b'|')
                .collect::<Vec<_>>(),
        );
        proptest!(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() }, |(
            text in proptest::collection::vec(pieces, 0..60), sound in any::<bool>(), quote in any::<bool>(),
        )| {
            let bytes: Vec<u8> = text.concat().into_iter().filter(|b| !sound || !b"\0\r".contains(b)).collect();
            let text = Text { bytes: &bytes, delimiter: b',', quote: quote.then_some(b'"') };
            let mut want = vec![0; bytes.len() + ROOM];
            let marks = anywhere(text, &mut want);
            for (name, way) in &ways {
                let mut ends = vec![0; bytes.len() + ROOM];
                prop_assert_eq!(way(text, &mut ends), marks, "{}", name);
                let count = marks.map_or(0, |marks| marks.count);
                prop_assert_eq!(&ends[..count], &want[..count], "{}", name);
            }
        });
    }
}
