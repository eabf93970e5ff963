// SPDX-License-Identifier: Apache-2.0
//! Table: kinds of keys, as libcrypto names them.

use metaslot_ck::*;
use metaslot_spi::key_info::EcParams;
use std::ffi::CStr;

/// One kind.
#[derive(Debug)]
pub(crate) struct KeyKind {
    /// Its name, and all of them, which colons part.
    pub(crate) name: &'static CStr,
    pub(crate) names: &'static CStr,
    pub(crate) key_type: CK_KEY_TYPE,
    pub(crate) form: Form,
    /// What makes a pair.
    pub(crate) generates: CK_MECHANISM_TYPE,
    /// What signs and what agrees with such a key, where its name is another one.
    pub(crate) signs: Option<&'static CStr>,
    pub(crate) agrees: Option<&'static CStr>,
}

/// What the public half is.
#[derive(Debug)]
pub(crate) enum Form {
    /// A modulus and an exponent.
    Rsa {
        /// By PSS only.
        pss: bool,
    },
    /// A point of a curve that has a name.
    Ec,
    /// A number of so many bytes.
    Number(Number),
}

/// Keys that are numbers (RFC 8410).
#[derive(Debug)]
pub(crate) struct Number {
    /// Content of the object identifier, and what `CKA_EC_PARAMS` may say in its place.
    pub(crate) oid: &'static [u8],
    pub(crate) curve: &'static str,
    /// In bytes.
    pub(crate) length: usize,
    pub(crate) bits: i64,
    pub(crate) security: i64,
    /// Length of a signature, or of a shared secret.
    pub(crate) answer: usize,
    pub(crate) signs: bool,
}

/// How many there are.
pub(crate) const COUNT: usize = 7;

#[rustfmt::skip]
pub(crate) static KINDS: [KeyKind; COUNT] = [
    KeyKind { name: c"RSA", names: c"RSA:rsaEncryption:1.2.840.113549.1.1.1", key_type: CKK_RSA, generates: CKM_RSA_PKCS_KEY_PAIR_GEN, form: Form::Rsa { pss: false }, signs: None, agrees: None },
    KeyKind { name: c"RSA-PSS", names: c"RSA-PSS:RSASSA-PSS:1.2.840.113549.1.1.10", key_type: CKK_RSA, generates: CKM_RSA_PKCS_KEY_PAIR_GEN, form: Form::Rsa { pss: true }, signs: Some(c"RSA"), agrees: None },
    KeyKind { name: c"EC", names: c"EC:id-ecPublicKey:1.2.840.10045.2.1", key_type: CKK_EC, generates: CKM_EC_KEY_PAIR_GEN, form: Form::Ec, signs: Some(c"ECDSA"), agrees: Some(c"ECDH") },
    number(c"ED25519", c"ED25519:1.3.101.112", CKK_EC_EDWARDS, Number { oid: b"\x2b\x65\x70", curve: "edwards25519", length: 32, bits: 256, security: 128, answer: 64, signs: true }),
    number(c"ED448", c"ED448:1.3.101.113", CKK_EC_EDWARDS, Number { oid: b"\x2b\x65\x71", curve: "edwards448", length: 57, bits: 456, security: 224, answer: 114, signs: true }),
    number(c"X25519", c"X25519:1.3.101.110", CKK_EC_MONTGOMERY, Number { oid: b"\x2b\x65\x6e", curve: "curve25519", length: 32, bits: 253, security: 128, answer: 32, signs: false }),
    number(c"X448", c"X448:1.3.101.111", CKK_EC_MONTGOMERY, Number { oid: b"\x2b\x65\x6f", curve: "curve448", length: 56, bits: 448, security: 224, answer: 56, signs: false }),
];

const fn number(
    name: &'static CStr,
    names: &'static CStr,
    key_type: CK_KEY_TYPE,
    number: Number,
) -> KeyKind {
    let generates = match key_type {
        CKK_EC_EDWARDS => CKM_EC_EDWARDS_KEY_PAIR_GEN,
        _ => CKM_EC_MONTGOMERY_KEY_PAIR_GEN,
    };
    let form = Form::Number(number);
    KeyKind { name, names, key_type, form, generates, signs: None, agrees: None }
}

impl KeyKind {
    /// The kind of a key of a token: by its type, its `CKA_EC_PARAMS`, and whether it may sign by PSS only.
    pub(crate) fn of(key_type: CK_KEY_TYPE, params: &[u8], pss: bool) -> Option<&'static Self> {
        let is = |form: &Form| match form {
            Form::Rsa { pss: only } => *only == pss,
            Form::Ec => true,
            Form::Number(number) => match EcParams::parse(params) {
                Ok(EcParams::Oid(oid)) => oid == number.oid,
                Ok(EcParams::Name(name)) => name == number.curve.as_bytes(),
                Err(_) => false,
            },
        };
        KINDS.iter().find(|kind| kind.key_type == key_type && is(&kind.form))
    }

    /// Its name.
    pub(crate) fn text(&self) -> &'static str {
        self.name.to_str().unwrap_or_default()
    }
}
