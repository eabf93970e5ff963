// SPDX-License-Identifier: Apache-2.0
//! The hash functions of one key pair, many at a time (FIPS 205 §4.1, §11).

use super::address::{Address, LONG, SHORT};
use super::set::Set;
use crate::hash::many::{Function, Many};

/// The public seed, with which every hash begins.
#[derive(Clone, Copy)]
pub(super) struct Hashes<'a> {
    pub(super) set: &'static Set,
    pub(super) seed: &'a [u8],
}

/// Lanes for messages of one length: an address, and what is hashed there.
pub(super) struct Lanes {
    many: Many,
    node: usize,
    /// Where the address begins, and where it ends.
    address: [usize; 2],
}

impl<'a> Hashes<'a> {
    pub(super) const fn new(set: &'static Set, seed: &'a [u8]) -> Self {
        Self { set, seed }
    }

    /// Lanes for `nodes` nodes in each message: F and PRF for one, H for two, T for more.
    pub(super) fn lanes(&self, nodes: usize) -> Lanes {
        let (node, length) = (self.set.node, nodes * self.set.node);
        if self.set.shake {
            let mut many = Many::new(Function::Shake256, &[], node + LONG + length);
            for lane in 0..many.lanes() {
                many.message(lane)[..node].copy_from_slice(self.seed);
            }
            return Lanes { many, node, address: [node, node + LONG] };
        }
        // §11.2.2: above 128 bits of security all but F and PRF are SHA-512's.
        let (function, block) = match nodes > 1 && node > 16 {
            true => (Function::Sha512, 128),
            false => (Function::Sha256, 64),
        };
        let mut first = [0; 128];
        first[..node].copy_from_slice(self.seed);
        let many = Many::new(function, &first[..block], SHORT + length);
        Lanes { many, node, address: [0, SHORT] }
    }
}

impl Lanes {
    pub(super) const fn count(&self) -> usize {
        self.many.lanes()
    }

    /// Where a lane hashes next.
    pub(super) fn place(&mut self, lane: usize, address: &Address) {
        let [from, to] = self.address;
        address.write(&mut self.many.message(lane)[from..to]);
    }

    /// What it hashes there.
    pub(super) fn content(&mut self, lane: usize) -> &mut [u8] {
        let from = self.address[1];
        &mut self.many.message(lane)[from..]
    }

    pub(super) fn run(&mut self) {
        self.many.run();
    }

    /// Goes so many steps of chains at once, whose nodes came out last; says whether it can.
    pub(super) fn chain(&mut self, steps: u8) -> bool {
        self.many.chain(self.address[1], self.node, steps)
    }

    /// The node that came out.
    pub(super) fn node(&self, lane: usize, out: &mut [u8]) {
        self.many.digest(lane, out);
    }

    /// The node that came out is what the lane hashes next.
    pub(super) fn feed(&mut self, lane: usize) {
        self.many.feed(lane, self.address[1], self.node);
    }

    /// Hashes any number of messages: each is filled in, and gives a node of `out`.
    pub(super) fn all(
        &mut self,
        out: &mut [u8],
        mut fill: impl FnMut(usize, &mut [u8]) -> Address,
    ) {
        let (lanes, node) = (self.count(), self.node);
        for (group, out) in out.chunks_mut(lanes * node).enumerate() {
            for lane in 0..out.len() / node {
                let address = fill(group * lanes + lane, self.content(lane));
                self.place(lane, &address);
            }
            self.run();
            for (lane, out) in out.chunks_exact_mut(node).enumerate() {
                self.node(lane, out);
            }
        }
    }
}
