// SPDX-License-Identifier: Apache-2.0
//! HKDF, PBKDF2, ECDH and X25519: what a new key's value is.

use anyhow::{Context, Result};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Session, Template};

use crate::cipher::both_ways;
use crate::file::{Vector, Verdict};
use crate::signature::{Curve, subject_point};

/// Algorithm and the hash that it runs on.
const HKDFS: &[(&str, CK_MECHANISM_TYPE)] = &[
    ("HKDF-SHA-1", CKM_SHA_1),
    ("HKDF-SHA-256", CKM_SHA256),
    ("HKDF-SHA-384", CKM_SHA384),
    ("HKDF-SHA-512", CKM_SHA512),
];

/// Algorithm and its PRF.
const PBKDF2S: &[(&str, CK_ULONG)] = &[
    ("PBKDF2-HMACSHA1", CKP_PKCS5_PBKD2_HMAC_SHA1),
    ("PBKDF2-HMACSHA224", CKP_PKCS5_PBKD2_HMAC_SHA224),
    ("PBKDF2-HMACSHA256", CKP_PKCS5_PBKD2_HMAC_SHA256),
    ("PBKDF2-HMACSHA384", CKP_PKCS5_PBKD2_HMAC_SHA384),
    ("PBKDF2-HMACSHA512", CKP_PKCS5_PBKD2_HMAC_SHA512),
];

/// Of PBES2 with AES-256 the same.
const PBES2S: &[(&str, CK_ULONG)] = &[
    ("PbeWithHmacSha1AndAes_256", CKP_PKCS5_PBKD2_HMAC_SHA1),
    ("PbeWithHmacSha224AndAes_256", CKP_PKCS5_PBKD2_HMAC_SHA224),
    ("PbeWithHmacSha256AndAes_256", CKP_PKCS5_PBKD2_HMAC_SHA256),
    ("PbeWithHmacSha384AndAes_256", CKP_PKCS5_PBKD2_HMAC_SHA384),
    ("PbeWithHmacSha512AndAes_256", CKP_PKCS5_PBKD2_HMAC_SHA512),
];

/// A readable secret of `length` bytes.
pub(crate) fn secret(length: u64) -> Template {
    Template::new()
        .class(CKO_SECRET_KEY)
        .key_type(CKK_GENERIC_SECRET)
        .token(false)
        .bool(CKA_SENSITIVE, false)
        .bool(CKA_EXTRACTABLE, true)
        .ulong(CKA_VALUE_LEN, length)
}

/// Compares the value of a key that a call made.
pub(crate) fn value_is(
    session: &Session,
    made: metaslot_client::Result<ObjectHandle>,
    expected: &[u8],
) -> Verdict {
    match made {
        Err(error) => Verdict::Refused(error.to_string()),
        Ok(key) => {
            let value = session.attribute(key, CKA_VALUE);
            if let Err(error) = session.destroy(key) {
                return Verdict::Refused(error.to_string());
            }
            Verdict::of(value, expected)
        }
    }
}

/// PBES2: a key by PBKDF2, and AES-CBC with padding by that.
fn pbes2(session: &Session, vector: &Vector<'_>, prf: CK_ULONG) -> Result<Verdict> {
    let (salt, password) = (vector.bytes("salt")?, vector.bytes("password")?);
    let iterations = vector.number_of("iterationCount")?;
    let params = Params::Pbkd2 { prf, salt: &salt, iterations, password: &password };
    let template = Template::new()
        .class(CKO_SECRET_KEY)
        .key_type(CKK_AES)
        .token(false)
        .bool(CKA_ENCRYPT, true)
        .bool(CKA_DECRYPT, true)
        .ulong(CKA_VALUE_LEN, 32);
    let key = session.generate_key(&Mechanism::with(CKM_PKCS5_PBKD2, params), &template)?;
    let iv = vector.bytes("iv")?;
    let mechanism = Mechanism::with(CKM_AES_CBC_PAD, Params::Bytes(&iv));
    let verdict = both_ways(session, &mechanism, key, &vector.bytes("msg")?, &vector.bytes("ct")?);
    session.destroy(key)?;
    Ok(verdict)
}

