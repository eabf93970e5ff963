// SPDX-License-Identifier: Apache-2.0
//! Families of keys.

use metaslot_ck::*;
use metaslot_client::Template;

/// What can be done with a key, and how its type is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Family {
    Aes,
    ChaCha20,
    Des2,
    Des3,
    Dh,
    Dsa,
    Ec,
    Edwards,
    Generic,
    Hotp,
    Hss,
    MlDsa,
    MlKem,
    Montgomery,
    /// A cipher of old, or of some country.
    Old,
    Rc4,
    Rsa,
    SlhDsa,
    Xmss,
    Xmssmt,
    Other,
}

/// A family whose private keys are one-time keys.
pub(crate) struct OneTime {
    pub(crate) family: Family,
    pub(crate) key_type: CK_KEY_TYPE,
    pub(crate) signature: CK_MECHANISM_TYPE,
    /// The object identifier of its keys, and of its signatures.
    pub(crate) arcs: &'static [u32],
}

const fn one_time(
    family: Family,
    key_type: CK_KEY_TYPE,
    signature: CK_MECHANISM_TYPE,
    arcs: &'static [u32],
) -> OneTime {
    OneTime { family, key_type, signature, arcs }
}

/// RFC 9802 §2 and §3; HSS also RFC 9708 §4.
pub(crate) const ONE_TIME: [OneTime; 3] = [
    one_time(Family::Hss, CKK_HSS, CKM_HSS, &[1, 2, 840, 113_549, 1, 9, 16, 3, 17]),
    one_time(Family::Xmss, CKK_XMSS, CKM_XMSS, &[1, 3, 6, 1, 5, 5, 7, 6, 34]),
    one_time(Family::Xmssmt, CKK_XMSSMT, CKM_XMSSMT, &[1, 3, 6, 1, 5, 5, 7, 6, 35]),
];

impl OneTime {
    /// `CKA_KEY_TYPE` and the values of a public key: one of XMSS begins with the number of its set, one of HSS says which trees it has.
    pub(crate) fn values(&self, key: &[u8]) -> Option<Template> {
        let values = Template::new().key_type(self.key_type).bytes(CKA_VALUE, key);
        if self.family == Family::Hss {
            return Some(values);
        }
        let number = key.first_chunk()?;
        Some(values.ulong(CKA_PARAMETER_SET, u32::from_be_bytes(*number).into()))
    }
}
