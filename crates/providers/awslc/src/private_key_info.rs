// SPDX-License-Identifier: Apache-2.0
//! Private keys as the DER of a PKCS #8 `PrivateKeyInfo` (RFC 5208, RFC 5958; PKCS#11 3.2 §6.7):
//! what is wrapped and unwrapped. The plaintext lives in protected memory only.

use crate::eddsa::ED25519_KEYS;
use crate::montgomery::X25519_KEYS;
use crate::public_key::RSA_ENCRYPTION;
use crate::{ec, private_key, seeded};
use metaslot_awslc_wrapper::ml_dsa::MlDsaKey;
use metaslot_awslc_wrapper::ml_kem::MlKemKey;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::der::{Malformed, Node, Reader, tag};
use metaslot_spi::field_key::FieldKind;
use metaslot_spi::key_info::{self, PrivateKeyInfo};
use metaslot_spi::number_key::{ED25519, X25519};
use metaslot_spi::{Key, NewObject, Value, prime_key};

/// As `Provider::encode_private_key`.
pub(crate) fn encode(key: &Key) -> Result<Secret> {
    match key.key_type() {
        CKK_RSA => encode_rsa(key),
        CKK_EC => encode_ec(key),
        CKK_EC_EDWARDS => ED25519_KEYS.encode(key),
        CKK_EC_MONTGOMERY => X25519_KEYS.encode(key),
        CKK_ML_DSA => seeded::encode::<MlDsaKey>(key),
        CKK_ML_KEM => seeded::encode::<MlKemKey>(key),
        other => match FieldKind::of(other) {
            Some(kind) => kind.encode(key),
            None => Err(Error::KEY_NOT_WRAPPABLE),
        },
    }
}

/// RFC 8017 §A.1.2
fn encode_rsa(key: &Key) -> Result<Secret> {
    let shown = |number| key.bytes(number).map_err(|_| Error::KEY_NOT_WRAPPABLE);
    let secret = |number| key.secret(number).map_err(|_| Error::KEY_NOT_WRAPPABLE);
    let private = Node::Sequence(&[
        Node::Integer(&[]),
        Node::Integer(shown(CKA_MODULUS)?),
        Node::Integer(shown(CKA_PUBLIC_EXPONENT)?),
        Node::Integer(secret(CKA_PRIVATE_EXPONENT)?),
        Node::Integer(secret(CKA_PRIME_1)?),
        Node::Integer(secret(CKA_PRIME_2)?),
        Node::Integer(secret(CKA_EXPONENT_1)?),
        Node::Integer(secret(CKA_EXPONENT_2)?),
        Node::Integer(secret(CKA_COEFFICIENT)?),
    ]);
    Ok(key_info::private(&[Node::Oid(RSA_ENCRYPTION), Node::Null], &private))
}

/// RFC 5915 §3
fn encode_ec(key: &Key) -> Result<Secret> {
    let prepared = ec::prepared(key).map_err(|_| Error::KEY_NOT_WRAPPABLE)?;
    prime_key::encode::<ec::Library>(key, prepared)
}

/// As `Provider::decode_private_key`: the key comes back complete and checked.
pub(crate) fn decode(bytes: &[u8]) -> Result<NewObject> {
    let mut object = parse(bytes).map_err(|Malformed| Error::WRAPPED_KEY_INVALID)?;
    object.attributes.set(CKA_CLASS, Value::Ulong(CKO_PRIVATE_KEY));
    private_key::complete(&mut object).map_err(|_| Error::WRAPPED_KEY_INVALID)?;
    Ok(object)
}

fn parse(bytes: &[u8]) -> std::result::Result<NewObject, Malformed> {
    let mut info = PrivateKeyInfo::parse(bytes)?;
    match info.algorithm {
        RSA_ENCRYPTION => {
            info.parameters.null()?;
            info.parameters.end()?;
            parse_rsa(info.private)
        }
        key_info::EC_PUBLIC_KEY => prime_key::decode(info),
        oid @ (ED25519 | X25519) => {
            info.parameters.end()?;
            let key_type = if oid == ED25519 { CKK_EC_EDWARDS } else { CKK_EC_MONTGOMERY };
            let value = info.private.element(tag::OCTET_STRING)?;
            info.private.end()?;
            Ok(key_info::with_value(key_type, oid, value))
        }
        oid if seeded::is_oid::<MlDsaKey>(oid) => {
            info.parameters.end()?;
            seeded::decode::<MlDsaKey>(oid, info.private)
        }
        oid if seeded::is_oid::<MlKemKey>(oid) => {
            info.parameters.end()?;
            seeded::decode::<MlKemKey>(oid, info.private)
        }
        oid => FieldKind::of_oid(oid).ok_or(Malformed)?.decode(info),
    }
}

fn parse_rsa(mut outer: Reader<'_>) -> std::result::Result<NewObject, Malformed> {
    let mut key = outer.sequence()?;
    outer.end()?;
    // Version 1 is for more than two primes.
    if !key.integer()?.is_empty() {
        return Err(Malformed);
    }
    let mut object = NewObject::default();
    object.attributes.set(CKA_KEY_TYPE, Value::Ulong(CKK_RSA));
    for number in [CKA_MODULUS, CKA_PUBLIC_EXPONENT] {
        object.attributes.set(number, Value::Bytes(key.integer()?.to_vec()));
    }
    for number in [
        CKA_PRIVATE_EXPONENT,
        CKA_PRIME_1,
        CKA_PRIME_2,
        CKA_EXPONENT_1,
        CKA_EXPONENT_2,
        CKA_COEFFICIENT,
    ] {
        object.secrets.set(number, Secret::copy_of(key.integer()?));
    }
    key.end()?;
    Ok(object)
}
