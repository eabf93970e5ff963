// SPDX-License-Identifier: Apache-2.0
//! The tree of trees, whose leaves are one-time keys (FIPS 205 §6, §7). Which trees and leaves a signature takes is known at the
//! beginning, so the trees of all layers are computed together.

use super::address::Address;
use super::chains::{Leaf, chains, compress};
use super::forest::{climb, reduce};
use super::hashes::Hashes;
use super::set::{Set, WIDTH};
use crate::chains::{Part, digits};

/// The ends of the chains of so many one-time keys are kept at once.
const KEYS: usize = 64;

/// Bytes that [`sign`] has at a time: the leaves of all layers with their keys, the ends of some keys' chains.
pub(super) const fn room(set: &Set) -> usize {
    let leaves = set.layers << set.tree_height();
    leaves * (size_of::<Leaf>() + set.node * 3 / 2) + (KEYS + set.layers) * set.chains() * set.node
}

/// The one-time key of each layer on the way of a leaf at the bottom to the root.
pub(super) fn way(hashes: Hashes<'_>, mut tree: u64, mut leaf: u64) -> Vec<Leaf> {
    let height = hashes.set.tree_height();
    let mut all = Vec::with_capacity(hashes.set.layers);
    for layer in 0..hashes.set.layers {
        all.push(Leaf { tree: Address::new(layer, tree), index: low(leaf, height) });
        leaf = tree;
        tree >>= height;
    }
    all
}

/// The lowest bits of a number.
fn low(number: u64, bits: usize) -> usize {
    (0..bits).fold(0, |all, bit| all | usize::from(number >> bit & 1 == 1) << bit)
}

/// All leaves of these trees.
fn leaves(hashes: Hashes<'_>, secret: &[u8], trees: &[Address]) -> Vec<u8> {
    let (node, width) = (hashes.set.node, 1_usize << hashes.set.tree_height());
    let keys: Vec<_> =
        trees.iter().flat_map(|tree| (0..width).map(|index| Leaf { tree: *tree, index })).collect();
    let mut out = vec![0; keys.len() * node];
    let mut ends = vec![0; KEYS * hashes.set.chains() * node];
    for (keys, out) in keys.chunks(KEYS).zip(out.chunks_mut(KEYS * node)) {
        let ends = &mut ends[..keys.len() * hashes.set.chains() * node];
        chains(hashes, keys, Part::Whole(secret), ends);
        compress(hashes, keys, ends, out);
    }
    out
}

/// The root of the uppermost tree.
pub(super) fn root(hashes: Hashes<'_>, secret: &[u8]) -> Vec<u8> {
    let tree = Address::new(hashes.set.layers - 1, 0);
    let leaves = leaves(hashes, secret, &[tree]);
    reduce(hashes, leaves, &[0], |_, level, index| tree.of_node(level, index)).roots
}

/// Writes the signature of a node (algorithm 12).
pub(super) fn sign(
    hashes: Hashes<'_>,
    secret: &[u8],
    way: &[Leaf],
    node: &[u8],
    signature: &mut [u8],
) {
    let (length, count) = (hashes.set.node, hashes.set.chains());
    let trees: Vec<_> = way.iter().map(|key| key.tree).collect();
    let targets: Vec<_> = way.iter().map(|key| key.index).collect();
    let reduced = reduce(hashes, leaves(hashes, secret, &trees), &targets, |tree, level, index| {
        trees[tree].of_node(level, index)
    });
    // Each layer signs the root of the one below.
    let roots = reduced.roots.chunks_exact(length);
    let signed = std::iter::once(node).chain(roots).take(way.len());
    let digits: Vec<u8> = signed.flat_map(|node| digits(node, WIDTH)).collect();
    let mut shown = vec![0; way.len() * count * length];
    chains(hashes, way, Part::ToDigit(secret, &digits), &mut shown);
    let layers = signature.chunks_exact_mut(hashes.set.layer_length());
    let paths = reduced.paths.chunks_exact(hashes.set.tree_height() * length);
    for ((layer, shown), path) in layers.zip(shown.chunks_exact(count * length)).zip(paths) {
        let (own, above) = layer.split_at_mut(shown.len());
        own.copy_from_slice(shown);
        above.copy_from_slice(path);
    }
}

/// The root to which the signature of a node leads (algorithm 13).
pub(super) fn recovered(
    hashes: Hashes<'_>,
    way: &[Leaf],
    mut node: Vec<u8>,
    signature: &[u8],
) -> Vec<u8> {
    let length = hashes.set.chains() * hashes.set.node;
    let mut ends = vec![0; length];
    for (key, layer) in way.iter().zip(signature.chunks_exact(hashes.set.layer_length())) {
        let (shown, path) = layer.split_at(length);
        let digits = digits(&node, WIDTH);
        chains(hashes, &[*key], Part::FromDigit(shown, &digits), &mut ends);
        compress(hashes, &[*key], &ends, &mut node);
        node = climb(hashes, node, &[key.index], &[path], |_, level, index| {
            key.tree.of_node(level, index)
        });
    }
    node
}
