// SPDX-License-Identifier: Apache-2.0
//! Prepared keys, on a curve whose numbers take N limbs of 52 bits: 5 for P-256, 8 for P-384.

use metaslot_awslc_wrapper::ec::{Curve, EcKey};
use metaslot_awslc_wrapper::{Failed, Result};
use metaslot_memory::Secret;
use std::fmt;
#[cfg(target_arch = "x86_64")]
use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

/// A private key: a scalar in protected memory.
pub struct PrivateKey<const N: usize> {
    curve: Curve,
    scalar: Secret,
}

impl<const N: usize> PrivateKey<N> {
    /// The key of a scalar, most significant byte first.
    pub(crate) fn on(curve: Curve, order: &[u8], scalar: &[u8]) -> Result<Self> {
        let start = scalar.iter().position(|byte| *byte != 0).ok_or(Failed)?;
        let significant = &scalar[start..];
        let mut padded = Secret::zeroed(curve.length());
        let place = curve.length().checked_sub(significant.len()).ok_or(Failed)?;
        padded.expose_mut()[place..].copy_from_slice(significant);
        if padded.expose() < order { Ok(Self { curve, scalar: padded }) } else { Err(Failed) }
    }

    /// The scalar, most significant byte first.
    pub(crate) const fn scalar(&self) -> &[u8] {
        self.scalar.expose()
    }

    /// The library's form of the key, for what the kernels leave to it.
    pub(crate) fn library(&self) -> Result<EcKey> {
        EcKey::private(self.curve, self.scalar.expose())
    }
}

impl<const N: usize> fmt::Debug for PrivateKey<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({:?})", self.curve)
    }
}

/// A public key: a point on the curve, not at infinity; with some of its multiples once it has been used.
#[derive(Debug)]
pub struct PublicKey<const N: usize> {
    library: EcKey,
    #[cfg(target_arch = "x86_64")]
    pub(crate) multiples: OnceLock<super::table::Multiples<N>>,
    #[cfg(target_arch = "x86_64")]
    seen: AtomicBool,
}

impl<const N: usize> PublicKey<N> {
    /// The key of an encoded point (SEC 1 §2.3.4).
    pub(crate) fn on(curve: Curve, point: &[u8]) -> Result<Self> {
        Ok(Self {
            library: EcKey::public(curve, point)?,
            #[cfg(target_arch = "x86_64")]
            multiples: OnceLock::new(),
            #[cfg(target_arch = "x86_64")]
            seen: AtomicBool::new(false),
        })
    }

    /// The library's form of the key.
    pub(crate) const fn library(&self) -> &EcKey {
        &self.library
    }

    /// Whether this has been asked before.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn seen_before(&self) -> bool {
        self.seen.swap(true, Ordering::Relaxed)
    }

    /// The point's coordinates.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn coordinates(&self) -> Result<[[u64; N]; 2]> {
        let curve = self.library.curve();
        let mut point = [0; 1 + 2 * metaslot_awslc_wrapper::ec::MAX_EC_BYTES];
        let point = &mut point[..curve.point_length()];
        self.library.write_point(point)?;
        let (x, y) = point[1..].split_at(curve.length());
        Ok([x, y].map(crate::field52::bytes::big_endian))
    }
}
