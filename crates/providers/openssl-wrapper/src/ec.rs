// SPDX-License-Identifier: Apache-2.0
//! Keys on the short Weierstrass curves, ECDSA and ECDH.

use crate::params::{Number, Params};
use crate::pkey::Pkey;
use crate::start::methods;
use crate::{Failed, Result};
use std::ffi::{CStr, c_int};

/// A key: shared by any number of threads.
#[derive(Debug)]
pub struct EcKey(Pkey);

/// The longest signature, in bytes: two numbers of 72 in DER, none of which begins with a bit.
pub const MAX_SIGNATURE: usize = 151;

/// What OpenSSL calls a curve of this name: of those in SEC 2 it knows one by another.
fn group(curve: &CStr) -> &CStr {
    if curve == c"secp256r1" { c"prime256v1" } else { curve }
}

impl EcKey {
    /// A public key from its encoded point, on the curve of this name; `cofactor`: whether the curve has more points than the base
    /// point makes.
    ///
    /// # Errors
    /// When there is no such curve, or the point is not on it, at infinity, or none that the base point makes.
    pub fn public(curve: &CStr, cofactor: bool, point: &[u8]) -> Result<Self> {
        methods()?;
        // The library has a form for the point at infinity, of one byte.
        if point.len() < 2 {
            return Err(Failed);
        }
        let params = Params::new().text(c"group", group(curve)).bytes(c"pub", point);
        let key = Pkey::new(c"EC", false, params)?;
        if cofactor { key.check_point_and_order() } else { key.check_point() }?;
        Ok(Self(key))
    }

    /// A private key from its scalar (big-endian); the public point is computed.
    ///
    /// # Errors
    /// When there is no such curve, or the scalar is zero or not below the order.
    pub fn private(curve: &CStr, scalar: &[u8]) -> Result<Self> {
        methods()?;
        let scalar = Number::new(scalar);
        let params = Params::new().text(c"group", group(curve)).number(c"priv", &scalar);
        let key = Pkey::new(c"EC", true, params)?;
        key.check_scalar()?;
        Ok(Self(key))
    }

    /// Writes the uncompressed public point.
    ///
    /// # Errors
    /// When `out` is not as long as it is.
    pub fn write_point(&self, out: &mut [u8]) -> Result<()> {
        self.0.read_bytes(c"pub", out)
    }

    /// Writes the private scalar, big-endian; `out` is as long as the order.
    ///
    /// # Errors
    /// When the key is a public one.
    pub fn write_scalar(&self, out: &mut [u8]) -> Result<()> {
        self.0.read_number(c"priv", out)
    }

    /// ECDSA over a digest of any length (cut to the length of the order, SEC 1 §4.1.3), in DER; returns the length.
    ///
    /// # Errors
    /// When the key is a public one.
    pub fn sign(&self, digest: &[u8], out: &mut [u8; MAX_SIGNATURE]) -> Result<usize> {
        self.0.sign(Params::new(), digest, out)
    }

    /// Checks a signature in DER.
    ///
    /// # Errors
    /// When it is not good.
    pub fn verify(&self, digest: &[u8], signature: &[u8]) -> Result<()> {
        self.0.verify(Params::new(), digest, signature)
    }

    /// The x coordinate of the private scalar, and where `cofactor` says so the cofactor, times the peer's point; `out` is as long
    /// as a coordinate.
    ///
    /// # Errors
    /// When the peer's key is on another curve.
    pub fn agree(&self, peer: &Self, cofactor: bool, out: &mut [u8]) -> Result<()> {
        let mode = c_int::from(cofactor);
        self.0.agree(Params::new().int(c"ecdh-cofactor-mode", &mode), &peer.0, out)
    }
}
