// SPDX-License-Identifier: Apache-2.0
//! Table: kinds of keys, as libcrypto names them.

use metaslot_ck::*;
use metaslot_client::Template;
use metaslot_spi::field_key::FieldKind;
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
    /// A number modulo a prime, with the group in the key; by this mechanism it signs or agrees.
    Field(CK_MECHANISM_TYPE),
}

/// Keys that are numbers: of RFC 8410, FIPS 203, 204 and 205.
#[derive(Debug)]
pub(crate) struct Number {
    /// Content of the object identifier.
    pub(crate) oid: &'static [u8],
    pub(crate) variant: Variant,
    /// In bytes.
    pub(crate) length: usize,
    pub(crate) bits: i64,
    pub(crate) security: i64,
    /// Length of a signature, of a shared secret or of a ciphertext.
    pub(crate) answer: usize,
    pub(crate) does: Does,
}

/// Which of several a key is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Variant {
    /// What `CKA_EC_PARAMS` may say in the place of the object identifier.
    Curve(&'static str),
    /// `CKA_PARAMETER_SET`
    Set(CK_ULONG),
}

/// Mechanisms that a row needs.
pub(crate) type Needed = [CK_MECHANISM_TYPE; 2];

/// What such a key is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Does {
    /// By this mechanism.
    Sign(CK_MECHANISM_TYPE),
    Agree,
    Encapsulate,
}

/// How many there are.
pub(crate) const COUNT: usize = 28;

/// A table with what a generic function makes for each.
macro_rules! for_each_kind {
    ($function:ident) => {
        $crate::kind::for_each!($function 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27)
    };
}
pub(crate) use for_each_kind;

/// The same for these rows of any table.
macro_rules! for_each {
    ($function:ident $($number:literal)+) => { [$($function::<$number>()),+] };
}
pub(crate) use for_each;

/// Key type, mechanism that makes a pair, and what it does.
type Family = (CK_KEY_TYPE, CK_MECHANISM_TYPE, Does);

const ED: Family = (CKK_EC_EDWARDS, CKM_EC_EDWARDS_KEY_PAIR_GEN, Does::Sign(CKM_EDDSA));
const X: Family = (CKK_EC_MONTGOMERY, CKM_EC_MONTGOMERY_KEY_PAIR_GEN, Does::Agree);
const ML_DSA: Family = (CKK_ML_DSA, CKM_ML_DSA_KEY_PAIR_GEN, Does::Sign(CKM_ML_DSA));
const SLH_DSA: Family = (CKK_SLH_DSA, CKM_SLH_DSA_KEY_PAIR_GEN, Does::Sign(CKM_SLH_DSA));
const ML_KEM: Family = (CKK_ML_KEM, CKM_ML_KEM_KEY_PAIR_GEN, Does::Encapsulate);

