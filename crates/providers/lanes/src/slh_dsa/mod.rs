// SPDX-License-Identifier: Apache-2.0
//! SLH-DSA (FIPS 205): signatures that are made of hashes alone, of which one takes between a hundred thousand and some millions.
//!
//! The lanes are full with a single request: all leaves of a layer, and all layers, are hashed side by side. Without vector
//! instructions there is one lane. Constant time: which hashes are computed depends on the message alone, and secrets are hashed
//! and nothing else.

mod address;
mod chains;
mod forest;
mod fors;
mod hashes;
mod hypertree;
mod message;
mod set;
#[cfg(test)]
mod tests;

use crate::hash::many;
use chains::Leaf;
use hashes::Hashes;
use metaslot_awslc_wrapper::{Result, constant_time};
use metaslot_memory::wiping;
pub use set::Set;

/// Whether there is memory for a signature, or for a root. What is computed with is ordinary memory, in amounts that the set
/// alone decides: who asks at the beginning gets an answer where the process would end in the middle.
#[must_use]
pub fn has_room(set: &'static Set) -> bool {
    many::has_room(fors::room(set) + hypertree::room(set))
}

/// The public key of the seeds of a private one, as far as it is not there: its root (algorithm 18). `secret` and `seed` are
/// SK.seed and PK.seed.
#[must_use]
pub fn root(set: &'static Set, secret: &[u8], seed: &[u8]) -> Vec<u8> {
    wiping(|| hypertree::root(Hashes::new(set, seed), secret))
}

/// What a digest of a message chooses.
struct Chosen {
    indices: Vec<usize>,
    way: Vec<Leaf>,
}

impl Chosen {
    fn new(hashes: Hashes<'_>, digest: &[u8]) -> Self {
        let set = hashes.set;
        let [fors, tree, leaf] = set.digest_parts();
        let number = |bytes: &[u8], bits: usize| {
            let number = bytes.iter().fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
            if bits == 64 { number } else { number & ((1 << bits) - 1) }
        };
        let tree = number(&digest[fors..][..tree], set.tree_bits());
        let leaf = number(&digest[digest.len() - leaf..], set.tree_height());
        Self {
            indices: fors::indices(&digest[..fors], set.fors_height, set.fors_trees),
            way: hypertree::way(hashes, tree, leaf),
        }
    }
}

/// Signs a message, given in parts: with its prefix of domain and context (algorithm 19). `private` is the whole private key,
/// `random` a node of random bytes; a signature without is deterministic.
///
/// # Errors
/// When the library fails.
///
/// # Panics
/// When a length is not the set's.
pub fn sign(
    set: &'static Set,
    private: &[u8],
    random: Option<&[u8]>,
    message: &[&[u8]],
    signature: &mut [u8],
) -> Result<()> {
    assert!(private.len() == set.private_length() && signature.len() == set.signature_length());
    wiping(|| {
        let node = set.node;
        let (secret, public) = private.split_at(2 * node);
        let (seed, prf) = secret.split_at(node);
        let hashes = Hashes::new(set, &public[..node]);
        let (randomizer, rest) = signature.split_at_mut(node);
        let random = random.unwrap_or(&public[..node]);
        message::randomizer(set, prf, random, message, randomizer)?;
        let chosen = chosen(hashes, randomizer, public, message)?;
        let (below, above) = rest.split_at_mut(set.fors_length());
        let key = fors::sign(hashes, seed, chosen.way[0], &chosen.indices, below);
        hypertree::sign(hashes, seed, &chosen.way, &key, above);
        Ok(())
    })
}

/// Whether a signature is one of a message (algorithm 20).
///
/// # Errors
/// When the library fails.
///
/// # Panics
/// When a length is not the set's.
pub fn verify(
    set: &'static Set,
    public: &[u8],
    message: &[&[u8]],
    signature: &[u8],
) -> Result<bool> {
    assert!(public.len() == set.public_length() && signature.len() == set.signature_length());
    let hashes = Hashes::new(set, &public[..set.node]);
    let (randomizer, rest) = signature.split_at(set.node);
    let chosen = chosen(hashes, randomizer, public, message)?;
    let (below, above) = rest.split_at(set.fors_length());
    let key = fors::recovered(hashes, chosen.way[0], &chosen.indices, below);
    let root = hypertree::recovered(hashes, &chosen.way, key, above);
    Ok(constant_time::equal(&root, &public[set.node..]))
}

fn chosen(
    hashes: Hashes<'_>,
    randomizer: &[u8],
    public: &[u8],
    message: &[&[u8]],
) -> Result<Chosen> {
    let mut digest = vec![0; hashes.set.digest_parts().iter().sum()];
    message::digest(hashes.set, randomizer, public, message, &mut digest)?;
    Ok(Chosen::new(hashes, &digest))
}
