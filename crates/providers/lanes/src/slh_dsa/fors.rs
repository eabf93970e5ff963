// SPDX-License-Identifier: Apache-2.0
//! The few-times signature at the bottom, FORS (FIPS 205 §8).

use super::address::Kind;
use super::chains::Leaf;
use super::forest::{climb, reduce};
use super::hashes::Hashes;
use super::set::Set;

/// As many leaves are computed at once, where one tree has not more.
const LEAVES: usize = 4096;

/// Bytes of nodes that [`sign`] has at a time: leaves, and their parents.
pub(super) const fn room(set: &Set) -> usize {
    let leaves =
        if set.fors_height > LEAVES.ilog2() as usize { 1 << set.fors_height } else { LEAVES };
    leaves * set.node * 3 / 2 + set.fors_length()
}

/// The leaf of each tree that a message's digest names: numbers of `bits` bits, the highest first (§4.4, algorithm 4).
pub(super) fn indices(digest: &[u8], bits: usize, count: usize) -> Vec<usize> {
    let bit = |at: usize| usize::from(digest[at / 8] >> (7 - at % 8) & 1);
    let number = |at: usize| (at * bits..(at + 1) * bits).fold(0, |all, at| all << 1 | bit(at));
    (0..count).map(number).collect()
}

/// Writes the signature, and gives the public key (algorithms 16 and 17).
pub(super) fn sign(
    hashes: Hashes<'_>,
    secret: &[u8],
    key: Leaf,
    indices: &[usize],
    signature: &mut [u8],
) -> Vec<u8> {
    let (node, height) = (hashes.set.node, hashes.set.fors_height);
    let together = (LEAVES >> height).max(1);
    let mut roots = Vec::with_capacity(indices.len() * node);
    let parts = signature.chunks_mut(together * (1 + height) * node);
    for (group, (targets, signature)) in indices.chunks(together).zip(parts).enumerate() {
        let first = (group * together) << height;
        let mut secrets = vec![0; targets.len() * node];
        let shown: Vec<_> = targets
            .iter()
            .enumerate()
            .map(|(tree, leaf)| first + (tree << height) + leaf)
            .collect();
        hashes.lanes(1).all(&mut secrets, |at, content| {
            content.copy_from_slice(secret);
            key.tree.of_leaf(Kind::ForsSecret, key.index, [0, shown[at]])
        });
        let leaves = leaves(hashes, secret, key, first, targets.len() << height);
        let reduced = reduce(hashes, leaves, targets, |tree, level, index| {
            let index = (first >> level) + (tree << (height - level)) + index;
            key.tree.of_leaf(Kind::ForsTree, key.index, [level, index])
        });
        let paths = reduced.paths.chunks_exact(height * node);
        let each = signature.chunks_exact_mut((1 + height) * node);
        for ((signature, secret), path) in each.zip(secrets.chunks_exact(node)).zip(paths) {
            signature[..node].copy_from_slice(secret);
            signature[node..].copy_from_slice(path);
        }
        roots.extend_from_slice(&reduced.roots);
    }
    public(hashes, key, &roots)
}

/// So many leaves from `first` on: hashes of secrets.
fn leaves(hashes: Hashes<'_>, secret: &[u8], key: Leaf, first: usize, count: usize) -> Vec<u8> {
    let node = hashes.set.node;
    let mut lanes = hashes.lanes(1);
    let mut out = vec![0; count * node];
    let width = lanes.count();
    for (group, out) in out.chunks_mut(width * node).enumerate() {
        let index = |lane: usize| first + group * width + lane;
        let used = out.len() / node;
        for lane in 0..used {
            let address = key.tree.of_leaf(Kind::ForsSecret, key.index, [0, index(lane)]);
            lanes.place(lane, &address);
            lanes.content(lane).copy_from_slice(secret);
        }
        lanes.run();
        for lane in 0..used {
            let address = key.tree.of_leaf(Kind::ForsTree, key.index, [0, index(lane)]);
            lanes.place(lane, &address);
            lanes.feed(lane);
        }
        lanes.run();
        for (lane, out) in out.chunks_exact_mut(node).enumerate() {
            lanes.node(lane, out);
        }
    }
    out
}

/// The public key to which a signature leads.
pub(super) fn recovered(
    hashes: Hashes<'_>,
    key: Leaf,
    indices: &[usize],
    signature: &[u8],
) -> Vec<u8> {
    let (node, height) = (hashes.set.node, hashes.set.fors_height);
    let each: Vec<_> = signature.chunks_exact((1 + height) * node).collect();
    let mut leaves = vec![0; indices.len() * node];
    hashes.lanes(1).all(&mut leaves, |tree, content| {
        content.copy_from_slice(&each[tree][..node]);
        let index = (tree << height) + indices[tree];
        key.tree.of_leaf(Kind::ForsTree, key.index, [0, index])
    });
    let paths: Vec<_> = each.iter().map(|signature| &signature[node..]).collect();
    let roots = climb(hashes, leaves, indices, &paths, |tree, level, index| {
        let index = (tree << (height - level)) + index;
        key.tree.of_leaf(Kind::ForsTree, key.index, [level, index])
    });
    public(hashes, key, &roots)
}

/// The public key: the hash of all roots.
fn public(hashes: Hashes<'_>, key: Leaf, roots: &[u8]) -> Vec<u8> {
    let mut out = vec![0; hashes.set.node];
    hashes.lanes(hashes.set.fors_trees).all(&mut out, |_, content| {
        content.copy_from_slice(roots);
        key.tree.of_leaf(Kind::ForsRoots, key.index, [0, 0])
    });
    out
}