#[rustfmt::skip]
pub(crate) static KINDS: [KeyKind; COUNT] = [
    KeyKind { name: c"RSA", names: c"RSA:rsaEncryption:1.2.840.113549.1.1.1", key_type: CKK_RSA, generates: CKM_RSA_PKCS_KEY_PAIR_GEN, form: Form::Rsa { pss: false }, signs: None, agrees: None },
    KeyKind { name: c"RSA-PSS", names: c"RSA-PSS:RSASSA-PSS:1.2.840.113549.1.1.10", key_type: CKK_RSA, generates: CKM_RSA_PKCS_KEY_PAIR_GEN, form: Form::Rsa { pss: true }, signs: Some(c"RSA"), agrees: None },
    KeyKind { name: c"EC", names: c"EC:id-ecPublicKey:1.2.840.10045.2.1", key_type: CKK_EC, generates: CKM_EC_KEY_PAIR_GEN, form: Form::Ec, signs: Some(c"ECDSA"), agrees: Some(c"ECDH") },
    curve(c"ED25519", c"ED25519:1.3.101.112", ED, "edwards25519", b"\x2b\x65\x70", 32, (256, 128), 64),
    curve(c"ED448", c"ED448:1.3.101.113", ED, "edwards448", b"\x2b\x65\x71", 57, (456, 224), 114),
    curve(c"X25519", c"X25519:1.3.101.110", X, "curve25519", b"\x2b\x65\x6e", 32, (253, 128), 32),
    curve(c"X448", c"X448:1.3.101.111", X, "curve448", b"\x2b\x65\x6f", 56, (448, 224), 56),
    set(c"ML-DSA-44", c"ML-DSA-44:MLDSA44:2.16.840.1.101.3.4.3.17:id-ml-dsa-44", ML_DSA, CKP_ML_DSA_44, b"\x60\x86\x48\x01\x65\x03\x04\x03\x11", 1312, 128, 2420),
    set(c"ML-DSA-65", c"ML-DSA-65:MLDSA65:2.16.840.1.101.3.4.3.18:id-ml-dsa-65", ML_DSA, CKP_ML_DSA_65, b"\x60\x86\x48\x01\x65\x03\x04\x03\x12", 1952, 192, 3309),
    set(c"ML-DSA-87", c"ML-DSA-87:MLDSA87:2.16.840.1.101.3.4.3.19:id-ml-dsa-87", ML_DSA, CKP_ML_DSA_87, b"\x60\x86\x48\x01\x65\x03\x04\x03\x13", 2592, 256, 4627),
    set(c"SLH-DSA-SHA2-128s", c"SLH-DSA-SHA2-128s:id-slh-dsa-sha2-128s:2.16.840.1.101.3.4.3.20", SLH_DSA, CKP_SLH_DSA_SHA2_128S, b"\x60\x86\x48\x01\x65\x03\x04\x03\x14", 32, 128, 7856),
    set(c"SLH-DSA-SHA2-128f", c"SLH-DSA-SHA2-128f:id-slh-dsa-sha2-128f:2.16.840.1.101.3.4.3.21", SLH_DSA, CKP_SLH_DSA_SHA2_128F, b"\x60\x86\x48\x01\x65\x03\x04\x03\x15", 32, 128, 17088),
    set(c"SLH-DSA-SHA2-192s", c"SLH-DSA-SHA2-192s:id-slh-dsa-sha2-192s:2.16.840.1.101.3.4.3.22", SLH_DSA, CKP_SLH_DSA_SHA2_192S, b"\x60\x86\x48\x01\x65\x03\x04\x03\x16", 48, 192, 16224),
    set(c"SLH-DSA-SHA2-192f", c"SLH-DSA-SHA2-192f:id-slh-dsa-sha2-192f:2.16.840.1.101.3.4.3.23", SLH_DSA, CKP_SLH_DSA_SHA2_192F, b"\x60\x86\x48\x01\x65\x03\x04\x03\x17", 48, 192, 35664),
    set(c"SLH-DSA-SHA2-256s", c"SLH-DSA-SHA2-256s:id-slh-dsa-sha2-256s:2.16.840.1.101.3.4.3.24", SLH_DSA, CKP_SLH_DSA_SHA2_256S, b"\x60\x86\x48\x01\x65\x03\x04\x03\x18", 64, 256, 29792),
    set(c"SLH-DSA-SHA2-256f", c"SLH-DSA-SHA2-256f:id-slh-dsa-sha2-256f:2.16.840.1.101.3.4.3.25", SLH_DSA, CKP_SLH_DSA_SHA2_256F, b"\x60\x86\x48\x01\x65\x03\x04\x03\x19", 64, 256, 49856),
    set(c"SLH-DSA-SHAKE-128s", c"SLH-DSA-SHAKE-128s:id-slh-dsa-shake-128s:2.16.840.1.101.3.4.3.26", SLH_DSA, CKP_SLH_DSA_SHAKE_128S, b"\x60\x86\x48\x01\x65\x03\x04\x03\x1a", 32, 128, 7856),
    set(c"SLH-DSA-SHAKE-128f", c"SLH-DSA-SHAKE-128f:id-slh-dsa-shake-128f:2.16.840.1.101.3.4.3.27", SLH_DSA, CKP_SLH_DSA_SHAKE_128F, b"\x60\x86\x48\x01\x65\x03\x04\x03\x1b", 32, 128, 17088),
    set(c"SLH-DSA-SHAKE-192s", c"SLH-DSA-SHAKE-192s:id-slh-dsa-shake-192s:2.16.840.1.101.3.4.3.28", SLH_DSA, CKP_SLH_DSA_SHAKE_192S, b"\x60\x86\x48\x01\x65\x03\x04\x03\x1c", 48, 192, 16224),
    set(c"SLH-DSA-SHAKE-192f", c"SLH-DSA-SHAKE-192f:id-slh-dsa-shake-192f:2.16.840.1.101.3.4.3.29", SLH_DSA, CKP_SLH_DSA_SHAKE_192F, b"\x60\x86\x48\x01\x65\x03\x04\x03\x1d", 48, 192, 35664),
    set(c"SLH-DSA-SHAKE-256s", c"SLH-DSA-SHAKE-256s:id-slh-dsa-shake-256s:2.16.840.1.101.3.4.3.30", SLH_DSA, CKP_SLH_DSA_SHAKE_256S, b"\x60\x86\x48\x01\x65\x03\x04\x03\x1e", 64, 256, 29792),
    set(c"SLH-DSA-SHAKE-256f", c"SLH-DSA-SHAKE-256f:id-slh-dsa-shake-256f:2.16.840.1.101.3.4.3.31", SLH_DSA, CKP_SLH_DSA_SHAKE_256F, b"\x60\x86\x48\x01\x65\x03\x04\x03\x1f", 64, 256, 49856),
    set(c"ML-KEM-512", c"ML-KEM-512:MLKEM512:id-alg-ml-kem-512:2.16.840.1.101.3.4.4.1", ML_KEM, CKP_ML_KEM_512, b"\x60\x86\x48\x01\x65\x03\x04\x04\x01", 800, 128, 768),
    set(c"ML-KEM-768", c"ML-KEM-768:MLKEM768:id-alg-ml-kem-768:2.16.840.1.101.3.4.4.2", ML_KEM, CKP_ML_KEM_768, b"\x60\x86\x48\x01\x65\x03\x04\x04\x02", 1184, 192, 1088),
    set(c"ML-KEM-1024", c"ML-KEM-1024:MLKEM1024:id-alg-ml-kem-1024:2.16.840.1.101.3.4.4.3", ML_KEM, CKP_ML_KEM_1024, b"\x60\x86\x48\x01\x65\x03\x04\x04\x03", 1568, 256, 1568),
    field(c"DH", c"DH:dhKeyAgreement:1.2.840.113549.1.3.1", CKK_DH, CKM_DH_PKCS_KEY_PAIR_GEN, CKM_DH_PKCS_DERIVE),
    field(c"DHX", c"DHX:X9.42 DH:dhpublicnumber:1.2.840.10046.2.1", CKK_X9_42_DH, CKM_X9_42_DH_KEY_PAIR_GEN, CKM_X9_42_DH_DERIVE),
    field(c"DSA", c"DSA:dsaEncryption:1.2.840.10040.4.1", CKK_DSA, CKM_DSA_KEY_PAIR_GEN, CKM_DSA),
];

