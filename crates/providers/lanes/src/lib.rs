// SPDX-License-Identifier: Apache-2.0
//! Kernels that compute several requests side by side, in AVX-512 registers.
//!
//! A kernel takes a batch of independent requests (each with its own key) and answers each on its own: one lane's
//! failure never touches another's. Which requests meet in a batch is the combiner's business; what PKCS#11 has to do with it is
//! known to the provider alone.

#[cfg(target_arch = "x86_64")]
pub mod aes;
pub mod binary;
#[cfg(target_arch = "x86_64")]
pub mod chacha;
mod chains;
pub mod combiner;
pub mod cpu;
pub mod curve25519;
#[cfg(target_arch = "x86_64")]
pub mod data;
#[cfg(target_arch = "x86_64")]
pub mod des;
#[cfg(target_arch = "x86_64")]
mod field52;
pub mod hash;
pub mod hss;
pub mod ml_dsa;
#[cfg(target_arch = "x86_64")]
pub mod ml_kem;
pub mod p256;
pub mod p384;
#[cfg(target_arch = "x86_64")]
pub mod peak;
pub mod provider;
#[cfg(target_arch = "x86_64")]
pub mod rc4;
pub mod rsa;
pub mod slh_dsa;
#[cfg(test)]
mod testing;
mod weierstrass;
pub mod xmss;
