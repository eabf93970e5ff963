// SPDX-License-Identifier: Apache-2.0
//! RSA's object identifier and `CKA_PUBLIC_KEY_INFO`.

use metaslot_spi::der::Node;

/// rsaEncryption (RFC 3279 §2.3.1)
pub(crate) const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

/// The `SubjectPublicKeyInfo` (RFC 3279 §2.3.1).
pub(crate) fn rsa(modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
    let key = Node::Sequence(&[Node::Integer(modulus), Node::Integer(exponent)]);
    let algorithm = Node::Sequence(&[Node::Oid(RSA_ENCRYPTION), Node::Null]);
    Node::Sequence(&[algorithm, Node::BitStringOf(&key)]).to_vec()
}
