// SPDX-License-Identifier: Apache-2.0
//! What an encapsulation and a decapsulation hash (FIPS 203 §4.1).
//!
//! The secret of a ciphertext that is not honest (J) takes nine permutations of Keccak for ML-KEM-768, one after the other; whatever else
//! is to be hashed, the honest secret (G) and then the noise (PRF), is hashed meanwhile in the other lanes.

use crate::hash::beside::{Block, Four, LANES, NOTHING, last_block};
use crate::hash::squeeze::{BLOCK_256, squeezed};
use metaslot_awslc_wrapper::ml_kem::Set;
use metaslot_awslc_wrapper::{Failed, Result};

/// Random bytes for the noise of all polynomials of an encryption.
pub(super) type Noise = [u8; 9 * 128];
/// Blocks of the longest ciphertext, of 1568 bytes, behind the 32 of the key.
const BLOCKS: usize = 12;

/// For each polynomial so many.
pub(super) const fn noise_length(set: Set) -> usize {
    match set {
        // The secrets' width is 3, and the errors' 2.
        Set::Ml512 => 192,
        Set::Ml768 | Set::Ml1024 => 128,
    }
}

/// Bytes of all of them.
const fn all_noise(set: Set) -> usize {
    noise_length(set) * (2 * set.rank() + 1)
}

/// What was hashed.
pub(super) struct Made {
    /// The secret of an honest ciphertext.
    pub(super) honest: [u8; 32],
    /// That of another one.
    pub(super) rejected: [u8; 32],
    pub(super) noise: Noise,
}

impl Made {
    const fn new() -> Self {
        Self { honest: [0; 32], rejected: [0; 32], noise: [0; 9 * 128] }
    }

    /// The block of G, which is SHA3-512 of a message and the hash of a key.
    fn both(message: &[u8], hash: &[u8; 32]) -> Block {
        let mut block = *NOTHING;
        block[..32].copy_from_slice(message);
        block[32..64].copy_from_slice(hash);
        // FIPS 202 §6.1, §5.1: the bits that follow a message to SHA-3, and the padding of 72 bytes.
        [block[64], block[71]] = [0x06, 0x80];
        block
    }

    /// Keeps the secret; gives the seed of the noise.
    fn seed(&mut self, four: &Four, lane: usize) -> [u8; 32] {
        let mut both = [0; 64];
        four.read(lane, &mut both);
        let (honest, seed) = both.split_at(32);
        self.honest.copy_from_slice(honest);
        seed.try_into().unwrap_or_default()
    }

    /// For a message and the hash of the key that it is sent to.
    pub(super) fn honest(set: Set, message: &[u8], hash: &[u8; 32]) -> Result<Self> {
        let mut made = Self::new();
        let mut four = Four::new().ok_or(Failed)?;
        four.take([&Self::both(message, hash), NOTHING, NOTHING, NOTHING]);
        let seed = made.seed(&four, 0);
        let noise = &mut made.noise[..all_noise(set)];
        squeezed(BLOCK_256, &seed, |at| [at], noise_length(set), noise);
        Ok(made)
    }

    /// The same, with the secret that a key of these bytes has for the ciphertext if it is not honest.
    pub(super) fn all(
        set: Set,
        message: &[u8],
        hash: &[u8; 32],
        (reject, ciphertext): (&[u8], &[u8]),
    ) -> Result<Self> {
        let mut made = Self::new();
        let mut four = Four::new().ok_or(Failed)?;
        let mut blocks = [*NOTHING; BLOCKS];
        let rest = blocks.as_flattened_mut();
        rest[..32].copy_from_slice(reject);
        rest[32..][..ciphertext.len()].copy_from_slice(ciphertext);
        let length = reject.len() + ciphertext.len();
        let count = length / BLOCK_256 + 1;
        rest[length] = 0x1f;
        rest[count * BLOCK_256 - 1] |= 0x80;
        let mut blocks = blocks[..count].iter();
        four.take([blocks.next().ok_or(Failed)?, &Self::both(message, hash), NOTHING, NOTHING]);
        let seed = made.seed(&four, 1);
        let length = noise_length(set);
        let mut number = 0_u8;
        for noise in made.noise[..all_noise(set)].chunks_mut(length * (LANES - 1)) {
            let ends = [number, number + 1, number + 2].map(|end| last_block(&[&seed, &[end]]));
            number += 3;
            four.restart();
            let mut others = [&ends[0], &ends[1], &ends[2]];
            for at in (0..length).step_by(BLOCK_256) {
                let [a, b, c] = others;
                four.take([blocks.next().ok_or(Failed)?, a, b, c]);
                for (lane, noise) in noise.chunks_mut(length).enumerate() {
                    four.read(lane + 1, &mut noise[at..length.min(at + BLOCK_256)]);
                }
                others = [NOTHING; LANES - 1];
            }
        }
        for block in blocks {
            four.take([block, NOTHING, NOTHING, NOTHING]);
        }
        four.read(0, &mut made.rejected);
        Ok(made)
    }
}
