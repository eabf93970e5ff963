// SPDX-License-Identifier: Apache-2.0
//! The attribute table: type, classes, and who may set it when (PKCS#11 3.2 §4, footnotes of its
//! table 13).

use metaslot_ck::*;

/// How a value looks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Bool,
    Ulong,
    Bytes,
    /// Unsigned, big-endian, without leading zeros.
    BigInteger,
    /// `CK_DATE`, or empty.
    Date,
    Ulongs,
    Template,
    /// Bytes that are secret in a key.
    Secret,
}

/// One attribute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttributeRow {
    pub(crate) number: CK_ATTRIBUTE_TYPE,
    pub(crate) kind: Kind,
    /// Classes that have it (`DATA`, `CERTIFICATE`, …).
    pub(crate) on: u32,
    /// What may be done with it (`CREATE`, `CHANGE`, …).
    pub(crate) may: u32,
}

pub(crate) const DATA: u32 = 1;
pub(crate) const CERTIFICATE: u32 = 2;
pub(crate) const PUBLIC: u32 = 4;
pub(crate) const PRIVATE: u32 = 8;
pub(crate) const SECRET: u32 = 16;
const KEYS: u32 = PUBLIC | PRIVATE | SECRET;
const ANY: u32 = DATA | CERTIFICATE | KEYS;

/// May stand in the template of `C_CreateObject`.
pub(crate) const CREATE: u32 = 1;
/// May stand in the template of generation, unwrapping and derivation.
pub(crate) const MAKE: u32 = 2;
/// May be changed afterwards, where `CKA_MODIFIABLE` allows.
pub(crate) const CHANGE: u32 = 4;
/// May be changed by `C_CopyObject`.
pub(crate) const COPY: u32 = 8;
/// Changes from false to true only.
pub(crate) const ONLY_ON: u32 = 16;
/// Changes from true to false only.
pub(crate) const ONLY_OFF: u32 = 32;
/// True only by the SO.
pub(crate) const SO: u32 = 64;
/// A usage: whether it may be switched on afterwards is a question of policy.
pub(crate) const USAGE: u32 = 128;

const GIVEN: u32 = CREATE | MAKE;
const FREE: u32 = GIVEN | CHANGE | COPY;

const fn row(number: CK_ATTRIBUTE_TYPE, kind: Kind, on: u32, may: u32) -> AttributeRow {
    AttributeRow { number, kind, on, may }
}

/// Our own: the usages that a key was born with, over its pair and its copies (policy).
pub(crate) const CKA_BIRTH_ROLES: CK_ATTRIBUTE_TYPE = CKA_VENDOR_DEFINED | 0x4d53_0001;

