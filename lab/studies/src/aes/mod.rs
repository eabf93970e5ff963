// SPDX-License-Identifier: Apache-2.0
//! AES in CBC (FIPS 197, SP 800-38A section 6.2) by tables, by bit slices, and by the processor's
//! instructions for one block or for four. By tables it leaks its key through the cache.
//!
//! Encryption of one stream is a chain: no block can begin before the one before has ended. Decryption
//! is not, and several streams are not chained to each other.

#[cfg(target_arch = "x86_64")]
mod bits;
#[cfg(target_arch = "x86_64")]
mod circuit;
mod field;
#[cfg(target_arch = "x86_64")]
mod instructions;
mod key;
#[cfg(target_arch = "x86_64")]
mod sliced;
mod stream;
mod tables;
#[cfg(target_arch = "x86_64")]
mod wide;

pub use key::Key;
pub use stream::{Block, MANY, Stream};

/// How a block is encrypted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Version {
    /// Four tables of 256 words for a round.
    Tables,
    /// Eight blocks at a time: register `n` holds bit `n` of every byte.
    Sliced,
    /// An instruction for a round of a block.
    Instructions,
    /// An instruction for a round of four blocks.
    Wide,
}

impl Version {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tables, Self::Sliced, Self::Instructions, Self::Wide];

    /// Whether this processor has its instructions.
    #[must_use]
    pub fn available(self) -> bool {
        match self {
            Self::Tables => true,
            #[cfg(target_arch = "x86_64")]
            Self::Sliced => is_x86_feature_detected!("ssse3"),
            #[cfg(target_arch = "x86_64")]
            Self::Instructions => is_x86_feature_detected!("aes"),
            #[cfg(target_arch = "x86_64")]
            Self::Wide => is_x86_feature_detected!("vaes") && is_x86_feature_detected!("avx512f"),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// Bytes of the tables of one direction.
    #[must_use]
    pub const fn table_bytes(self) -> usize {
        match self {
            Self::Tables => tables::BYTES,
            _ => 0,
        }
    }
}

/// Encrypts one stream, or [`MANY`] of one length side by side. False where the version is not
/// [available](Version::available), or the streams are of another number.
pub fn encrypt(version: Version, key: &Key, streams: &mut [Stream]) -> bool {
    apply(version, key, streams, true)
}

/// Decrypts: the same.
pub fn decrypt(version: Version, key: &Key, streams: &mut [Stream]) -> bool {
    apply(version, key, streams, false)
}

fn apply(version: Version, key: &Key, streams: &mut [Stream], encrypting: bool) -> bool {
    let length = streams.first().map_or(0, |stream| stream.input.len());
    let even = |stream: &Stream| stream.input.len() == length && stream.output.len() == length;
    let count = streams.len();
    if !version.available() || !streams.iter().all(even) || (count != 1 && count != MANY) {
        return false;
    }
    match (version, encrypting) {
        (Version::Tables, true) => streams.iter_mut().for_each(|s| tables::encrypt(key, s)),
        (Version::Tables, false) => streams.iter_mut().for_each(|s| tables::decrypt(key, s)),
        #[cfg(target_arch = "x86_64")]
        _ => by_vectors(version, key, streams, encrypting),
        #[cfg(not(target_arch = "x86_64"))]
        _ => {}
    }
    true
}

#[cfg(target_arch = "x86_64")]
fn by_vectors(version: Version, key: &Key, streams: &mut [Stream], encrypting: bool) {
    match (version, encrypting) {
        // SAFETY: here and below, anyone who calls has asked whether the processor has the instructions.
        (Version::Sliced, true) => unsafe { sliced::encrypt(key, streams) },
        // SAFETY: as above.
        (Version::Sliced, false) => unsafe { sliced::decrypt(key, streams) },
        // SAFETY: as above.
        (Version::Instructions, true) => unsafe { instructions::encrypt(key, streams) },
        // SAFETY: as above.
        (Version::Instructions, false) => unsafe { instructions::decrypt(key, streams) },
        // SAFETY: as above.
        (_, true) => unsafe { wide::encrypt(key, streams) },
        // SAFETY: as above.
        (_, false) => unsafe { wide::decrypt(key, streams) },
    }
}

#[cfg(test)]
mod tests;
