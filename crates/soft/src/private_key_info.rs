// SPDX-License-Identifier: Apache-2.0
//! Private keys as the DER of a PKCS #8 `PrivateKeyInfo` (RFC 5208, RFC 5958; PKCS#11 3.2 §6.7):
//! what is wrapped and unwrapped. The plaintext lives in protected memory only.

use crate::der::{self, Malformed, Node, Reader, tag};
use crate::{ec, private_key};
use metaslot_ck::*;
use metaslot_engine::{Key, NewObject, Value};
use metaslot_memory::Secret;

/// As `Provider::encode_private_key`.
pub(crate) fn encode(key: &Key) -> Result<Secret> {
    match key.key_type() {
        CKK_RSA => encode_rsa(key),
        CKK_EC => encode_ec(key),
        CKK_EC_EDWARDS => encode_curve25519(key, der::ED25519),
        CKK_EC_MONTGOMERY => encode_curve25519(key, der::X25519),
        _ => Err(Error::KEY_NOT_WRAPPABLE),
    }
}

/// Version 0 with an algorithm and a private key.
fn info(algorithm: &[Node<'_>], key: &Node<'_>) -> Secret {
    Node::Sequence(&[Node::Integer(&[]), Node::Sequence(algorithm), Node::OctetStringOf(key)])
        .to_secret()
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
    Ok(info(&[Node::Oid(der::RSA_ENCRYPTION), Node::Null], &private))
}

/// RFC 5915 §3; the curve stands in the algorithm alone.
fn encode_ec(key: &Key) -> Result<Secret> {
    let prepared = ec::prepared(key).map_err(|_| Error::KEY_NOT_WRAPPABLE)?;
    let mut point = vec![0; prepared.curve().point_length()];
    prepared.write_point(&mut point).map_err(crate::device_error)?;
    let scalar = key.secret(CKA_VALUE).map_err(|_| Error::KEY_NOT_WRAPPABLE)?;
    let point = Node::BitString(&point);
    let private = Node::Sequence(&[
        Node::Integer(&[1]),
        Node::OctetString(scalar),
        Node::Explicit(1, &point),
    ]);
    let algorithm = [Node::Oid(der::EC_PUBLIC_KEY), Node::Oid(ec::oid(prepared.curve()))];
    Ok(info(&algorithm, &private))
}

/// RFC 8410 §7
fn encode_curve25519(key: &Key, algorithm: &[u8]) -> Result<Secret> {
    let private = key.secret(CKA_VALUE).map_err(|_| Error::KEY_NOT_WRAPPABLE)?;
    Ok(info(&[Node::Oid(algorithm)], &Node::OctetString(private)))
}

/// As `Provider::decode_private_key`: the key comes back complete and checked.
pub(crate) fn decode(bytes: &[u8]) -> Result<NewObject> {
    let mut object = parse(bytes).map_err(|Malformed| Error::WRAPPED_KEY_INVALID)?;
    object.attributes.set(CKA_CLASS, Value::Ulong(CKO_PRIVATE_KEY));
    private_key::complete(&mut object).map_err(|_| Error::WRAPPED_KEY_INVALID)?;
    Ok(object)
}

fn parse(bytes: &[u8]) -> std::result::Result<NewObject, Malformed> {
    let mut outer = Reader::new(bytes);
    let mut info = outer.sequence()?;
    outer.end()?;
    let version = info.integer()?;
    let mut algorithm = info.sequence()?;
    let private = info.element(tag::OCTET_STRING)?;
    // Attributes say nothing that a token keeps; the public key of version 1 (RFC 5958 §2) is
    // computed rather than believed.
    if info.peek() == Some(tag::constructed(0)) {
        info.element(tag::constructed(0))?;
    }
    if version == [1] && info.peek() == Some(tag::primitive(1)) {
        info.element(tag::primitive(1))?;
    }
    info.end()?;
    if !matches!(version, [] | [1]) {
        return Err(Malformed);
    }
    match algorithm.element(tag::OID)? {
        der::RSA_ENCRYPTION => {
            algorithm.null()?;
            algorithm.end()?;
            parse_rsa(private)
        }
        der::EC_PUBLIC_KEY => {
            let curve = algorithm.element(tag::OID)?;
            algorithm.end()?;
            parse_ec(curve, private)
        }
        oid @ (der::ED25519 | der::X25519) => {
            algorithm.end()?;
            let key_type = if oid == der::ED25519 { CKK_EC_EDWARDS } else { CKK_EC_MONTGOMERY };
            let value = der::only(private, tag::OCTET_STRING)?;
            Ok(with_value(key_type, oid, value))
        }
        _ => Err(Malformed),
    }
}

fn parse_rsa(bytes: &[u8]) -> std::result::Result<NewObject, Malformed> {
    let mut outer = Reader::new(bytes);
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

fn parse_ec(curve: &[u8], bytes: &[u8]) -> std::result::Result<NewObject, Malformed> {
    let length = ec::by_oid(curve).ok_or(Malformed)?.length();
    let mut outer = Reader::new(bytes);
    let mut key = outer.sequence()?;
    outer.end()?;
    if key.integer()? != [1] {
        return Err(Malformed);
    }
    let scalar = key.element(tag::OCTET_STRING)?;
    if key.peek() == Some(tag::constructed(0)) {
        let said = key.element(tag::constructed(0))?;
        if der::only(said, tag::OID)? != curve {
            return Err(Malformed);
        }
    }
    if key.peek() == Some(tag::constructed(1)) {
        der::only(key.element(tag::constructed(1))?, tag::BIT_STRING)?;
    }
    key.end()?;
    if scalar.len() != length {
        return Err(Malformed);
    }
    Ok(with_value(CKK_EC, curve, scalar))
}

fn with_value(key_type: CK_KEY_TYPE, oid: &[u8], value: &[u8]) -> NewObject {
    let mut object = NewObject::default();
    object.attributes.set(CKA_KEY_TYPE, Value::Ulong(key_type));
    object.attributes.set(CKA_EC_PARAMS, Value::Bytes(Node::Oid(oid).to_vec()));
    object.secrets.set(CKA_VALUE, Secret::copy_of(value));
    object
}
