// SPDX-License-Identifier: Apache-2.0
//! `CKA_PUBLIC_KEY_INFO`: the `SubjectPublicKeyInfo` that both halves of a pair carry
//! (PKCS#11 3.2 §4.8 and §4.9).

use crate::der::{self, Node};
use metaslot_ck::*;
use metaslot_engine::{Attributes, Value};

/// For RSA (RFC 3279 §2.3.1).
pub(crate) fn rsa(modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
    let key = Node::Sequence(&[Node::Integer(modulus), Node::Integer(exponent)]);
    let algorithm = Node::Sequence(&[Node::Oid(der::RSA_ENCRYPTION), Node::Null]);
    Node::Sequence(&[algorithm, Node::BitStringOf(&key)]).to_vec()
}

/// For a short Weierstrass curve (RFC 5480 §2).
pub(crate) fn ec(curve: &[u8], point: &[u8]) -> Vec<u8> {
    let algorithm = Node::Sequence(&[Node::Oid(der::EC_PUBLIC_KEY), Node::Oid(curve)]);
    Node::Sequence(&[algorithm, Node::BitString(point)]).to_vec()
}

/// For Ed25519 and X25519 (RFC 8410 §4).
pub(crate) fn curve25519(algorithm: &[u8], public: &[u8]) -> Vec<u8> {
    Node::Sequence(&[Node::Sequence(&[Node::Oid(algorithm)]), Node::BitString(public)]).to_vec()
}

/// Sets the attribute; where the application brought one, it must be the same.
pub(crate) fn set_info(attributes: &mut Attributes, info: Vec<u8>) -> Result<()> {
    if attributes.bytes(CKA_PUBLIC_KEY_INFO).is_some_and(|said| !said.is_empty() && said != info) {
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    attributes.set(CKA_PUBLIC_KEY_INFO, Value::Bytes(info));
    Ok(())
}