/// HKDF, PBKDF2 and PBES2.
pub(crate) fn kdf(session: &Session, vector: &Vector<'_>) -> Result<Verdict> {
    if let Some((_, prf)) = PBKDF2S.iter().find(|row| vector.is_file_of(row.0)) {
        let (salt, password) = (vector.bytes("salt")?, vector.bytes("password")?);
        let mechanism = Mechanism::with(
            CKM_PKCS5_PBKD2,
            Params::Pbkd2 {
                prf: *prf,
                salt: &salt,
                iterations: vector.number_of("iterationCount")?,
                password: &password,
            },
        );
        let made = session.generate_key(&mechanism, &secret(vector.number_of("dkLen")?));
        return Ok(value_is(session, made, &vector.bytes("dk")?));
    }
    if let Some((_, prf)) = PBES2S.iter().find(|row| vector.is_file_of(row.0)) {
        return pbes2(session, vector, *prf);
    }
    let (_, prf) =
        HKDFS.iter().find(|row| vector.is_file_of(row.0)).context("an unknown derivation")?;
    let base = session.create(
        &Template::new()
            .class(CKO_SECRET_KEY)
            .key_type(CKK_GENERIC_SECRET)
            .token(false)
            .bool(CKA_DERIVE, true)
            .bool(CKA_SENSITIVE, false)
            .bool(CKA_EXTRACTABLE, true)
            .bytes(CKA_VALUE, vector.bytes("ikm")?),
    )?;
    let (salt, info) = (vector.bytes("salt")?, vector.bytes("info")?);
    let mechanism = Mechanism::with(
        CKM_HKDF_DERIVE,
        Params::Hkdf {
            extract: true,
            expand: true,
            prf: *prf,
            salt_type: if salt.is_empty() { CKF_HKDF_SALT_NULL } else { CKF_HKDF_SALT_DATA },
            salt: &salt,
            salt_key: ObjectHandle(0),
            info: &info,
        },
    );
    let made = session.derive(&mechanism, base, &secret(vector.number_of("size")?));
    let verdict = value_is(session, made, &vector.bytes("okm")?);
    session.destroy(base)?;
    Ok(verdict)
}

/// What is in front of both halves of a key for X25519 in DER (RFC 8410).
const PUBLIC_X25519: &[u8] = &[0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x6e, 3, 0x21, 0];
const PRIVATE_X25519: &[u8] =
    &[0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x6e, 4, 0x22, 4, 0x20];

/// The bytes in that frame; of another frame none, for only they come through the C ABI.
fn bare(der: &[u8], frame: &[u8]) -> Option<Vec<u8>> {
    der.strip_prefix(frame).filter(|inner| inner.len() == 32).map(<[u8]>::to_vec)
}

/// ECDH and X25519.
pub(crate) fn agreement(session: &Session, vector: &Vector<'_>) -> Result<Verdict> {
    let curve = Curve::named(vector.word("curve")).context("an unknown curve")?;
    let (public, private) = if vector.word("encoding") == "webcrypto" {
        // Through the C ABI the public point has no curve of its own that could be a wrong one.
        if vector.web_key_word("public", "crv") != vector.word("curve") {
            return Ok(Verdict::NotApplicable);
        }
        let coordinates = [vector.web_key_part("public", "x"), vector.web_key_part("public", "y")];
        let [Ok(x), Ok(y)] = coordinates else { return Ok(Verdict::NotApplicable) };
        ([vec![4], x, y].concat(), vector.web_key_part("private", "d")?)
    } else {
        (vector.bytes("public")?, vector.bytes("private")?)
    };
    let public = if vector.word("encoding") == "asn" {
        // Through the C ABI only the point is given; a strange frame around it never gets there.
        let Some(point) = subject_point(&public, curve) else { return Ok(Verdict::NotApplicable) };
        point
    } else {
        public
    };
    let (public, mut private) = if vector.word("type") == "XdhAsnComp" {
        let inner = (bare(&public, PUBLIC_X25519), bare(&private, PRIVATE_X25519));
        let (Some(public), Some(private)) = inner else { return Ok(Verdict::NotApplicable) };
        (public, private)
    } else {
        (public, private)
    };
    while private.len() > curve.bytes && private[0] == 0 {
        private.remove(0);
    }
    let key = session.create(
        &Template::new()
            .class(CKO_PRIVATE_KEY)
            .key_type(curve.key_type)
            .token(false)
            .bool(CKA_DERIVE, true)
            .bytes(CKA_EC_PARAMS, curve.params)
            .bytes(CKA_VALUE, private),
    )?;
    let params = Params::Ecdh1 { kdf: CKD_NULL, shared: &[], public: &public };
    let template = secret(curve.bytes as u64);
    let made = session.derive(&Mechanism::with(CKM_ECDH1_DERIVE, params), key, &template);
    let verdict = value_is(session, made, &vector.bytes("shared")?);
    session.destroy(key)?;
    Ok(verdict)
}
