// SPDX-License-Identifier: Apache-2.0
//! The private operation of RSA (RFC 8017, section 5.1.2, with the CRT), with the arithmetic of three
//! times: rows of 32-bit limbs, rows of 64-bit limbs, and products that are reduced as they grow.
//!
//! Nothing here is constant in time, nothing is blinded: a key in it is given away.

mod function;
mod fused;
mod key;
mod keys;
mod limb;
mod number;
mod power;
mod rows;

pub use function::Function;
pub use key::Key;

use power::{Modulus, Tally, private};
use std::fmt;

/// How products are made and reduced.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Version {
    /// A product of 32-bit limbs row by row, then its reduction row by row (Montgomery).
    Rows32,
    /// The same with 64-bit limbs.
    Rows64,
    /// Rows of product and reduction in turn, of a length that the compiler knows, 64-bit limbs.
    Fused64,
}

/// A private key, ready to be used.
pub struct Private {
    operation: Box<dyn Operation + Send>,
    bytes: usize,
}

impl fmt::Debug for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Private").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Private {
    /// Prepares a key.
    #[must_use]
    pub fn new(version: Version, key: &Key) -> Self {
        let key = key.clone();
        let operation: Box<dyn Operation + Send> = match (version, key.p.len()) {
            (Version::Rows32, _) => Box::new(Prepared::<rows::Rows<u32>>::new(key)),
            (Version::Rows64, _) => Box::new(Prepared::<rows::Rows<u64>>::new(key)),
            (Version::Fused64, 8) => Box::new(Prepared::<fused::Fused<8>>::new(key)),
            (Version::Fused64, _) => Box::new(Prepared::<fused::Fused<16>>::new(key)),
        };
        let bytes = operation.bytes();
        Self { operation, bytes }
    }

    /// Bytes of the modulus.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Raises a number below the modulus, in as many bytes, to the private exponent.
    #[must_use]
    pub fn apply(&self, input: &[u8]) -> Vec<u8> {
        self.operation.apply(input)
    }

    /// The functions that one operation calls, and how often; none where everything is one function.
    #[must_use]
    pub fn functions(&self) -> Vec<Function> {
        self.operation.functions()
    }
}

trait Operation {
    fn bytes(&self) -> usize;
    fn apply(&self, input: &[u8]) -> Vec<u8>;
    fn functions(&self) -> Vec<Function>;
}

struct Prepared<M> {
    key: Key,
    p: M,
    q: M,
}

impl<M: Modulus> Prepared<M> {
    fn new(key: Key) -> Self {
        let (p, q) = (M::new(&key.p), M::new(&key.q));
        Self { key, p, q }
    }

    #[inline(never)]
    fn counted<T: Tally>(&self, input: &[u8], tally: &mut T) -> Vec<u8> {
        private(&self.key, [&self.p, &self.q], input, tally)
    }
}

impl<M: Modulus> Operation for Prepared<M> {
    fn bytes(&self) -> usize {
        self.key.bytes()
    }

    fn apply(&self, input: &[u8]) -> Vec<u8> {
        self.counted(input, &mut ())
    }

    fn functions(&self) -> Vec<Function> {
        let mut calls = power::Calls::default();
        self.counted(&vec![1; self.bytes()], &mut calls);
        self.p.functions(&calls)
    }
}

#[cfg(test)]
mod tests;
