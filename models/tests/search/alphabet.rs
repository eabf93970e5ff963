// SPDX-License-Identifier: Apache-2.0
//! Table: what sequences are made of: words of templates, mechanisms with their parameters, data that
//! the attacker knows. Names are those of the files in `testdata/attacks`.

use metaslot_ck::*;
use metaslot_models::Raw;
use metaslot_spi::{Bytes, KdfParam, Params, RawValue, Template};

/// A word of a template.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) name: &'static str,
    rows: &'static [(CK_ATTRIBUTE_TYPE, Said)],
}

#[derive(Debug)]
enum Said {
    Bool(bool),
    Number(u64),
    Bytes(&'static [u8]),
    Template(&'static [(CK_ATTRIBUTE_TYPE, Self)]),
}

const ON: Said = Said::Bool(true);
const OFF: Said = Said::Bool(false);

const fn word(name: &'static str, rows: &'static [(CK_ATTRIBUTE_TYPE, Said)]) -> Word {
    Word { name, rows }
}

/// `CKA_ALLOWED_MECHANISMS` of one element.
const ONLY_HMAC: Said = Said::Number(CKM_SHA256_HMAC);
const ONLY_CBC: Said = Said::Number(CKM_AES_CBC);
const SECRET: (CK_ATTRIBUTE_TYPE, Said) = (CKA_CLASS, Said::Number(CKO_SECRET_KEY));
const PRIVATE: (CK_ATTRIBUTE_TYPE, Said) = (CKA_CLASS, Said::Number(CKO_PRIVATE_KEY));
const P256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];

#[rustfmt::skip]
pub(crate) static WORDS: &[Word] = &[
    // What it is.
    word("aes", &[SECRET, (CKA_KEY_TYPE, Said::Number(CKK_AES))]),
    word("generic", &[SECRET, (CKA_KEY_TYPE, Said::Number(CKK_GENERIC_SECRET))]),
    word("hkdf", &[SECRET, (CKA_KEY_TYPE, Said::Number(CKK_HKDF))]),
    word("rsa", &[PRIVATE, (CKA_KEY_TYPE, Said::Number(CKK_RSA))]),
    word("ec", &[PRIVATE, (CKA_KEY_TYPE, Said::Number(CKK_EC))]),
    word("p256", &[(CKA_EC_PARAMS, Said::Bytes(P256))]),
    word("rsa-2048", &[(CKA_MODULUS_BITS, Said::Number(2048)), (CKA_PUBLIC_EXPONENT, Said::Bytes(&[1, 0, 1]))]),
    word("data", &[(CKA_CLASS, Said::Number(CKO_DATA))]),
    word("length-1", &[(CKA_VALUE_LEN, Said::Number(1))]),
    word("length-16", &[(CKA_VALUE_LEN, Said::Number(16))]),
    word("length-32", &[(CKA_VALUE_LEN, Said::Number(32))]),
    word("known-rsa", &[(CKA_CLASS, Said::Number(CKO_PUBLIC_KEY)), (CKA_KEY_TYPE, Said::Number(CKK_RSA)), (CKA_MODULUS, Said::Bytes(&[0xc5; 256])), (CKA_PUBLIC_EXPONENT, Said::Bytes(&[1, 0, 1]))]),
    word("length-64", &[(CKA_VALUE_LEN, Said::Number(64))]),
    word("length-80", &[(CKA_VALUE_LEN, Said::Number(80))]),
    // A value that the attacker brings.
    word("value-a", &[(CKA_VALUE, Said::Bytes(&[0xa5; 32]))]),
    word("value-b", &[(CKA_VALUE, Said::Bytes(b"a value that the attacker brings"))]),
    word("value-info", &[(CKA_VALUE, Said::Bytes(INFO_1)), (CKA_DERIVE, ON)]),
    // One that the owner brings.
    word("value-1", &[(CKA_VALUE, Said::Bytes(b"the first value of the owner's.."))]),
    word("value-2", &[(CKA_VALUE, Said::Bytes(b"the second value of the owner's."))]),
    word("value-3", &[(CKA_VALUE, Said::Bytes(b"the third value of the owner's.."))]),
    word("value-4", &[(CKA_VALUE, Said::Bytes(b"the fourth value of the owner's."))]),
    // What it may.
    word("+encrypt", &[(CKA_ENCRYPT, ON)]),
    word("-encrypt", &[(CKA_ENCRYPT, OFF)]),
    word("+decrypt", &[(CKA_DECRYPT, ON)]),
    word("-decrypt", &[(CKA_DECRYPT, OFF)]),
    word("+sign", &[(CKA_SIGN, ON)]),
    word("-sign", &[(CKA_SIGN, OFF)]),
    word("+verify", &[(CKA_VERIFY, ON)]),
    word("-verify", &[(CKA_VERIFY, OFF)]),
    word("+wrap", &[(CKA_WRAP, ON)]),
    word("-wrap", &[(CKA_WRAP, OFF)]),
    word("+unwrap", &[(CKA_UNWRAP, ON)]),
    word("-unwrap", &[(CKA_UNWRAP, OFF)]),
    word("+derive", &[(CKA_DERIVE, ON)]),
    word("-derive", &[(CKA_DERIVE, OFF)]),
    // What protects it.
    word("sensitive", &[(CKA_SENSITIVE, ON)]),
    word("open", &[(CKA_SENSITIVE, OFF)]),
    word("extractable", &[(CKA_EXTRACTABLE, ON)]),
    word("kept", &[(CKA_EXTRACTABLE, OFF)]),
    word("trusted", &[(CKA_TRUSTED, ON)]),
    word("with-trusted", &[(CKA_WRAP_WITH_TRUSTED, ON)]),
    word("without-trusted", &[(CKA_WRAP_WITH_TRUSTED, OFF)]),
    word("asks", &[(CKA_ALWAYS_AUTHENTICATE, ON)]),
    word("asks-not", &[(CKA_ALWAYS_AUTHENTICATE, OFF)]),
    word("only-hmac", &[(CKA_ALLOWED_MECHANISMS, ONLY_HMAC)]),
    word("only-cbc", &[(CKA_ALLOWED_MECHANISMS, ONLY_CBC)]),
    word("any-mechanism", &[(CKA_ALLOWED_MECHANISMS, Said::Bytes(&[]))]),
    word("public", &[(CKA_PRIVATE, OFF)]),
    word("private", &[(CKA_PRIVATE, ON)]),
    word("session", &[(CKA_TOKEN, OFF)]),
    word("uncopyable", &[(CKA_COPYABLE, OFF)]),
    // What it imposes on others.
    word("unwraps-open", &[(CKA_UNWRAP_TEMPLATE, Said::Template(&[(CKA_SENSITIVE, OFF), (CKA_EXTRACTABLE, ON)]))]),
    word("unwraps-deriving", &[(CKA_UNWRAP_TEMPLATE, Said::Template(&[(CKA_DERIVE, ON), (CKA_SENSITIVE, ON)]))]),
    word("unwraps-decrypting", &[(CKA_UNWRAP_TEMPLATE, Said::Template(&[(CKA_DECRYPT, ON)]))]),
    word("unwraps-wrapping", &[(CKA_UNWRAP_TEMPLATE, Said::Template(&[(CKA_WRAP, ON), (CKA_SENSITIVE, ON)]))]),
    word("unwraps-trusted", &[(CKA_UNWRAP_TEMPLATE, Said::Template(&[(CKA_TRUSTED, ON)]))]),
    word("derives-wrapping", &[(CKA_DERIVE_TEMPLATE, Said::Template(&[(CKA_WRAP, ON), (CKA_SENSITIVE, ON), (CKA_EXTRACTABLE, OFF)]))]),
    word("derives-deriving", &[(CKA_DERIVE_TEMPLATE, Said::Template(&[(CKA_DERIVE, ON), (CKA_SENSITIVE, ON), (CKA_EXTRACTABLE, OFF)]))]),
    word("derives-imposing", &[(CKA_DERIVE_TEMPLATE, Said::Template(&[(CKA_SENSITIVE, ON), (CKA_DERIVE_TEMPLATE, Said::Template(&[(CKA_DERIVE, ON), (CKA_SENSITIVE, ON)]))]))]),
    word("derives-hidden", &[(CKA_DERIVE_TEMPLATE, Said::Template(&[(CKA_SENSITIVE, ON), (CKA_EXTRACTABLE, OFF)]))]),
    word("derives-unsigning", &[(CKA_DERIVE_TEMPLATE, Said::Template(&[(CKA_SIGN, OFF)]))]),
    word("derives-signing", &[(CKA_DERIVE_TEMPLATE, Said::Template(&[(CKA_SIGN, ON), (CKA_SENSITIVE, ON)]))]),
    word("derives-trusted", &[(CKA_DERIVE_TEMPLATE, Said::Template(&[(CKA_TRUSTED, ON)]))]),
    word("wraps-signers", &[(CKA_WRAP_TEMPLATE, Said::Template(&[(CKA_SIGN, ON)]))]),
];

/// The word of this name.
pub(crate) fn named(name: &str) -> Option<&'static Word> {
    WORDS.iter().find(|word| word.name == name)
}

