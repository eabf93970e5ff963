// SPDX-License-Identifier: Apache-2.0
//! Keys on the short Weierstrass curves: generation and the prepared form (PKCS#11 3.2 §6.3).

use super::number::random;
use crate::failure::device_error;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_openssl_wrapper::ec::EcKey;
use metaslot_spi::prime_key::{self, Curve};
use metaslot_spi::provider::{Algorithm, GeneratePair, checked};
use metaslot_spi::{Attributes, Key, NewObject, Params};

/// Fields that are served, in bits: the order of secp112r2 has fewer (§6.3.1).
pub(super) const SIZES: (u64, u64) = (112, 571);

/// What `CK_MECHANISM_INFO` says of EC mechanisms (§6.3.1).
pub(super) const FLAGS: u64 = CKF_EC_F_P
    | CKF_EC_F_2M
    | CKF_EC_NAMEDCURVE
    | CKF_EC_UNCOMPRESS
    | CKF_EC_COMPRESS
    | CKF_EC_CURVENAME;

const fn row(mechanism: CK_MECHANISM_TYPE) -> Algorithm {
    Algorithm {
        mechanism,
        key_sizes: SIZES,
        generate_pair: Some(&KeyPair),
        extra_flags: FLAGS,
        ..Algorithm::NONE
    }
}

// Scalars are drawn until one is below the order, which has no bias to begin with: extra bits would change nothing.
pub(super) const ROWS: [Algorithm; 2] =
    checked([row(CKM_EC_KEY_PAIR_GEN), row(CKM_EC_KEY_PAIR_GEN_W_EXTRA_BITS)]);

/// OpenSSL, for what providers have in common.
pub(super) struct Library;

impl prime_key::Library for Library {
    type Key = EcKey;

    fn has(_: &'static Curve) -> bool {
        true
    }

    fn generate(curve: &'static Curve) -> Result<EcKey> {
        let mut scalar = Secret::zeroed(curve.order_length());
        // At least every second one is below the order.
        for _ in 0..200 {
            random(scalar.expose_mut())?;
            // P-521 has a byte that is nearly empty.
            scalar.expose_mut()[0] >>= 8 * curve.order_length() - usize::from(curve.bits);
            if let Some(key) = Self::private(curve, scalar.expose()) {
                return Ok(key);
            }
        }
        Err(Error::DEVICE_ERROR)
    }

    fn public(curve: &'static Curve, point: &[u8]) -> Option<EcKey> {
        // The hybrid form, which nobody writes: the code of these curves' other provider has none.
        if curve.is_binary && matches!(point, [6 | 7, ..]) {
            return None;
        }
        EcKey::public(curve.name, curve.cofactor > 1, point).ok()
    }

    fn private(curve: &'static Curve, scalar: &[u8]) -> Option<EcKey> {
        EcKey::private(curve.name, scalar).ok()
    }

    fn write_point(key: &EcKey, out: &mut [u8]) -> Result<()> {
        key.write_point(out).map_err(device_error)
    }

    fn write_scalar(key: &EcKey, out: &mut [u8]) -> Result<()> {
        key.write_scalar(out).map_err(device_error)
    }
}

/// A key, and the curve that it is on.
pub(super) type Prepared = (&'static Curve, EcKey);

/// The prepared form of a public or private key.
pub(super) fn prepared(key: &Key) -> Result<&Prepared> {
    key.prepared(prime_key::prepare::<Library>)
}

#[derive(Debug)]
struct KeyPair;

impl GeneratePair for KeyPair {
    fn generate_pair(&self, _: &Params, template: &Attributes) -> Result<(NewObject, NewObject)> {
        prime_key::generate::<Library>(template)
    }
}