#[rustfmt::skip]
const ATTRIBUTES: &[AttributeRow] = &[
    row(CKA_CLASS, Kind::Ulong, ANY, GIVEN),
    row(CKA_TOKEN, Kind::Bool, ANY, GIVEN | COPY),
    row(CKA_PRIVATE, Kind::Bool, ANY, GIVEN | COPY | ONLY_ON),
    row(CKA_LABEL, Kind::Bytes, ANY, FREE),
    row(CKA_UNIQUE_ID, Kind::Bytes, ANY, 0),
    row(CKA_APPLICATION, Kind::Bytes, DATA, FREE),
    row(CKA_VALUE, Kind::Secret, ANY, CREATE | CHANGE),
    row(CKA_OBJECT_ID, Kind::Bytes, DATA, FREE),
    row(CKA_CERTIFICATE_TYPE, Kind::Ulong, CERTIFICATE, CREATE),
    row(CKA_ISSUER, Kind::Bytes, CERTIFICATE, CREATE | CHANGE),
    row(CKA_SERIAL_NUMBER, Kind::Bytes, CERTIFICATE, CREATE | CHANGE),
    row(CKA_AC_ISSUER, Kind::Bytes, CERTIFICATE, CREATE),
    row(CKA_OWNER, Kind::Bytes, CERTIFICATE, CREATE),
    row(CKA_ATTR_TYPES, Kind::Bytes, CERTIFICATE, CREATE),
    row(CKA_TRUSTED, Kind::Bool, CERTIFICATE | KEYS, GIVEN | CHANGE | SO),
    row(CKA_CERTIFICATE_CATEGORY, Kind::Ulong, CERTIFICATE, CREATE),
    row(CKA_JAVA_MIDP_SECURITY_DOMAIN, Kind::Ulong, CERTIFICATE, CREATE),
    row(CKA_URL, Kind::Bytes, CERTIFICATE, CREATE),
    row(CKA_HASH_OF_SUBJECT_PUBLIC_KEY, Kind::Bytes, CERTIFICATE, CREATE),
    row(CKA_HASH_OF_ISSUER_PUBLIC_KEY, Kind::Bytes, CERTIFICATE, CREATE),
    row(CKA_NAME_HASH_ALGORITHM, Kind::Ulong, CERTIFICATE, CREATE),
    row(CKA_CHECK_VALUE, Kind::Bytes, CERTIFICATE | SECRET, CREATE),
    row(CKA_KEY_TYPE, Kind::Ulong, KEYS, GIVEN),
    row(CKA_SUBJECT, Kind::Bytes, CERTIFICATE | PUBLIC | PRIVATE, GIVEN | CHANGE),
    row(CKA_ID, Kind::Bytes, CERTIFICATE | KEYS, FREE),
    row(CKA_SENSITIVE, Kind::Bool, PRIVATE | SECRET, FREE | ONLY_ON),
    row(CKA_ENCRYPT, Kind::Bool, KEYS, FREE | USAGE),
    row(CKA_DECRYPT, Kind::Bool, KEYS, FREE | USAGE),
    row(CKA_WRAP, Kind::Bool, KEYS, FREE | USAGE),
    row(CKA_UNWRAP, Kind::Bool, KEYS, FREE | USAGE),
    row(CKA_SIGN, Kind::Bool, KEYS, FREE | USAGE),
    row(CKA_SIGN_RECOVER, Kind::Bool, KEYS, FREE | USAGE),
    row(CKA_VERIFY, Kind::Bool, KEYS, FREE | USAGE),
    row(CKA_VERIFY_RECOVER, Kind::Bool, KEYS, FREE | USAGE),
    row(CKA_DERIVE, Kind::Bool, KEYS, FREE | USAGE),
    row(CKA_START_DATE, Kind::Date, CERTIFICATE | KEYS, FREE),
    row(CKA_END_DATE, Kind::Date, CERTIFICATE | KEYS, FREE),
    row(CKA_MODULUS, Kind::BigInteger, PUBLIC | PRIVATE, CREATE),
    row(CKA_MODULUS_BITS, Kind::Ulong, PUBLIC, MAKE),
    row(CKA_PUBLIC_EXPONENT, Kind::BigInteger, PUBLIC | PRIVATE, GIVEN),
    row(CKA_PRIVATE_EXPONENT, Kind::Secret, PRIVATE, CREATE),
    row(CKA_PRIME_1, Kind::Secret, PRIVATE, CREATE),
    row(CKA_PRIME_2, Kind::Secret, PRIVATE, CREATE),
    row(CKA_EXPONENT_1, Kind::Secret, PRIVATE, CREATE),
    row(CKA_EXPONENT_2, Kind::Secret, PRIVATE, CREATE),
    row(CKA_COEFFICIENT, Kind::Secret, PRIVATE, CREATE),
    row(CKA_PUBLIC_KEY_INFO, Kind::Bytes, CERTIFICATE | PUBLIC | PRIVATE, CREATE),
    row(CKA_VALUE_LEN, Kind::Ulong, SECRET, GIVEN),
    row(CKA_EXTRACTABLE, Kind::Bool, PRIVATE | SECRET, FREE | ONLY_OFF),
    row(CKA_LOCAL, Kind::Bool, KEYS, 0),
    row(CKA_NEVER_EXTRACTABLE, Kind::Bool, PRIVATE | SECRET, 0),
    row(CKA_ALWAYS_SENSITIVE, Kind::Bool, PRIVATE | SECRET, 0),
    row(CKA_KEY_GEN_MECHANISM, Kind::Ulong, KEYS, 0),
    row(CKA_MODIFIABLE, Kind::Bool, ANY, GIVEN | COPY),
    row(CKA_COPYABLE, Kind::Bool, ANY, GIVEN | CHANGE | COPY | ONLY_OFF),
    row(CKA_DESTROYABLE, Kind::Bool, ANY, FREE),
    row(CKA_EC_PARAMS, Kind::Bytes, PUBLIC | PRIVATE, GIVEN),
    row(CKA_EC_POINT, Kind::Bytes, PUBLIC, CREATE),
    row(CKA_ALWAYS_AUTHENTICATE, Kind::Bool, PRIVATE, GIVEN | COPY),
    row(CKA_WRAP_WITH_TRUSTED, Kind::Bool, PRIVATE | SECRET, FREE | ONLY_ON),
    row(CKA_WRAP_TEMPLATE, Kind::Template, PUBLIC | SECRET, GIVEN | COPY),
    row(CKA_UNWRAP_TEMPLATE, Kind::Template, PRIVATE | SECRET, GIVEN | COPY),
    row(CKA_DERIVE_TEMPLATE, Kind::Template, PRIVATE | SECRET, GIVEN | COPY),
    row(CKA_ALLOWED_MECHANISMS, Kind::Ulongs, KEYS, GIVEN | COPY),
    row(CKA_BIRTH_ROLES, Kind::Ulong, KEYS, 0),
];

const _: () = {
    let mut at = 1;
    while at < ATTRIBUTES.len() {
        assert!(ATTRIBUTES[at - 1].number < ATTRIBUTES[at].number, "rows are not sorted");
        at += 1;
    }
};

impl AttributeRow {
    pub(crate) fn find(number: CK_ATTRIBUTE_TYPE) -> Option<&'static Self> {
        ATTRIBUTES.binary_search_by_key(&number, |row| row.number).ok().map(|at| &ATTRIBUTES[at])
    }
}

/// The bit of a class in [`AttributeRow::on`].
pub(crate) const fn class_bit(class: u64) -> Option<u32> {
    Some(match class {
        CKO_DATA => DATA,
        CKO_CERTIFICATE => CERTIFICATE,
        CKO_PUBLIC_KEY => PUBLIC,
        CKO_PRIVATE_KEY => PRIVATE,
        CKO_SECRET_KEY => SECRET,
        _ => return None,
    })
}

/// What the store's index holds.
pub(crate) const INDEXED: &[CK_ATTRIBUTE_TYPE] = &[
    CKA_CLASS,
    CKA_LABEL,
    CKA_UNIQUE_ID,
    CKA_ISSUER,
    CKA_SERIAL_NUMBER,
    CKA_KEY_TYPE,
    CKA_SUBJECT,
    CKA_ID,
    CKA_MODULUS,
    CKA_EC_POINT,
];

/// The usages, in the order of the bits of [`CKA_BIRTH_ROLES`].
pub(crate) const ROLES: &[CK_ATTRIBUTE_TYPE] = &[
    CKA_ENCRYPT,
    CKA_DECRYPT,
    CKA_WRAP,
    CKA_UNWRAP,
    CKA_SIGN,
    CKA_VERIFY,
    CKA_DERIVE,
    CKA_SIGN_RECOVER,
    CKA_VERIFY_RECOVER,
];
