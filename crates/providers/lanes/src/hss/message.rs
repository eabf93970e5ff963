// SPDX-License-Identifier: Apache-2.0
//! What is hashed alone: messages, and what a seed makes besides the chains.

use super::set::word;
use super::tree::Tree;
use metaslot_awslc_wrapper::Result;
use metaslot_memory::Secret;

/// A message of a one-time key (RFC 8554 §4.5).
pub(super) const MESSAGE: u16 = 0x8181;

/// What a seed makes in the places of chains that no set has: the randomizer of a signature, and the seed and the name of the tree
/// that a one-time key signs.
pub(super) const RANDOMIZER: u16 = 0xfffd;
pub(super) const CHILD_SEED: u16 = 0xfffe;
pub(super) const CHILD_ID: u16 = 0xffff;

/// The hash of parts, behind the tree, a number and a kind.
///
/// # Errors
/// When the library fails.
pub(super) fn digest(tree: Tree<'_>, number: usize, kind: u16, parts: &[&[u8]]) -> Result<Vec<u8>> {
    let mut out = vec![0; tree.set.node];
    fill(tree, number, kind, parts, &mut out)?;
    Ok(out)
}

/// What the seed of a tree makes for a one-time key (appendix A).
///
/// # Errors
/// When the library fails.
pub(super) fn derive(
    tree: Tree<'_>,
    seed: &Secret,
    (leaf, what): (usize, u16),
    out: &mut [u8],
) -> Result<()> {
    fill(tree, leaf, what, &[&[0xff], seed.expose()], out)
}

/// As much of the hash as there is room for.
fn fill(tree: Tree<'_>, number: usize, kind: u16, parts: &[&[u8]], out: &mut [u8]) -> Result<()> {
    let (number, kind) = (word(number), kind.to_be_bytes());
    let all = [&[&tree.id[..], &number, &kind], parts].concat();
    tree.set.function.digest(&all, out)
}
