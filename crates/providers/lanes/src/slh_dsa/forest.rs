// SPDX-License-Identifier: Apache-2.0
//! Binary trees of hashes, any number of one height at once (FIPS 205 §6, §8).

use super::address::Address;
use super::hashes::Hashes;

/// What is wanted of trees whose leaves are known.
pub(super) struct Reduced {
    /// For each tree the neighbours on the way of one leaf to the root.
    pub(super) paths: Vec<u8>,
    pub(super) roots: Vec<u8>,
}

/// Goes from the leaves to the roots. `leaves` has those of one tree after those of the other; `targets` says whose path is
/// wanted in each; `address` is that of a node: which tree, its height, its index.
pub(super) fn reduce(
    hashes: Hashes<'_>,
    mut leaves: Vec<u8>,
    targets: &[usize],
    address: impl Fn(usize, usize, usize) -> Address,
) -> Reduced {
    let (node, trees) = (hashes.set.node, targets.len());
    let height = (leaves.len() / node / trees).ilog2() as usize;
    let mut paths = vec![0; trees * height * node];
    let mut lanes = hashes.lanes(2);
    for level in 0..height {
        let width = leaves.len() / node / trees;
        for (tree, target) in targets.iter().enumerate() {
            let neighbour = tree * width + (target >> level ^ 1);
            let path = &mut paths[(tree * height + level) * node..][..node];
            path.copy_from_slice(&leaves[neighbour * node..][..node]);
        }
        let mut parents = vec![0; leaves.len() / 2];
        let half = width / 2;
        lanes.all(&mut parents, |at, content| {
            content.copy_from_slice(&leaves[2 * at * node..][..2 * node]);
            address(at / half, level + 1, at % half)
        });
        leaves = parents;
    }
    Reduced { paths, roots: leaves }
}

/// The roots to which leaves lead by their paths (§6.3): one leaf of each tree.
pub(super) fn climb(
    hashes: Hashes<'_>,
    mut nodes: Vec<u8>,
    leaves: &[usize],
    paths: &[&[u8]],
    address: impl Fn(usize, usize, usize) -> Address,
) -> Vec<u8> {
    let node = hashes.set.node;
    let height = paths.first().map_or(0, |path| path.len() / node);
    let mut lanes = hashes.lanes(2);
    for level in 0..height {
        let below = nodes.clone();
        lanes.all(&mut nodes, |tree, content| {
            let (own, other) =
                (&below[tree * node..][..node], &paths[tree][level * node..][..node]);
            let index = leaves[tree] >> level;
            let (left, right) = if index & 1 == 0 { (own, other) } else { (other, own) };
            content[..node].copy_from_slice(left);
            content[node..].copy_from_slice(right);
            address(tree, level + 1, index >> 1)
        });
    }
    nodes
}
