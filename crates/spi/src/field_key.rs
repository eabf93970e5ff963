// SPDX-License-Identifier: Apache-2.0
//! Keys that are numbers in a group modulo a prime, with the group in them: those of DSA and Diffie-Hellman (PKCS#11 3.2 §6.2,
//! §6.4), for every provider.

use crate::der::{Malformed, Node, Reader, tag, without_zeros};
use crate::key_info::{self, PrivateKeyInfo, public_bits};
use crate::{Attributes, Key, NewObject, Value};
use metaslot_ck::*;
use metaslot_memory::Secret;

/// One type of such keys.
#[derive(Debug)]
pub struct FieldKind {
    /// `CKK_…`
    pub key_type: CK_KEY_TYPE,
    /// The content of the algorithm's object identifier.
    pub oid: &'static [u8],
    /// What says the group, in the order of the algorithm's parameters.
    pub group: &'static [CK_ATTRIBUTE_TYPE],
}

static KINDS: [FieldKind; 3] = [
    // id-dsa (RFC 3279 §2.3.2)
    FieldKind {
        key_type: CKK_DSA,
        oid: &[0x2a, 0x86, 0x48, 0xce, 0x38, 0x04, 0x01],
        group: &[CKA_PRIME, CKA_SUBPRIME, CKA_BASE],
    },
    // dhKeyAgreement (PKCS #3 §9)
    FieldKind {
        key_type: CKK_DH,
        oid: &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x03, 0x01],
        group: &[CKA_PRIME, CKA_BASE],
    },
    // dhpublicnumber (RFC 3279 §2.3.3)
    FieldKind {
        key_type: CKK_X9_42_DH,
        oid: &[0x2a, 0x86, 0x48, 0xce, 0x3e, 0x02, 0x01],
        group: &[CKA_PRIME, CKA_BASE, CKA_SUBPRIME],
    },
];

impl FieldKind {
    /// Of a key type.
    #[must_use]
    pub fn of(key_type: CK_KEY_TYPE) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.key_type == key_type)
    }

    /// Of the content of an object identifier.
    #[must_use]
    pub fn of_oid(oid: &[u8]) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.oid == oid)
    }

    /// Whether the group says its order.
    #[must_use]
    pub fn has_order(&self) -> bool {
        self.group.contains(&CKA_SUBPRIME)
    }

    /// The attributes of the group.
    ///
    /// # Errors
    /// `CKR_TEMPLATE_INCOMPLETE` where one is missing.
    pub fn group(&self, of: &Attributes) -> Result<Attributes> {
        let each = self.group.iter().map(|attribute| {
            let number = of.bytes(*attribute).ok_or(Error::TEMPLATE_INCOMPLETE)?;
            Ok((*attribute, Value::Bytes(without_zeros(number).to_vec())))
        });
        each.collect()
    }

    fn with_algorithm<T>(&self, group: &Attributes, then: impl FnOnce(&[Node<'_>]) -> T) -> T {
        let mut numbers = [Node::Null; 3];
        for (node, attribute) in numbers.iter_mut().zip(self.group) {
            *node = Node::Integer(group.bytes(*attribute).unwrap_or_default());
        }
        then(&[Node::Oid(self.oid), Node::Sequence(&numbers[..self.group.len()])])
    }

    /// What both halves of a pair show, but the public value.
    #[must_use]
    pub fn shown(&self, group: &Attributes, public: &[u8]) -> Attributes {
        let info = self.with_algorithm(group, |algorithm| {
            let number = Node::Integer(public);
            Node::Sequence(&[Node::Sequence(algorithm), Node::BitStringOf(&number)]).to_vec()
        });
        let mut shown = group.clone();
        shown.set(CKA_PUBLIC_KEY_INFO, Value::Bytes(info));
        shown
    }

    /// The `PrivateKeyInfo` of a key.
    ///
    /// # Errors
    /// `CKR_KEY_NOT_WRAPPABLE`
    pub fn encode(&self, key: &Key) -> Result<Secret> {
        let value = key.secret(CKA_VALUE).map_err(|_| Error::KEY_NOT_WRAPPABLE)?;
        Ok(self.with_algorithm(key.attributes(), |algorithm| {
            key_info::private(algorithm, &Node::Integer(value))
        }))
    }

    /// The key in a `PrivateKeyInfo`, not yet complete.
    ///
    /// # Errors
    /// [`Malformed`] when it is none.
    pub fn decode(
        &self,
        mut info: PrivateKeyInfo<'_>,
    ) -> std::result::Result<NewObject, Malformed> {
        let mut numbers = info.parameters.sequence()?;
        info.parameters.end()?;
        let mut object = NewObject::default();
        object.attributes.set(CKA_KEY_TYPE, Value::Ulong(self.key_type));
        for attribute in self.group {
            object.attributes.set(*attribute, Value::Bytes(numbers.integer()?.to_vec()));
        }
        // What may follow says how the group or the key was made.
        object.secrets.set(CKA_VALUE, Secret::copy_of(info.private.integer()?));
        info.private.end()?;
        Ok(object)
    }
}

/// The public value in a `SubjectPublicKeyInfo`: a number in such groups, the bits of the key elsewhere.
#[must_use]
pub fn public_value(key_type: Option<CK_KEY_TYPE>, info: &[u8]) -> Option<&[u8]> {
    let bits = public_bits(info)?;
    if key_type.and_then(FieldKind::of).is_none() {
        return Some(bits);
    }
    let mut number = Reader::new(bits);
    number.integer().ok().filter(|_| number.peek().is_none())
}

/// A signature of two numbers in DER: fills `out`, each half with leading zeros.
///
/// # Errors
/// [`Malformed`] when it is none of this length.
pub fn signature_from_der(der: &[u8], out: &mut [u8]) -> std::result::Result<(), Malformed> {
    let half = out.len() / 2;
    let mut numbers = Reader::new(crate::der::only(der, tag::SEQUENCE)?);
    for half in out.chunks_exact_mut(half.max(1)) {
        let number = numbers.integer()?;
        let start = half.len().checked_sub(number.len()).ok_or(Malformed)?;
        half[..start].fill(0);
        half[start..].copy_from_slice(number);
    }
    numbers.end()
}