#[expect(clippy::too_many_arguments, reason = "the columns of the table")]
const fn curve(
    name: &'static CStr,
    names: &'static CStr,
    family: Family,
    curve: &'static str,
    oid: &'static [u8],
    length: usize,
    (bits, security): (i64, i64),
    answer: usize,
) -> KeyKind {
    let variant = Variant::Curve(curve);
    number(
        name,
        names,
        family,
        Number { oid, variant, length, bits, security, answer, does: family.2 },
    )
}

#[expect(clippy::too_many_arguments, reason = "the columns of the table")]
const fn set(
    name: &'static CStr,
    names: &'static CStr,
    family: Family,
    set: CK_ULONG,
    oid: &'static [u8],
    length: usize,
    security: i64,
    answer: usize,
) -> KeyKind {
    let variant = Variant::Set(set);
    // As libcrypto counts them: of ML-KEM it is the number in its name, of the others the length of the public key.
    let bits = match (family.0, security) {
        (CKK_ML_KEM, 128) => 512,
        (CKK_ML_KEM, 192) => 768,
        (CKK_ML_KEM, _) => 1024,
        _ => 8 * length as i64,
    };
    number(
        name,
        names,
        family,
        Number { oid, variant, length, bits, security, answer, does: family.2 },
    )
}

const fn number(
    name: &'static CStr,
    names: &'static CStr,
    (key_type, generates, _): Family,
    number: Number,
) -> KeyKind {
    let form = Form::Number(number);
    KeyKind { name, names, key_type, generates, form, signs: None, agrees: None }
}

