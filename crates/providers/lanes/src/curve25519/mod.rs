// SPDX-License-Identifier: Apache-2.0
//! X25519 (RFC 7748) and Ed25519 (RFC 8032), eight requests side by side.
//!
//! Batches of any size; up to 128 requests share their inversions, and eight fill the lanes. Without the instructions
//! the requests are answered by the library, one at a time.

#[cfg(target_arch = "x86_64")]
mod ed25519;
#[cfg(target_arch = "x86_64")]
mod edwards;
#[cfg(target_arch = "x86_64")]
mod field;
mod key;
mod request;
#[cfg(target_arch = "x86_64")]
mod table;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x25519;

use crate::cpu::{Cpu, cpu};
#[cfg(target_arch = "x86_64")]
use metaslot_memory::{wipe_deep_stack, wipe_stack};

#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) use edwards::Order;
pub use key::{PrivateKey, PublicKey, X25519Key};
pub use metaslot_awslc_wrapper::curve25519::{
    ED25519_SIGNATURE_LENGTH as SIGNATURE_LENGTH, KEY_LENGTH,
};
pub use request::{SignRequest, VerifyRequest, X25519Request};

/// The instructions that it takes to compute requests side by side.
pub const NEEDS: Cpu = Cpu::AVX512_IFMA;

/// Whether requests are computed side by side.
#[must_use]
pub fn available() -> bool {
    cpu().has(NEEDS)
}

/// Computes shared secrets.
pub fn x25519(requests: &mut [X25519Request<'_>]) {
    #[cfg(target_arch = "x86_64")]
    if available() {
        // SAFETY: the processor has the instructions.
        unsafe { x25519::derive(requests) };
        // The kernel's frames lay below this one.
        return wipe_stack();
    }
    requests.iter_mut().for_each(X25519Request::by_library);
}

/// Signs.
pub fn sign(requests: &mut [SignRequest<'_>]) {
    #[cfg(target_arch = "x86_64")]
    if available() {
        // SAFETY: the processor has the instructions.
        unsafe { ed25519::sign(requests) };
        // The kernel's frames lay below this one.
        return wipe_deep_stack();
    }
    requests.iter_mut().for_each(SignRequest::by_library);
}

/// Checks signatures.
pub fn verify(requests: &mut [VerifyRequest<'_>]) {
    #[cfg(target_arch = "x86_64")]
    if available() {
        // SAFETY: the processor has the instructions.
        return unsafe { ed25519::verify(requests) };
    }
    requests.iter_mut().for_each(VerifyRequest::by_library);
}
