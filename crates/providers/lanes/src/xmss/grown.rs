// SPDX-License-Identifier: Apache-2.0
//! A tree with all its nodes, which can sign.

use super::address::{Kind, Place};
use super::lanes::{Lanes, Pair};
use super::set::{Set, WIDTH};
use crate::chains::{Part, digits};

/// One-time keys whose leaves are computed together, so that what is between them stays in the cache.
const TOGETHER: usize = 64;

/// Bytes of ordinary memory that a tree has, and what it is grown and signs with.
pub(super) const fn room(set: &Set) -> usize {
    let leaves = 1 << set.tree_height();
    let together = if leaves < TOGETHER { leaves } else { TOGETHER };
    (2 * leaves + together * (set.chains() + 1)) * set.node + 2 * set.layer_length()
}

/// A tree of a key.
pub(super) struct Grown {
    set: Set,
    pub(super) place: Place,
    /// From 1 on, so that the children of a node are side by side; all may be known.
    nodes: Vec<u8>,
    /// The signature of its root by the tree above it, as one layer has it; nothing of the uppermost.
    pub(super) signed: Vec<u8>,
}

impl Grown {
    /// The tree at a place, of `SK_SEED` (algorithm 9).
    pub(super) fn new(set: &Set, lanes: &mut Lanes, secret: &[u8], place: Place) -> Self {
        let (node, leaves) = (set.node, 1_usize << set.tree_height());
        let mut nodes = vec![0; 2 * leaves * node];
        let mut ends = vec![0; TOGETHER.min(leaves) * set.chains() * node];
        for (group, out) in nodes[leaves * node..].chunks_mut(TOGETHER * node).enumerate() {
            let first = group * TOGETHER;
            lanes.chains(place, first, Part::Whole(secret), &mut ends);
            lanes.leaves(place, first, &mut ends, out);
        }
        for level in (0..set.tree_height()).rev() {
            let first = 1_usize << level;
            let below = (set.tree_height() - level - 1) as usize;
            lanes.pairs((place, Kind::Tree), &mut nodes, first..2 * first, |at| Pair {
                from: 2 * at,
                to: at,
                words: [0, below, at - first],
            });
        }
        Self { set: *set, place, nodes, signed: Vec::new() }
    }

    /// Its root.
    pub(super) fn root(&self) -> &[u8] {
        self.node(1)
    }

    fn node(&self, number: usize) -> &[u8] {
        &self.nodes[number * self.set.node..][..self.set.node]
    }

    /// The signature of a node by the one-time key `leaf`, with the path to the root: one layer (algorithm 11).
    pub(super) fn sign(
        &self,
        lanes: &mut Lanes,
        secret: &[u8],
        leaf: usize,
        hash: &[u8],
    ) -> Vec<u8> {
        let digits = digits(hash, WIDTH);
        let mut layer = Vec::with_capacity(self.set.layer_length());
        layer.resize(digits.len() * self.set.node, 0);
        lanes.chains(self.place, leaf, Part::ToDigit(secret, &digits), &mut layer);
        let first = (1_usize << self.set.tree_height()) + leaf;
        (0..self.set.tree_height()).for_each(|level| layer.extend(self.node(first >> level ^ 1)));
        layer
    }
}

/// The root to which one layer of a signature leads from the hash that it signs (algorithm 13).
pub(super) fn recovered(
    set: &Set,
    lanes: &mut Lanes,
    place: Place,
    leaf: usize,
    hash: &[u8],
    layer: &[u8],
) -> Vec<u8> {
    let (shown, path) = layer.split_at(set.chains() * set.node);
    let mut ends = vec![0; shown.len()];
    lanes.chains(place, leaf, Part::FromDigit(shown, &digits(hash, WIDTH)), &mut ends);
    let mut node = vec![0; set.node];
    lanes.leaves(place, leaf, &mut ends, &mut node);
    for (height, beside) in path.chunks_exact(set.node).enumerate() {
        let mut nodes = match leaf >> height & 1 {
            0 => [&node, beside].concat(),
            _ => [beside, &node].concat(),
        };
        let words = [0, height, leaf >> height >> 1];
        lanes.pairs((place, Kind::Tree), &mut nodes, 0..1, |_| Pair { from: 0, to: 0, words });
        node.copy_from_slice(&nodes[..set.node]);
    }
    node
}
