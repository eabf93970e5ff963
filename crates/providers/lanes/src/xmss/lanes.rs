// SPDX-License-Identifier: Apache-2.0
//! The hash functions of one tree, many at a time (RFC 8391 §5.1, SP 800-208 §5): each hash of nodes has a key and masks of its
//! own, which the public seed makes for its address.

use super::address::{Kind, Place};
use super::set::{Set, TOP};
use crate::chains::{Part, Turn, Walk, going, walk};
use crate::hash::many::{ADDRESS, Many};
use metaslot_memory::wipe_stack;
use std::ops::Range;

/// Which function, as a number before its input.
const NODE: u8 = 0;
const PAIR: u8 = 1;
pub(super) const MESSAGE: u8 = 2;
pub(super) const VALUE: u8 = 3;
const SECRET: u8 = 4;

/// The longest node.
const LONGEST: usize = 64;

/// Lanes for the nodes of trees with one public seed.
pub(super) struct Lanes {
    set: Set,
    /// PRF, with the address at the end.
    values: Many,
    /// F and H.
    single: Keyed,
    pair: Keyed,
    /// For `PRF_keygen`.
    seed: Vec<u8>,
}

impl Drop for Lanes {
    fn drop(&mut self) {
        // Their kernels ran some frames below who has them.
        wipe_stack();
    }
}

/// Lanes for messages of a key and nodes.
struct Keyed {
    many: Many,
    /// Where the key begins, and bytes of a node.
    at: usize,
    node: usize,
    /// For which lanes values are made together, and which of their values.
    group: Vec<(usize, usize)>,
}

impl Keyed {
    fn new(set: &Set, function: u8, nodes: usize) -> Self {
        let (at, node) = (set.padding(), set.node);
        let mut many = Many::new(set.function(), &[], at + (1 + nodes) * node);
        (0..many.lanes()).for_each(|lane| many.message(lane)[at - 1] = function);
        Self { group: Vec::with_capacity(many.lanes()), many, at, node }
    }

    /// The nodes that a lane hashes.
    fn content(&mut self, lane: usize) -> &mut [u8] {
        &mut self.many.message(lane)[self.at + self.node..]
    }

    /// Hashes the nodes in these lanes with the values that are made for their addresses: as many values at once as there are
    /// lanes, though few of them hash nodes.
    fn run(
        &mut self,
        values: &mut Many,
        lanes: impl Iterator<Item = (usize, [usize; 3])> + Clone,
        (place, kind): (Place, Kind),
    ) {
        let (at, node) = (self.at, self.node);
        let nodes = self.content(0).len() / node;
        let wanted = (0..=nodes).flat_map(|last| lanes.clone().map(move |lane| (lane, last)));
        let mut wanted = wanted.peekable();
        while wanted.peek().is_some() {
            let group = wanted.by_ref().take(values.lanes());
            self.group.clear();
            for (to, ((lane, words), last)) in group.enumerate() {
                let message = values.message(to);
                let from = message.len() - ADDRESS;
                place.write(kind, words, last, &mut message[from..]);
                self.group.push((lane, last));
            }
            values.run();
            let mut value = [0; LONGEST];
            for (from, (lane, last)) in self.group.iter().enumerate() {
                values.digest(from, &mut value[..node]);
                let out = &mut self.many.message(*lane)[at + last * node..][..node];
                match last {
                    0 => out.copy_from_slice(&value[..node]),
                    _ => out.iter_mut().zip(value).for_each(|(out, mask)| *out ^= mask),
                }
            }
        }
        self.many.run();
    }
}

impl Lanes {
    pub(super) fn new(set: &Set, seed: &[u8]) -> Self {
        let (padding, node) = (set.padding(), set.node);
        let mut before = vec![0; padding];
        before[padding - 1] = VALUE;
        before.extend(seed);
        // Where a block ends with the seed, what it leaves is the same for all.
        let whole = set.function().block() == before.len();
        let (block, rest) = before.split_at(if whole { before.len() } else { 0 });
        let mut values = Many::new(set.function(), block, rest.len() + ADDRESS);
        for lane in 0..values.lanes() {
            values.message(lane)[..rest.len()].copy_from_slice(rest);
        }
        let (single, pair) = (Keyed::new(set, NODE, 1), Keyed::new(set, PAIR, 2));
        debug_assert!(node <= LONGEST);
        Self { set: *set, values, single, pair, seed: seed.to_vec() }
    }

    /// The chains of the one-time keys of a tree from `first` on, one after the other, as far as `part` says.
    pub(super) fn chains(&mut self, place: Place, first: usize, part: Part<'_>, out: &mut [u8]) {
        let count = self.set.chains();
        walk(&mut Chains { lanes: self, secrets: None, place, first, count }, part, TOP, out);
    }

