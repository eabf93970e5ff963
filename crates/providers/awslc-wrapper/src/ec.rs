// SPDX-License-Identifier: Apache-2.0
//! Keys on the short Weierstrass curves, ECDSA and ECDH.

use crate::bn::{Bn, View};
use crate::raw::not_null;
use crate::{Failed, Result, check, failed};
use aws_lc_sys as sys;
use metaslot_memory::{wipe_shallow_stack, wipe_stack};
use std::fmt;
use std::ptr::{self, NonNull};

/// The curves that the library has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Curve {
    /// secp224r1
    P224,
    /// secp256r1
    P256,
    /// secp384r1
    P384,
    /// secp521r1
    P521,
    /// The Koblitz curve of the same size as P-256.
    Secp256k1,
}

/// The longest coordinate or scalar, in bytes.
pub const MAX_EC_BYTES: usize = 66;

impl Curve {
    /// Length of a coordinate, and of a scalar, in bytes: equal on all these curves.
    #[must_use]
    pub const fn length(self) -> usize {
        match self {
            Self::P224 => 28,
            Self::P256 | Self::Secp256k1 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }

    /// Length of the order, in bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        match self {
            Self::P224 => 224,
            Self::P256 | Self::Secp256k1 => 256,
            Self::P384 => 384,
            Self::P521 => 521,
        }
    }

    /// Length of an uncompressed point, in bytes.
    #[must_use]
    pub const fn point_length(self) -> usize {
        1 + 2 * self.length()
    }

    fn group(self) -> *const sys::EC_GROUP {
        let group = match self {
            Self::P224 => sys::EC_group_p224,
            Self::P256 => sys::EC_group_p256,
            Self::P384 => sys::EC_group_p384,
            Self::P521 => sys::EC_group_p521,
            Self::Secp256k1 => sys::EC_group_secp256k1,
        };
        // SAFETY: no argument; the group is static.
        unsafe { group() }
    }
}

/// A point on a curve, never the point at infinity.
struct Point(NonNull<sys::EC_POINT>);

impl Point {
    fn new(curve: Curve) -> Result<Self> {
        // SAFETY: the group is static.
        not_null(unsafe { sys::EC_POINT_new(curve.group()) }).map(Self)
    }

    /// Reads SEC 1 §2.3.4 forms: uncompressed, compressed, hybrid; the library refuses a point
    /// that is not on the curve, and we the point at infinity.
    fn decode(curve: Curve, bytes: &[u8]) -> Result<Self> {
        let point = Self::new(curve)?;
        // SAFETY: the group is static, the point ours, the range a slice's.
        check(unsafe {
            sys::EC_POINT_oct2point(
                curve.group(),
                point.0.as_ptr(),
                bytes.as_ptr(),
                bytes.len(),
                ptr::null_mut(),
            )
        })?;
        // SAFETY: as above.
        match unsafe { sys::EC_POINT_is_at_infinity(curve.group(), point.0.as_ptr()) } {
            0 => Ok(point),
            _ => Err(Failed),
        }
    }
}

impl Drop for Point {
    fn drop(&mut self) {
        // SAFETY: we own the point.
        unsafe { sys::EC_POINT_free(self.0.as_ptr()) }
    }
}

/// A public or private key, ready for use.
pub struct EcKey {
    raw: NonNull<sys::EC_KEY>,
    curve: Curve,
}

// SAFETY: nothing changes a key once it is made, and the library only reads it.
unsafe impl Send for EcKey {}
// SAFETY: as for `Send`.
unsafe impl Sync for EcKey {}

impl EcKey {
    fn empty(curve: Curve) -> Result<Self> {
        // SAFETY: no argument.
        let raw = not_null(unsafe { sys::EC_KEY_new() })?;
        let key = Self { raw, curve };
        // SAFETY: the key is ours and empty; the group is static.
        check(unsafe { sys::EC_KEY_set_group(raw.as_ptr(), curve.group()) })?;
        Ok(key)
    }

    /// A new key pair.
    ///
    /// # Errors
    /// When memory is short.
    pub fn generate(curve: Curve) -> Result<Self> {
        let key = Self::empty(curve)?;
        // SAFETY: the key is ours alone and has a group.
        check(unsafe { sys::EC_KEY_generate_key(key.raw.as_ptr()) })?;
        wipe_stack();
        Ok(key)
    }

    /// A public key from its encoded point.
    ///
    /// # Errors
    /// When the point is not on the curve, or at infinity.
    pub fn public(curve: Curve, point: &[u8]) -> Result<Self> {
        let key = Self::empty(curve)?;
        key.set_point(&Point::decode(curve, point)?)?;
        Ok(key)
    }

    /// A private key from its scalar (big-endian); the public point is computed.
    ///
    /// # Errors
    /// When the scalar is zero or not below the order.
    pub fn private(curve: Curve, scalar: &[u8]) -> Result<Self> {
        let key = Self::empty(curve)?;
        let scalar = Bn::from_bytes(scalar)?;
        // SAFETY: the key is ours and has a group; the scalar is copied.
        check(unsafe { sys::EC_KEY_set_private_key(key.raw.as_ptr(), scalar.as_ptr()) })?;
        let point = Point::new(curve)?;
        // SAFETY: the group is static, point and scalar are alive; with the generator alone the
        // library multiplies in constant time.
        check(unsafe {
            sys::EC_POINT_mul(
                curve.group(),
                point.0.as_ptr(),
                scalar.as_ptr(),
                ptr::null(),
                ptr::null(),
                ptr::null_mut(),
            )
        })?;
        let set = key.set_point(&point);
        // Last, for the coordinates of a product tell of its factor.
        wipe_stack();
        set.map(|()| key)
    }

