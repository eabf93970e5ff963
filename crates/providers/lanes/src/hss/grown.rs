// SPDX-License-Identifier: Apache-2.0
//! A tree with all its nodes, which can sign.

use super::message::{self, CHILD_ID, CHILD_SEED, MESSAGE, RANDOMIZER};
use super::set::{ID, Id, Set, word};
use super::tree::Tree;
use crate::chains::Part;
use metaslot_awslc_wrapper::Result;
use metaslot_memory::Secret;

/// One-time keys whose leaves are computed together, so that what is between them stays in the cache.
const TOGETHER: usize = 64;

/// Bytes of ordinary memory that a tree has, and what it is grown and signs with.
pub(super) const fn room(set: &Set) -> usize {
    let leaves = 1 << set.height;
    let together = if leaves < TOGETHER { leaves } else { TOGETHER };
    (2 * leaves + together * (set.chains() + 1)) * set.node + 2 * set.signature_length()
}

/// A tree of a key.
pub(super) struct Grown {
    set: Set,
    seed: Secret,
    id: Id,
    /// Which it is of its level.
    pub(super) number: u64,
    /// From 1 on as the standard numbers them, so that the children of a node are side by side; all may be known.
    nodes: Vec<u8>,
    /// Its public key with the signature of the tree above it; that alone in the uppermost.
    pub(super) signed: Vec<u8>,
}

impl Grown {
    /// The uppermost tree of a seed and a name.
    pub(super) fn top(set: Set, seed: &[u8], id: &Id) -> Self {
        Self::new(set, Secret::copy_of(seed), *id, 0, Vec::new())
    }

    /// The tree that the one-time key `leaf` signs: always the same one, because what a one-time key signs twice gives it away.
    ///
    /// # Errors
    /// When the library fails.
    pub(super) fn child(&self, set: Set, number: u64, leaf: usize) -> Result<Self> {
        let (mut seed, mut id) = (Secret::zeroed(set.node), [0; ID]);
        self.derive(leaf, CHILD_SEED, seed.expose_mut())?;
        self.derive(leaf, CHILD_ID, &mut id)?;
        let child = Self::new(set, seed, id, number, Vec::new());
        let public = child.signed.clone();
        Ok(Self { signed: [self.sign(leaf, &[&public])?, public].concat(), ..child })
    }

    fn new(set: Set, seed: Secret, id: Id, number: u64, signed: Vec<u8>) -> Self {
        let mut nodes = vec![0; (2 << set.height) * set.node];
        grow(Tree { set: &set, id: &id }, seed.expose(), &mut nodes);
        let mut grown = Self { set, seed, id, number, nodes, signed };
        grown.signed = grown.public();
        grown
    }

    /// §5.3
    pub(super) fn public(&self) -> Vec<u8> {
        let types = [self.set.tree_type, self.set.chain_type].map(u32::to_be_bytes);
        [types.as_flattened(), &self.id, self.node(1)].concat()
    }

    fn node(&self, number: usize) -> &[u8] {
        &self.nodes[number * self.set.node..][..self.set.node]
    }

    fn derive(&self, leaf: usize, what: u16, out: &mut [u8]) -> Result<()> {
        message::derive(self.tree(), &self.seed, (leaf, what), out)
    }

    const fn tree(&self) -> Tree<'_> {
        Tree { set: &self.set, id: &self.id }
    }

    /// The signature of a message, given in parts, by the one-time key `leaf` (§5.4.1).
    ///
    /// # Errors
    /// When the library fails.
    pub(super) fn sign(&self, leaf: usize, message: &[&[u8]]) -> Result<Vec<u8>> {
        let Set { node, height, chain_type, tree_type, .. } = self.set;
        let mut signature = Vec::with_capacity(self.set.signature_length());
        signature.extend(word(leaf));
        signature.extend(chain_type.to_be_bytes());
        let mut randomizer = vec![0; node];
        self.derive(leaf, RANDOMIZER, &mut randomizer)?;
        signature.extend(&randomizer);
        let hash =
            message::digest(self.tree(), leaf, MESSAGE, &[&[&randomizer[..]], message].concat())?;
        let digits = self.set.digits(&hash);
        let mut shown = vec![0; digits.len() * node];
        self.tree().chains(leaf, Part::ToDigit(self.seed.expose(), &digits), &mut shown);
        signature.extend(&shown);
        signature.extend(tree_type.to_be_bytes());
        let first = (1_usize << height) + leaf;
        (0..height).for_each(|level| signature.extend(self.node(first >> level ^ 1)));
        Ok(signature)
    }
}

/// Computes all nodes.
fn grow(tree: Tree<'_>, seed: &[u8], nodes: &mut [u8]) {
    let (node, leaves) = (tree.set.node, 1_usize << tree.set.height);
    let mut ends = vec![0; TOGETHER.min(leaves) * tree.set.chains() * node];
    for (group, out) in nodes[leaves * node..].chunks_mut(TOGETHER * node).enumerate() {
        let first = group * TOGETHER;
        tree.chains(first, Part::Whole(seed), &mut ends);
        tree.leaves(first, &ends, out);
    }
    for level in (0..tree.set.height).rev() {
        let first = 1_usize << level;
        let (parents, children) = nodes.split_at_mut(2 * first * node);
        tree.nodes(first, &children[..2 * first * node], &mut parents[first * node..]);
    }
}
