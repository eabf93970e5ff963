// SPDX-License-Identifier: Apache-2.0
//! SLH-DSA (FIPS 205) of 128 bits with small signatures, deterministic.

use super::{Node, digits, grow, sha256};
use std::iter;

/// SLH-DSA-SHA2-128s or SLH-DSA-SHAKE-128s.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SlhDsa {
    /// With SHA-256.
    Sha2,
    /// With SHAKE256.
    Shake,
}

/// Table 2: layers of the hypertree and the height of each, trees of FORS and their height, chains of a one-time key.
const LAYERS: u8 = 7;
const TREE: u32 = 9;
const FORS_TREES: u32 = 14;
const FORS_HEIGHT: u32 = 12;
const CHAINS: u32 = 35;
const N: usize = 16;

/// Kinds of addresses (§4.2).
const CHAIN: u8 = 0;
const CHAIN_ENDS: u8 = 1;
const NODE: u8 = 2;
const FORS: u8 = 3;
const FORS_ROOTS: u8 = 4;
const CHAIN_SECRET: u8 = 5;
const FORS_SECRET: u8 = 6;

/// An address of 32 bytes.
#[derive(Clone, Copy)]
struct Address {
    layer: u8,
    tree: u64,
}

impl Address {
    fn bytes(self, kind: u8, words: [u32; 3]) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[3] = self.layer;
        bytes[8..16].copy_from_slice(&self.tree.to_be_bytes());
        bytes[19] = kind;
        bytes[20..].copy_from_slice(words.map(u32::to_be_bytes).as_flattened());
        bytes
    }
}

/// A key at work.
struct Key<'a> {
    hash: SlhDsa,
    secret: &'a Node<N>,
    seed: &'a Node<N>,
}

impl SlhDsa {
    /// The root of the public key of SK.seed and PK.seed, of 16 bytes each (algorithm 18).
    #[must_use]
    pub fn root(self, secret: &[u8; N], seed: &[u8; N]) -> [u8; N] {
        Key { hash: self, secret, seed }.tree(Address { layer: LAYERS - 1, tree: 0 }, 0).0
    }

    /// Signs a message without context (algorithms 19 and 22). The private key: SK.seed, SK.prf, PK.seed and PK.root.
    #[must_use]
    pub fn sign(self, private: &[u8; 64], message: &[u8]) -> Vec<u8> {
        let parts = private.as_chunks::<N>().0;
        let (secret, prf, seed, public) = (&parts[0], &parts[1], &parts[2], &private[2 * N..]);
        let key = Key { hash: self, secret, seed };
        let message = [&[0, 0], message].concat();
        let randomizer = self.randomizer(prf, seed, &message);
        let digest = self.digest(&randomizer, public, &message);
        let number =
            |bytes: &[u8]| bytes.iter().fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
        // 21 bytes for FORS, 7 for the tree, 2 for its leaf.
        let mut tree = number(&digest[21..28]) & ((1 << 54) - 1);
        let mut leaf = low(number(&digest[28..]), TREE);
        let mut signature = randomizer.to_vec();
        let (mut node, signed) = key.fors(Address { layer: 0, tree }, leaf, &digest[..21]);
        signature.extend(signed);
        for layer in 0..LAYERS {
            let address = Address { layer, tree };
            signature.extend(key.chains(address, leaf, &node));
            let (root, path) = key.tree(address, leaf);
            signature.extend(path.as_flattened());
            (node, leaf, tree) = (root, low(tree, TREE), tree >> TREE);
        }
        signature
    }

    /// §11.1, §11.2.1
    fn randomizer(self, prf: &[u8], random: &[u8], message: &[u8]) -> Node<N> {
        match self {
            Self::Shake => shake256(&[prf, random, message].concat()),
            // HMAC (RFC 2104).
            Self::Sha2 => {
                let pad = |with: u8| -> [u8; 64] {
                    std::array::from_fn(|at| prf.get(at).copied().unwrap_or_default() ^ with)
                };
                let mut inner = [0; 32];
                crate::sha256(&[&pad(0x36), random, message].concat(), &mut inner);
                sha256(&[&pad(0x5c), &inner])
            }
        }
    }

    fn digest(self, randomizer: &[u8], public: &[u8], message: &[u8]) -> [u8; 30] {
        match self {
            Self::Shake => shake256(&[randomizer, public, message].concat()),
            // MGF1 (RFC 8017 §B.2.1).
            Self::Sha2 => {
                let mut inner = [0; 32];
                crate::sha256(&[randomizer, public, message].concat(), &mut inner);
                sha256(&[randomizer, &public[..N], &inner, &[0; 4]])
            }
        }
    }
}

/// The lowest bits of a number.
fn low(number: u64, bits: u32) -> u32 {
    u32::try_from(number & ((1 << bits) - 1)).unwrap_or_default()
}

fn shake256<const LENGTH: usize>(data: &[u8]) -> [u8; LENGTH] {
    let mut out = [0; LENGTH];
    crate::shake256(data, &mut out);
    out
}

