// SPDX-License-Identifier: Apache-2.0
//! Keys whose type is a parameter set: what that is called, in PKCS#11, in DER and here. One row per set.

use super::family::Family;
use metaslot_ck::*;
use metaslot_client::Template;

/// A parameter set.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Set {
    pub(crate) family: Family,
    /// Of its types, as `--type` has it.
    pub(crate) name: &'static str,
    /// The first number in that name.
    pub(crate) size: usize,
    pub(crate) key_type: CK_KEY_TYPE,
    /// `CKA_PARAMETER_SET`
    number: CK_ULONG,
    /// Of keys and of signatures, whose algorithm it is.
    pub(crate) arcs: &'static [u32],
    /// What its keys sign with, where they do.
    pub(crate) signature: Option<CK_MECHANISM_TYPE>,
    /// Bytes of a public key.
    pub(crate) public: usize,
    pub(crate) private: Form,
}

/// What files have of a private key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    /// A seed of so many bytes, what is made of it, or both.
    Seed(usize),
    /// So many bytes, as they are.
    Bytes(usize),
}

/// RFC 9881 §2, FIPS 204 table 2.
const fn ml_dsa(
    name: &'static str,
    size: usize,
    number: CK_ULONG,
    arcs: &'static [u32],
    public: usize,
) -> Set {
    let (family, key_type, signature) = (Family::MlDsa, CKK_ML_DSA, Some(CKM_ML_DSA));
    Set { family, name, size, key_type, number, arcs, signature, public, private: Form::Seed(32) }
}

/// RFC 9935 §3, FIPS 203 table 3.
const fn ml_kem(
    name: &'static str,
    size: usize,
    number: CK_ULONG,
    arcs: &'static [u32],
    public: usize,
) -> Set {
    let (family, key_type, signature) = (Family::MlKem, CKK_ML_KEM, None);
    Set { family, name, size, key_type, number, arcs, signature, public, private: Form::Seed(64) }
}

/// RFC 9909 §3, FIPS 205 table 2.
const fn slh_dsa(name: &'static str, size: usize, number: CK_ULONG, arcs: &'static [u32]) -> Set {
    let (family, key_type, signature) = (Family::SlhDsa, CKK_SLH_DSA, Some(CKM_SLH_DSA));
    let (public, private) = (size / 4, Form::Bytes(size / 2));
    Set { family, name, size, key_type, number, arcs, signature, public, private }
}

const SETS: &[Set] = &[
    ml_dsa("ml-dsa:44", 44, CKP_ML_DSA_44, &[2, 16, 840, 1, 101, 3, 4, 3, 17], 1312),
    ml_dsa("ml-dsa:65", 65, CKP_ML_DSA_65, &[2, 16, 840, 1, 101, 3, 4, 3, 18], 1952),
    ml_dsa("ml-dsa:87", 87, CKP_ML_DSA_87, &[2, 16, 840, 1, 101, 3, 4, 3, 19], 2592),
    ml_kem("ml-kem:512", 512, CKP_ML_KEM_512, &[2, 16, 840, 1, 101, 3, 4, 4, 1], 800),
    ml_kem("ml-kem:768", 768, CKP_ML_KEM_768, &[2, 16, 840, 1, 101, 3, 4, 4, 2], 1184),
    ml_kem("ml-kem:1024", 1024, CKP_ML_KEM_1024, &[2, 16, 840, 1, 101, 3, 4, 4, 3], 1568),
    slh_dsa("slh-dsa:sha2-128s", 128, CKP_SLH_DSA_SHA2_128S, &[2, 16, 840, 1, 101, 3, 4, 3, 20]),
    slh_dsa("slh-dsa:sha2-128f", 128, CKP_SLH_DSA_SHA2_128F, &[2, 16, 840, 1, 101, 3, 4, 3, 21]),
    slh_dsa("slh-dsa:sha2-192s", 192, CKP_SLH_DSA_SHA2_192S, &[2, 16, 840, 1, 101, 3, 4, 3, 22]),
    slh_dsa("slh-dsa:sha2-192f", 192, CKP_SLH_DSA_SHA2_192F, &[2, 16, 840, 1, 101, 3, 4, 3, 23]),
    slh_dsa("slh-dsa:sha2-256s", 256, CKP_SLH_DSA_SHA2_256S, &[2, 16, 840, 1, 101, 3, 4, 3, 24]),
    slh_dsa("slh-dsa:sha2-256f", 256, CKP_SLH_DSA_SHA2_256F, &[2, 16, 840, 1, 101, 3, 4, 3, 25]),
    slh_dsa("slh-dsa:shake-128s", 128, CKP_SLH_DSA_SHAKE_128S, &[2, 16, 840, 1, 101, 3, 4, 3, 26]),
    slh_dsa("slh-dsa:shake-128f", 128, CKP_SLH_DSA_SHAKE_128F, &[2, 16, 840, 1, 101, 3, 4, 3, 27]),
    slh_dsa("slh-dsa:shake-192s", 192, CKP_SLH_DSA_SHAKE_192S, &[2, 16, 840, 1, 101, 3, 4, 3, 28]),
    slh_dsa("slh-dsa:shake-192f", 192, CKP_SLH_DSA_SHAKE_192F, &[2, 16, 840, 1, 101, 3, 4, 3, 29]),
    slh_dsa("slh-dsa:shake-256s", 256, CKP_SLH_DSA_SHAKE_256S, &[2, 16, 840, 1, 101, 3, 4, 3, 30]),
    slh_dsa("slh-dsa:shake-256f", 256, CKP_SLH_DSA_SHAKE_256F, &[2, 16, 840, 1, 101, 3, 4, 3, 31]),
];

impl Set {
    /// All of them.
    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        SETS.iter()
    }

    /// The set whose keys have a type of this name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        Self::all().find(|set| set.name == name)
    }

    /// The set that an object names.
    pub(super) fn numbered(key_type: CK_KEY_TYPE, number: CK_ULONG) -> Option<&'static Self> {
        Self::all().find(|set| set.key_type == key_type && set.number == number)
    }

    /// The set of an object identifier, which is a whole element.
    pub(crate) fn identified(identifier: &[u8]) -> Option<&'static Self> {
        Self::all().find(|set| set.identifier() == identifier)
    }

    /// Its object identifier, as a whole element.
    pub(crate) fn identifier(&self) -> Vec<u8> {
        crate::encoding::der::identifier(self.arcs)
    }

    /// What the objects of such keys say of their type.
    pub(crate) fn template(&self) -> Template {
        self.parameter().key_type(self.key_type)
    }

    /// What says in a template which set it is.
    pub(super) fn parameter(&self) -> Template {
        Template::new().ulong(CKA_PARAMETER_SET, self.number)
    }

    /// `SubjectPublicKeyInfo` (RFC 9881 §4): there are no parameters.
    pub(crate) fn public_key(&self, key: &[u8]) -> Vec<u8> {
        crate::encoding::der::public_key(&self.identifier(), key)
    }
}
