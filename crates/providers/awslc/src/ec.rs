// SPDX-License-Identifier: Apache-2.0
//! Keys on the short Weierstrass curves: generation and the prepared form (PKCS#11 3.2 §6.3).

use crate::failure::device_error;
use metaslot_awslc_wrapper::ec::{Curve, EcKey};
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, GeneratePair, checked};
use metaslot_spi::{Attributes, Key, NewObject, Params, key_info, prime_key};

/// Orders that are served, in bits.
pub(crate) const SIZES: (u64, u64) = (224, 521);

/// What `CK_MECHANISM_INFO` says of EC mechanisms (§6.3.1).
pub(crate) const FLAGS: u64 =
    CKF_EC_F_P | CKF_EC_NAMEDCURVE | CKF_EC_UNCOMPRESS | CKF_EC_COMPRESS | CKF_EC_CURVENAME;

const fn row(mechanism: CK_MECHANISM_TYPE) -> Algorithm {
    Algorithm {
        mechanism,
        key_sizes: SIZES,
        generate_pair: Some(&KeyPair),
        extra_flags: FLAGS,
        ..Algorithm::NONE
    }
}

// The library draws scalars until one is below the order, which has no bias to begin with: extra
// bits would change nothing.
pub(crate) const ROWS: [Algorithm; 2] =
    checked([row(CKM_EC_KEY_PAIR_GEN), row(CKM_EC_KEY_PAIR_GEN_W_EXTRA_BITS)]);

/// AWS-LC, for what providers have in common.
pub(crate) struct Library;

fn library_curve(curve: &prime_key::Curve) -> Option<Curve> {
    Some(match curve.name.to_bytes() {
        b"secp224r1" => Curve::P224,
        b"secp256r1" => Curve::P256,
        b"secp384r1" => Curve::P384,
        b"secp521r1" => Curve::P521,
        b"secp256k1" => Curve::Secp256k1,
        _ => return None,
    })
}

impl prime_key::Library for Library {
    type Key = EcKey;

    fn has(curve: &'static prime_key::Curve) -> bool {
        library_curve(curve).is_some()
    }

    fn generate(curve: &'static prime_key::Curve) -> Result<EcKey> {
        let curve = library_curve(curve).ok_or(Error::CURVE_NOT_SUPPORTED)?;
        EcKey::generate(curve).map_err(device_error)
    }

    fn public(curve: &'static prime_key::Curve, point: &[u8]) -> Option<EcKey> {
        EcKey::public(library_curve(curve)?, point).ok()
    }

    fn private(curve: &'static prime_key::Curve, scalar: &[u8]) -> Option<EcKey> {
        EcKey::private(library_curve(curve)?, scalar).ok()
    }

    fn write_point(key: &EcKey, out: &mut [u8]) -> Result<()> {
        key.write_point(out).map_err(device_error)
    }

    fn write_scalar(key: &EcKey, out: &mut [u8]) -> Result<()> {
        key.write_scalar(out).map_err(device_error)
    }
}

/// A point as it is, or inside a DER OCTET STRING.
pub(crate) fn point(curve: Curve, bytes: &[u8]) -> &[u8] {
    key_info::ec_point(curve.length(), bytes)
}

/// Whether a key is on a curve that AWS-LC has.
pub(crate) fn serves(key: &Key) -> bool {
    prime_key::serves::<Library>(key.attributes())
}

/// The prepared form of a public or private key.
pub(crate) fn prepared(key: &Key) -> Result<&EcKey> {
    key.prepared(|key| prime_key::prepare::<Library>(key).map(|(_, key)| key))
}

#[derive(Debug)]
pub(crate) struct KeyPair;

impl GeneratePair for KeyPair {
    fn serves(&self, public: &Attributes) -> bool {
        prime_key::serves::<Library>(public)
    }

    fn generate_pair(&self, _: &Params, template: &Attributes) -> Result<(NewObject, NewObject)> {
        prime_key::generate::<Library>(template)
    }
}