/// Words that are in the table.
pub(crate) fn words(names: &[&str]) -> Vec<&'static Word> {
    names.iter().map(|name| named(name).unwrap_or_else(|| panic!("no word {name}"))).collect()
}

/// A template of these words; a later one counts where two say something of one attribute.
pub(crate) fn template(words: &[&'static Word]) -> Template {
    let mut rows: Vec<&(CK_ATTRIBUTE_TYPE, Said)> = Vec::new();
    for row in words.iter().flat_map(|word| word.rows) {
        rows.retain(|said| said.0 != row.0);
        rows.push(row);
    }
    rows.into_iter().map(|(attribute, said)| (*attribute, raw(said))).collect()
}

fn raw(said: &Said) -> RawValue {
    match said {
        Said::Bool(flag) => flag.raw(),
        Said::Number(number) => number.raw(),
        Said::Bytes(bytes) => bytes.raw(),
        Said::Template(rows) => RawValue::Template(
            rows.iter().map(|(attribute, said)| (*attribute, raw(said))).collect(),
        ),
    }
}

/// A mechanism with parameters.
#[derive(Debug)]
pub(crate) struct Mechanism {
    pub(crate) name: &'static str,
    pub(crate) number: CK_MECHANISM_TYPE,
    shape: Shape,
    /// What it can do: [`GENERATES`], [`WRAPS`], …
    pub(crate) serves: u32,
}

pub(crate) const GENERATES: u32 = 1;
pub(crate) const PAIRS: u32 = 2;
pub(crate) const WRAPS: u32 = 4;
pub(crate) const ENCRYPTS: u32 = 8;
pub(crate) const SIGNS: u32 = 16;
pub(crate) const DERIVES: u32 = 32;
pub(crate) const DIGESTS: u32 = 64;

#[derive(Debug)]
enum Shape {
    None,
    Iv(&'static [u8]),
    Ctr,
    Gcm(&'static [u8]),
    /// The token makes the nonce, and says it: it stands before what it wraps.
    Told,
    Oaep,
    Hkdf {
        extract: bool,
        expand: bool,
        salted: bool,
    },
    Counter(CK_MECHANISM_TYPE),
    Ecdh(u64),
    Length(u64),
}

const fn mechanism(
    name: &'static str,
    number: CK_MECHANISM_TYPE,
    shape: Shape,
    serves: u32,
) -> Mechanism {
    Mechanism { name, number, shape, serves }
}

const fn hkdf(extract: bool, expand: bool, salted: bool) -> Shape {
    Shape::Hkdf { extract, expand, salted }
}

#[rustfmt::skip]
pub(crate) static MECHANISMS: &[Mechanism] = &[
    mechanism("aes-gen", CKM_AES_KEY_GEN, Shape::None, GENERATES),
    mechanism("generic-gen", CKM_GENERIC_SECRET_KEY_GEN, Shape::None, GENERATES),
    mechanism("hkdf-gen", CKM_HKDF_KEY_GEN, Shape::None, GENERATES),
    mechanism("rsa-gen", CKM_RSA_PKCS_KEY_PAIR_GEN, Shape::None, PAIRS),
    mechanism("ec-gen", CKM_EC_KEY_PAIR_GEN, Shape::None, PAIRS),
    mechanism("kw", CKM_AES_KEY_WRAP, Shape::None, WRAPS),
    mechanism("kwp", CKM_AES_KEY_WRAP_KWP, Shape::None, WRAPS),
    mechanism("kw-as-kwp", CKM_AES_KEY_WRAP, Shape::Iv(&[0xa6, 0x59, 0x59, 0xa6, 0, 0, 0, 32]), WRAPS),
    mechanism("kwp-as-kw", CKM_AES_KEY_WRAP_KWP, Shape::Iv(&[0xa6; 4]), WRAPS),
    mechanism("bound", CKM_AES_GCM, Shape::Gcm(&[]), WRAPS),
    mechanism("gcm", CKM_AES_GCM, Shape::Gcm(&[7; 12]), WRAPS | ENCRYPTS),
    mechanism("gcm-told", CKM_AES_GCM, Shape::Told, WRAPS),
    mechanism("ccm-told", CKM_AES_CCM, Shape::Told, WRAPS),
    mechanism("ctr", CKM_AES_CTR, Shape::Ctr, WRAPS | ENCRYPTS),
    mechanism("cbc", CKM_AES_CBC, Shape::Iv(&[5; 16]), WRAPS | ENCRYPTS),
    mechanism("cbc-pad", CKM_AES_CBC_PAD, Shape::Iv(&[5; 16]), WRAPS | ENCRYPTS),
    mechanism("ecb", CKM_AES_ECB, Shape::None, WRAPS | ENCRYPTS),
    mechanism("oaep", CKM_RSA_PKCS_OAEP, Shape::Oaep, WRAPS | ENCRYPTS),
    mechanism("pkcs1", CKM_RSA_PKCS, Shape::None, WRAPS | ENCRYPTS | SIGNS),
    mechanism("x509", CKM_RSA_X_509, Shape::None, WRAPS | ENCRYPTS | SIGNS),
    mechanism("hmac", CKM_SHA256_HMAC, Shape::None, SIGNS),
    mechanism("hmac-1", CKM_SHA256_HMAC_GENERAL, Shape::Length(1), SIGNS),
    mechanism("hmac-sha3", CKM_SHA3_256_HMAC, Shape::None, SIGNS),
    mechanism("cmac", CKM_AES_CMAC, Shape::None, SIGNS),
    mechanism("gmac", CKM_AES_GMAC, Shape::Gcm(&[9; 12]), SIGNS),
    mechanism("ecdsa", CKM_ECDSA_SHA256, Shape::None, SIGNS),
    mechanism("ecdh", CKM_ECDH1_DERIVE, Shape::Ecdh(CKD_NULL), DERIVES),
    mechanism("ecdh-kdf", CKM_ECDH1_DERIVE, Shape::Ecdh(CKD_SHA256_KDF), DERIVES),
    mechanism("expand", CKM_HKDF_DERIVE, hkdf(false, true, false), DERIVES),
    mechanism("extract", CKM_HKDF_DERIVE, hkdf(true, false, false), DERIVES),
    mechanism("extract-expand", CKM_HKDF_DERIVE, hkdf(true, true, false), DERIVES),
    mechanism("salted", CKM_HKDF_DERIVE, hkdf(true, false, true), DERIVES),
    mechanism("expand-data", CKM_HKDF_DATA, hkdf(false, true, false), DERIVES),
    mechanism("counter-hmac", CKM_SP800_108_COUNTER_KDF, Shape::Counter(CKM_SHA256_HMAC), DERIVES),
    mechanism("counter-cmac", CKM_SP800_108_COUNTER_KDF, Shape::Counter(CKM_AES_CMAC), DERIVES),
    mechanism("sha256", CKM_SHA256, Shape::None, DIGESTS),
    mechanism("sha512", CKM_SHA512, Shape::None, DIGESTS),
    mechanism("sha3", CKM_SHA3_256, Shape::None, DIGESTS),
];

/// Bytes of a nonce that the token makes.
pub(crate) const TOLD: usize = 12;

/// The base point of P-256: the other side's public key, whose private one is 1. Where the owner's key hides what it agrees
/// on, the attacker acts as if he did not know that.
const BASE_POINT: [u8; 65] = [
    0x04, 0x6b, 0x17, 0xd1, 0xf2, 0xe1, 0x2c, 0x42, 0x47, 0xf8, 0xbc, 0xe6, 0xe5, 0x63, 0xa4, 0x40,
    0xf2, 0x77, 0x03, 0x7d, 0x81, 0x2d, 0xeb, 0x33, 0xa0, 0xf4, 0xa1, 0x39, 0x45, 0xd8, 0x98, 0xc2,
    0x96, 0x4f, 0xe3, 0x42, 0xe2, 0xfe, 0x1a, 0x7f, 0x9b, 0x8e, 0xe7, 0xeb, 0x4a, 0x7c, 0x0f, 0x9e,
    0x16, 0x2b, 0xce, 0x33, 0x57, 0x6b, 0x31, 0x5e, 0xce, 0xcb, 0xb6, 0x40, 0x68, 0x37, 0xbf, 0x51,
    0xf5,
];

impl Mechanism {
    /// The mechanism of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        MECHANISMS.iter().find(|mechanism| mechanism.name == name)
    }

    /// Its parameters; `salt` is a key.
    pub(crate) fn params(&self, salt: ObjectHandle) -> Params {
        match self.shape {
            Shape::None => Params::None,
            Shape::Iv(iv) => Params::Iv(Bytes::from_slice(iv)),
            Shape::Ctr => Params::Ctr { bits: 64, block: [3; 16] },
            Shape::Gcm(iv) => {
                Params::Gcm { iv: Bytes::from_slice(iv), aad: Bytes::new(), tag_bits: 128 }
            }
            Shape::Told => self.told([0; TOLD]),
            Shape::Oaep => {
                Params::Oaep { hash: CKM_SHA256, mgf: CKG_MGF1_SHA256, label: Bytes::new() }
            }
            Shape::Hkdf { extract, expand, salted } => Params::Hkdf {
                extract,
                expand,
                prf: CKM_SHA256,
                salt_type: if salted { CKF_HKDF_SALT_KEY } else { CKF_HKDF_SALT_NULL },
                salt: Bytes::new(),
                salt_key: if salted { salt } else { ObjectHandle(0) },
                info: Bytes::from_slice(INFO),
            },
            Shape::Counter(prf) => Params::Sp800108 {
                prf,
                data: vec![
                    KdfParam::Iteration { little_endian: false, bits: 8 },
                    KdfParam::Bytes(Bytes::from_slice(INFO)),
                ],
                iv: Bytes::new(),
                additional: Vec::new(),
            },
            Shape::Ecdh(kdf) => {
                Params::Ecdh1 { kdf, shared: Bytes::new(), public: Bytes::from_slice(&BASE_POINT) }
            }
            Shape::Length(length) => Params::Ulong(length),
        }
    }

    /// Parameters with this nonce.
    pub(crate) fn told(&self, nonce: [u8; TOLD]) -> Params {
        let (iv, aad) = (Bytes::from_slice(&nonce), Bytes::new());
        match self.number {
            CKM_AES_CCM => Params::Ccm { data_length: 0, nonce: iv, aad, mac_length: 16 },
            _ => Params::Gcm { iv, aad, tag_bits: 128 },
        }
    }

    /// Whether the token makes the nonce, and says it.
    pub(crate) const fn is_told(&self) -> bool {
        matches!(self.shape, Shape::Told)
    }

    /// Whether it adds a key stream that depends on key and IV only.
    pub(crate) const fn streams(&self) -> bool {
        matches!(self.number, CKM_AES_CTR | CKM_AES_GCM) && !self.is_told()
    }

    /// Whether it is the first of HKDF's two steps alone.
    pub(crate) const fn extracts(&self) -> bool {
        matches!(self.shape, Shape::Hkdf { extract: true, expand: false, .. })
    }

    /// Whether another key is the salt.
    pub(crate) const fn is_salted(&self) -> bool {
        matches!(self.shape, Shape::Hkdf { salted: true, .. })
    }
}

const INFO: &[u8] = b"attack";
/// What HKDF's first block is a MAC over, without an extract step (RFC 5869 §2.3).
pub(crate) const INFO_1: &[u8] = b"attack\x01";
/// The first block of SP 800-108 in counter mode.
pub(crate) const BLOCK_1: &[u8] = b"\x01attack";

/// A saved state of SHA3-256 that holds a pad of HMAC: a key of 32 bytes that is digested is added to it, then
/// [`FILL`] ends the block.
const fn forged(pad: u8) -> [u8; 217] {
    let mut state = [0; 217];
    let (magic, number) = (b"metadig1", CKM_SHA3_256.to_le_bytes());
    let mut at = 0;
    while at < 8 {
        (state[at], state[8 + at]) = (magic[at], number[at]);
        at += 1;
    }
    at = 16;
    while at < 16 + 136 {
        state[at] = pad;
        at += 1;
    }
    state
}

const FILL: &[u8] = &[0; 136 - 32];

/// Data that the attacker knows.
pub(crate) static CONSTANTS: &[(&str, &[u8])] = &[
    ("zeros", &[0; 32]),
    ("value-a", &[0xa5; 32]),
    ("value-b", b"a value that the attacker brings"),
    ("info-1", INFO_1),
    ("block-1", BLOCK_1),
    ("ipad", &[0x36; 64]),
    ("counter-1", &[0, 0, 0, 1]),
    ("nothing", &[]),
    ("sha3-ipad", &forged(0x36)),
    ("sha3-opad", &forged(0x5c)),
    ("fill", FILL),
];
