// SPDX-License-Identifier: Apache-2.0
//! XMSS and XMSS^MT (RFC 8391; NIST SP 800-208): trees of one-time keys, each of which signs once, and trees that sign the trees
//! below them.
//!
//! The lanes are full with a single request: a tree of 1,024 keys is made of some millions of hashes. Constant time: which hashes
//! are computed depends on the message and on the number of the signature, which everyone sees.
//!
//! The caller sees to it that no number is used twice.

mod address;
mod grown;
mod lanes;
mod message;
mod set;
#[cfg(test)]
mod tests;

use crate::hash::many;
use address::Place;
use grown::{Grown, recovered};
use lanes::Lanes;
use metaslot_awslc_wrapper::{Result, constant_time};
use metaslot_memory::Secret;
pub use set::{Scheme, Set};
use std::fmt;

/// The highest tree that is made: it takes as long as the highest of HSS. Those of 20 levels take minutes, in each process that
/// signs; XMSS^MT has more signatures in smaller ones.
pub const HIGHEST: u32 = 16;

/// A private key: its three seeds, and the trees that were grown last, from the uppermost down.
pub struct Private {
    set: Set,
    /// `SK_SEED`, `SK_PRF` and SEED.
    seeds: Secret,
    trees: Vec<Grown>,
}

impl fmt::Debug for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Private").field("set", &self.set).finish_non_exhaustive()
    }
}

impl Private {
    /// Of its seeds, `SK_SEED`, `SK_PRF` and SEED one after the other; grows the uppermost tree (algorithms 10 and 15).
    ///
    /// # Panics
    /// When they are not as long as the set has them.
    #[must_use]
    pub fn new(set: &Set, seeds: &[u8]) -> Self {
        assert_eq!(seeds.len(), set.seeds_length());
        let mut lanes = Lanes::new(set, &seeds[2 * set.node..]);
        let top = Place { layer: set.layers - 1, tree: 0 };
        let top = Grown::new(set, &mut lanes, &seeds[..set.node], top);
        Self { set: *set, seeds: Secret::copy_of(seeds), trees: vec![top] }
    }

    /// Its parameters.
    #[must_use]
    pub const fn set(&self) -> &Set {
        &self.set
    }

    /// §4.1.7
    #[must_use]
    pub fn public(&self) -> Vec<u8> {
        let number = self.set.number.to_be_bytes();
        [&number, self.root(), &self.seeds.expose()[2 * self.set.node..]].concat()
    }

    fn root(&self) -> &[u8] {
        self.trees[0].root()
    }

    /// The signature with this number, below [`Set::signatures`], of a message in parts (algorithms 12 and 16).
    ///
    /// # Errors
    /// When the library fails.
    pub fn sign(&mut self, number: u64, message: &[&[u8]]) -> Result<Vec<u8>> {
        let set = self.set;
        let (secret, rest) = self.seeds.expose().split_at(set.node);
        let mut lanes = Lanes::new(&set, &rest[set.node..]);
        let randomizer = message::randomizer(&set, &rest[..set.node], number)?;
        let hash = message::digest(&set, &randomizer, self.root(), number, message)?;
        for layer in (0..set.layers - 1).rev() {
            let (place, leaf) = way(&set, number, layer + 1);
            let tree = place.tree << set.tree_height() | leaf as u64;
            let level = (set.layers - 1 - layer) as usize;
            if self.trees.get(level).is_none_or(|grown| grown.place.tree != tree) {
                self.trees.truncate(level);
                let mut child = Grown::new(&set, &mut lanes, secret, Place { layer, tree });
                child.signed = self.trees[level - 1].sign(&mut lanes, secret, leaf, child.root());
                self.trees.push(child);
            }
        }
        let (_, leaf) = way(&set, number, 0);
        let last = &self.trees[self.trees.len() - 1];
        let mut signature = [message::index(&set, number), randomizer].concat();
        signature.extend(last.sign(&mut lanes, secret, leaf, &hash));
        self.trees.iter().rev().for_each(|tree| signature.extend(&tree.signed));
        Ok(signature)
    }
}

/// The tree of a layer that a signature goes through, and its leaf.
fn way(set: &Set, number: u64, layer: u32) -> (Place, usize) {
    let at = number >> (layer * set.tree_height());
    let leaf = at & ((1 << set.tree_height()) - 1);
    let leaf = usize::try_from(leaf).expect("a tree has fewer leaves");
    (Place { layer, tree: at >> set.tree_height() }, leaf)
}

/// Whether there is memory for one tree of each of so many layers, and for a signature; as for SLH-DSA it is asked for beforehand.
#[must_use]
pub fn has_room(set: &Set, layers: usize) -> bool {
    many::has_room(layers * grown::room(set) + 2 * set.signature_length())
}

/// Layers of trees of keys of this set.
#[must_use]
pub const fn layers(set: &Set) -> usize {
    set.layers as usize
}

/// The set of a public key.
#[must_use]
pub fn parse_public(scheme: Scheme, public: &[u8]) -> Option<Set> {
    let set = Set::new(scheme, u32::from_be_bytes(*public.first_chunk()?))?;
    (public.len() == set.public_length()).then_some(set)
}

/// Whether a signature is one of a message (algorithms 14 and 17).
///
/// # Errors
/// When the library fails.
pub fn verify(scheme: Scheme, public: &[u8], message: &[&[u8]], signature: &[u8]) -> Result<bool> {
    let Some(set) = parse_public(scheme, public) else { return Ok(false) };
    if signature.len() != set.signature_length() {
        return Ok(false);
    }
    let (root, seed) = public[4..].split_at(set.node);
    let (index, rest) = signature.split_at(set.index_length());
    let number = index.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
    if number >= set.signatures() {
        return Ok(false);
    }
    let (randomizer, layers) = rest.split_at(set.node);
    let mut lanes = Lanes::new(&set, seed);
    let mut node = message::digest(&set, randomizer, root, number, message)?;
    for (layer, signed) in (0..).zip(layers.chunks_exact(set.layer_length())) {
        let (place, leaf) = way(&set, number, layer);
        node = recovered(&set, &mut lanes, place, leaf, &node, signed);
    }
    Ok(constant_time::equal(&node, root))
}
