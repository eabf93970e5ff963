// SPDX-License-Identifier: Apache-2.0
//! ECDSA and ECDH on P-256 (FIPS 186-5, SP 800-186).
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
use metaslot_memory::wipe_stack;
#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

/// Length of a coordinate, and of a scalar, in bytes.
pub const LENGTH: usize = 32;
/// Length of a signature, in bytes: r and s.
pub const SIGNATURE_LENGTH: usize = 2 * LENGTH;

/// A private key.
pub type PrivateKey = weierstrass::PrivateKey<5>;
/// A public key.
pub type PublicKey = weierstrass::PublicKey<5>;
/// A digest to sign.
pub type SignRequest<'a> = weierstrass::SignRequest<'a, 5>;
/// A signature to check.
pub type VerifyRequest<'a> = weierstrass::VerifyRequest<'a, 5>;
/// A shared secret to compute.
pub type DeriveRequest<'a> = weierstrass::DeriveRequest<'a, 5>;

/// n, most significant byte first.
pub(crate) const ORDER: [u8; LENGTH] = [
    0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];

impl PrivateKey {
    /// The key of a scalar, most significant byte first.
    ///
    /// # Errors
    /// When it is zero or not below the order.
    pub fn new(scalar: &[u8]) -> Result<Self> {
        Self::on(ec::Curve::P256, &ORDER, scalar)
    }
}

impl PublicKey {
    /// The key of an encoded point (SEC 1 §2.3.4).
    ///
    /// # Errors
    /// When the point is not on the curve, or at infinity.
    pub fn new(point: &[u8]) -> Result<Self> {
        Self::on(ec::Curve::P256, point)
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
        unsafe { kernel::sign::sign::<P256, 5>(requests) };
        // The kernel's frames lay below this one.
        return wipe_stack();
    }
    requests.iter_mut().for_each(SignRequest::by_library);
}

/// Checks signatures.
pub fn verify(requests: &mut [VerifyRequest<'_>]) {
    #[cfg(target_arch = "x86_64")]
    if available() {
        // SAFETY: the processor has the instructions.
        return unsafe { kernel::verify::verify::<P256, 5>(requests) };
    }
    requests.iter_mut().for_each(|request| request.by_library(LENGTH));
}

/// Computes shared secrets: x coordinates of [`LENGTH`] bytes.
pub fn derive(requests: &mut [DeriveRequest<'_>]) {
    #[cfg(target_arch = "x86_64")]
    if available() {
        // SAFETY: the processor has the instructions.
        unsafe { kernel::derive::derive::<P256, 5>(requests) };
        // The kernel's frames lay below this one.
        return wipe_stack();
    }
    requests.iter_mut().for_each(DeriveRequest::by_library);
}

/// The coordinates' field.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field;

#[cfg(target_arch = "x86_64")]
impl Modulus<5> for Field {
    const M: [u64; 5] = hex("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff");
    const FORM: Form = Form::P256;
}

/// The scalars' ring.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order;

#[cfg(target_arch = "x86_64")]
impl Modulus<5> for Order {
    const M: [u64; 5] = crate::field52::modulus::limbs(&ORDER);
    const FORM: Form = Form::General;
}

#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct P256;

#[cfg(target_arch = "x86_64")]
impl Curve<5> for P256 {
    type Field = Field;
    type Order = Order;
    const B: [u64; 5] = hex("5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b");
    const BASE: [[u64; 5]; 2] = [
        hex("6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"),
        hex("4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"),
    ];
    const LENGTH: usize = LENGTH;
    const LIBRARY: ec::Curve = ec::Curve::P256;

    fn base() -> &'static Base<5> {
        static BASE: OnceLock<Base<5>> = OnceLock::new();
        // SAFETY: only the kernel calls this, and it runs where its instructions are.
        BASE.get_or_init(|| unsafe { Base::new::<Field>(&Self::BASE, LENGTH) })
    }
}
