// SPDX-License-Identifier: Apache-2.0
//! Where in the structure something is hashed (FIPS 205 §4.2).

/// What is there.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    Chain = 0,
    ChainEnds = 1,
    Tree = 2,
    ForsTree = 3,
    ForsRoots = 4,
    ChainSecret = 5,
    ForsSecret = 6,
}

/// An address, in words as the standard draws it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    layer: usize,
    tree: u64,
    kind: Kind,
    words: [usize; 3],
}

/// Bytes of an address as SHA-2 hashes it (§11.2), and as SHAKE does.
pub(super) const SHORT: usize = 22;
pub(super) const LONG: usize = 32;

impl Address {
    /// In a tree of the hypertree.
    pub(super) const fn new(layer: usize, tree: u64) -> Self {
        Self { layer, tree, kind: Kind::Tree, words: [0; 3] }
    }

    /// Of a one-time key, or of a FORS key, and what belongs to it: the chain and the step, or the height and the index.
    pub(super) const fn of_leaf(self, kind: Kind, leaf: usize, place: [usize; 2]) -> Self {
        Self { kind, words: [leaf, place[0], place[1]], ..self }
    }

    /// Of a node of the tree itself.
    pub(super) const fn of_node(self, height: usize, index: usize) -> Self {
        Self { kind: Kind::Tree, words: [0, height, index], ..self }
    }

    /// The address as it is hashed: [`SHORT`] or [`LONG`] bytes.
    pub(super) fn write(&self, out: &mut [u8]) {
        let (tree, kind) = (self.tree.to_be_bytes(), self.kind as u8);
        let words = if out.len() == SHORT {
            out[0] = word(self.layer)[3];
            out[1..9].copy_from_slice(&tree);
            out[9] = kind;
            &mut out[10..]
        } else {
            out[..4].copy_from_slice(&word(self.layer));
            out[4..8].fill(0);
            out[8..16].copy_from_slice(&tree);
            out[16..20].copy_from_slice(&word(kind.into()));
            &mut out[20..]
        };
        for (out, number) in words.as_chunks_mut().0.iter_mut().zip(self.words) {
            *out = word(number);
        }
    }
}

/// A number as the standard has it, in four bytes; all of them are below 2³², as the parameter sets have it.
const fn word(number: usize) -> [u8; 4] {
    let [_, _, _, _, a, b, c, d] = (number as u64).to_be_bytes();
    [a, b, c, d]
}
