// SPDX-License-Identifier: Apache-2.0
//! How keys are framed, whichever provider they belong to: `SubjectPublicKeyInfo` (PKCS#11 3.2 §4.8
//! and §4.9) and the `PrivateKeyInfo` of PKCS #8 (RFC 5208, RFC 5958; PKCS#11 3.2 §6.7).
//!
//! Curves are known by the content of their object identifiers; what belongs to a curve is the
//! provider's business.

use crate::der::{Malformed, Node, Reader, only, tag};
use crate::{Attributes, NewObject, Value, detail};
use metaslot_ck::*;
use metaslot_memory::Secret;

/// id-ecPublicKey (RFC 5480 §2.1.1)
pub const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];

/// What a DER `CKA_EC_PARAMS` says (PKCS#11 3.2 §6.3.3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EcParams<'a> {
    /// The content of an object identifier.
    Oid(&'a [u8]),
    /// A name.
    Name(&'a [u8]),
}

impl<'a> EcParams<'a> {
    /// Reads an object identifier or a name.
    ///
    /// # Errors
    /// `CKR_CURVE_NOT_SUPPORTED` for explicit parameters, which have been used to smuggle in weak
    /// curves; `CKR_DOMAIN_PARAMS_INVALID` where these are not DER.
    pub fn parse(params: &'a [u8]) -> Result<Self> {
        let kind = params.first().ok_or(Error::DOMAIN_PARAMS_INVALID)?;
        let content = only(params, *kind).map_err(|_| Error::DOMAIN_PARAMS_INVALID)?;
        match *kind {
            tag::OID => Ok(Self::Oid(content)),
            tag::PRINTABLE_STRING => Ok(Self::Name(content)),
            _ => Err(Error::CURVE_NOT_SUPPORTED),
        }
    }
}

/// A point as it is, or inside the DER OCTET STRING that `CKA_EC_POINT` is (PKCS#11 3.2 §6.3.3), on
/// a curve whose coordinates have `length` bytes. A point starts with 2, 3 or 4 and has one of two
/// lengths, which no OCTET STRING of a point has.
#[must_use]
pub fn ec_point(length: usize, bytes: &[u8]) -> &[u8] {
    if bytes.len() == 1 + 2 * length || bytes.len() == 1 + length {
        return bytes;
    }
    only(bytes, tag::OCTET_STRING).unwrap_or(bytes)
}

/// A point that is a number of this length (RFC 7748, RFC 8032), as it is or inside a DER OCTET STRING (PKCS#11 3.2 §6.3.7).
#[must_use]
pub fn number(length: usize, bytes: &[u8]) -> Option<&[u8]> {
    match bytes.len() == length {
        true => Some(bytes),
        false => only(bytes, tag::OCTET_STRING).ok().filter(|point| point.len() == length),
    }
}

/// [`number`] of `N` bytes.
#[must_use]
pub fn number_point<const N: usize>(bytes: &[u8]) -> Option<&[u8; N]> {
    number(N, bytes)?.try_into().ok()
}

/// The bits of the key in a `SubjectPublicKeyInfo`.
#[must_use]
pub fn public_bits(info: &[u8]) -> Option<&[u8]> {
    let mut info = Reader::new(only(info, tag::SEQUENCE).ok()?);
    info.element(tag::SEQUENCE).ok()?;
    info.element(tag::BIT_STRING).ok()?.strip_prefix(&[0])
}

/// What both halves of a pair on a short Weierstrass curve show (RFC 5480 §2).
#[must_use]
pub fn ec_shown(curve: &[u8], point: &[u8]) -> Attributes {
    shown(&[Node::Oid(EC_PUBLIC_KEY), Node::Oid(curve)], curve, point)
}

/// What both halves of a pair on a curve show: the curve, the point, and both in one.
#[must_use]
pub fn shown(algorithm: &[Node<'_>], curve: &[u8], point: &[u8]) -> Attributes {
    let info = Node::Sequence(&[Node::Sequence(algorithm), Node::BitString(point)]).to_vec();
    [
        (CKA_EC_PARAMS, Value::Bytes(Node::Oid(curve).to_vec())),
        (CKA_EC_POINT, Value::Bytes(Node::OctetString(point).to_vec())),
        (CKA_PUBLIC_KEY_INFO, Value::Bytes(info)),
    ]
    .into_iter()
    .collect()
}

/// Sets what a key of the application's shows.
///
/// # Errors
/// As [`set_public`].
pub fn complete_shown(attributes: &mut Attributes, shown: &Attributes) -> Result<()> {
    for (attribute, value) in shown.iter() {
        match (attribute, value) {
            (CKA_PUBLIC_KEY_INFO, Value::Bytes(info)) => set_public(attributes, info.clone())?,
            _ => attributes.set(attribute, value.clone()),
        }
    }
    Ok(())
}

/// Sets `CKA_PUBLIC_KEY_INFO`.
///
/// # Errors
/// When the application brought another one: `CKR_ATTRIBUTE_VALUE_INVALID` for a private key (PKCS#11 3.2 §4.9), otherwise
/// `CKR_TEMPLATE_INCONSISTENT`.
pub fn set_public(attributes: &mut Attributes, info: Vec<u8>) -> Result<()> {
    if attributes.bytes(CKA_PUBLIC_KEY_INFO).is_some_and(|said| !said.is_empty() && said != info) {
        detail::set(format_args!("its CKA_PUBLIC_KEY_INFO is that of another key"));
        return Err(match attributes.ulong(CKA_CLASS) {
            Some(CKO_PRIVATE_KEY) => Error::ATTRIBUTE_VALUE_INVALID,
            _ => Error::TEMPLATE_INCONSISTENT,
        });
    }
    attributes.set(CKA_PUBLIC_KEY_INFO, Value::Bytes(info));
    Ok(())
}

/// A `PrivateKeyInfo`: version 0 with an algorithm and a private key.
#[must_use]
pub fn private(algorithm: &[Node<'_>], key: &Node<'_>) -> Secret {
    Node::Sequence(&[Node::Integer(&[]), Node::Sequence(algorithm), Node::OctetStringOf(key)])
        .to_secret()
}

/// A `PrivateKeyInfo` whose private key is these bytes, in no further form.
#[must_use]
pub fn bare_private(algorithm: &[u8], key: &[u8]) -> Secret {
    let algorithm = [Node::Oid(algorithm)];
    Node::Sequence(&[Node::Integer(&[]), Node::Sequence(&algorithm), Node::OctetString(key)])
        .to_secret()
}

/// A `SubjectPublicKeyInfo` of an algorithm without parameters.
#[must_use]
pub fn bare_public(algorithm: &[u8], key: &[u8]) -> Vec<u8> {
    let algorithm = Node::Sequence(&[Node::Oid(algorithm)]);
    Node::Sequence(&[algorithm, Node::BitString(key)]).to_vec()
}

/// A `PrivateKeyInfo` with an `ECPrivateKey` (RFC 5915 §3); the curve stands in the algorithm alone.
#[must_use]
pub fn ec_private(curve: &[u8], scalar: &[u8], point: &[u8]) -> Secret {
    let point = Node::BitString(point);
    let key = Node::Sequence(&[
        Node::Integer(&[1]),
        Node::OctetString(scalar),
        Node::Explicit(1, &point),
    ]);
    private(&[Node::Oid(EC_PUBLIC_KEY), Node::Oid(curve)], &key)
}

/// What stands in a `PrivateKeyInfo`.
#[derive(Clone, Copy, Debug)]
pub struct PrivateKeyInfo<'a> {
    /// The content of the algorithm's object identifier.
    pub algorithm: &'a [u8],
    /// What follows it.
    pub parameters: Reader<'a>,
    /// The key, in the algorithm's form.
    pub private: Reader<'a>,
}

impl<'a> PrivateKeyInfo<'a> {
    /// Of all of `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] when they are no such thing.
    pub fn parse(bytes: &'a [u8]) -> std::result::Result<Self, Malformed> {
        let mut info = Reader::new(only(bytes, tag::SEQUENCE)?);
        let version = info.integer()?;
        let mut parameters = info.sequence()?;
        let algorithm = parameters.element(tag::OID)?;
        let private = Reader::new(info.element(tag::OCTET_STRING)?);
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
        Ok(Self { algorithm, parameters, private })
    }

    /// The curve and the scalar of an `ECPrivateKey` (RFC 5915 §3).
    ///
    /// # Errors
    /// [`Malformed`] when it is none.
    pub fn ec(self) -> std::result::Result<(&'a [u8], &'a [u8]), Malformed> {
        let Self { mut parameters, private: mut outer, .. } = self;
        let curve = parameters.element(tag::OID)?;
        parameters.end()?;
        let mut key = outer.sequence()?;
        outer.end()?;
        if key.integer()? != [1] {
            return Err(Malformed);
        }
        let scalar = key.element(tag::OCTET_STRING)?;
        if key.peek() == Some(tag::constructed(0))
            && only(key.element(tag::constructed(0))?, tag::OID)? != curve
        {
            return Err(Malformed);
        }
        if key.peek() == Some(tag::constructed(1)) {
            only(key.element(tag::constructed(1))?, tag::BIT_STRING)?;
        }
        key.end()?;
        Ok((curve, scalar))
    }
}

/// A private key with a curve or an algorithm, and one secret value.
#[must_use]
pub fn with_value(key_type: CK_KEY_TYPE, oid: &[u8], value: &[u8]) -> NewObject {
    let mut object = NewObject::default();
    object.attributes.set(CKA_CLASS, Value::Ulong(CKO_PRIVATE_KEY));
    object.attributes.set(CKA_KEY_TYPE, Value::Ulong(key_type));
    object.attributes.set(CKA_EC_PARAMS, Value::Bytes(Node::Oid(oid).to_vec()));
    object.secrets.set(CKA_VALUE, Secret::copy_of(value));
    object
}
