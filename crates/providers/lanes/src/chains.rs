// SPDX-License-Identifier: Apache-2.0
//! Chains of hashes (Winternitz): the one-time keys of HSS, SLH-DSA and XMSS, as many at once as there are lanes. How a step is
//! hashed is the signature's matter.

/// Which part of each chain is computed.
#[derive(Clone, Copy)]
pub(crate) enum Part<'a> {
    /// From what the secret makes to the end.
    Whole(&'a [u8]),
    /// From what the secret makes to the digit: what a signature shows. A digit for each chain.
    ToDigit(&'a [u8], &'a [u8]),
    /// From what a signature shows at the digit to the end.
    FromDigit(&'a [u8], &'a [u8]),
}

impl Part<'_> {
    /// The steps of a chain: from where, to where.
    fn steps(&self, chain: usize, top: u8) -> (u8, u8) {
        match self {
            Self::Whole(_) => (0, top),
            Self::ToDigit(_, digits) => (0, digits[chain]),
            Self::FromDigit(_, digits) => (digits[chain], top),
        }
    }
}

/// Lanes that go along chains, each along one.
pub(crate) trait Walk {
    /// How many chains at once.
    fn lanes(&self) -> usize;

    /// Where a lane's chain stands.
    fn value(&mut self, lane: usize) -> &mut [u8];

    /// Puts where these chains begin into the lanes: what the secret makes for each.
    fn begin(&mut self, secret: &[u8], chains: &[usize]);

    /// One step of those of these chains whose turn it is.
    fn step(&mut self, step: u8, chains: &[usize], turn: impl Fn(usize) -> bool);
}

/// The chains of any number of one-time keys, one after the other, of `top` steps, as far as `part` says.
pub(crate) fn walk(lanes: &mut impl Walk, part: Part<'_>, top: u8, out: &mut [u8]) {
    let (node, width) = (lanes.value(0).len(), lanes.lanes());
    let mut order: Vec<usize> = (0..out.len() / node).collect();
    if !matches!(part, Part::Whole(_)) {
        // Lanes wait for the one that goes farthest: those that go as far are side by side. Everyone sees the digits.
        order.sort_by_key(|chain| part.steps(*chain, top));
    }
    for chains in order.chunks(width) {
        match part {
            Part::Whole(secret) | Part::ToDigit(secret, _) => lanes.begin(secret, chains),
            Part::FromDigit(shown, _) => chains.iter().enumerate().for_each(|(lane, chain)| {
                lanes.value(lane).copy_from_slice(&shown[chain * node..][..node]);
            }),
        }
        let steps = |chain: usize| part.steps(chain, top);
        let from = chains.iter().map(|chain| steps(*chain).0).min().unwrap_or(0);
        let to = chains.iter().map(|chain| steps(*chain).1).max().unwrap_or(0);
        for step in from..to {
            lanes.step(step, chains, |chain| (steps(chain).0..steps(chain).1).contains(&step));
        }
        for (lane, chain) in chains.iter().enumerate() {
            out[chain * node..][..node].copy_from_slice(lanes.value(lane));
        }
    }
}

/// Digits of so many bits of a hash and of its checksum, one for each chain (RFC 8554 §4.4, RFC 8391 §2.6, FIPS 205 §5.2).
pub(crate) fn digits(hash: &[u8], width: usize) -> Vec<u8> {
    let top = u8::MAX >> (8 - width);
    let all = count(hash.len(), width);
    let mut digits = Vec::with_capacity(all);
    let spread = |bytes: &[u8], digits: &mut Vec<u8>| {
        for byte in bytes {
            let shifts = (0..8 / width).rev().map(|digit| digit * width);
            digits.extend(shifts.map(|shift| byte >> shift & top));
        }
    };
    spread(hash, &mut digits);
    let sum: u16 = digits.iter().map(|digit| u16::from(top - digit)).sum();
    let unused = 16 - sum_bits(hash.len(), width).next_multiple_of(width);
    spread(&(sum << unused).to_be_bytes(), &mut digits);
    digits.truncate(all);
    digits
}

/// Chains of a one-time key: one for each digit of a hash of so many bytes and of its checksum.
pub(crate) const fn count(node: usize, width: usize) -> usize {
    node * 8 / width + sum_bits(node, width).div_ceil(width)
}

/// Bits of the largest checksum.
const fn sum_bits(node: usize, width: usize) -> usize {
    (node * 8 / width * ((1 << width) - 1)).ilog2() as usize + 1
}
