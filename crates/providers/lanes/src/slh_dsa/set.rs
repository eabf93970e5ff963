// SPDX-License-Identifier: Apache-2.0
//! The parameter sets (FIPS 205 §11, table 2).

/// One of them.
#[derive(Debug, Eq, PartialEq)]
pub struct Set {
    /// As FIPS 205 writes it.
    pub name: &'static str,
    /// Bytes of a node, n.
    pub(super) node: usize,
    /// Height of the hypertree, h.
    height: usize,
    /// Its layers, d.
    pub(super) layers: usize,
    /// Height of a FORS tree, a.
    pub(super) fors_height: usize,
    /// How many of these there are, k.
    pub(super) fors_trees: usize,
    /// SHAKE256, or else SHA-2.
    pub(super) shake: bool,
}

/// Bits of a digit of a one-time signature, and steps of a chain.
pub(super) const WIDTH: usize = 4;
pub(super) const TOP: u8 = 15;

#[rustfmt::skip]
const fn row(name: &'static str, node: usize, height: usize, layers: usize, fors_height: usize, fors_trees: usize, shake: bool) -> Set {
    Set { name, node, height, layers, fors_height, fors_trees, shake }
}

#[rustfmt::skip]
pub(super) static SETS: [Set; 12] = [
    row("SLH-DSA-SHA2-128s", 16, 63, 7, 12, 14, false),
    row("SLH-DSA-SHAKE-128s", 16, 63, 7, 12, 14, true),
    row("SLH-DSA-SHA2-128f", 16, 66, 22, 6, 33, false),
    row("SLH-DSA-SHAKE-128f", 16, 66, 22, 6, 33, true),
    row("SLH-DSA-SHA2-192s", 24, 63, 7, 14, 17, false),
    row("SLH-DSA-SHAKE-192s", 24, 63, 7, 14, 17, true),
    row("SLH-DSA-SHA2-192f", 24, 66, 22, 8, 33, false),
    row("SLH-DSA-SHAKE-192f", 24, 66, 22, 8, 33, true),
    row("SLH-DSA-SHA2-256s", 32, 64, 8, 14, 22, false),
    row("SLH-DSA-SHAKE-256s", 32, 64, 8, 14, 22, true),
    row("SLH-DSA-SHA2-256f", 32, 68, 17, 9, 35, false),
    row("SLH-DSA-SHAKE-256f", 32, 68, 17, 9, 35, true),
];

impl Set {
    /// All of them, in the order of PKCS#11 (`CKP_SLH_DSA_SHA2_128S` is the first).
    #[must_use]
    pub fn all() -> &'static [Self; 12] {
        &SETS
    }

    /// Bytes of a public key.
    #[must_use]
    pub const fn public_length(&self) -> usize {
        2 * self.node
    }

    /// Bytes of a private key.
    #[must_use]
    pub const fn private_length(&self) -> usize {
        4 * self.node
    }

    /// Bytes of a signature.
    #[must_use]
    pub const fn signature_length(&self) -> usize {
        self.node + self.fors_length() + self.layers * self.layer_length()
    }

    /// Bytes of the FORS signature in it.
    pub(super) const fn fors_length(&self) -> usize {
        self.fors_trees * (1 + self.fors_height) * self.node
    }

    /// Bytes of one layer of the hypertree in it.
    pub(super) const fn layer_length(&self) -> usize {
        (self.chains() + self.tree_height()) * self.node
    }

    /// How many chains a one-time key has, len.
    pub(super) const fn chains(&self) -> usize {
        2 * self.node + 3
    }

    /// Height of a tree of the hypertree, h'.
    pub(super) const fn tree_height(&self) -> usize {
        self.height / self.layers
    }

    /// Bits of the number of a tree at the bottom.
    pub(super) const fn tree_bits(&self) -> usize {
        self.height - self.tree_height()
    }

    /// Bytes of the digest of a message: the indices of FORS, the tree, the leaf, each in whole bytes (m).
    pub(super) const fn digest_parts(&self) -> [usize; 3] {
        [
            (self.fors_trees * self.fors_height).div_ceil(8),
            self.tree_bits().div_ceil(8),
            self.tree_height().div_ceil(8),
        ]
    }
}
