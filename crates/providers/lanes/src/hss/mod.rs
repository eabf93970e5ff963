// SPDX-License-Identifier: Apache-2.0
//! HSS (RFC 8554; NIST SP 800-208): trees of one-time keys, each of which signs once, and trees that sign the trees below them.
//!
//! The lanes are full with a single request: a tree is made of some hundred thousand hashes. Constant time: which hashes are
//! computed depends on the message and on the number of the signature, which everyone sees.
//!
//! The caller sees to it that no number is used twice.

mod grown;
mod message;
mod set;
#[cfg(test)]
mod tests;
mod tree;

use crate::chains::Part;
use crate::hash::many;
use grown::Grown;
use metaslot_awslc_wrapper::{Result, constant_time};
use metaslot_memory::wiping;
pub use set::{ID, Set};
use set::{Id, word};
use std::fmt;
use tree::Tree;

/// The most levels of trees (RFC 8554 §6).
pub const MOST_LEVELS: usize = 8;

/// The highest tree that is made. Those of 20 and 25 take minutes and hours, in each process that signs; two of 15 have more
/// signatures.
pub const HIGHEST: u32 = 15;

/// A private key: what of it there is besides its parameters, and the trees that were grown last.
pub struct Private {
    sets: Vec<Set>,
    trees: Vec<Grown>,
}

impl fmt::Debug for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Private").field("sets", &self.sets).finish_non_exhaustive()
    }
}

impl Private {
    /// Of the seed and the name of its uppermost tree.
    ///
    /// # Panics
    /// Without a set, or when the seed is not as long as a hash of the first.
    #[must_use]
    pub fn new(sets: &[Set], seed: &[u8], id: &[u8; ID]) -> Self {
        assert_eq!(seed.len(), sets[0].node);
        let top = wiping(|| Grown::top(sets[0], seed, id));
        Self { sets: sets.to_vec(), trees: vec![top] }
    }

    /// Of its levels.
    #[must_use]
    pub fn sets(&self) -> &[Set] {
        &self.sets
    }

    /// §6.1
    #[must_use]
    pub fn public(&self) -> Vec<u8> {
        [&word(self.sets.len()), &self.trees[0].public()[..]].concat()
    }

    /// The signature with this number, below [`signatures`], of a message in parts (§6.2).
    ///
    /// # Errors
    /// When the library fails.
    pub fn sign(&mut self, number: u64, message: &[&[u8]]) -> Result<Vec<u8>> {
        wiping(|| self.signed(number, message))
    }

    fn signed(&mut self, number: u64, message: &[&[u8]]) -> Result<Vec<u8>> {
        for level in 1..self.sets.len() {
            let tree = number >> bits(&self.sets[level..]);
            if self.trees.get(level).is_none_or(|grown| grown.number != tree) {
                self.trees.truncate(level);
                let above = &self.trees[level - 1];
                let leaf = leaf(tree, &self.sets[level - 1]);
                let child = above.child(self.sets[level], tree, leaf)?;
                self.trees.push(child);
            }
        }
        let mut signature = word(self.sets.len() - 1).to_vec();
        self.trees[1..].iter().for_each(|tree| signature.extend(&tree.signed));
        let (last, set) = (&self.trees[self.sets.len() - 1], &self.sets[self.sets.len() - 1]);
        signature.extend(last.sign(leaf(number, set), message)?);
        Ok(signature)
    }
}

/// Which leaf of its tree has a number of its level.
fn leaf(number: u64, set: &Set) -> usize {
    usize::try_from(number & ((1 << set.height) - 1)).expect("a tree has fewer leaves")
}

/// Whether there is memory for trees of these sets, one of each, and for a signature by them; as for SLH-DSA it is asked for
/// beforehand.
#[must_use]
pub fn has_room(sets: &[Set]) -> bool {
    many::has_room(sets.iter().map(grown::room).sum::<usize>() + 2 * signature_length(sets))
}

/// Levels of all trees together.
fn bits(sets: &[Set]) -> u32 {
    sets.iter().map(|set| set.height).sum()
}

