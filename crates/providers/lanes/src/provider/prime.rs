// SPDX-License-Identifier: Apache-2.0
//! What the mechanisms of P-256 and P-384 have in common: which keys are theirs, and the forms of a key.

use super::{Wins, device_error};
use crate::weierstrass::{DeriveRequest, PrivateKey, PublicKey, SignRequest, VerifyRequest};
use crate::{p256, p384};
use metaslot_awslc_wrapper::ec::{Curve, EcKey};
use metaslot_ck::*;
use metaslot_spi::Key;
use std::any::Any;

/// What `CK_MECHANISM_INFO` says of EC mechanisms (PKCS#11 3.2 §6.3.1).
pub(super) const FLAGS: u64 = CKF_EC_F_P | CKF_EC_NAMEDCURVE | CKF_EC_UNCOMPRESS | CKF_EC_CURVENAME;
/// Orders that are served, in bits.
pub(super) const SIZES: (u64, u64) = (256, 384);
/// Requests in one call of a kernel; more than eight share their inversions.
pub(super) const BATCH: usize = 32;

/// The OIDs in DER; other spellings are the plain provider's.
const P256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22];

/// Whether a key is on one of the two curves and this processor has lanes for it.
pub(super) fn serves(key: &Key) -> bool {
    let params = key.bytes(CKA_EC_PARAMS).unwrap_or_default();
    (params == P256 && p256::available()) || (params == P384 && p384::available())
}

/// Which of the two curves.
#[derive(Clone, Copy, Debug)]
pub(super) enum Size {
    P256,
    P384,
}

impl Size {
    /// The curve of a key, once the library has prepared it.
    pub(super) fn of(key: &Key) -> Option<Self> {
        match plain_form(key).ok()?.curve() {
            Curve::P256 if p256::available() => Some(Self::P256),
            Curve::P384 if p384::available() => Some(Self::P384),
            _ => None,
        }
    }

    /// Length of a coordinate, and of a scalar, in bytes.
    pub(super) const fn length(self) -> usize {
        match self {
            Self::P256 => p256::LENGTH,
            Self::P384 => p384::LENGTH,
        }
    }
}

/// What the kernels of the two curves have in common; `N` limbs.
pub(super) trait Lanes<const N: usize>: Sync {
    fn available() -> bool;
    fn private(scalar: &[u8]) -> metaslot_awslc_wrapper::Result<PrivateKey<N>>;
    fn public(point: &[u8]) -> metaslot_awslc_wrapper::Result<PublicKey<N>>;
    fn sign(requests: &mut [SignRequest<'_, N>]);
    fn verify(requests: &mut [VerifyRequest<'_, N>]);
    fn derive(requests: &mut [DeriveRequest<'_, N>]);

    /// Whether one lane is faster than the library.
    const SIGN_ALONE: bool;
    const SIGN: Wins;
    const VERIFY: Wins;
    const DERIVE: Wins;
}

#[derive(Debug)]
pub(super) struct P256Kernel;

impl Lanes<5> for P256Kernel {
    const SIGN_ALONE: bool = false;
    const SIGN: Wins = Wins { jobs: 2, threads: 3 };
    // A key that is seen for the first time needs its table: four of these pay for a batch, two of any other.
    const VERIFY: Wins = Wins { jobs: 3, threads: 3 };
    const DERIVE: Wins = Wins { jobs: 2, threads: 4 };

    fn available() -> bool {
        p256::available()
    }

    fn private(scalar: &[u8]) -> metaslot_awslc_wrapper::Result<PrivateKey<5>> {
        p256::PrivateKey::new(scalar)
    }

    fn public(point: &[u8]) -> metaslot_awslc_wrapper::Result<PublicKey<5>> {
        p256::PublicKey::new(point)
    }

    fn sign(requests: &mut [SignRequest<'_, 5>]) {
        p256::sign(requests);
    }

    fn verify(requests: &mut [VerifyRequest<'_, 5>]) {
        p256::verify(requests);
    }

    fn derive(requests: &mut [DeriveRequest<'_, 5>]) {
        p256::derive(requests);
    }
}

#[derive(Debug)]
pub(super) struct P384Kernel;

impl Lanes<8> for P384Kernel {
    const SIGN_ALONE: bool = true;
    const SIGN: Wins = Wins { jobs: 2, threads: 2 };
    const VERIFY: Wins = Wins { jobs: 2, threads: 2 };
    const DERIVE: Wins = Wins { jobs: 2, threads: 2 };

    fn available() -> bool {
        p384::available()
    }

    fn private(scalar: &[u8]) -> metaslot_awslc_wrapper::Result<PrivateKey<8>> {
        p384::PrivateKey::new(scalar)
    }

    fn public(point: &[u8]) -> metaslot_awslc_wrapper::Result<PublicKey<8>> {
        p384::PublicKey::new(point)
    }

    fn sign(requests: &mut [SignRequest<'_, 8>]) {
        p384::sign(requests);
    }

    fn verify(requests: &mut [VerifyRequest<'_, 8>]) {
        p384::verify(requests);
    }

    fn derive(requests: &mut [DeriveRequest<'_, 8>]) {
        p384::derive(requests);
    }
}

/// The library's form of the key, which the plain provider has prepared.
pub(super) fn plain_form(key: &Key) -> Result<&EcKey> {
    key.prepared(|_| Err(Error::KEY_TYPE_INCONSISTENT))
}

/// The kernel's form, made of the library's.
fn form<T: Any + Send + Sync>(
    key: &Key,
    make: impl FnOnce(&EcKey) -> metaslot_awslc_wrapper::Result<T>,
) -> Result<&T> {
    key.prepared(|key| make(plain_form(key)?).map_err(device_error))
}

/// The kernel's form of a private key.
pub(super) fn private_form<L: Lanes<N>, const N: usize>(key: &Key) -> Result<&PrivateKey<N>>
where
    PrivateKey<N>: Any + Send + Sync,
{
    let scalar = key.secret(CKA_VALUE)?;
    form(key, |_| L::private(scalar))
}

/// The kernel's form of a public key.
pub(super) fn public_form<L: Lanes<N>, const N: usize>(key: &Key) -> Result<&PublicKey<N>>
where
    PublicKey<N>: Any + Send + Sync,
{
    form(key, |key| {
        let mut point = [0; 1 + 2 * p384::LENGTH];
        let point = &mut point[..key.curve().point_length()];
        key.write_point(point)?;
        L::public(point)
    })
}
