// SPDX-License-Identifier: Apache-2.0
//! One tree: its one-time keys (LM-OTS, RFC 8554 §4) and the hashes above them (LMS, §5), as many at once as there are lanes.

use super::set::{ID, Id, Set, word};
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

/// Which part of each chain is computed.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    /// From what the seed makes to the end.
    Whole(&'a [u8]),
    /// From what the seed makes to the digit: what a signature shows. A digit for each chain.
    ToDigit(&'a [u8], &'a [u8]),
    /// From what a signature shows at the digit to the end.
    FromDigit(&'a [u8], &'a [u8]),
}

impl Part<'_> {
    /// The steps of a chain: from where, to where.
    fn steps(&self, chain: usize, all: u8) -> (u8, u8) {
        match self {
            Self::Whole(_) => (0, all),
            Self::ToDigit(_, digits) => (0, digits[chain]),
            Self::FromDigit(_, digits) => (digits[chain], all),
        }
    }
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
        let mut lanes = self.lanes(BEFORE + 1 + node);
        let width = lanes.lanes();
        for (group, out) in out.chunks_mut(width * node).enumerate() {
            let (begin, used) = (group * width, out.len() / node);
            let steps: Vec<_> = (0..used)
                .map(|lane| part.steps((begin + lane) % count, self.set.steps()))
                .collect();
            for lane in 0..used {
                let message = lanes.message(lane);
                let (key, chain) = ((begin + lane) / count, (begin + lane) % count);
                message[ID..ID + 4].copy_from_slice(&word(first + key));
                message[ID + 4..BEFORE].copy_from_slice(&word(chain)[2..]);
                message[BEFORE] = SECRET;
                message[BEFORE + 1..].copy_from_slice(match part {
                    Part::Whole(seed) | Part::ToDigit(seed, _) => seed,
                    Part::FromDigit(shown, _) => &shown[(begin + lane) * node..][..node],
                });
            }
            if !matches!(part, Part::FromDigit(..)) {
                lanes.run();
                (0..used).for_each(|lane| lanes.feed(lane, BEFORE + 1, node));
            }
            walk(&mut lanes, &steps, node);
            for (lane, out) in out.chunks_exact_mut(node).enumerate() {
                out.copy_from_slice(&lanes.message(lane)[BEFORE + 1..]);
            }
        }
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

/// Goes as many steps as each lane has: the lanes together, each while it is its turn.
fn walk(lanes: &mut Many, steps: &[(u8, u8)], node: usize) {
    let from = steps.iter().map(|steps| steps.0).min().unwrap_or(0);
    let to = steps.iter().map(|steps| steps.1).max().unwrap_or(0);
    for step in from..to {
        (0..steps.len()).for_each(|lane| lanes.message(lane)[BEFORE] = step);
        lanes.run();
        for (lane, (from, to)) in steps.iter().enumerate() {
            if (*from..*to).contains(&step) {
                lanes.feed(lane, BEFORE + 1, node);
            }
        }
    }
}
