// SPDX-License-Identifier: Apache-2.0
//! HMAC, CMAC, GMAC.

use anyhow::{Context, Result};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Session, Template};

use crate::file::{Vector, Verdict};

/// Algorithm, its mechanism, the one that truncates, and the length of the whole MAC.
const HMACS: &[(&str, CK_MECHANISM_TYPE, CK_MECHANISM_TYPE, usize)] = &[
    ("HMACSHA1", CKM_SHA_1_HMAC, CKM_SHA_1_HMAC_GENERAL, 20),
    ("HMACSHA224", CKM_SHA224_HMAC, CKM_SHA224_HMAC_GENERAL, 28),
    ("HMACSHA256", CKM_SHA256_HMAC, CKM_SHA256_HMAC_GENERAL, 32),
    ("HMACSHA384", CKM_SHA384_HMAC, CKM_SHA384_HMAC_GENERAL, 48),
    ("HMACSHA512", CKM_SHA512_HMAC, CKM_SHA512_HMAC_GENERAL, 64),
    ("HMACSHA512/224", CKM_SHA512_224_HMAC, CKM_SHA512_224_HMAC_GENERAL, 28),
    ("HMACSHA512/256", CKM_SHA512_256_HMAC, CKM_SHA512_256_HMAC_GENERAL, 32),
    ("HMACSHA3-224", CKM_SHA3_224_HMAC, CKM_SHA3_224_HMAC_GENERAL, 28),
    ("HMACSHA3-256", CKM_SHA3_256_HMAC, CKM_SHA3_256_HMAC_GENERAL, 32),
    ("HMACSHA3-384", CKM_SHA3_384_HMAC, CKM_SHA3_384_HMAC_GENERAL, 48),
    ("HMACSHA3-512", CKM_SHA3_512_HMAC, CKM_SHA3_512_HMAC_GENERAL, 64),
    ("AES-CMAC", CKM_AES_CMAC, CKM_AES_CMAC_GENERAL, 16),
];

/// Verifies; and where that is right, makes the same MAC in one part and in several.
pub(crate) fn mac(session: &Session, vector: &Vector<'_>) -> Result<Verdict> {
    let (data, tag) = (vector.bytes("msg")?, vector.bytes("tag")?);
    let iv = if vector.is_file_of("AES-GMAC") { vector.bytes("iv")? } else { Vec::new() };
    let (mechanism, key_type) = if vector.is_file_of("AES-GMAC") {
        (Mechanism::with(CKM_AES_GMAC, Params::Gcm { iv: &iv, aad: &[], tag_bits: 128 }), CKK_AES)
    } else {
        let (name, whole, general, length) =
            HMACS.iter().find(|row| vector.is_file_of(row.0)).context("an unknown MAC")?;
        let size = vector.size("tagSize");
        let mechanism = if size == *length {
            Mechanism::new(*whole)
        } else {
            Mechanism::with(*general, Params::Ulong(size as CK_ULONG))
        };
        (mechanism, if *name == "AES-CMAC" { CKK_AES } else { CKK_GENERIC_SECRET })
    };
    let created = session.create(
        &Template::new()
            .class(CKO_SECRET_KEY)
            .key_type(key_type)
            .token(false)
            .bool(CKA_SIGN, true)
            .bool(CKA_VERIFY, true)
            .bytes(CKA_VALUE, vector.bytes("key")?),
    );
    let key = match created {
        Ok(key) => key,
        Err(error) => return Ok(Verdict::Refused(error.to_string())),
    };
    let verdict = verify_and_sign(session, &mechanism, key, &data, &tag);
    session.destroy(key)?;
    Ok(verdict)
}

fn verify_and_sign(
    session: &Session,
    mechanism: &Mechanism<'_>,
    key: ObjectHandle,
    data: &[u8],
    tag: &[u8],
) -> Verdict {
    let verified = Verdict::of_check(session.verify(mechanism, key, data, tag));
    if !verified.is_accepted() {
        return verified;
    }
    let one = Verdict::of(session.sign(mechanism, key, data), tag);
    if !one.is_accepted() {
        return one;
    }
    Verdict::of(in_parts(session, mechanism, key, data), tag)
}

fn in_parts(
    session: &Session,
    mechanism: &Mechanism<'_>,
    key: ObjectHandle,
    data: &[u8],
) -> metaslot_client::Result<Vec<u8>> {
    let (first, second) = data.split_at(data.len() / 3);
    session.sign_init(mechanism, key)?;
    session.sign_update(first)?;
    session.sign_update(second)?;
    session.sign_final()
}
