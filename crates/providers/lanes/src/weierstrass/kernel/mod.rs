// SPDX-License-Identifier: Apache-2.0
//! The operations on batches.

pub(crate) mod derive;
pub(crate) mod sign;
pub(crate) mod verify;

use crate::field52::bytes::{big_endian, less};
use crate::field52::modulus::Modulus;
use crate::field52::montgomery::{mul, zero};
use crate::field52::{LANES, Mask, Num};

/// How many requests share their inversions.
const BATCH: usize = 16 * LANES;

/// Whether a lane is in the mask.
const fn has(mask: Mask, lane: usize) -> bool {
    (mask >> lane) & 1 == 1
}

/// A digest as a number, not reduced: its leftmost bytes (SEC 1 §4.1.3; the orders here are whole bytes long).
fn digest<const N: usize>(digest: &[u8], length: usize) -> [u64; N] {
    big_endian(&digest[..digest.len().min(length)])
}

/// Whether 0 < a < M; in the same time for all of either.
fn in_range<M: Modulus<N>, const N: usize>(a: &[u64; N]) -> bool {
    let mut any = 0;
    for limb in a {
        any |= limb;
    }
    (any != 0) & less(a, &M::M)
}

/// The lanes where a tidied number is zero modulo M.
#[target_feature(enable = "avx512f,avx512ifma")]
fn vanishes<M: Modulus<N>, const N: usize>(a: &Num<N>) -> Mask {
    zero::<M, N>(&mul::<M, N>(a, &Num::splat(&M::ONE)))
}
