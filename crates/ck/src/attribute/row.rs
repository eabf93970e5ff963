// SPDX-License-Identifier: Apache-2.0
//! What a row of the attribute table says.

use crate::*;

/// How a value looks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// `CK_BBOOL`
    Bool,
    /// `CK_ULONG`
    Ulong,
    /// Bytes or a string.
    Bytes,
    /// Unsigned, big-endian, without leading zeros.
    BigInteger,
    /// `CK_DATE`, or empty.
    Date,
    /// An array of `CK_ULONG`.
    Ulongs,
    /// An array of attributes.
    Template,
}

/// What stands where a template says nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// `CK_FALSE`
    False,
    /// `CK_TRUE`
    True,
    /// The number 0, which is how the standard spells "unspecified".
    Zero,
    /// No bytes, no elements.
    Empty,
}

/// One attribute, as some classes have it.
#[derive(Clone, Copy, Debug)]
pub struct AttributeRow {
    /// `CKA_…`
    pub number: CK_ATTRIBUTE_TYPE,
    /// How its value looks.
    pub kind: Kind,
    /// The classes: [`DATA`], [`CERTIFICATE`], …
    pub classes: u32,
    /// What may be done with it: [`CREATE`], [`CHANGE`], …
    pub rights: u32,
    /// Whether its value is secret while the object is sensitive or not extractable (footnote 7).
    pub secret: bool,
    /// Written into a new object whose template does not name it.
    pub at_birth: Option<Standing>,
    /// Answered, and found, where nothing is written.
    pub absent: Option<Standing>,
    /// Its place among the attributes that stores index, the most selective first; 0 for none.
    pub rank: u8,
}

/// `CKO_DATA`
pub const DATA: u32 = 1;
/// `CKO_CERTIFICATE`
pub const CERTIFICATE: u32 = 2;
/// `CKO_PUBLIC_KEY`
pub const PUBLIC: u32 = 4;
/// `CKO_PRIVATE_KEY`
pub const PRIVATE: u32 = 8;
/// `CKO_SECRET_KEY`
pub const SECRET: u32 = 16;
/// `CKO_TRUST`
pub const TRUST: u32 = 32;
/// `CKO_PROFILE` and `CKO_MECHANISM`: what a token says of itself.
pub const FIXED: u32 = 64;
/// `CKO_OTP_KEY`
pub const OTP: u32 = 128;
/// `CKO_DOMAIN_PARAMETERS`
pub const DOMAIN: u32 = 256;
/// The classes of keys.
pub const KEYS: u32 = PUBLIC | PRIVATE | SECRET | OTP;

/// May stand in the template of `C_CreateObject`.
pub const CREATE: u32 = 1;
/// May stand in the template of generation, unwrapping and derivation.
pub const MAKE: u32 = 2;
/// May be changed afterwards, where `CKA_MODIFIABLE` allows.
pub const CHANGE: u32 = 4;
/// May be changed by `C_CopyObject`.
pub const COPY: u32 = 8;
/// Changes from false to true only.
pub const ONLY_ON: u32 = 16;
/// Changes from true to false only.
pub const ONLY_OFF: u32 = 32;
/// Takes elements out only; where there are none, any may be put in. A number does not go up.
pub const ONLY_FEWER: u32 = 256;
/// Taken in a template, and neither kept nor answered.
pub const IGNORED: u32 = 512;
/// A number that is told as 2³²−1 where it is larger (PKCS#11 3.2 §6.65.3).
pub const TOLD_TO_32_BITS: u32 = 1024;
/// The SO alone sets it to true.
pub const SO: u32 = 64;
/// A usage: whether it may be switched on afterwards is a question of policy.
pub const USAGE: u32 = 128;

/// Our own, of rows that older releases wrote: the usages that a key was born with.
pub const CKA_BIRTH_ROLES: CK_ATTRIBUTE_TYPE = CKA_VENDOR_DEFINED | 0x4d53_0001;
/// Our own: what a key is for, decided when it is made.
pub const CKA_PURPOSES: CK_ATTRIBUTE_TYPE = CKA_VENDOR_DEFINED | 0x4d53_0002;
/// Our own, never shown: which row of its token a key in another module's token is.
pub const CKA_FOREIGN_ROW: CK_ATTRIBUTE_TYPE = CKA_VENDOR_DEFINED | 0x4d53_0003;
/// Our own: which module's token an object is in, where that is not ours, as the configuration calls it.
pub const CKA_METASLOT_HOME: CK_ATTRIBUTE_TYPE = CKA_VENDOR_DEFINED | 0x4d53_0004;

/// Our own, never shown: which IVs a secret key was used with, where they are generated.
pub const CKA_IV_SERIES: CK_ATTRIBUTE_TYPE = CKA_VENDOR_DEFINED | 0x4d53_0005;

/// Our own, never shown: after which restore of its token a key's count goes on; absent in one that never was restored.
pub const CKA_COUNTED_SINCE: CK_ATTRIBUTE_TYPE = CKA_VENDOR_DEFINED | 0x4d53_0006;

/// The usages, in the order of the bits of `CKA_BIRTH_ROLES`.
pub const ROLES: &[CK_ATTRIBUTE_TYPE] = &[
    CKA_ENCRYPT,
    CKA_DECRYPT,
    CKA_WRAP,
    CKA_UNWRAP,
    CKA_SIGN,
    CKA_VERIFY,
    CKA_DERIVE,
    CKA_SIGN_RECOVER,
    CKA_VERIFY_RECOVER,
    CKA_ENCAPSULATE,
    CKA_DECAPSULATE,
];
