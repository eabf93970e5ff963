// SPDX-License-Identifier: Apache-2.0
//! One tree: its one-time keys (LM-OTS, RFC 8554 §4) and the hashes above them (LMS, §5), as many at once as there are lanes.

use super::set::{ID, Id, Set, word};
use crate::chains::{Part, Turn, Walk, going, walk};
use crate::hash::many::Many;

/// What is hashed, as a number that stands before it.
const CHAIN_ENDS: u16 = 0x8080;
const LEAF: u16 = 0x8282;
const INNER: u16 = 0x8383;

/// The place of a step in a chain, where a secret is hashed (appendix A).
const SECRET: u8 = 0xff;

/// Bytes before what is hashed: the tree, a number, the kind; in a chain also the step.
const BEFORE: usize = ID + 4 + 2;

/// A tree, as everyone may know it.
#[derive(Clone, Copy)]
pub(super) struct Tree<'a> {
    pub(super) set: &'a Set,
    pub(super) id: &'a Id,
}

impl Tree<'_> {
    /// Lanes for messages of this tree with so many bytes.
    fn lanes(&self, length: usize) -> Many {
        let mut lanes = Many::new(self.set.function, &[], length);
        for lane in 0..lanes.lanes() {
            lanes.message(lane)[..ID].copy_from_slice(self.id);
        }
        lanes
    }

    /// The chains of the one-time keys from `first` on, one after the other, as far as `part` says.
    pub(super) fn chains(&self, first: usize, part: Part<'_>, out: &mut [u8]) {
        let (node, count) = (self.set.node, self.set.chains());
        let lanes = self.lanes(BEFORE + 1 + node);
        walk(&mut Chains { lanes, node, first, count }, part, self.set.steps(), out);
    }

    /// The leaves of the one-time keys from `first` on: of the ends of their chains.
    pub(super) fn leaves(&self, first: usize, ends: &[u8], leaves: &mut [u8]) {
        let length = self.set.chains() * self.set.node;
        let mut keys = vec![0; leaves.len()];
        self.hash(CHAIN_ENDS, first, length, &mut keys, |key| &ends[key * length..][..length]);
        let (first, node) = (first + (1 << self.set.height), self.set.node);
        self.hash(LEAF, first, node, leaves, |leaf| &keys[leaf * node..][..node]);
    }

    /// Nodes from `first` on: of the children of each, side by side.
    pub(super) fn nodes(&self, first: usize, children: &[u8], nodes: &mut [u8]) {
        let length = 2 * self.set.node;
        self.hash(INNER, first, length, nodes, |node| &children[node * length..][..length]);
    }

    /// Hashes with a kind before them, numbered from `first` on.
    fn hash<'a>(
        &self,
        kind: u16,
        first: usize,
        length: usize,
        out: &mut [u8],
        content: impl Fn(usize) -> &'a [u8],
    ) {
        let node = self.set.node;
        let mut lanes = self.lanes(BEFORE + length);
        let width = lanes.lanes();
        for (group, out) in out.chunks_mut(width * node).enumerate() {
            let (begin, used) = (group * width, out.len() / node);
            for lane in 0..used {
                let message = lanes.message(lane);
                message[ID..ID + 4].copy_from_slice(&word(first + begin + lane));
                message[ID + 4..BEFORE].copy_from_slice(&kind.to_be_bytes());
                message[BEFORE..].copy_from_slice(content(begin + lane));
            }
            lanes.run();
            for (lane, out) in out.chunks_exact_mut(node).enumerate() {
                lanes.digest(lane, out);
            }
        }
    }
}

/// Lanes of chains: those of one-time keys from `first` on, `count` of each.
struct Chains {
    lanes: Many,
    node: usize,
    first: usize,
    count: usize,
}

impl Walk for Chains {
    fn lanes(&self) -> usize {
        self.lanes.lanes()
    }

    fn value(&mut self, lane: usize) -> &mut [u8] {
        &mut self.lanes.message(lane)[BEFORE + 1..]
    }

    fn begin(&mut self, secret: &[u8], chains: &[usize]) {
        for (lane, chain) in chains.iter().enumerate() {
            self.place(lane, *chain);
            let message = self.lanes.message(lane);
            message[BEFORE] = SECRET;
            message[BEFORE + 1..].copy_from_slice(secret);
        }
        self.lanes.run();
        (0..chains.len()).for_each(|lane| self.lanes.feed(lane, BEFORE + 1, self.node));
    }

    fn step(&mut self, turns: &[Option<Turn>]) {
        for (lane, Turn { chain, step }) in going(turns) {
            self.place(lane, chain);
            self.lanes.message(lane)[BEFORE] = step;
        }
        self.lanes.run();
        going(turns).for_each(|(lane, _)| self.lanes.feed(lane, BEFORE + 1, self.node));
    }

    fn steps(&mut self, turns: &[Option<Turn>], steps: u8) -> bool {
        let done = self.lanes.chain(BEFORE + 1, self.node, steps);
        if done {
            going(turns).for_each(|(lane, _)| self.lanes.feed(lane, BEFORE + 1, self.node));
        }
        done
    }
}

impl Chains {
    /// Where a lane hashes.
    fn place(&mut self, lane: usize, chain: usize) {
        let (key, chain) = (self.first + chain / self.count, chain % self.count);
        let message = self.lanes.message(lane);
        message[ID..ID + 4].copy_from_slice(&word(key));
        message[ID + 4..BEFORE].copy_from_slice(&word(chain)[2..]);
    }
}
