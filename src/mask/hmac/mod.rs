//! HMAC-SHA256 (RFC 2104, FIPS 198-1) of many messages under one key.
//!
//! One batch call, `tags`; the implementation behind it is chosen once, by what the machine has and by a self-test.
//! Vector instructions are the only `unsafe` code.

#[cfg(target_arch = "aarch64")]
#[expect(unsafe_code, reason = "vector instructions")]
mod armv8;
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vector instructions")]
mod avx2;
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vector instructions")]
mod avx512;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod lanes;
mod portable;
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vector instructions")]
mod shani;

use std::sync::OnceLock;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Bytes of one SHA-256 block.
const BLOCK: usize = 64;
/// The initial hash value H(0) of SHA-256 (FIPS 180-4, section 5.3.3).
const H0: [u32; 8] = [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// A whole HMAC-SHA256 tag.
pub type Tag = [u8; 32];

/// An implementation of `tags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Sixteen lanes of AVX-512.
    Avx512,
    /// Three messages interleaved on the SHA extensions.
    ShaNi,
    /// Two messages interleaved on the SHA-2 instructions of `ARMv8`.
    ArmV8,
    /// Eight lanes of AVX2.
    Avx2,
    /// One message after another on the `sha2` crate, which has instructions of its own on x86 and ARM.
    Portable,
}

/// The kernel of this process.
static CHOSEN: OnceLock<Kernel> = OnceLock::new();

/// A key after its two padded blocks have been absorbed: all that hashing needs of it.
///
/// Whoever has it can make tags, so it is as secret as the key: wiped when dropped, neither `Clone` nor `Debug`.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct KeyState {
    inner: [u32; 8],
    outer: [u32; 8],
}

