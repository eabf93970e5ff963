// SPDX-License-Identifier: Apache-2.0
//! RSA, eight requests at a time, with AVX-512's 52-bit multiplication: the bare operations, x to the power of a key's
//! exponent, for moduli of 1024, 2048, 3072 and 4096 bits. Padding is the caller's.
//!
//! The private operation (RFC 8017 §5.1.2, 2.b: with the Chinese remainder theorem) is blinded by a number that is fresh for every
//! request and both primes, and its result is raised to the public exponent and compared with the input before
//! it is released: a fault costs one request and no factor. With up to four requests the lanes hold both primes at once,
//! so that four take half the time of eight.
//!
//! Constant time: the private exponents are read in digits of fixed number and size, each of which costs the same squarings, a
//! scan of the whole table and a multiplication; the arithmetic has no branch or address that depends on a limb, and its last
//! subtraction is masked. What the time does tell is the size of the keys, the public exponents, how many requests there are
//! and which of them failed.

#[cfg(target_arch = "x86_64")]
mod arithmetic;
#[cfg(target_arch = "x86_64")]
mod constants;
#[cfg(not(target_arch = "x86_64"))]
mod elsewhere;
#[cfg(target_arch = "x86_64")]
mod key;
#[cfg(target_arch = "x86_64")]
mod memory;
#[cfg(target_arch = "x86_64")]
mod multiply;
#[cfg(target_arch = "x86_64")]
mod power;
#[cfg(target_arch = "x86_64")]
mod private;
#[cfg(target_arch = "x86_64")]
mod public;
mod request;
#[cfg(target_arch = "x86_64")]
#[cfg(test)]
mod tests;

#[cfg(not(target_arch = "x86_64"))]
pub use elsewhere::{PrivateKey, PublicKey};
#[cfg(target_arch = "x86_64")]
pub use key::{PrivateKey, PublicKey};
pub use metaslot_awslc_wrapper::Failed;
pub use request::{PrivateRequest, PublicRequest};

use crate::cpu::{Cpu, cpu};

/// Requests that are computed together.
pub const WIDTH: usize = 8;

/// The instructions that it takes to compute requests side by side.
pub const NEEDS: Cpu = Cpu::AVX512_IFMA;

/// Whether this machine has the instructions.
#[must_use]
pub fn available() -> bool {
    cpu().has(NEEDS)
}

/// Answers all requests, [`WIDTH`] at a time; those of one size must follow each other to meet in a batch. A request fails, and it alone, when
/// its input is not below the modulus or a length is wrong, when the random source fails, when the computation went wrong (the result is checked), or
/// on a machine without the instructions.
pub fn private(requests: &mut [PrivateRequest<'_>]) {
    for request in &mut *requests {
        request.result = Err(Failed);
    }
    #[cfg(target_arch = "x86_64")]
    if available() {
        let size = |request: &PrivateRequest<'_>| request.key.public().size();
        for same in requests.chunk_by_mut(|one, other| size(one) == size(other)) {
            same.chunks_mut(WIDTH).for_each(private::batch);
        }
    }
}

/// Answers all requests, like [`private()`].
pub fn public(requests: &mut [PublicRequest<'_>]) {
    for request in &mut *requests {
        request.result = Err(Failed);
    }
    #[cfg(target_arch = "x86_64")]
    if available() {
        for same in requests.chunk_by_mut(|one, other| one.key.size() == other.key.size()) {
            same.chunks_mut(WIDTH).for_each(public::batch);
        }
    }
}