    /// The public keys of one-time keys from `first` on, of the ends of their chains: a tree over them (§4.1.5, algorithm 8).
    pub(super) fn leaves(
        &mut self,
        place: Place,
        first: usize,
        ends: &mut [u8],
        leaves: &mut [u8],
    ) {
        let (node, count) = (self.set.node, self.set.chains());
        let keys = leaves.len() / node;
        let (mut left, mut height) = (count, 0);
        while left > 1 {
            let pairs = left / 2;
            let at = |pair: usize, width: usize| pair / pairs * count + pair % pairs * width;
            self.pairs((place, Kind::Ends), ends, 0..keys * pairs, |pair| Pair {
                from: at(pair, 2),
                to: at(pair, 1),
                words: [first + pair / pairs, height, pair % pairs],
            });
            if left % 2 == 1 {
                for key in 0..keys {
                    let from = (key * count + left - 1) * node;
                    ends.copy_within(from..from + node, (key * count + pairs) * node);
                }
            }
            left = left.div_ceil(2);
            height += 1;
        }
        for (leaf, ends) in leaves.chunks_exact_mut(node).zip(ends.chunks_exact(count * node)) {
            leaf.copy_from_slice(&ends[..node]);
        }
    }

    /// Puts hashes of pairs of these nodes among them. What one pair's hash overwrites, no later one hashes.
    pub(super) fn pairs(
        &mut self,
        (place, kind): (Place, Kind),
        nodes: &mut [u8],
        all: Range<usize>,
        pair: impl Fn(usize) -> Pair,
    ) {
        let (node, width) = (self.set.node, self.pair.many.lanes());
        for first in all.clone().step_by(width) {
            let used = width.min(all.end - first);
            for lane in 0..used {
                let from = pair(first + lane).from * node;
                self.pair.content(lane).copy_from_slice(&nodes[from..from + 2 * node]);
            }
            let all = (0..used).map(|lane| (lane, pair(first + lane).words));
            self.pair.run(&mut self.values, all, (place, kind));
            for lane in 0..used {
                let to = pair(first + lane).to * node;
                self.pair.many.digest(lane, &mut nodes[to..to + node]);
            }
        }
    }
}

/// Two nodes side by side, from where, and where their hash goes; both are numbers of nodes.
pub(super) struct Pair {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) words: [usize; 3],
}

/// Lanes of chains: those of one-time keys from `first` on, `count` of each.
struct Chains<'a> {
    lanes: &'a mut Lanes,
    /// Where chains begin, if they begin at a secret (SP 800-208 §6.2).
    secrets: Option<Many>,
    place: Place,
    first: usize,
    count: usize,
}

impl Chains<'_> {
    fn words(first: usize, count: usize, chain: usize, step: u8) -> [usize; 3] {
        [first + chain / count, chain % count, step.into()]
    }
}

impl Walk for Chains<'_> {
    fn lanes(&self) -> usize {
        self.lanes.single.many.lanes()
    }

    fn value(&mut self, lane: usize) -> &mut [u8] {
        self.lanes.single.content(lane)
    }

    fn begin(&mut self, secret: &[u8], chains: &[usize]) {
        let Self { lanes: Lanes { set, single, seed, .. }, place, first, count, .. } = self;
        let before = set.padding() + 2 * set.node;
        let secrets = self.secrets.get_or_insert_with(|| {
            let mut secrets = Many::new(set.function(), &[], before + ADDRESS);
            for lane in 0..secrets.lanes() {
                let (padding, seeds) = secrets.message(lane).split_at_mut(set.padding());
                padding[padding.len() - 1] = SECRET;
                seeds[..set.node].copy_from_slice(secret);
                seeds[set.node..][..set.node].copy_from_slice(seed);
            }
            secrets
        });
        for (lane, chain) in chains.iter().enumerate() {
            let words = Self::words(*first, *count, *chain, 0);
            place.write(Kind::Chain, words, 0, &mut secrets.message(lane)[before..]);
        }
        secrets.run();
        (0..chains.len()).for_each(|lane| secrets.digest(lane, single.content(lane)));
    }

    fn step(&mut self, turns: &[Option<Turn>]) {
        let Self { lanes: Lanes { values, single, .. }, place, first, count, .. } = self;
        let all = going(turns)
            .map(|(lane, turn)| (lane, Self::words(*first, *count, turn.chain, turn.step)));
        single.run(values, all, (*place, Kind::Chain));
        let (at, node) = (single.at + single.node, single.node);
        going(turns).for_each(|(lane, _)| single.many.feed(lane, at, node));
    }

    fn steps(&mut self, turns: &[Option<Turn>], steps: u8) -> bool {
        let Self { lanes: Lanes { values, single, .. }, place, first, count, .. } = self;
        for (lane, turn) in going(turns) {
            let words = Self::words(*first, *count, turn.chain, turn.step);
            let message = values.message(lane);
            let from = message.len() - ADDRESS;
            place.write(Kind::Chain, words, 0, &mut message[from..]);
        }
        values.keyed_chain(&mut single.many, single.at + single.node, steps)
    }
}