impl Key<'_> {
    /// F, H, T and PRF (§11.1, §11.2.1) of one part or two.
    #[inline(always)]
    fn hash(&self, address: [u8; 32], [first, second]: [&[u8]; 2]) -> Node<N> {
        match self.hash {
            SlhDsa::Shake => {
                let mut node = [0; N];
                super::whole(&[self.seed, &address, first, second], |whole| {
                    crate::shake256(whole, &mut node);
                });
                node
            }
            SlhDsa::Sha2 => {
                let (layer, tree, rest) = (&address[3..4], &address[8..16], &address[19..]);
                sha256(&[self.seed, &[0; 48], layer, tree, rest, first, second])
            }
        }
    }

    /// A chain of a leaf from its secret on (algorithm 5).
    fn chain(&self, address: Address, [leaf, chain]: [u32; 2], steps: u8) -> Node<N> {
        let secret = self.hash(address.bytes(CHAIN_SECRET, [leaf, chain, 0]), [self.secret, &[]]);
        (0..u32::from(steps)).fold(secret, |node, step| {
            self.hash(address.bytes(CHAIN, [leaf, chain, step]), [&node, &[]])
        })
    }

    /// The one-time signature of a node (algorithm 7).
    fn chains(&self, address: Address, leaf: u32, node: &Node<N>) -> Vec<u8> {
        let chains = (0..).zip(digits(node));
        chains.flat_map(|(chain, digit)| self.chain(address, [leaf, chain], digit)).collect()
    }

    /// A tree of the hypertree (algorithms 6 and 9).
    fn tree(&self, address: Address, from: u32) -> (Node<N>, Vec<Node<N>>) {
        let leaf = |leaf| {
            let ends: Vec<Node<N>> =
                (0..CHAINS).map(|chain| self.chain(address, [leaf, chain], 15)).collect();
            self.hash(address.bytes(CHAIN_ENDS, [leaf, 0, 0]), [ends.as_flattened(), &[]])
        };
        grow(TREE, from, leaf, |height, at, left, right| {
            self.hash(address.bytes(NODE, [0, height, at]), [left, right])
        })
    }

    /// The FORS signature of a digest, and the public key of it (algorithms 14 to 17).
    fn fors(&self, address: Address, pair: u32, digest: &[u8]) -> (Node<N>, Vec<u8>) {
        let (mut roots, mut signature) = (Vec::new(), Vec::new());
        // Indices of twelve bits.
        let indices = digest.as_chunks::<3>().0.iter().flat_map(|[a, b, c]| {
            let [a, b, c] = [a, b, c].map(|byte| u32::from(*byte));
            [a << 4 | b >> 4, (b & 15) << 8 | c]
        });
        for (tree, index) in iter::zip(0..FORS_TREES, indices) {
            let first = |height: u32| tree << (FORS_HEIGHT - height);
            let secret = |at: u32| {
                let address = address.bytes(FORS_SECRET, [pair, 0, first(0) + at]);
                self.hash(address, [self.secret, &[]])
            };
            let node = |height, at, input: [&[u8]; 2]| {
                self.hash(address.bytes(FORS, [pair, height, first(height) + at]), input)
            };
            let leaf = |at| node(0, at, [&secret(at), &[]]);
            let join =
                |height, at, left: &Node<N>, right: &Node<N>| node(height, at, [left, right]);
            let (root, path) = grow(FORS_HEIGHT, index, leaf, join);
            signature.extend(secret(index));
            signature.extend(path.as_flattened());
            roots.extend(root);
        }
        (self.hash(address.bytes(FORS_ROOTS, [pair, 0, 0]), [&roots, &[]]), signature)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{hex, vectors};
    use super::*;

    /// Of NIST's keys: their roots, and SHA-256 of the signatures of "message" that OpenSSL 3.5.5 makes.
    #[test]
    fn roots_and_signatures_are_those_of_others() {
        let file = vectors(include_str!("../../../../testdata/nist/slh_dsa.json"));
        let sets = [
            (
                "SLH-DSA-SHA2-128s",
                SlhDsa::Sha2,
                "915619da8d5feca354f024add18f29cddbdc90d831ea58dadd1226805177a492",
            ),
            (
                "SLH-DSA-SHAKE-128s",
                SlhDsa::Shake,
                "43e09fd6ca6f425b61aebfd90da02d18eb415248c218a48db3f9684088aa2325",
            ),
        ];
        for (name, set, digest) in sets {
            let mut keys = file["keys"].as_array().unwrap().iter();
            let vector = keys.find(|vector| vector["set"] == name).unwrap();
            let private = hex(&vector["sk"]);
            let parts = private.as_chunks::<N>().0;
            assert_eq!(set.root(&parts[0], &parts[2]), parts[3], "{name}");
            let signature = set.sign(private.first_chunk().unwrap(), b"message");
            let mut hash = [0; 32];
            crate::sha256(&signature, &mut hash);
            assert_eq!(hash[..], hex(&digest.into()), "{name}");
        }
    }
}