impl KeyState {
    /// Absorbs `key ⊕ ipad` and `key ⊕ opad`; a key longer than a block is hashed first, as RFC 2104 says.
    ///
    /// Done here and not by the `hmac` crate's constructor, which leaves the padded key on the stack (RustCrypto/MACs issue 255).
    pub fn new(key: &[u8]) -> Self {
        let mut block = Zeroizing::new([0u8; BLOCK]);
        if key.len() > BLOCK {
            portable::digest(key, &mut block);
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        let mut state = Self { inner: H0, outer: H0 };
        block.iter_mut().for_each(|b| *b ^= 0x36);
        portable::compress(&mut state.inner, &block);
        block.iter_mut().for_each(|b| *b ^= 0x36 ^ 0x5c);
        portable::compress(&mut state.outer, &block);
        state
    }
}

/// The tags of `messages` under one key, in order.
///
/// # Panics
/// If `out` has another length than `messages`.
pub(crate) fn tags(key: &KeyState, messages: &[&[u8]], out: &mut [Tag]) {
    Kernel::chosen().tags(key, messages, out);
}

impl Kernel {
    /// All kernels, the fastest first.
    pub const ALL: [Self; 5] = [Self::Avx512, Self::ShaNi, Self::ArmV8, Self::Avx2, Self::Portable];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::ShaNi => "sha-ni",
            Self::ArmV8 => "armv8",
            Self::Avx2 => "avx2",
            Self::Portable => "portable",
        }
    }

    /// Whether this machine has the instructions for it.
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::available(),
            #[cfg(target_arch = "x86_64")]
            Self::ShaNi => shani::available(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::available(),
            #[cfg(target_arch = "aarch64")]
            Self::ArmV8 => armv8::available(),
            Self::Portable => true,
            _ => false,
        }
    }

    /// The kernel of this process: the fastest that the machine has and that passes its self-test.
    ///
    /// # Panics
    /// If none does: nothing may be written on a machine that computes wrong tokens.
    pub fn chosen() -> Self {
        *CHOSEN.get_or_init(|| {
            let good = Self::ALL.into_iter().find(|kernel| kernel.is_available() && kernel.gives_known_answers());
            assert!(good.is_some(), "self-test: HMAC-SHA256 gives wrong answers on this machine");
            good.unwrap_or(Self::Portable)
        })
    }

    /// Makes this the kernel of the process, for tests and benchmarks. Returns whether it is: not if the machine lacks it, it fails
    /// its self-test, or another has been at work already.
    pub fn force(self) -> bool {
        self.is_available() && self.gives_known_answers() && *CHOSEN.get_or_init(|| self) == self
    }

    /// Whether a faster kernel than the chosen one was there, but failed its self-test.
    pub fn passed_over() -> Option<Self> {
        let chosen = Self::chosen();
        let faster = Self::ALL.into_iter().take_while(|kernel| *kernel != chosen);
        faster.into_iter().find(|kernel| kernel.is_available() && !kernel.gives_known_answers())
    }

    /// The tags of `messages` by this kernel.
    ///
    /// # Panics
    /// If `out` has another length than `messages`, or the machine lacks the kernel.
    pub fn tags(self, key: &KeyState, messages: &[&[u8]], out: &mut [Tag]) {
        assert_eq!(messages.len(), out.len(), "one tag a message");
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::tags(key, messages, out),
            #[cfg(target_arch = "x86_64")]
            Self::ShaNi => shani::tags(key, messages, out),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::tags(key, messages, out),
            #[cfg(target_arch = "aarch64")]
            Self::ArmV8 => armv8::tags(key, messages, out),
            Self::Portable => portable::tags(key, messages, out),
            _ => panic!("this machine has no {}", self.name()),
        }
    }

    /// Whether it agrees with the `hmac` crate on messages around each border of the padding, under a public key.
    fn gives_known_answers(self) -> bool {
        const PUBLIC_KEY: &[u8] = b"hmask self-test, not a secret";
        const TEXT: [u8; 130] = [b'x'; 130];
        const LENGTHS: [usize; 9] = [0, 1, 55, 56, 63, 64, 119, 120, 130];
        // So many of each that full groups and rests are tried.
        let messages: Vec<&[u8]> = LENGTHS.iter().cycle().take(LENGTHS.len() * 19).map(|n| &TEXT[..*n]).collect();
        let mut out = vec![Tag::default(); messages.len()];
        self.tags(&KeyState::new(PUBLIC_KEY), &messages, &mut out);
        let want = LENGTHS.map(|n| {
            let mac = Hmac::<Sha256>::new_from_slice(PUBLIC_KEY).map(|mac| mac.chain_update(&TEXT[..n]));
            mac.map(|mac| Tag::from(mac.finalize().into_bytes()))
        });
        out.iter().zip(want.iter().cycle()).all(|(tag, want)| want.as_ref().is_ok_and(|want| want == tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oracle(key: &[u8], message: &[u8]) -> Tag {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        mac.update(message);
        mac.finalize().into_bytes().into()
    }

    fn here() -> impl Iterator<Item = Kernel> {
        Kernel::ALL.into_iter().filter(|k| k.is_available())
    }

    /// RFC 4231, test cases 1 to 7: key, data, tag (the fifth has its first 16 bytes only).
    #[test]
    fn rfc_4231() {
        let cases: [(Vec<u8>, &[u8], &str); 7] = [
            (vec![0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
            (
                b"Jefe".to_vec(),
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (vec![0xaa; 20], &[0xdd; 50], "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
            (
                (1..=25).collect(),
                &[0xcd; 50],
                "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
            ),
            (vec![0x0c; 20], b"Test With Truncation", "a3b6167473100ee06e0c796c2955552b"),
            (
                vec![0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
            (
                vec![0xaa; 131],
                b"This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before being used by the HMAC algorithm.",
                "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
            ),
        ];
        for (key, data, want) in cases {
            for kernel in here() {
                // Alone, and in company of many.
                for n in [1, 16, 33] {
                    let mut out = vec![Tag::default(); n];
                    kernel.tags(&KeyState::new(&key), &vec![data; n], &mut out);
                    assert!(out.iter().all(|tag| crate::mask::hex(tag).starts_with(want)), "{kernel:?}: {want}");
                }
            }
        }
    }

    #[test]
    fn every_length_agrees_with_the_hmac_crate_in_one_mixed_batch() {
        let data: Vec<u8> = (0..3000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for key_len in [0, 1, 32, 63, 64, 65, 127, 128, 129, 200] {
            let key = &data[..key_len];
            let messages: Vec<&[u8]> = (0..=300).rev().chain([1000]).map(|n| &data[data.len() - n..]).collect();
            for kernel in here() {
                let mut out = vec![Tag::default(); messages.len()];
                kernel.tags(&KeyState::new(key), &messages, &mut out);
                for (message, tag) in messages.iter().zip(&out) {
                    assert_eq!(*tag, oracle(key, message), "{kernel:?}, key of {key_len}, message of {} bytes", message.len());
                }
            }
        }
    }

    #[test]
    fn random_batches_agree_between_all_kernels() {
        use proptest::prelude::*;
        let batch = proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..70);
        proptest!(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() }, |(batch in batch, key in any::<[u8; 40]>())| {
            let messages: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
            let want: Vec<Tag> = messages.iter().map(|m| oracle(&key, m)).collect();
            for kernel in here() {
                let mut out = vec![Tag::default(); messages.len()];
                kernel.tags(&KeyState::new(&key), &messages, &mut out);
                prop_assert_eq!(&out, &want, "{:?}", kernel);
            }
        });
    }

    #[test]
    fn a_message_of_megabytes() {
        let long = vec![7; 3 << 20];
        for kernel in here() {
            let mut out = [Tag::default(); 3];
            kernel.tags(&KeyState::new(b"key"), &[&long, b"", &long[..1 << 20]], &mut out);
            assert_eq!(out, [oracle(b"key", &long), oracle(b"key", b""), oracle(b"key", &long[..1 << 20])]);
        }
    }

    #[test]
    fn the_chosen_kernel_stays() {
        let chosen = Kernel::chosen();
        #[cfg(target_arch = "aarch64")]
        assert!(chosen == Kernel::ArmV8 || !std::arch::is_aarch64_feature_detected!("sha2"));
        assert!(chosen.force());
        assert!(here().filter(|k| *k != chosen).all(|k| !k.force()));
        assert_eq!(Kernel::passed_over(), None);
    }
}
