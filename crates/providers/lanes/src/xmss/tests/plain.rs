// SPDX-License-Identifier: Apache-2.0
//! XMSS as RFC 8391 and SP 800-208 write it down, one hash after the other: nothing is shared with what is tested but the sets.

use crate::hash::many::Function;
use crate::xmss::set::{Scheme, Set};
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::shake::{self, Shake};

pub(super) struct Plain {
    set: Set,
    seeds: Vec<u8>,
}

/// An address: eight words.
type Address = [u32; 8];

impl Plain {
    pub(super) fn new(set: &Set, seeds: &[u8]) -> Self {
        Self { set: *set, seeds: seeds.to_vec() }
    }

    fn secret(&self) -> &[u8] {
        &self.seeds[..self.set.node]
    }

    fn seed(&self) -> &[u8] {
        &self.seeds[2 * self.set.node..]
    }

    fn hash(&self, function: u8, parts: &[&[u8]]) -> Vec<u8> {
        let mut input = vec![0; self.set.padding()];
        *input.last_mut().unwrap() = function;
        parts.iter().for_each(|part| input.extend(*part));
        let mut out = vec![0; 64];
        let squeeze = |function, out: &mut [u8]| {
            let mut shake = Shake::new(function).unwrap();
            shake.update(&input).unwrap();
            shake.finish(out).unwrap();
        };
        match self.set.function() {
            Function::Sha256 => Hash::Sha256.digest(&input, &mut out[..32]).unwrap(),
            Function::Sha512 => Hash::Sha512.digest(&input, &mut out).unwrap(),
            Function::Shake128 => squeeze(shake::Function::Shake128, &mut out),
            Function::Shake256 => squeeze(shake::Function::Shake256, &mut out),
        }
        out.truncate(self.set.node);
        out
    }

    fn prf(&self, mut address: Address, last: u32) -> Vec<u8> {
        address[7] = last;
        self.hash(3, &[self.seed(), address.map(u32::to_be_bytes).as_flattened()])
    }

    fn masked(&self, node: &[u8], address: Address, last: u32) -> Vec<u8> {
        node.iter().zip(self.prf(address, last)).map(|(a, b)| a ^ b).collect()
    }

    fn pair(&self, left: &[u8], right: &[u8], address: Address) -> Vec<u8> {
        let (left, right) = (self.masked(left, address, 1), self.masked(right, address, 2));
        self.hash(1, &[&self.prf(address, 0), &left, &right])
    }

    fn chain(&self, mut node: Vec<u8>, from: u32, to: u32, mut address: Address) -> Vec<u8> {
        for step in from..to {
            address[6] = step;
            node = self.hash(0, &[&self.prf(address, 0), &self.masked(&node, address, 1)]);
        }
        node
    }

    fn digits(&self, hash: &[u8]) -> Vec<u32> {
        let mut digits: Vec<u32> =
            hash.iter().flat_map(|byte| [u32::from(byte >> 4), u32::from(byte & 15)]).collect();
        let sum: u32 = digits.iter().map(|digit| 15 - digit).sum();
        digits.extend([sum >> 8, sum >> 4 & 15, sum & 15]);
        digits
    }

    fn begin(&self, mut address: Address, chain: usize) -> (Vec<u8>, Address) {
        address[5] = u32::try_from(chain).unwrap();
        let bytes = address.map(u32::to_be_bytes);
        (self.hash(4, &[self.secret(), self.seed(), bytes.as_flattened()]), address)
    }

    fn tree(&self, layer: u32, tree: u64) -> Address {
        let [high, low] =
            [tree >> 32, tree & u64::from(u32::MAX)].map(|it| u32::try_from(it).unwrap());
        [layer, high, low, 0, 0, 0, 0, 0]
    }

    fn compress(&self, mut nodes: Vec<Vec<u8>>, mut address: Address) -> Vec<u8> {
        address[3] = 1;
        while nodes.len() > 1 {
            let pair = |(at, pair): (usize, &[Vec<u8>])| {
                let mut address = address;
                address[6] = u32::try_from(at).unwrap();
                match pair {
                    [left, right] => self.pair(left, right, address),
                    _ => pair[0].clone(),
                }
            };
            nodes = nodes.chunks(2).enumerate().map(pair).collect();
            address[5] += 1;
        }
        nodes.remove(0)
    }

    fn leaf(&self, mut address: Address, leaf: u32) -> Vec<u8> {
        address[4] = leaf;
        let end = |chain| {
            let (node, address) = self.begin(address, chain);
            self.chain(node, 0, 15, address)
        };
        self.compress((0..self.set.node * 2 + 3).map(end).collect(), address)
    }

    /// The root of a tree, and the path of a leaf.
    fn grow(&self, address: Address, leaf: u32) -> (Vec<u8>, Vec<u8>) {
        let height = self.set.height / self.set.layers;
        let mut nodes: Vec<_> = (0..1 << height).map(|leaf| self.leaf(address, leaf)).collect();
        let mut path = Vec::new();
        for level in 0..height {
            path.extend(&nodes[(leaf >> level ^ 1) as usize]);
            let pair = |(at, pair): (u32, &[Vec<u8>])| {
                let [layer, high, low, ..] = address;
                self.pair(&pair[0], &pair[1], [layer, high, low, 2, 0, level, at, 0])
            };
            nodes = (0..).zip(nodes.chunks(2)).map(pair).collect();
        }
        (nodes.remove(0), path)
    }

    pub(super) fn public(&self) -> Vec<u8> {
        let root = self.grow(self.tree(self.set.layers - 1, 0), 0).0;
        [&self.set.number.to_be_bytes(), &root[..], self.seed()].concat()
    }

    fn message(&self, randomizer: &[u8], root: &[u8], number: u64, message: &[u8]) -> Vec<u8> {
        let mut index = vec![0; self.set.node - 8];
        index.extend(number.to_be_bytes());
        self.hash(2, &[randomizer, root, &index, message])
    }

    fn index(&self) -> usize {
        match self.set.scheme {
            Scheme::Single => 4,
            Scheme::Multi => {
                self.set.height as usize / 8 + usize::from(!self.set.height.is_multiple_of(8))
            }
        }
    }

    pub(super) fn sign(&self, number: u64, message: &[u8]) -> Vec<u8> {
        let mut index = vec![0; 24];
        index.extend(number.to_be_bytes());
        let randomizer = self.hash(3, &[&self.seeds[self.set.node..2 * self.set.node], &index]);
        let root = &self.public()[4..][..self.set.node];
        let mut signed = self.message(&randomizer, root, number, message);
        let mut signature = [&number.to_be_bytes()[8 - self.index()..], &randomizer].concat();
        let (mut at, height) = (number, self.set.height / self.set.layers);
        for layer in 0..self.set.layers {
            let leaf = u32::try_from(at & ((1 << height) - 1)).unwrap();
            at >>= height;
            let mut address = self.tree(layer, at);
            let (root, path) = self.grow(address, leaf);
            address[4] = leaf;
            for (chain, digit) in self.digits(&signed).into_iter().enumerate() {
                let (node, address) = self.begin(address, chain);
                signature.extend(self.chain(node, 0, digit, address));
            }
            signature.extend(path);
            signed = root;
        }
        signature
    }
}