/// How many signatures keys of these sets have; `None` for more than 2^60.
#[must_use]
pub fn signatures(sets: &[Set]) -> Option<u64> {
    (bits(sets) <= 60).then(|| 1 << bits(sets))
}

/// Bytes of a signature by keys of these sets.
#[must_use]
pub fn signature_length(sets: &[Set]) -> usize {
    let below: usize = sets.iter().skip(1).map(Set::public_length).sum();
    4 + below + sets.iter().map(Set::signature_length).sum::<usize>()
}

/// The number of levels, and the uppermost tree's set, of a public key.
#[must_use]
pub fn parse_public(public: &[u8]) -> Option<(usize, Set)> {
    let (levels, tree) = number(public)?;
    let (set, _) = parse_tree(tree).filter(|(set, _)| tree.len() == set.public_length())?;
    let levels = levels as usize;
    (1..=MOST_LEVELS).contains(&levels).then_some((levels, set))
}

/// Whether a signature is one of a message (§6.3).
///
/// # Errors
/// When the library fails.
pub fn verify(public: &[u8], message: &[&[u8]], signature: &[u8]) -> Result<bool> {
    let Some((levels, _)) = parse_public(public) else { return Ok(false) };
    let Some((below, mut signature)) = number(signature) else { return Ok(false) };
    if below as usize + 1 != levels {
        return Ok(false);
    }
    let mut tree = &public[4..];
    for _ in 0..below {
        let Some((set, _)) = parse_tree(tree) else { return Ok(false) };
        let Some((own, rest)) = signature.split_at_checked(set.signature_length()) else {
            return Ok(false);
        };
        let Some((next, _)) = parse_tree(rest) else { return Ok(false) };
        let Some((child, rest)) = rest.split_at_checked(next.public_length()) else {
            return Ok(false);
        };
        if !verify_tree(tree, &[child], own)? {
            return Ok(false);
        }
        (tree, signature) = (child, rest);
    }
    verify_tree(tree, message, signature)
}

/// Whether a signature is one of a message by a tree with this public key (§5.4.2, algorithm 6a).
fn verify_tree(public: &[u8], message: &[&[u8]], signature: &[u8]) -> Result<bool> {
    let Some((set, id)) = parse_tree(public) else { return Ok(false) };
    if signature.len() != set.signature_length() || public.len() != set.public_length() {
        return Ok(false);
    }
    let (leaf, rest) = number(signature).unwrap_or_default();
    let leaf = leaf as usize;
    let (chain_type, rest) = number(rest).unwrap_or_default();
    let (randomizer, rest) = rest.split_at(set.node);
    let (shown, rest) = rest.split_at(set.chains() * set.node);
    let (tree_type, path) = number(rest).unwrap_or_default();
    if (tree_type, chain_type) != (set.tree_type, set.chain_type) || leaf >> set.height != 0 {
        return Ok(false);
    }
    let tree = Tree { set: &set, id };
    let hash = message::digest(tree, leaf, message::MESSAGE, &[&[randomizer], message].concat())?;
    let mut ends = vec![0; shown.len()];
    tree.chains(leaf, Part::FromDigit(shown, &set.digits(&hash)), &mut ends);
    let mut node = vec![0; set.node];
    tree.leaves(leaf, &ends, &mut node);
    let mut at = (1 << set.height) + leaf;
    for beside in path.chunks_exact(set.node) {
        let children =
            if at.is_multiple_of(2) { [&node, beside].concat() } else { [beside, &node].concat() };
        at /= 2;
        tree.nodes(at, &children, &mut node);
    }
    Ok(constant_time::equal(&node, &public[8 + ID..]))
}

/// The set and the name of a tree whose public key stands at the beginning of these bytes.
fn parse_tree(public: &[u8]) -> Option<(Set, &Id)> {
    let (tree_type, rest) = number(public)?;
    let (chain_type, rest) = number(rest)?;
    Some((Set::new(tree_type, chain_type)?, rest.first_chunk()?))
}

/// A number of four bytes, and what follows it.
fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*number), rest))
}
