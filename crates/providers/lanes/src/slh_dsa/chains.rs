// SPDX-License-Identifier: Apache-2.0
//! One-time signatures by chains of hashes, WOTS+ (FIPS 205 §5): all chains of any number of keys at once.

use super::address::{Address, Kind};
use super::hashes::{Hashes, Lanes};
use super::set::TOP;
use crate::chains::{Part, Turn, Walk, going, walk};

/// A one-time key: the tree that it is a leaf of, and which.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    pub(super) tree: Address,
    pub(super) index: usize,
}

/// The chains of all keys, one after the other, as far as `part` says.
pub(super) fn chains(hashes: Hashes<'_>, keys: &[Leaf], part: Part<'_>, out: &mut [u8]) {
    let lanes = hashes.lanes(1);
    walk(&mut Chains { lanes, keys, count: hashes.set.chains() }, part, TOP, out);
}

/// Lanes of chains: those of these keys, `count` of each.
struct Chains<'a> {
    lanes: Lanes,
    keys: &'a [Leaf],
    count: usize,
}

impl Walk for Chains<'_> {
    fn lanes(&self) -> usize {
        self.lanes.count()
    }

    fn value(&mut self, lane: usize) -> &mut [u8] {
        self.lanes.content(lane)
    }

    fn begin(&mut self, secret: &[u8], chains: &[usize]) {
        for (lane, chain) in chains.iter().enumerate() {
            self.place(lane, Kind::ChainSecret, *chain, 0);
            self.lanes.content(lane).copy_from_slice(secret);
        }
        self.lanes.run();
        (0..chains.len()).for_each(|lane| self.lanes.feed(lane));
    }

    fn step(&mut self, turns: &[Option<Turn>]) {
        for (lane, Turn { chain, step }) in going(turns) {
            self.place(lane, Kind::Chain, chain, step);
        }
        self.lanes.run();
        going(turns).for_each(|(lane, _)| self.lanes.feed(lane));
    }

    fn steps(&mut self, turns: &[Option<Turn>], steps: u8) -> bool {
        for (lane, Turn { chain, step }) in going(turns) {
            self.place(lane, Kind::Chain, chain, step);
        }
        let done = self.lanes.chain(steps);
        if done {
            going(turns).for_each(|(lane, _)| self.lanes.feed(lane));
        }
        done
    }
}

impl Chains<'_> {
    fn place(&mut self, lane: usize, kind: Kind, chain: usize, step: u8) {
        let key = self.keys[chain / self.count];
        let address = key.tree.of_leaf(kind, key.index, [chain % self.count, step.into()]);
        self.lanes.place(lane, &address);
    }
}

/// The public keys of one-time keys: the hash of the ends of their chains.
pub(super) fn compress(hashes: Hashes<'_>, keys: &[Leaf], ends: &[u8], out: &mut [u8]) {
    let length = hashes.set.chains() * hashes.set.node;
    hashes.lanes(hashes.set.chains()).all(out, |key, content| {
        content.copy_from_slice(&ends[key * length..][..length]);
        let Leaf { tree, index } = keys[key];
        tree.of_leaf(Kind::ChainEnds, index, [0, 0])
    });
}
