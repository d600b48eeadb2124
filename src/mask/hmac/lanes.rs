//! Messages side by side: grouped by their number of blocks, so that all lanes of a group end together.

use super::{BLOCK, KeyState, Tag, portable};

/// The constants K of SHA-256 (FIPS 180-4, section 4.2.2).
#[rustfmt::skip]
pub(super) static K: [u32; 64] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
];

/// Blocks that a message of a group may have; longer ones gain nothing from company.
const MAX_BLOCKS: usize = 4;
/// Lanes of a group that must be taken for it to be worth its while, as a part of all.
const WORTH: usize = 4;

/// First word of the padding of the outer block: its message is one digest.
pub(super) const OUTER_PAD: u32 = 0x8000_0000;
/// Bits of the outer message: the padded key and one digest.
pub(super) const OUTER_BITS: u32 = (BLOCK as u32 + 32) * 8;

/// The blocks that a message takes with its padding (FIPS 180-4, section 5.1.1), without that of the key.
pub(super) fn blocks(length: usize) -> usize {
    (length + 9).div_ceil(BLOCK)
}

/// Bits of the whole inner message.
pub(super) fn bits(length: usize) -> u32 {
    (BLOCK as u32 + length as u32) * 8 // at most MAX_BLOCKS
}

/// Block `number` of a message with its padding, apart from the length in the last one.
pub(super) fn padded(message: &[u8], number: usize) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let start = number * BLOCK;
    if let Some(rest) = message.get(start..) {
        let n = rest.len().min(BLOCK);
        copy(&rest[..n], &mut block);
        if n < BLOCK {
            block[n] = 0x80;
        }
    }
    block
}

/// Copies at most a block, by two pieces of a fixed length that may overlap: a call for a few bytes costs more than they do.
fn copy(from: &[u8], to: &mut [u8; BLOCK]) {
    fn ends<const N: usize>(from: &[u8], to: &mut [u8; BLOCK]) -> Option<()> {
        let end = from.len() - N;
        to[..N].copy_from_slice(from.first_chunk::<N>()?);
        to[end..end + N].copy_from_slice(from.last_chunk::<N>()?);
        Some(())
    }
    match from.len() {
        32.. => drop(ends::<32>(from, to)),
        16.. => drop(ends::<16>(from, to)),
        8.. => drop(ends::<8>(from, to)),
        4.. => drop(ends::<4>(from, to)),
        _ => to.iter_mut().zip(from).for_each(|(to, from)| *to = *from),
    }
}

/// Runs `group` on messages of equal numbers of blocks, `N` at a time, and the portable code on what is too long or left alone.
pub(super) fn grouped<const N: usize>(
    key: &KeyState,
    messages: &[&[u8]],
    out: &mut [Tag],
    mut group: impl FnMut(&[&[u8]; N], usize) -> [Tag; N],
) {
    let mut waiting = [([0usize; N], 0); MAX_BLOCKS];
    let mut index = 0;
    while let Some(message) = messages.get(index) {
        let many = blocks(message.len());
        // Mostly the next ones are alike, and need not be gathered.
        if let Some(next) = messages[index..].first_chunk::<N>()
            && many <= MAX_BLOCKS
            && next.iter().all(|m| blocks(m.len()) == many)
        {
            out[index..index + N].copy_from_slice(&group(next, many));
            index += N;
            continue;
        }
        match waiting.get_mut(many - 1) {
            Some((members, taken)) => {
                members[*taken] = index;
                *taken += 1;
                if *taken == N {
                    *taken = 0;
                    gathered(messages, members, many, out, &mut group);
                }
            }
            None => portable::tags(key, &messages[index..=index], &mut out[index..=index]),
        }
        index += 1;
    }
    for (blocks, (members, taken)) in waiting.iter().enumerate() {
        let members = &members[..*taken];
        if members.len() * WORTH >= N && members.len() > 1 {
            gathered(messages, members, blocks + 1, out, &mut group);
        } else {
            for index in members {
                portable::tags(key, &messages[*index..=*index], &mut out[*index..=*index]);
            }
        }
    }
}

/// Runs `group` on the messages of these numbers. Lanes that nobody takes compute the first of them again.
fn gathered<const N: usize>(
    messages: &[&[u8]],
    members: &[usize],
    blocks: usize,
    out: &mut [Tag],
    group: &mut impl FnMut(&[&[u8]; N], usize) -> [Tag; N],
) {
    let lanes = std::array::from_fn(|lane| messages[*members.get(lane).unwrap_or(&members[0])]);
    for (index, tag) in members.iter().zip(group(&lanes, blocks)) {
        out[*index] = tag;
    }
}
