// SPDX-License-Identifier: Apache-2.0
//! Keys on the short Weierstrass curves: parameters, points, generation, import and the prepared
//! form (PKCS#11 3.2 §6.3).

use crate::failure::device_error;
use metaslot_awslc_wrapper::ec::{Curve, EcKey};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::key_info::{self, EcParams};
use metaslot_spi::provider::{Algorithm, GeneratePair, checked};
use metaslot_spi::{Attributes, Key, NewObject, Params, Secrets};

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

struct Named {
    curve: Curve,
    oid: &'static [u8],
    names: &'static [&'static str],
}

const CURVES: [Named; 5] = [
    Named {
        curve: Curve::P224,
        oid: &[0x2b, 0x81, 0x04, 0x00, 0x21],
        names: &["secp224r1", "P-224"],
    },
    Named {
        curve: Curve::P256,
        oid: &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
        names: &["secp256r1", "P-256", "prime256v1"],
    },
    Named {
        curve: Curve::P384,
        oid: &[0x2b, 0x81, 0x04, 0x00, 0x22],
        names: &["secp384r1", "P-384"],
    },
    Named {
        curve: Curve::P521,
        oid: &[0x2b, 0x81, 0x04, 0x00, 0x23],
        names: &["secp521r1", "P-521"],
    },
    Named { curve: Curve::Secp256k1, oid: &[0x2b, 0x81, 0x04, 0x00, 0x0a], names: &["secp256k1"] },
];

/// The curve that a DER `CKA_EC_PARAMS` names: by object identifier or by name.
pub(crate) fn curve(params: &[u8]) -> Result<Curve> {
    let named = match EcParams::parse(params)? {
        EcParams::Oid(oid) => CURVES.iter().find(|row| row.oid == oid),
        EcParams::Name(name) => {
            CURVES.iter().find(|row| row.names.iter().any(|known| known.as_bytes() == name))
        }
    };
    named.map(|row| row.curve).ok_or(Error::CURVE_NOT_SUPPORTED)
}

/// The content of the object identifier of a curve.
pub(crate) fn oid(curve: Curve) -> &'static [u8] {
    CURVES.iter().find(|row| row.curve == curve).map_or(&[], |row| row.oid)
}

/// The curve of an object identifier.
pub(crate) fn by_oid(oid: &[u8]) -> Option<Curve> {
    CURVES.iter().find(|row| row.oid == oid).map(|row| row.curve)
}

/// A point as it is, or inside a DER OCTET STRING.
pub(crate) fn point(curve: Curve, bytes: &[u8]) -> &[u8] {
    key_info::ec_point(curve.length(), bytes)
}

/// The prepared form of a public or private key.
pub(crate) fn prepared(key: &Key) -> Result<&EcKey> {
    key.prepared(|key| {
        let curve = curve(key.bytes(CKA_EC_PARAMS)?)?;
        if key.class() == CKO_PRIVATE_KEY {
            EcKey::private(curve, key.secret(CKA_VALUE)?)
        } else {
            EcKey::public(curve, point(curve, key.bytes(CKA_EC_POINT)?))
        }
        .map_err(|_| Error::KEY_TYPE_INCONSISTENT)
    })
}

/// What both halves of a pair show.
fn shown(key: &EcKey) -> Result<Attributes> {
    let curve = key.curve();
    let mut point = vec![0; curve.point_length()];
    key.write_point(&mut point).map_err(device_error)?;
    Ok(key_info::ec_shown(oid(curve), &point))
}

fn secrets(key: &EcKey) -> Result<Secrets> {
    let mut scalar = Secret::zeroed(key.curve().length());
    key.write_scalar(scalar.expose_mut()).map_err(device_error)?;
    let mut secrets = Secrets::new();
    secrets.set(CKA_VALUE, scalar);
    Ok(secrets)
}

/// Completes an imported public key.
pub(crate) fn complete_public(object: &mut NewObject) -> Result<()> {
    let attributes = &mut object.attributes;
    let curve = curve(attributes.bytes(CKA_EC_PARAMS).ok_or(Error::TEMPLATE_INCOMPLETE)?)?;
    let bytes = attributes.bytes(CKA_EC_POINT).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let key =
        EcKey::public(curve, point(curve, bytes)).map_err(|_| Error::ATTRIBUTE_VALUE_INVALID)?;
    key_info::complete_shown(attributes, &shown(&key)?)
}

/// Completes an imported private key: the public point is computed.
pub(crate) fn complete_private(object: &mut NewObject) -> Result<()> {
    let NewObject { attributes, secrets: given } = object;
    let curve = curve(attributes.bytes(CKA_EC_PARAMS).ok_or(Error::TEMPLATE_INCOMPLETE)?)?;
    let scalar = given.get(CKA_VALUE).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let key = EcKey::private(curve, scalar).map_err(|_| Error::ATTRIBUTE_VALUE_INVALID)?;
    if let Some(said) = attributes.bytes(CKA_EC_POINT) {
        let said =
            EcKey::public(curve, point(curve, said)).map_err(|_| Error::ATTRIBUTE_VALUE_INVALID)?;
        if shown(&said)? != shown(&key)? {
            return Err(Error::TEMPLATE_INCONSISTENT);
        }
    }
    *given = secrets(&key)?;
    key_info::complete_shown(attributes, &shown(&key)?)
}

#[derive(Debug)]
struct KeyPair;

impl GeneratePair for KeyPair {
    fn generate_pair(&self, _: &Params, template: &Attributes) -> Result<(NewObject, NewObject)> {
        let params = template.bytes(CKA_EC_PARAMS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
        let key = EcKey::generate(curve(params)?).map_err(device_error)?;
        let attributes = shown(&key)?;
        let public = NewObject { attributes: attributes.clone(), secrets: Secrets::new() };
        Ok((public, NewObject { attributes, secrets: secrets(&key)? }))
    }
}
