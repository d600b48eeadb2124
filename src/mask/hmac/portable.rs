//! The implementation for every machine: one message after another, on the compression function of the `sha2` crate.

use sha2::block_api::compress256;

use super::{BLOCK, H0, KeyState, Tag};

/// See [`super::tags`].
pub(super) fn tags(key: &KeyState, messages: &[&[u8]], out: &mut [Tag]) {
    for (message, tag) in messages.iter().zip(out) {
        *tag = one(key, message);
    }
}

/// One compression of one block.
pub(super) fn compress(state: &mut [u32; 8], block: &[u8; BLOCK]) {
    compress256(state, std::slice::from_ref(block));
}

/// Plain SHA-256 of `data` into the first 32 bytes of `out`.
pub(super) fn digest(data: &[u8], out: &mut [u8; BLOCK]) {
    let mut state = H0;
    absorb(&mut state, data, 0);
    out[..32].copy_from_slice(&to_bytes(&state));
}

fn one(key: &KeyState, message: &[u8]) -> Tag {
    let mut state = key.inner;
    absorb(&mut state, message, BLOCK);
    let inner = to_bytes(&state);
    state = key.outer;
    absorb(&mut state, &inner, BLOCK);
    to_bytes(&state)
}

/// Absorbs `message` with its padding (FIPS 180-4, section 5.1.1), where `before` bytes have been absorbed already.
fn absorb(state: &mut [u32; 8], message: &[u8], before: usize) {
    let (blocks, rest) = message.as_chunks::<BLOCK>();
    compress256(state, blocks);
    let mut tail = [[0u8; BLOCK]; 2];
    let used = if rest.len() < BLOCK - 8 { 1 } else { 2 };
    let flat = tail.as_flattened_mut();
    flat[..rest.len()].copy_from_slice(rest);
    flat[rest.len()] = 0x80;
    let bits = (message.len() as u64 + before as u64) * 8;
    flat[used * BLOCK - 8..used * BLOCK].copy_from_slice(&bits.to_be_bytes());
    compress256(state, &tail[..used]);
}

fn to_bytes(state: &[u32; 8]) -> Tag {
    let mut out = Tag::default();
    for (bytes, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *bytes = word.to_be_bytes();
    }
    out
}
