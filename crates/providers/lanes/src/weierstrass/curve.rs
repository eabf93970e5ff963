// SPDX-License-Identifier: Apache-2.0
//! What a curve is, for the kernels.

use super::table::Base;
use crate::field52::modulus::Modulus;
use metaslot_awslc_wrapper::ec;

/// A curve y² = x³ − 3·x + b of prime order over a field of N limbs of 52 bits, with its parameters from SEC 2.
pub(crate) trait Curve<const N: usize>: Copy + std::fmt::Debug + 'static {
    /// Its coordinates' field.
    type Field: Modulus<N>;
    /// Its scalars' ring.
    type Order: Modulus<N>;
    /// b.
    const B: [u64; N];
    /// The base point.
    const BASE: [[u64; N]; 2];
    /// Length of a coordinate, and of a scalar, in bytes.
    const LENGTH: usize;
    /// Its name in the library that answers what the kernels do not.
    const LIBRARY: ec::Curve;

    /// The base point's multiples, computed at the first use.
    fn base() -> &'static Base<N>;
}

/// Bits of a window of the base point's scalar.
pub(crate) const BASE_WINDOW: u32 = 6;
/// Bits of a window of any other point's scalar.
pub(crate) const WINDOW: u32 = 5;
/// Multiples of a point in the table of such a window: 1, 3, … 31.
pub(crate) const ENTRIES: usize = 1 << (WINDOW - 1);
/// Parts into which a known point's scalar is split; they share the doublings.
pub(crate) const PARTS: usize = 4;

/// Windows of `width` bits for a scalar below 2^`bits`: the recoding needs bit width·count − 1 to be at least `bits` − 1.
pub(crate) const fn windows(bits: usize, width: u32) -> usize {
    bits.div_ceil(width as usize)
}
