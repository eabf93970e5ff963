// SPDX-License-Identifier: Apache-2.0
//! One-time signatures by chains of hashes, WOTS+ (FIPS 205 §5): all chains of any number of keys at once.

use super::address::{Address, Kind};
use super::hashes::{Hashes, Lanes};
use super::set::{DIGIT, Set};

/// A one-time key: the tree that it is a leaf of, and which.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    pub(super) tree: Address,
    pub(super) index: usize,
}

/// Which part of each chain is computed.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    /// From the secret to its end.
    Whole(&'a [u8]),
    /// From the secret to the digit: what a signature shows. A digit for each chain.
    ToDigit(&'a [u8], &'a [u8]),
    /// From the digit, where what a signature shows stands, to the end.
    FromDigit(&'a [u8], &'a [u8]),
}

impl Part<'_> {
    /// The steps of a chain: from where, to where.
    fn steps(&self, chain: usize) -> (u8, u8) {
        match self {
            Self::Whole(_) => (0, DIGIT),
            Self::ToDigit(_, digits) => (0, digits[chain]),
            Self::FromDigit(_, digits) => (digits[chain], DIGIT),
        }
    }
}

/// The chains of all keys, one after the other, as far as `part` says.
pub(super) fn chains(hashes: Hashes<'_>, keys: &[Leaf], part: Part<'_>, out: &mut [u8]) {
    let (count, node) = (hashes.set.chains(), hashes.set.node);
    let mut lanes = hashes.lanes(1);
    let width = lanes.count();
    for (group, out) in out.chunks_mut(width * node).enumerate() {
        let first = group * width;
        let used = out.len() / node;
        let at = |lane: usize| (keys[(first + lane) / count], (first + lane) % count);
        begin(&mut lanes, used, first, part, at);
        walk(
            &mut lanes,
            used,
            out,
            |lane| part.steps(first + lane),
            |lane, step| {
                let (key, chain) = at(lane);
                key.tree.of_leaf(Kind::Chain, key.index, [chain, usize::from(step)])
            },
        );
    }
}

/// Where each lane's chain begins.
fn begin(
    lanes: &mut Lanes,
    used: usize,
    first: usize,
    part: Part<'_>,
    at: impl Fn(usize) -> (Leaf, usize),
) {
    let node = lanes.content(0).len();
    let (Part::Whole(secret) | Part::ToDigit(secret, _)) = part else {
        let Part::FromDigit(shown, _) = part else { return };
        for lane in 0..used {
            lanes.content(lane).copy_from_slice(&shown[(first + lane) * node..][..node]);
        }
        return;
    };
    for lane in 0..used {
        let (key, chain) = at(lane);
        lanes.place(lane, &key.tree.of_leaf(Kind::ChainSecret, key.index, [chain, 0]));
        lanes.content(lane).copy_from_slice(secret);
    }
    lanes.run();
    for lane in 0..used {
        lanes.feed(lane);
    }
}

/// Goes as many steps as each lane has: the lanes together, each while it is its turn.
fn walk(
    lanes: &mut Lanes,
    used: usize,
    out: &mut [u8],
    steps: impl Fn(usize) -> (u8, u8),
    address: impl Fn(usize, u8) -> Address,
) {
    let from = (0..used).map(|lane| steps(lane).0).min().unwrap_or(0);
    let to = (0..used).map(|lane| steps(lane).1).max().unwrap_or(0);
    for step in from..to {
        for lane in 0..used {
            lanes.place(lane, &address(lane, step));
        }
        lanes.run();
        for lane in 0..used {
            let (from, to) = steps(lane);
            if (from..to).contains(&step) {
                lanes.feed(lane);
            }
        }
    }
    let node = out.len() / used;
    for (lane, out) in out.chunks_exact_mut(node).enumerate() {
        out.copy_from_slice(lanes.content(lane));
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

/// The digits of a node with their checksum (§5.2, algorithm 7).
pub(super) fn digits(set: &Set, node: &[u8]) -> Vec<u8> {
    let mut digits: Vec<u8> = node.iter().flat_map(|byte| [byte >> 4, byte & 15]).collect();
    let sum: u16 = digits.iter().map(|digit| u16::from(DIGIT - digit)).sum();
    digits.extend([8, 4, 0].map(|shift| (sum >> shift & 15) as u8));
    debug_assert_eq!(digits.len(), set.chains());
    digits
}
