// SPDX-License-Identifier: Apache-2.0
//! What the functions differ in outside of their inner loop: lengths, order of bytes, padding, initial values.

use super::tables;
use metaslot_awslc_wrapper::digest::Hash;
use std::ops::Range;

/// The functions that have an inner loop of their own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Core {
    Md5,
    Sha1,
    Sha256,
    Sha512,
    Keccak,
}

/// A function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) core: Core,
    /// Bytes of a word.
    pub(super) word: usize,
    /// Bytes of a block.
    pub(super) block: usize,
    /// Whether the most significant byte of a word comes first.
    pub(super) big: bool,
    /// Bytes of the length at the end of the padding.
    pub(super) counter: usize,
    /// The initial chaining value.
    pub(super) start: &'static [u64],
}

impl Shape {
    pub(super) const fn of(hash: Hash) -> Self {
        match hash {
            Hash::Md5 => Self::narrow(Core::Md5, &tables::MD5),
            Hash::Sha1 => Self::narrow(Core::Sha1, &tables::SHA1),
            Hash::Sha224 => Self::narrow(Core::Sha256, &tables::SHA224),
            Hash::Sha256 => Self::narrow(Core::Sha256, &tables::SHA256),
            Hash::Sha384 => Self::wide(&tables::SHA384),
            Hash::Sha512 => Self::wide(&tables::SHA512),
            Hash::Sha512_224 => Self::wide(&tables::SHA512_224),
            Hash::Sha512_256 => Self::wide(&tables::SHA512_256),
            Hash::Sha3_224 | Hash::Sha3_256 | Hash::Sha3_384 | Hash::Sha3_512 => {
                Self::sponge(hash.block())
            }
        }
    }

    const fn narrow(core: Core, start: &'static [u64]) -> Self {
        let big = !matches!(core, Core::Md5);
        Self { core, word: 4, block: 64, big, counter: 8, start }
    }

    const fn wide(start: &'static [u64]) -> Self {
        Self { core: Core::Sha512, word: 8, block: 128, big: true, counter: 16, start }
    }

    /// Of Keccak, with blocks of so many bytes.
    pub(super) const fn sponge(block: usize) -> Self {
        let start = &[0; 25];
        Self { core: Core::Keccak, word: 8, block, big: false, counter: 0, start }
    }

    /// Where a lane's last blocks lie.
    pub(super) const fn tail(&self, lane: usize) -> Range<usize> {
        let length = 2 * self.block;
        lane * length..(lane + 1) * length
    }

    /// Pads the last `length` bytes, less than a block, of a message of `total` bytes. Gives the number of blocks.
    pub(super) fn pad(&self, tail: &mut [u8], length: usize, total: u64) -> usize {
        let blocks = if length + 1 + self.counter > self.block { 2 } else { 1 };
        let tail = &mut tail[..blocks * self.block];
        tail[length..].fill(0);
        let bits = u128::from(total) << 3;
        let end = tail.len() - self.counter;
        match (self.counter, self.big) {
            (8, true) => tail[end..].copy_from_slice(&bits.to_be_bytes()[8..]),
            (8, false) => tail[end..].copy_from_slice(&bits.to_le_bytes()[..8]),
            (16, _) => tail[end..].copy_from_slice(&bits.to_be_bytes()),
            _ => {
                // FIPS 202, sections 5.1 and 6.1; the two may fall on one byte.
                tail[length] = 0x06;
                tail[end - 1] |= 0x80;
                return blocks;
            }
        }
        tail[length] = 0x80;
        blocks
    }
}
