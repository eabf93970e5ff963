// SPDX-License-Identifier: Apache-2.0
//! Where the vectors of a batch lie, and the way of numbers into them and out.

use super::multiply::{BLOCK, Block, MASK, Number, RADIX};
use core::arch::x86_64::__m512i;
use metaslot_memory::Secret;

/// Lanes of a vector.
pub(super) const LANES: usize = 8;

/// Vectors in protected memory; zeroised when dropped.
pub(super) struct Memory(Secret);

impl Memory {
    /// So many zero vectors.
    pub(super) fn new(vectors: usize) -> Self {
        // The arena aligns to 16 bytes.
        Self(Secret::zeroed((vectors + 1) * size_of::<__m512i>()))
    }

    /// So many zero blocks.
    pub(super) fn of_blocks(blocks: usize) -> Self {
        Self::new(blocks * BLOCK)
    }

    pub(super) fn vectors(&mut self) -> &mut [__m512i] {
        // SAFETY: any bits are a vector, and only bits of `Secret`'s bytes are written.
        unsafe { self.0.expose_mut().align_to_mut::<__m512i>() }.1
    }

    pub(super) fn blocks(&mut self) -> &mut [Block] {
        self.vectors().as_chunks_mut().0
    }
}

/// The next `B` blocks of what is left.
///
/// # Panics
/// When there are no more: the memory was made too small.
pub(super) fn take<'a, const B: usize>(rest: &mut &'a mut [Block]) -> &'a mut Number<B> {
    let Some((taken, left)) = std::mem::take(rest).split_first_chunk_mut() else {
        panic!("memory for fewer blocks than are used");
    };
    *rest = left;
    taken
}

/// The lanes of vectors, one by one.
pub(super) fn lanes(blocks: &mut [Block]) -> &mut [[u64; LANES]] {
    let vectors = blocks.as_flattened_mut();
    // SAFETY: a vector is eight words, and any bits are both.
    unsafe { vectors.align_to_mut::<[u64; LANES]>() }.1
}

/// Limb `index` of a big-endian number.
pub(super) fn limb(bytes: &[u8], index: usize) -> u64 {
    let (skipped, shift) = (index * RADIX / 8, index * RADIX % 8);
    let end = bytes.len().saturating_sub(skipped);
    let window = match bytes[..end].last_chunk::<8>() {
        Some(window) => u64::from_be_bytes(*window),
        None => bytes[..end].iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    };
    window >> shift & MASK
}

/// Puts a big-endian number into one lane.
pub(super) fn put(blocks: &mut [Block], lane: usize, bytes: &[u8]) {
    for (index, limb_of) in lanes(blocks).iter_mut().enumerate() {
        limb_of[lane] = limb(bytes, index);
    }
}

/// Puts limbs, as [`limbs`] gives them, into one lane.
pub(super) fn put_limbs(blocks: &mut [Block], lane: usize, limbs: &[u8]) {
    for (into, limb) in lanes(blocks).iter_mut().zip(limbs.as_chunks().0) {
        into[lane] = u64::from_ne_bytes(*limb);
    }
}

/// One lane's limbs, each as eight bytes.
pub(super) fn limbs(blocks: &mut [Block], lane: usize, out: &mut [u8]) {
    for (limb, out) in lanes(blocks).iter().zip(out.as_chunks_mut().0) {
        *out = limb[lane].to_ne_bytes();
    }
}

/// Writes one lane's number, big-endian; what does not fit is zero.
pub(super) fn write(blocks: &mut [Block], lane: usize, out: &mut [u8]) {
    // Two limbs are thirteen bytes.
    let pairs = lanes(blocks).chunks_exact(2);
    for (pair, bytes) in pairs.zip(out.rchunks_mut(13)) {
        let number = u128::from(pair[0][lane]) | u128::from(pair[1][lane]) << RADIX;
        bytes.copy_from_slice(&number.to_be_bytes()[16 - bytes.len()..]);
    }
}
