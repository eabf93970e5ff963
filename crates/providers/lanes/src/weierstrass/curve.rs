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