    fn set_point(&self, point: &Point) -> Result<()> {
        // SAFETY: called only while the key is being made and ours alone; the point is copied.
        check(unsafe { sys::EC_KEY_set_public_key(self.raw.as_ptr(), point.0.as_ptr()) })
    }

    /// The curve.
    #[must_use]
    pub const fn curve(&self) -> Curve {
        self.curve
    }

    /// Writes the uncompressed public point; `out` is [`Curve::point_length`] long.
    ///
    /// # Errors
    /// When `out` has another length.
    pub fn write_point(&self, out: &mut [u8]) -> Result<()> {
        // SAFETY: the key is alive.
        let point = unsafe { sys::EC_KEY_get0_public_key(self.raw.as_ptr()) };
        // SAFETY: the point is the key's and the group static; the range is a slice's.
        let written = unsafe {
            sys::EC_POINT_point2oct(
                self.curve.group(),
                point,
                sys::point_conversion_form_t::POINT_CONVERSION_UNCOMPRESSED,
                out.as_mut_ptr(),
                out.len(),
                ptr::null_mut(),
            )
        };
        if written == out.len() && written != 0 { Ok(()) } else { failed() }
    }

    /// Writes the private scalar, big-endian; `out` is [`Curve::length`] long.
    ///
    /// # Errors
    /// When the key is a public one.
    pub fn write_scalar(&self, out: &mut [u8]) -> Result<()> {
        // SAFETY: the key is alive.
        let raw = unsafe { sys::EC_KEY_get0_private_key(self.raw.as_ptr()) };
        // SAFETY: the key owns the number, and a key does not change.
        unsafe { View::new(raw) }.ok_or(Failed)?.write(out)
    }

    /// ECDSA over a digest of any length (cut to the length of the order, SEC 1 §4.1.3): r and s,
    /// each [`Curve::length`] long, into `out`.
    ///
    /// # Errors
    /// When the key is a public one.
    pub fn sign(&self, digest: &[u8], out: &mut [u8]) -> Result<()> {
        // SAFETY: the key is alive and only read; the range is a slice's.
        let raw = unsafe { sys::ECDSA_do_sign(digest.as_ptr(), digest.len(), self.raw.as_ptr()) };
        // The library leaves the scalar in its first frames.
        wipe_shallow_stack();
        let signature = EcdsaSignature(not_null(raw)?);
        let (r, s) = out.split_at_mut_checked(self.curve.length()).ok_or(Failed)?;
        signature.r().ok_or(Failed)?.write(r)?;
        signature.s().ok_or(Failed)?.write(s)
    }

    /// Checks r and s, of equal length, over a digest.
    ///
    /// # Errors
    /// When they are not a good signature.
    pub fn verify(&self, digest: &[u8], signature: &[u8]) -> Result<()> {
        let (r, s) = signature.split_at(signature.len() / 2);
        let signature = EcdsaSignature::new(Bn::from_bytes(r)?, Bn::from_bytes(s)?)?;
        // SAFETY: key and signature are alive and only read; the range is a slice's.
        check(unsafe {
            sys::ECDSA_do_verify(
                digest.as_ptr(),
                digest.len(),
                signature.0.as_ptr(),
                self.raw.as_ptr(),
            )
        })
    }

    /// The x coordinate of the private scalar times the peer's point; `out` is
    /// [`Curve::length`] long. All these curves have cofactor 1.
    ///
    /// # Errors
    /// When the peer's point is not on the curve, or at infinity.
    pub fn diffie_hellman(&self, peer: &[u8], out: &mut [u8]) -> Result<()> {
        let point = Point::decode(self.curve, peer)?;
        // SAFETY: key and point are alive and only read; the range is a slice's; no KDF.
        let written = unsafe {
            sys::ECDH_compute_key(
                out.as_mut_ptr().cast(),
                out.len(),
                point.0.as_ptr(),
                self.raw.as_ptr(),
                None,
            )
        };
        // The one for P-521 goes deep.
        wipe_stack();
        if usize::try_from(written) == Ok(self.curve.length()) && out.len() == self.curve.length() {
            Ok(())
        } else {
            failed()
        }
    }
}

impl Drop for EcKey {
    fn drop(&mut self) {
        // SAFETY: we own the key.
        unsafe { sys::EC_KEY_free(self.raw.as_ptr()) }
    }
}

impl fmt::Debug for EcKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EcKey({:?})", self.curve)
    }
}

struct EcdsaSignature(NonNull<sys::ECDSA_SIG>);

impl EcdsaSignature {
    fn new(r: Bn, s: Bn) -> Result<Self> {
        // SAFETY: no argument.
        let signature = Self(not_null(unsafe { sys::ECDSA_SIG_new() })?);
        // SAFETY: the signature takes both over; with non-NULL numbers the call cannot fail.
        check(unsafe { sys::ECDSA_SIG_set0(signature.0.as_ptr(), r.into_raw(), s.into_raw()) })?;
        Ok(signature)
    }

    fn r(&self) -> Option<View<'_>> {
        // SAFETY: the signature is alive.
        let raw = unsafe { sys::ECDSA_SIG_get0_r(self.0.as_ptr()) };
        // SAFETY: the signature owns the number and does not change.
        unsafe { View::new(raw) }
    }

    fn s(&self) -> Option<View<'_>> {
        // SAFETY: the signature is alive.
        let raw = unsafe { sys::ECDSA_SIG_get0_s(self.0.as_ptr()) };
        // SAFETY: the signature owns the number and does not change.
        unsafe { View::new(raw) }
    }
}

impl Drop for EcdsaSignature {
    fn drop(&mut self) {
        // SAFETY: we own the signature.
        unsafe { sys::ECDSA_SIG_free(self.0.as_ptr()) }
    }
}
