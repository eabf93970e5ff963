// SPDX-License-Identifier: Apache-2.0
//! SHA-224 and SHA-256 of data that is whole, and HMAC with them, over AWS-LC's function for blocks.
//!
//! AWS-LC's own function writes the end of the message in pieces of any length and reads it in pieces of 16 bytes. What was written so cannot be
//! read before the processor has finished all that it began earlier, so that a short digest takes 1.7 times as long. Here it is put together in
//! registers, and written as it is read.

use std::array;
use std::hint::black_box;

/// Before the first block, in words.
pub(crate) type State = [u32; 8];

/// FIPS 180-4 §5.3.2
pub(crate) const SHA224: State = [
    0xc105_9ed8,
    0x367c_d507,
    0x3070_dd17,
    0xf70e_5939,
    0xffc0_0b31,
    0x6858_1511,
    0x64f9_8fa7,
    0xbefa_4fa4,
];
/// FIPS 180-4 §5.3.3
pub(crate) const SHA256: State = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// In bytes.
const BLOCK: usize = 64;
/// Words of eight bytes of a block.
const WORDS: usize = BLOCK / 8;

/// The digest of `data`, or the beginning of it that `out` has room for.
pub(crate) fn digest(mut state: State, data: &[u8], out: &mut [u8]) {
    absorb(&mut state, 0, data);
    written(state, out);
}

/// What a key's pads leave of `first`, in the order in which they are hashed (RFC 2104): where the MAC of each message begins.
/// In a frame of its own, which the caller can wipe.
#[inline(never)]
pub(crate) fn pads(first: State, key: &[u8]) -> [State; 2] {
    let mut padded = [0; BLOCK];
    match padded.get_mut(..key.len()) {
        Some(room) => room.copy_from_slice(key),
        None => digest(first, key, &mut padded[..digest_length(first)]),
    }
    let mut block = padded;
    let pads = [0x36, 0x5c].map(|pad| {
        block = padded.map(|byte| byte ^ pad);
        let mut state = first;
        hash(&mut state, &[block]);
        state
    });
    (padded, block) = ([0; BLOCK], [0; BLOCK]);
    black_box((&padded, &block));
    pads
}

/// The MAC of `data` by what [`pads`] made, or the beginning of it that `out` has room for; `words` of four bytes are a digest.
pub(crate) fn mac(pads: &[State; 2], words: usize, data: &[u8], out: &mut [u8]) {
    let [mut inner, mut outer] = *pads;
    absorb(&mut inner, BLOCK, data);
    // In registers, as the end of a message.
    let word = |at: usize| match at {
        _ if at < words => inner[at].swap_bytes(),
        _ if at == words => 0x80,
        _ => 0,
    };
    let bits = ((BLOCK + 4 * words) as u64 * 8).swap_bytes();
    finish::<{ WORDS / 2 }>(&mut outer, |at| match at + 1 {
        WORDS => bits,
        _ => u64::from(word(2 * at)) | u64::from(word(2 * at + 1)) << 32,
    });
    inner = [0; 8];
    black_box(&inner);
    written(outer, out);
}

/// In bytes, of the function that begins so.
fn digest_length(first: State) -> usize {
    if first == SHA224 { 28 } else { 32 }
}

/// Takes all of `data`, which came after so many bytes, and what ends a message (FIPS 180-4 §5.1.1).
#[inline(always)]
fn absorb(state: &mut State, before: usize, data: &[u8]) {
    let (blocks, end) = data.as_chunks::<BLOCK>();
    hash(state, blocks);
    let (words, rest) = end.as_chunks::<8>();
    let marked = part(data, rest) | 0x80 << (8 * rest.len());
    let bits = (before as u64 + data.len() as u64).wrapping_mul(8).swap_bytes();
    let word = |at: usize, last: usize| match words.get(at) {
        Some(word) => u64::from_le_bytes(*word),
        None if at == words.len() => marked,
        None if at == last => bits,
        None => 0,
    };
    // The mark and the length need nine bytes.
    if words.len() + 1 < WORDS {
        finish::<{ WORDS / 2 }>(state, |at| word(at, WORDS - 1));
    } else {
        finish::<WORDS>(state, |at| word(at, 2 * WORDS - 1));
    }
}

/// Writes it, or as much as there is room for.
#[inline(always)]
fn written(mut state: State, out: &mut [u8]) {
    let mut digest = state.map(u32::to_be_bytes);
    match out.first_chunk_mut() {
        Some(all) => *all = digest.as_flattened().try_into().unwrap_or([0; 32]),
        None => out.copy_from_slice(&digest.as_flattened()[..out.len()]),
    }
    (digest, state) = ([[0; 4]; 8], [0; 8]);
    black_box((&digest, &state));
}

/// Takes the last blocks, which are so many pairs of words of eight bytes.
#[inline(always)]
fn finish<const PAIRS: usize>(state: &mut State, word: impl Fn(usize) -> u64) {
    let mut last = array::from_fn::<_, PAIRS, _>(|at| pair(word(2 * at), word(2 * at + 1)));
    hash(state, last.as_chunks::<{ WORDS / 2 }>().0);
    last = [pair(0, 0); PAIRS];
    black_box(&last);
}

/// The last bytes of `data`, fewer than eight, as a number.
#[inline]
fn part(data: &[u8], rest: &[u8]) -> u64 {
    match data.last_chunk::<8>() {
        Some(last) if !rest.is_empty() => u64::from_le_bytes(*last) >> (64 - 8 * rest.len()),
        _ => rest.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    }
}

/// Sixteen bytes, as they lie in memory.
#[cfg(target_arch = "x86_64")]
type Pair = std::arch::x86_64::__m128i;
#[cfg(not(target_arch = "x86_64"))]
type Pair = [u64; 2];

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn pair(first: u64, second: u64) -> Pair {
    // SAFETY: every processor of this architecture has SSE2.
    unsafe { std::arch::x86_64::_mm_set_epi64x(second.cast_signed(), first.cast_signed()) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn pair(first: u64, second: u64) -> Pair {
    [first.to_le(), second.to_le()]
}

/// Takes blocks, as bytes or as pairs.
#[inline(always)]
fn hash<T: Copy>(state: &mut State, blocks: &[T]) {
    const { assert!(size_of::<T>() == BLOCK) };
    if !blocks.is_empty() {
        // SAFETY: there are so many blocks, without gaps.
        unsafe {
            let blocks = (blocks.as_ptr().cast(), blocks.len());
            aws_lc_sys::SHA256_TransformBlocks(state.as_mut_ptr(), blocks.0, blocks.1);
        }
    }
}