const fn field(
    name: &'static CStr,
    names: &'static CStr,
    key_type: CK_KEY_TYPE,
    generates: CK_MECHANISM_TYPE,
    mechanism: CK_MECHANISM_TYPE,
) -> KeyKind {
    let form = Form::Field(mechanism);
    let agrees = if mechanism == CKM_DSA { None } else { Some(c"DH") };
    KeyKind { name, names, key_type, generates, form, signs: None, agrees }
}

impl KeyKind {
    /// The kind of a key of a token: by its type, its `CKA_EC_PARAMS` or its `CKA_PARAMETER_SET`, and whether it may sign by PSS only.
    pub(crate) fn of(
        key_type: CK_KEY_TYPE,
        params: &[u8],
        set: Option<CK_ULONG>,
        pss: bool,
    ) -> Option<&'static Self> {
        let is = |form: &Form| match form {
            Form::Rsa { pss: only } => *only == pss,
            Form::Ec | Form::Field(_) => true,
            Form::Number(Number { variant: Variant::Set(one), .. }) => set == Some(*one),
            Form::Number(Number { variant: Variant::Curve(curve), oid, .. }) => {
                match EcParams::parse(params) {
                    Ok(EcParams::Oid(said)) => said == *oid,
                    Ok(EcParams::Name(name)) => name == curve.as_bytes(),
                    Err(_) => false,
                }
            }
        };
        KINDS.iter().find(|kind| kind.key_type == key_type && is(&kind.form))
    }

    /// The mechanisms without which there are no such keys here.
    pub(crate) const fn needs(&self) -> Needed {
        let does = match &self.form {
            Form::Rsa { pss: true } => CKM_RSA_PKCS_PSS,
            Form::Rsa { .. } => CKM_RSA_PKCS,
            Form::Ec => CKM_ECDSA,
            Form::Field(mechanism) => *mechanism,
            Form::Number(number) => match number.does {
                Does::Sign(mechanism) => mechanism,
                Does::Agree => CKM_ECDH1_DERIVE,
                Does::Encapsulate => CKM_ML_KEM,
            },
        };
        [does, self.generates]
    }

    /// The one of this name, which there is.
    pub(crate) const fn named(name: &CStr) -> &'static Self {
        let mut place = 0;
        while !is_same(KINDS[place].name.to_bytes(), name.to_bytes()) {
            place += 1;
        }
        &KINDS[place]
    }

    /// Whether it is of Diffie-Hellman.
    pub(crate) const fn agrees_only(&self) -> bool {
        matches!(self.form, Form::Field(mechanism) if mechanism != CKM_DSA)
    }

    /// Its group, of keys that have one.
    pub(crate) fn field(&self) -> Option<&'static FieldKind> {
        FieldKind::of(self.key_type)
    }

    /// What the halves are for.
    pub(crate) fn usages(&self, public: Template, private: Template) -> (Template, Template) {
        match &self.form {
            Form::Rsa { pss: true } => {
                (public.bool(CKA_VERIFY, true), private.bool(CKA_SIGN, true))
            }
            Form::Rsa { .. } => (
                public.bool(CKA_VERIFY, true).bool(CKA_ENCRYPT, true),
                private.bool(CKA_SIGN, true).bool(CKA_DECRYPT, true),
            ),
            Form::Ec => {
                (public.bool(CKA_VERIFY, true), private.bool(CKA_SIGN, true).bool(CKA_DERIVE, true))
            }
            Form::Field(_) if self.agrees_only() => (public, private.bool(CKA_DERIVE, true)),
            Form::Field(_) => (public.bool(CKA_VERIFY, true), private.bool(CKA_SIGN, true)),
            Form::Number(number) => match number.does {
                Does::Sign(_) => (public.bool(CKA_VERIFY, true), private.bool(CKA_SIGN, true)),
                Does::Agree => (public, private.bool(CKA_DERIVE, true)),
                Does::Encapsulate => {
                    (public.bool(CKA_ENCAPSULATE, true), private.bool(CKA_DECAPSULATE, true))
                }
            },
        }
    }

    /// Its number, of keys that are numbers.
    pub(crate) const fn number(&self) -> Option<&Number> {
        match &self.form {
            Form::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Its name.
    pub(crate) fn text(&self) -> &'static str {
        self.name.to_str().unwrap_or_default()
    }
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut place = 0;
    while place < one.len() && place < other.len() && one[place] == other[place] {
        place += 1;
    }
    place == one.len() && place == other.len()
}
