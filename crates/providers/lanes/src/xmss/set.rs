// SPDX-License-Identifier: Apache-2.0
//! Parameter sets (RFC 8391 §5; NIST SP 800-208 §5), in the order of their numbers.

use crate::chains;
use crate::hash::many::Function;

/// A hash function with what stands before its input, and the bytes of its output.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Hash {
    function: Function,
    /// Bytes of the number that says which of the functions it is (§5.1).
    padding: usize,
    node: usize,
}

/// All of one have numbers that follow each other: the first four are of RFC 8391, the others of SP 800-208.
const HASHES: [Hash; 7] = [
    Hash { function: Function::Sha256, padding: 32, node: 32 },
    Hash { function: Function::Sha512, padding: 64, node: 64 },
    Hash { function: Function::Shake128, padding: 32, node: 32 },
    Hash { function: Function::Shake256, padding: 64, node: 64 },
    Hash { function: Function::Sha256, padding: 4, node: 24 },
    Hash { function: Function::Shake256, padding: 32, node: 32 },
    Hash { function: Function::Shake256, padding: 4, node: 24 },
];

/// Heights, and how many layers of trees they are divided into: of XMSS, and of XMSS^MT.
const ONE_TREE: &[(u32, u32)] = &[(10, 1), (16, 1), (20, 1)];
const MANY_TREES: &[(u32, u32)] =
    &[(20, 2), (20, 4), (40, 2), (40, 4), (40, 8), (60, 3), (60, 6), (60, 12)];

/// Bits of a digit: all sets have this width.
pub(super) const WIDTH: usize = 4;
/// Steps of a chain.
pub(super) const TOP: u8 = 15;

/// Which scheme: the numbers of both begin at one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scheme {
    /// XMSS: one tree.
    Single,
    /// XMSS^MT: layers of trees.
    Multi,
}

/// A parameter set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Set {
    /// Which scheme.
    pub scheme: Scheme,
    /// Its number among IANA's XMSS or XMSS^MT signatures.
    pub number: u32,
    hash: Hash,
    /// Bytes of a hash.
    pub node: usize,
    /// There are 2^height one-time keys.
    pub height: u32,
    /// Layers of trees.
    pub(super) layers: u32,
}

impl Set {
    /// Of a number.
    #[must_use]
    pub fn new(scheme: Scheme, number: u32) -> Option<Self> {
        let shapes = match scheme {
            Scheme::Single => ONE_TREE,
            Scheme::Multi => MANY_TREES,
        };
        let at = number.checked_sub(1)? as usize;
        let hash = *HASHES.get(at / shapes.len())?;
        let (height, layers) = shapes[at % shapes.len()];
        Some(Self { scheme, number, hash, node: hash.node, height, layers })
    }

    pub(super) const fn function(&self) -> Function {
        self.hash.function
    }

    pub(super) const fn padding(&self) -> usize {
        self.hash.padding
    }

    /// Levels of each tree.
    #[must_use]
    pub const fn tree_height(&self) -> u32 {
        self.height / self.layers
    }

    /// Chains of a one-time key.
    pub(super) const fn chains(&self) -> usize {
        chains::count(self.node, WIDTH)
    }

    /// How many signatures keys of this set have.
    #[must_use]
    pub const fn signatures(&self) -> u64 {
        1 << self.height
    }

    /// Bytes of the number of a signature in it (§4.1.8, §4.2.3).
    pub(super) const fn index_length(&self) -> usize {
        match self.scheme {
            Scheme::Single => 4,
            Scheme::Multi => self.height.div_ceil(8) as usize,
        }
    }

    /// Bytes of one layer in a signature: a one-time signature and the path to the root.
    pub(super) const fn layer_length(&self) -> usize {
        (self.chains() + self.tree_height() as usize) * self.node
    }

    /// Bytes of the three seeds of a private key.
    #[must_use]
    pub const fn seeds_length(&self) -> usize {
        3 * self.node
    }

    /// Bytes of a public key.
    #[must_use]
    pub const fn public_length(&self) -> usize {
        4 + 2 * self.node
    }

    /// Bytes of a signature.
    #[must_use]
    pub const fn signature_length(&self) -> usize {
        self.index_length() + self.node + self.layers as usize * self.layer_length()
    }
}
