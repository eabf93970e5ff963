// SPDX-License-Identifier: Apache-2.0
//! ECDSA and ECDH on P-384 (FIPS 186-5, SP 800-186).
//!
//! Batches of any size; up to 128 requests share their inversions, and eight fill the lanes. Without the instructions
//! the requests are answered by the library, one at a time.

use crate::cpu::{Cpu, cpu};
#[cfg(target_arch = "x86_64")]
use crate::field52::modulus::{Form, Modulus, hex};
use crate::weierstrass;
#[cfg(target_arch = "x86_64")]
use crate::weierstrass::{curve::Curve, kernel, table::Base};
use metaslot_awslc_wrapper::{Result, ec};
#[cfg(target_arch = "x86_64")]
use metaslot_memory::wipe_deep_stack;
#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

/// Length of a coordinate, and of a scalar, in bytes.
pub const LENGTH: usize = 48;
/// Length of a signature, in bytes: r and s.
pub const SIGNATURE_LENGTH: usize = 2 * LENGTH;

/// A private key.
pub type PrivateKey = weierstrass::PrivateKey<8>;
/// A public key.
pub type PublicKey = weierstrass::PublicKey<8>;
/// A digest to sign.
pub type SignRequest<'a> = weierstrass::SignRequest<'a, 8>;
/// A signature to check.
pub type VerifyRequest<'a> = weierstrass::VerifyRequest<'a, 8>;
/// A shared secret to compute.
pub type DeriveRequest<'a> = weierstrass::DeriveRequest<'a, 8>;

/// n, most significant byte first.
pub(crate) const ORDER: [u8; LENGTH] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xc7, 0x63, 0x4d, 0x81, 0xf4, 0x37, 0x2d, 0xdf,
    0x58, 0x1a, 0x0d, 0xb2, 0x48, 0xb0, 0xa7, 0x7a, 0xec, 0xec, 0x19, 0x6a, 0xcc, 0xc5, 0x29, 0x73,
];

impl PrivateKey {
    /// The key of a scalar, most significant byte first.
    ///
    /// # Errors
    /// When it is zero or not below the order.
    pub fn new(scalar: &[u8]) -> Result<Self> {
        Self::on(ec::Curve::P384, &ORDER, scalar)
    }
}

impl PublicKey {
    /// The key of an encoded point (SEC 1 §2.3.4).
    ///
    /// # Errors
    /// When the point is not on the curve, or at infinity.
    pub fn new(point: &[u8]) -> Result<Self> {
        Self::on(ec::Curve::P384, point)
    }
}

/// The instructions that it takes to compute requests side by side.
pub const NEEDS: Cpu = Cpu::AVX512_IFMA;

/// Whether requests are computed side by side.
#[must_use]
pub fn available() -> bool {
    cpu().has(NEEDS)
}

/// Signs: r and s of [`SIGNATURE_LENGTH`] bytes, with random nonces.
pub fn sign(requests: &mut [SignRequest<'_>]) {
    #[cfg(target_arch = "x86_64")]
    if available() {
        // SAFETY: the processor has the instructions.
        unsafe { kernel::sign::sign::<P384, 8>(requests) };
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
        return unsafe { kernel::verify::verify::<P384, 8>(requests) };
    }
    requests.iter_mut().for_each(|request| request.by_library(LENGTH));
}

/// Computes shared secrets: x coordinates of [`LENGTH`] bytes.
pub fn derive(requests: &mut [DeriveRequest<'_>]) {
    #[cfg(target_arch = "x86_64")]
    if available() {
        // SAFETY: the processor has the instructions.
        unsafe { kernel::derive::derive::<P384, 8>(requests) };
        // The kernel's frames lay below this one.
        return wipe_deep_stack();
    }
    requests.iter_mut().for_each(DeriveRequest::by_library);
}

/// The coordinates' field.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field;

#[cfg(target_arch = "x86_64")]
impl Modulus<8> for Field {
    const M: [u64; 8] = hex(
        "fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffeffffffff0000000000000000ffffffff",
    );
    const FORM: Form = Form::P384;
}

/// The scalars' ring.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order;

#[cfg(target_arch = "x86_64")]
impl Modulus<8> for Order {
    const M: [u64; 8] = crate::field52::modulus::limbs(&ORDER);
    const FORM: Form = Form::General;
}

#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct P384;

#[cfg(target_arch = "x86_64")]
impl Curve<8> for P384 {
    type Field = Field;
    type Order = Order;
    const B: [u64; 8] = hex(
        "b3312fa7e23ee7e4988e056be3f82d19181d9c6efe8141120314088f5013875ac656398d8a2ed19d2a85c8edd3ec2aef",
    );
    const BASE: [[u64; 8]; 2] = [
        hex(
            "aa87ca22be8b05378eb1c71ef320ad746e1d3b628ba79b9859f741e082542a385502f25dbf55296c3a545e3872760ab7",
        ),
        hex(
            "3617de4a96262c6f5d9e98bf9292dc29f8f41dbd289a147ce9da3113b5f0b8c00a60b1ce1d7e819d7a431d7c90ea0e5f",
        ),
    ];
    const LENGTH: usize = LENGTH;
    const LIBRARY: ec::Curve = ec::Curve::P384;

    fn base() -> &'static Base<8> {
        static BASE: OnceLock<Base<8>> = OnceLock::new();
        // SAFETY: only the kernel calls this, and it runs where its instructions are.
        BASE.get_or_init(|| unsafe { Base::new::<Field>(&Self::BASE, LENGTH) })
    }
}
