// SPDX-License-Identifier: Apache-2.0
//! What the curve code needs to know of one curve, made from its row of the table when the crate is compiled.

use super::order::Order;

/// One curve's constants as people write them: hexadecimal, most significant digit first.
pub(super) struct Constants {
    pub(super) cofactor: u32,
    pub(super) a: &'static str,
    pub(super) b: &'static str,
    pub(super) root_b: &'static str,
    pub(super) x: &'static str,
    pub(super) y: &'static str,
    pub(super) order: &'static str,
}

/// A point that is not infinity; coordinates in polynomial basis, lowest word first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Affine<const W: usize> {
    pub(super) x: [u64; W],
    pub(super) y: [u64; W],
}

impl<const W: usize> Affine<W> {
    pub(super) const ZERO: Self = Self { x: [0; W], y: [0; W] };
}

/// y² + xy = x³ + ax² + b over the field of `W` words, with the base point and its order.
#[derive(Debug)]
pub(super) struct Params<const W: usize> {
    pub(super) cofactor: u32,
    pub(super) a: [u64; W],
    pub(super) b: [u64; W],
    pub(super) root_b: [u64; W],
    pub(super) base: Affine<W>,
    pub(super) order: Order<W>,
}

impl<const W: usize> Params<W> {
    pub(super) const fn new(constants: &Constants) -> Self {
        Self {
            cofactor: constants.cofactor,
            a: words(constants.a),
            b: words(constants.b),
            root_b: words(constants.root_b),
            base: Affine { x: words(constants.x), y: words(constants.y) },
            order: Order::new(words(constants.order)),
        }
    }

    /// Whether b is 1, which saves a multiplication in each step of the ladder.
    pub(super) const fn is_koblitz(&self) -> bool {
        let mut word = 1;
        while word < W {
            if self.b[word] != 0 {
                return false;
            }
            word += 1;
        }
        self.b[0] == 1
    }
}

const fn words<const W: usize>(hex: &str) -> [u64; W] {
    let hex = hex.as_bytes();
    let mut out = [0; W];
    let mut at = 0;
    while at < hex.len() {
        let digit = match hex[hex.len() - 1 - at] {
            digit @ b'0'..=b'9' => digit - b'0',
            digit @ b'a'..=b'f' => digit - b'a' + 10,
            _ => panic!("not a hexadecimal digit"),
        };
        out[at / 16] |= (digit as u64) << (4 * (at % 16));
        at += 1;
    }
    out
}
