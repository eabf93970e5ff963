// SPDX-License-Identifier: Apache-2.0
//! HKDF, PBKDF2, ECDH and X25519: what a new key's value is.

use anyhow::{Context, Result};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Session, Template};

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

/// HKDF and PBKDF2.
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

/// ECDH and X25519.
pub(crate) fn agreement(session: &Session, vector: &Vector<'_>) -> Result<Verdict> {
    let curve = Curve::named(vector.word("curve")).context("an unknown curve")?;
    let (public, mut private) = if vector.word("encoding") == "webcrypto" {
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
