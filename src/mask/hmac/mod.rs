//! HMAC-SHA256 (RFC 2104, FIPS 198-1) of many messages under one key.
//!
//! One batch call, [`tags`]; the implementation behind it is chosen once. All `unsafe` code of the project belongs in this folder.

mod portable;

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

/// An implementation of [`tags`].
type Batch = fn(&KeyState, &[&[u8]], &mut [Tag]);

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
pub(super) fn tags(key: &KeyState, messages: &[&[u8]], out: &mut [Tag]) {
    static CHOSEN: OnceLock<Batch> = OnceLock::new();
    assert_eq!(messages.len(), out.len(), "one tag a message");
    CHOSEN.get_or_init(choose)(key, messages, out);
}

/// The implementation for this machine, after a look at whether it computes what it should.
///
/// # Panics
/// If it does not: nothing may be written on a machine that computes wrong tokens.
fn choose() -> Batch {
    let batch: Batch = portable::tags;
    assert!(gives_known_answers(batch), "self-test: HMAC-SHA256 gives wrong answers on this machine");
    batch
}

/// Whether `batch` agrees with the `hmac` crate on messages around each border of the padding, under a public key.
fn gives_known_answers(batch: Batch) -> bool {
    const PUBLIC_KEY: &[u8] = b"hmask self-test, not a secret";
    const TEXT: [u8; 130] = [b'x'; 130];
    let messages = [0, 1, 55, 56, 63, 64, 119, 120, 130].map(|n| &TEXT[..n]);
    let mut out = [Tag::default(); 9];
    batch(&KeyState::new(PUBLIC_KEY), &messages, &mut out);
    messages.iter().zip(out).all(|(message, tag)| {
        let mac = Hmac::<Sha256>::new_from_slice(PUBLIC_KEY).map(|mac| mac.chain_update(message));
        mac.is_ok_and(|mac| mac.verify(&tag.into()).is_ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oracle(key: &[u8], message: &[u8]) -> Tag {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        mac.update(message);
        mac.finalize().into_bytes().into()
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
            let mut out = [Tag::default()];
            tags(&KeyState::new(&key), &[data], &mut out);
            let hex = crate::mask::hex(&out[0]);
            assert!(hex.starts_with(want), "{hex} is not {want}");
        }
    }

    #[test]
    fn every_length_agrees_with_the_hmac_crate_in_one_mixed_batch() {
        let data: Vec<u8> = (0..1000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for key_len in [0, 1, 32, 63, 64, 65, 127, 128, 129, 200] {
            let key = &data[..key_len];
            let messages: Vec<&[u8]> = (0..=300).rev().chain([1000]).map(|n| &data[data.len() - n..]).collect();
            let mut out = vec![Tag::default(); messages.len()];
            tags(&KeyState::new(key), &messages, &mut out);
            for (message, tag) in messages.iter().zip(&out) {
                assert_eq!(*tag, oracle(key, message), "key of {key_len}, message of {} bytes", message.len());
            }
        }
    }
}
