// SPDX-License-Identifier: Apache-2.0
//! The tree that is grown when a key of HSS or XMSS is made. Of HSS with several levels it is the uppermost: those below are grown
//! when they sign.

use super::{Node, grow, sha256};

/// Bytes of a node of HSS (SP 800-208, `LMS_SHA256_M24_H10` and `LMOTS_SHA256_N24_W8`), and of XMSS.
const SHORT: usize = 24;
const LONG: usize = 32;
/// Levels of both.
const HEIGHT: u32 = 10;

/// The root of a tree of HSS of 1,024 keys with digits of eight bits (RFC 8554 §4.3, §5.3 and appendix A).
#[must_use]
pub fn hss_public(seed: &[u8; SHORT], id: &[u8; 16]) -> [u8; SHORT] {
    lms(HEIGHT, seed, id)
}

fn lms(height: u32, seed: &[u8; SHORT], id: &[u8; 16]) -> Node<SHORT> {
    const CHAINS: u16 = 26;
    let first = 1_u32 << height;
    let leaf = |leaf: u32| {
        let q = leaf.to_be_bytes();
        let end = |chain: u16| {
            let chain = chain.to_be_bytes();
            let secret: Node<SHORT> = sha256(&[id, &q, &chain, &[0xff], seed]);
            let step = |node: Node<SHORT>, step: u8| sha256(&[id, &q, &chain, &[step], &node]);
            (0..u8::MAX).fold(secret, step)
        };
        let ends: Vec<Node<SHORT>> = (0..CHAINS).map(end).collect();
        let key: Node<SHORT> = sha256(&[id, &q, &[0x80; 2], ends.as_flattened()]);
        sha256(&[id, &(first + leaf).to_be_bytes(), &[0x82; 2], &key])
    };
    let join = |level: u32, at: u32, left: &Node<SHORT>, right: &Node<SHORT>| {
        let number = (first >> level) + at;
        sha256(&[id, &number.to_be_bytes(), &[0x83; 2], left, right])
    };
    grow(height, 0, leaf, join).0
}

/// The root of XMSS-SHA2_10_256 (RFC 8391 §4.1, SP 800-208 §6.2).
#[must_use]
pub fn xmss_public(secret: &[u8; LONG], seed: &[u8; LONG]) -> [u8; LONG] {
    Xmss { secret, seed }.public()
}

struct Xmss<'a> {
    secret: &'a Node<LONG>,
    seed: &'a Node<LONG>,
}

type Address = [u32; 8];

/// Words of an address (§2.5): its kind, the one-time key, the chain or the height, the step or the place, and whether a key or
/// a mask is made.
const KIND: usize = 3;
const OF_KEY: usize = 4;
const HEIGHT_OR_CHAIN: usize = 5;
const PLACE_OR_STEP: usize = 6;
const MASK: usize = 7;

impl Xmss<'_> {
    #[inline(always)]
    fn hash(function: u8, parts: [&[u8]; 3]) -> Node<LONG> {
        let mut number = [0; LONG];
        number[LONG - 1] = function;
        let [a, b, c] = parts;
        sha256(&[&number, a, b, c])
    }

    fn random(&self, mut address: Address, which: u32) -> Node<LONG> {
        address[MASK] = which;
        Self::hash(3, [self.seed, address.map(u32::to_be_bytes).as_flattened(), &[]])
    }

    fn masked(&self, node: &Node<LONG>, address: Address, which: u32) -> Node<LONG> {
        let mask = self.random(address, which);
        std::array::from_fn(|at| node[at] ^ mask[at])
    }

    fn pair(&self, address: Address, left: &Node<LONG>, right: &Node<LONG>) -> Node<LONG> {
        let (left, right) = (self.masked(left, address, 1), self.masked(right, address, 2));
        Self::hash(1, [&self.random(address, 0), &left, &right])
    }

    fn chain(&self, mut address: Address, chain: u32) -> Node<LONG> {
        address[HEIGHT_OR_CHAIN] = chain;
        let bytes = address.map(u32::to_be_bytes);
        let secret = Self::hash(4, [self.secret, self.seed, bytes.as_flattened()]);
        (0..15).fold(secret, |node, step| {
            address[PLACE_OR_STEP] = step;
            Self::hash(0, [&self.random(address, 0), &self.masked(&node, address, 1), &[]])
        })
    }

    /// An L-tree (algorithm 8).
    fn leaf(&self, leaf: u32) -> Node<LONG> {
        let mut address = [0; 8];
        address[OF_KEY] = leaf;
        let mut nodes: Vec<_> = (0..67).map(|chain| self.chain(address, chain)).collect();
        address[KIND] = 1;
        while nodes.len() > 1 {
            let pair = |(at, pair): (u32, &[Node<LONG>])| {
                let mut address = address;
                address[PLACE_OR_STEP] = at;
                match pair {
                    [left, right] => self.pair(address, left, right),
                    _ => pair[0],
                }
            };
            nodes = (0..).zip(nodes.chunks(2)).map(pair).collect();
            address[HEIGHT_OR_CHAIN] += 1;
        }
        nodes[0]
    }

    fn public(&self) -> Node<LONG> {
        let leaf = |leaf| self.leaf(leaf);
        let join = |level, at, left: &Node<LONG>, right: &Node<LONG>| {
            let mut address = [0; 8];
            address[KIND] = 2;
            address[HEIGHT_OR_CHAIN] = level - 1;
            address[PLACE_OR_STEP] = at;
            self.pair(address, left, right)
        };
        grow(HEIGHT, 0, leaf, join).0
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{hex, vectors};
    use super::*;

    #[test]
    fn a_root_of_hss_is_that_of_another_implementation() {
        let file = vectors(include_str!("../../../../testdata/rfc/lms.json"));
        let mut keys = file["keys"].as_array().unwrap().iter();
        // LMS_SHA256_M24_H5, LMOTS_SHA256_N24_W8
        let vector =
            keys.find(|vector| vector["types"][0] == 10 && vector["types"][1] == 8).unwrap();
        let (seed, id) = (hex(&vector["seed"]), hex(&vector["id"]));
        let root = lms(5, seed.first_chunk().unwrap(), id.first_chunk().unwrap());
        assert!(hex(&vector["public"]).ends_with(&root));
    }

    #[test]
    fn a_root_of_xmss_is_that_of_another_implementation() {
        let file = vectors(include_str!("../../../../testdata/xmss/vectors.json"));
        let mut all = file["signed"].as_array().unwrap().iter();
        let vector = all.find(|vector| vector["set"] == "XMSS-SHA2_10_256").unwrap();
        let (seeds, public) = (hex(&vector["seeds"]), hex(&vector["public"]));
        let (secret, seed) = (seeds.first_chunk().unwrap(), seeds.last_chunk().unwrap());
        assert_eq!(xmss_public(secret, seed), public[4..4 + LONG]);
    }
}
