// SPDX-License-Identifier: Apache-2.0
//! SHA-1 (FIPS 180-4, section 6.1): where the message is expanded. Inline with the rounds, in vectors
//! beside them, in another thread; and by the processor's own instructions.
//!
//! SHA-1 is broken: collisions are made in practice. It is here for its shape.

#[cfg(target_arch = "x86_64")]
mod instructions;
mod pair;
mod parts;
mod rounds;
#[cfg(target_arch = "x86_64")]
mod vectors;

pub use parts::Parts;

use rounds::BLOCK;

/// The initial hash value.
const INITIAL: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

/// Where the message is expanded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Version {
    /// In the round that needs the word.
    Inline,
    /// A block ahead, four words at a time, in vector registers beside the rounds.
    Vectors,
    /// In a second thread, which is started for each message, through a ring.
    Pair,
    /// By the processor's instructions for SHA-1, like the rounds.
    Instructions,
}

impl Version {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Inline, Self::Vectors, Self::Pair, Self::Instructions];

    /// Whether this processor has its instructions.
    #[must_use]
    pub fn available(self) -> bool {
        match self {
            Self::Inline | Self::Pair => true,
            #[cfg(target_arch = "x86_64")]
            Self::Vectors => is_x86_feature_detected!("ssse3"),
            #[cfg(target_arch = "x86_64")]
            Self::Instructions => {
                is_x86_feature_detected!("sha")
                    && is_x86_feature_detected!("ssse3")
                    && is_x86_feature_detected!("sse4.1")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Vectors | Self::Instructions => false,
        }
    }
}

/// The digest of a message; `None` where the version is not [available](Version::available).
#[must_use]
pub fn digest(version: Version, message: &[u8]) -> Option<[u8; 20]> {
    if !version.available() {
        return None;
    }
    Some(with(message, |state, blocks| compress(version, state, blocks)))
}

/// The digest by two threads, as [`Version::Pair`] makes it; the second one calls `begin` first.
pub fn digest_by_two(message: &[u8], begin: impl FnOnce() + Send) -> [u8; 20] {
    with(message, |state, blocks| pair::compress(state, blocks, begin))
}

/// The digest, whose whole blocks are compressed by `compress`.
fn with(message: &[u8], compress: impl FnOnce(&mut [u32; 5], &[[u8; BLOCK]])) -> [u8; 20] {
    let mut state = INITIAL;
    let (whole, rest) = message.as_chunks();
    compress(&mut state, whole);
    let (last, count) = padded(rest, message.len());
    rounds::inline(&mut state, &last[..count]);
    let mut digest = [0; 20];
    for (bytes, word) in digest.as_chunks_mut().0.iter_mut().zip(state) {
        *bytes = word.to_be_bytes();
    }
    digest
}

/// The one or two last blocks (section 5.1.1).
fn padded(rest: &[u8], length: usize) -> ([[u8; BLOCK]; 2], usize) {
    let mut blocks = [[0; BLOCK]; 2];
    let count = if rest.len() < BLOCK - 8 { 1 } else { 2 };
    blocks[0][..rest.len()].copy_from_slice(rest);
    blocks[0][rest.len()] = 0x80;
    blocks[count - 1][BLOCK - 8..].copy_from_slice(&(length as u64 * 8).to_be_bytes());
    (blocks, count)
}

fn compress(version: Version, state: &mut [u32; 5], blocks: &[[u8; BLOCK]]) {
    match version {
        Version::Inline => rounds::inline(state, blocks),
        Version::Pair => pair::compress(state, blocks, || ()),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: anyone who calls has asked whether the processor has the instructions.
        Version::Vectors => unsafe { vectors::compress(state, blocks) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Version::Instructions => unsafe { instructions::compress(state, blocks) },
        #[cfg(not(target_arch = "x86_64"))]
        Version::Vectors | Version::Instructions => {}
    }
}

#[cfg(test)]
mod tests;
