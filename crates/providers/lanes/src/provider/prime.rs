// SPDX-License-Identifier: Apache-2.0
//! What the mechanisms of P-256 and P-384 have in common: which keys are theirs, and the forms of a key.

use super::{Wins, device_error};
use crate::weierstrass::{DeriveRequest, PrivateKey, PublicKey, SignRequest, VerifyRequest};
use crate::{p256, p384};
use metaslot_ck::*;
use metaslot_spi::{Key, key_info};
use std::fmt::Debug;

/// What `CK_MECHANISM_INFO` says of EC mechanisms (PKCS#11 3.2 §6.3.1).
pub(super) const FLAGS: u64 = CKF_EC_F_P | CKF_EC_NAMEDCURVE | CKF_EC_UNCOMPRESS | CKF_EC_CURVENAME;
/// Requests in one call of a kernel; more than eight share their inversions.
pub(super) const BATCH: usize = 32;

/// Whether a key is on the curve of a kernel that this processor has lanes for.
pub(super) fn serves<L: Lanes<N>, const N: usize>(key: &Key) -> bool {
    key.bytes(CKA_EC_PARAMS) == Ok(L::OID) && L::available()
}

/// What the kernels of the two curves have in common; `N` limbs.
pub(super) trait Lanes<const N: usize>: Debug + Sync + 'static {
    /// Length of a coordinate, and of a scalar, in bytes.
    const LENGTH: usize;
    /// In DER; other spellings are the plain provider's.
    const OID: &[u8];
    /// Whether one lane is faster than the library.
    const SIGN_ALONE: bool;
    const SIGN: Wins;
    const VERIFY: Wins;
    const DERIVE: Wins;

    fn available() -> bool;
    fn private(scalar: &[u8]) -> metaslot_awslc_wrapper::Result<PrivateKey<N>>;
    fn public(point: &[u8]) -> metaslot_awslc_wrapper::Result<PublicKey<N>>;
    fn sign(requests: &mut [SignRequest<'_, N>]);
    fn verify(requests: &mut [VerifyRequest<'_, N>]);
    fn derive(requests: &mut [DeriveRequest<'_, N>]);
}

#[derive(Debug)]
pub(super) struct P256Kernel;

impl Lanes<5> for P256Kernel {
    const LENGTH: usize = p256::LENGTH;
    const OID: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
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
    const LENGTH: usize = p384::LENGTH;
    const OID: &[u8] = &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22];
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

/// The kernel's form of a private key.
pub(super) fn private_form<L: Lanes<N>, const N: usize>(key: &Key) -> Result<&PrivateKey<N>> {
    key.prepared(|key| L::private(key.secret(CKA_VALUE)?).map_err(device_error))
}

/// The kernel's form of a public key.
pub(super) fn public_form<L: Lanes<N>, const N: usize>(key: &Key) -> Result<&PublicKey<N>> {
    key.prepared(|key| {
        let point = key_info::ec_point(L::LENGTH, key.bytes(CKA_EC_POINT)?);
        L::public(point).map_err(device_error)
    })
}
