// SPDX-License-Identifier: Apache-2.0
//! Parameter sets (RFC 8554 §4.1 and §5.1; NIST SP 800-208 §4).

use crate::chains;
use crate::hash::many::Function;

/// Bytes of a tree's name.
pub const ID: usize = 16;
/// The name of a tree, I.
pub(super) type Id = [u8; ID];

/// A kind of tree, and the kind of one-time keys that are its leaves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Set {
    /// Its number among IANA's LMS types.
    pub tree_type: u32,
    /// Its number among IANA's LM-OTS types.
    pub chain_type: u32,
    pub(super) function: Function,
    /// Bytes of a hash.
    pub node: usize,
    /// Levels of the tree, which has 2^height leaves.
    pub height: u32,
    /// Bits of a digit: a chain has 2^width - 1 steps.
    width: usize,
}

/// In the order of the types: five heights of each, and four widths.
const HASHES: [(Function, usize); 4] = [
    (Function::Sha256, 32),
    (Function::Sha256, 24),
    (Function::Shake256, 32),
    (Function::Shake256, 24),
];

/// The first LMS type, `LMS_SHA256_M32_H5`, and the first LM-OTS type, `LMOTS_SHA256_N32_W1`.
const FIRST_TREE: u32 = 5;
const FIRST_CHAIN: u32 = 1;

/// A number as the standard has it, in four bytes; all of them are below 2³².
pub(super) const fn word(number: usize) -> [u8; 4] {
    let [_, _, _, _, a, b, c, d] = (number as u64).to_be_bytes();
    [a, b, c, d]
}

impl Set {
    /// Of two types; both must have the same hash (SP 800-208 §4).
    #[must_use]
    pub fn new(tree_type: u32, chain_type: u32) -> Option<Self> {
        let tree = tree_type.checked_sub(FIRST_TREE)?;
        let chain = chain_type.checked_sub(FIRST_CHAIN)?;
        let (function, node) = *HASHES.get((tree / 5) as usize)?;
        (tree / 5 == chain / 4).then_some(Self {
            tree_type,
            chain_type,
            function,
            node,
            height: 5 + tree % 5 * 5,
            width: 1 << (chain % 4),
        })
    }

    /// Whether both have the same hash.
    #[must_use]
    pub fn has_hash_of(&self, other: &Self) -> bool {
        (self.function, self.node) == (other.function, other.node)
    }

    /// Steps of a chain.
    pub(super) const fn steps(&self) -> u8 {
        u8::MAX >> (8 - self.width)
    }

    /// Chains of a one-time key.
    pub(super) const fn chains(&self) -> usize {
        chains::count(self.node, self.width)
    }

    /// The digits of a hash and of its checksum, one for each chain.
    pub(super) fn digits(&self, hash: &[u8]) -> Vec<u8> {
        chains::digits(hash, self.width)
    }

    /// Bytes of a public key of one tree.
    #[must_use]
    pub const fn public_length(&self) -> usize {
        8 + ID + self.node
    }

    /// Bytes of a signature by one tree (§5.4).
    #[must_use]
    pub const fn signature_length(&self) -> usize {
        12 + (1 + self.chains() + self.height as usize) * self.node
    }
}
