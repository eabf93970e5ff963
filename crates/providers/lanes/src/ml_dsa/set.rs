// SPDX-License-Identifier: Apache-2.0
//! The parameter sets (FIPS 204 §4, table 1).

use super::ring::Rounding;
use metaslot_awslc_wrapper::ml_dsa::Set;

/// What they differ in.
#[derive(Debug)]
pub(super) struct Terms {
    /// Rows of the matrix, k.
    pub(super) rows: usize,
    /// Its columns, l.
    pub(super) columns: usize,
    /// Secret coefficients are this far from zero at most, η.
    pub(super) eta: i32,
    /// Coefficients of a challenge that are not zero, τ.
    pub(super) weight: u8,
    /// Bytes of a challenge, λ / 4.
    pub(super) challenge: usize,
    /// Bits of a coefficient of a mask: γ1 is half of what they count to.
    pub(super) mask_bits: usize,
    pub(super) rounding: Rounding,
    /// How many hints a signature has room for, ω.
    pub(super) hints: usize,
}

const ML_44: Terms = Terms {
    rows: 4,
    columns: 4,
    eta: 2,
    weight: 39,
    challenge: 32,
    mask_bits: 18,
    rounding: Rounding::new(95_232, 16),
    hints: 80,
};

const ML_65: Terms = Terms {
    rows: 6,
    columns: 5,
    eta: 4,
    weight: 49,
    challenge: 48,
    mask_bits: 20,
    rounding: Rounding::new(261_888, 17),
    hints: 55,
};

const ML_87: Terms =
    Terms { rows: 8, columns: 7, eta: 2, weight: 60, challenge: 64, hints: 75, ..ML_65 };

impl Terms {
    pub(super) const fn of(set: Set) -> &'static Self {
        match set {
            Set::Ml44 => &ML_44,
            Set::Ml65 => &ML_65,
            Set::Ml87 => &ML_87,
        }
    }

    /// γ1
    pub(super) const fn gamma(&self) -> i32 {
        1 << (self.mask_bits - 1)
    }

    /// Bytes of a mask, and of a polynomial of a signature.
    pub(super) const fn mask_length(&self) -> usize {
        32 * self.mask_bits
    }

    /// β: what a challenge makes of a secret polynomial is this far from zero at most.
    pub(super) fn beta(&self) -> i32 {
        i32::from(self.weight) * self.eta
    }
}
