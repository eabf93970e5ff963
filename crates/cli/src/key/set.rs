// SPDX-License-Identifier: Apache-2.0
//! Keys whose type is a parameter set: what that is called, in PKCS#11, in DER and here. One row per set.

use metaslot_ck::*;
use metaslot_client::Template;

/// A parameter set.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Set {
    /// Of its types: this, a colon, and the size.
    pub(super) name: &'static str,
    pub(crate) size: usize,
    pub(crate) key_type: CK_KEY_TYPE,
    /// `CKA_PARAMETER_SET`
    pub(crate) number: CK_ULONG,
    /// Of keys and of signatures, whose algorithm it is.
    pub(crate) arcs: &'static [u32],
    /// Bytes of a public key.
    pub(crate) public: usize,
    /// Bytes of the seed that makes a private key.
    pub(crate) seed: usize,
}

const fn ml_dsa(size: usize, number: CK_ULONG, arcs: &'static [u32], public: usize) -> Set {
    Set { name: "ml-dsa", size, key_type: CKK_ML_DSA, number, arcs, public, seed: 32 }
}

/// RFC 9881 §2, FIPS 204 table 2.
const SETS: &[Set] = &[
    ml_dsa(44, CKP_ML_DSA_44, &[2, 16, 840, 1, 101, 3, 4, 3, 17], 1312),
    ml_dsa(65, CKP_ML_DSA_65, &[2, 16, 840, 1, 101, 3, 4, 3, 18], 1952),
    ml_dsa(87, CKP_ML_DSA_87, &[2, 16, 840, 1, 101, 3, 4, 3, 19], 2592),
];

impl Set {
    /// The one that `found` finds.
    fn find(found: impl Fn(&Self) -> bool) -> Option<&'static Self> {
        SETS.iter().find(|set| found(set))
    }

    /// The set of this size.
    pub(super) fn sized(key_type: CK_KEY_TYPE, size: usize) -> Option<&'static Self> {
        Self::find(|set| set.key_type == key_type && set.size == size)
    }

    /// The set that an object names.
    pub(super) fn numbered(key_type: CK_KEY_TYPE, number: CK_ULONG) -> Option<&'static Self> {
        Self::find(|set| set.key_type == key_type && set.number == number)
    }

    /// The set of an object identifier, which is a whole element.
    pub(crate) fn identified(identifier: &[u8]) -> Option<&'static Self> {
        Self::find(|set| set.identifier() == identifier)
    }

    /// Its object identifier, as a whole element.
    pub(crate) fn identifier(&self) -> Vec<u8> {
        crate::encoding::der::identifier(self.arcs)
    }

    /// What the objects of such keys say of their type.
    pub(crate) fn template(&self) -> Template {
        Template::new().key_type(self.key_type).ulong(CKA_PARAMETER_SET, self.number)
    }

    /// `SubjectPublicKeyInfo` (RFC 9881 §4): there are no parameters.
    pub(crate) fn public_key(&self, key: &[u8]) -> Vec<u8> {
        crate::encoding::der::public_key(&self.identifier(), key)
    }
}
