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

    /// Puts where these chains begin into the first lanes: what the secret makes for each.
    fn begin(&mut self, secret: &[u8], chains: &[usize]);

    /// One step in each lane that has a turn.
    fn step(&mut self, turns: &[Option<Turn>]);

    /// All of so many steps at once in the lanes that have a turn, all of whose chains are at their beginning; says whether it can.
    fn steps(&mut self, _turns: &[Option<Turn>], _steps: u8) -> bool {
        false
    }
}

/// A chain, and which of its steps is next.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) chain: usize,
    pub(crate) step: u8,
}

/// The lanes that have a turn.
pub(crate) fn going(turns: &[Option<Turn>]) -> impl Iterator<Item = (usize, Turn)> + Clone {
    turns.iter().enumerate().filter_map(|(lane, turn)| turn.map(|turn| (lane, turn)))
}

/// The chains of any number of one-time keys, one after the other, of `top` steps, as far as `part` says.
pub(crate) fn walk(lanes: &mut impl Walk, part: Part<'_>, top: u8, out: &mut [u8]) {
    let node = lanes.value(0).len();
    let mut turns = vec![None; lanes.lanes()];
    let mut left: Vec<usize> = (0..out.len() / node).rev().collect();
    if !matches!(part, Part::Whole(_)) {
        // The longest first, so that lanes end together. Everyone sees the digits.
        let length = |chain: &usize| {
            let (from, to) = part.steps(*chain, top);
            to - from
        };
        left.sort_by_key(length);
    }
    loop {
        end(lanes, &mut turns, part, top, out);
        take(lanes, &mut turns, part, &mut left, top);
        end(lanes, &mut turns, part, top, out);
        if turns.iter().any(Option::is_some) {
            let begin = going(&turns).all(|(_, turn)| turn.step == 0);
            let whole = begin && matches!(part, Part::Whole(_)) && lanes.steps(&turns, top);
            if !whole {
                lanes.step(&turns);
            }
            let steps = if whole { top } else { 1 };
            turns.iter_mut().flatten().for_each(|turn| turn.step += steps);
        } else if left.is_empty() {
            return;
        }
    }
}

/// Takes out what has gone all its steps.
fn end(lanes: &mut impl Walk, turns: &mut [Option<Turn>], part: Part<'_>, top: u8, out: &mut [u8]) {
    for (lane, turn) in turns.iter_mut().enumerate() {
        let Some(Turn { chain, .. }) = turn.filter(|it| it.step == part.steps(it.chain, top).1)
        else {
            continue;
        };
        let value = lanes.value(lane);
        out[chain * value.len()..][..value.len()].copy_from_slice(value);
        *turn = None;
    }
}

/// Takes chains that are left: what is shown in each lane that is free, secrets when all are, for those are made together.
fn take(
    lanes: &mut impl Walk,
    turns: &mut [Option<Turn>],
    part: Part<'_>,
    left: &mut Vec<usize>,
    top: u8,
) {
    let free = turns.iter().all(Option::is_none);
    match part {
        Part::Whole(secret) | Part::ToDigit(secret, _) if free => {
            let chains = left.split_off(left.len().saturating_sub(turns.len()));
            lanes.begin(secret, &chains);
            for (turn, chain) in turns.iter_mut().zip(chains) {
                *turn = Some(Turn { chain, step: 0 });
            }
        }
        Part::FromDigit(shown, _) => {
            for (lane, turn) in turns.iter_mut().enumerate().filter(|(_, turn)| turn.is_none()) {
                let Some(chain) = left.pop() else { return };
                let value = lanes.value(lane);
                value.copy_from_slice(&shown[chain * value.len()..][..value.len()]);
                *turn = Some(Turn { chain, step: part.steps(chain, top).0 });
            }
        }
        _ => {}
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
