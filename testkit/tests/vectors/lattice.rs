// SPDX-License-Identifier: Apache-2.0
//! ML-DSA and ML-KEM.

use anyhow::{Context, Result, bail};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Session, Template};

use crate::derive::{secret, value_is};
use crate::file::{Vector, Verdict};

const SETS: &[(&str, CK_ML_DSA_PARAMETER_SET_TYPE)] =
    &[("ML-DSA-44", CKP_ML_DSA_44), ("ML-DSA-65", CKP_ML_DSA_65), ("ML-DSA-87", CKP_ML_DSA_87)];

/// Verifies; where there is a private key it signs, too, and the public one has the last word: signatures are hedged.
pub(crate) fn ml_dsa(session: &Session, vector: &Vector<'_>) -> Result<Verdict> {
    let set = SETS.iter().find(|row| vector.is_file_of(row.0)).context("an unknown set")?.1;
    if !vector.has("msg") {
        // µ in place of a message: the standard has no mechanism for it.
        return Ok(Verdict::NotApplicable);
    }
    let context = if vector.has("ctx") { vector.bytes("ctx")? } else { Vec::new() };
    let mechanism = match vector.has("ctx") {
        false => Mechanism::new(CKM_ML_DSA),
        true => Mechanism::with(
            CKM_ML_DSA,
            Params::SignContext { hedge: CKH_HEDGE_PREFERRED, context: &context },
        ),
    };
    let key = |class, usage, attribute, bytes: &[u8]| {
        session.create(
            &Template::new()
                .class(class)
                .key_type(CKK_ML_DSA)
                .token(false)
                .bool(usage, true)
                .ulong(CKA_PARAMETER_SET, set)
                .bytes(attribute, bytes),
        )
    };
    let data = vector.bytes("msg")?;
    let mut signature = vector.bytes("sig")?;
    let private = if vector.group_has("privateSeed") {
        Some((CKA_SEED, vector.group_bytes("privateSeed")?))
    } else if vector.group_has("privateKey") {
        Some((CKA_VALUE, vector.group_bytes("privateKey")?))
    } else {
        None
    };
    if let Some((attribute, bytes)) = private {
        let signed = key(CKO_PRIVATE_KEY, CKA_SIGN, attribute, &bytes).and_then(|key| {
            let signed = session.sign(&mechanism, key, &data);
            session.destroy(key).and(signed)
        });
        match signed {
            Ok(signed) => signature = signed,
            Err(error) => return Ok(Verdict::of_check(Err(error))),
        }
    }
    let public = key(CKO_PUBLIC_KEY, CKA_VERIFY, CKA_VALUE, &vector.group_bytes("publicKey")?);
    let verdict = public.and_then(|key| {
        let verified = session.verify(&mechanism, key, &data, &signature);
        session.destroy(key).and(verified)
    });
    Ok(Verdict::of_check(verdict))
}

/// Opens a ciphertext; of vectors without one, seals for the public key and opens that.
pub(crate) fn ml_kem(session: &Session, vector: &Vector<'_>) -> Result<Verdict> {
    let set = match vector.word("parameterSet") {
        "ML-KEM-512" => CKP_ML_KEM_512,
        "ML-KEM-768" => CKP_ML_KEM_768,
        "ML-KEM-1024" => CKP_ML_KEM_1024,
        other => bail!("an unknown set: {other}"),
    };
    let key = |class, usage, attribute, bytes: &[u8]| {
        session.create(
            &Template::new()
                .class(class)
                .key_type(CKK_ML_KEM)
                .token(false)
                .bool(usage, true)
                .ulong(CKA_PARAMETER_SET, set)
                .bytes(attribute, bytes),
        )
    };
    let mechanism = Mechanism::new(CKM_ML_KEM);
    if vector.has("m") {
        // The token's own randomness takes the place of the vector's.
        let public = key(CKO_PUBLIC_KEY, CKA_ENCAPSULATE, CKA_VALUE, &vector.bytes("ek")?);
        let sealed = public.and_then(|key| {
            let sealed = session.encapsulate(&mechanism, key, &secret(32));
            session.destroy(key).and(sealed)
        });
        let kept = sealed.and_then(|(_, key)| session.destroy(key));
        return Ok(Verdict::of_check(kept));
    }
    let form = if vector.has("seed") { ("seed", CKA_SEED) } else { ("dk", CKA_VALUE) };
    let private = key(CKO_PRIVATE_KEY, CKA_DECAPSULATE, form.1, &vector.bytes(form.0)?);
    if vector.has("c") {
        let ciphertext = vector.bytes("c")?;
        let opened = private.and_then(|key| {
            let opened = session.decapsulate(&mechanism, key, &ciphertext, &secret(32));
            session.destroy(key).and(opened)
        });
        return Ok(value_is(session, opened, &vector.bytes("K")?));
    }
    let public = key(CKO_PUBLIC_KEY, CKA_ENCAPSULATE, CKA_VALUE, &vector.bytes("ek")?)?;
    let (ciphertext, sealed) = session.encapsulate(&mechanism, public, &secret(32))?;
    let expected = session.attribute(sealed, CKA_VALUE)?;
    let opened = private.and_then(|key| {
        let opened = session.decapsulate(&mechanism, key, &ciphertext, &secret(32));
        session.destroy(key).and(opened)
    });
    session.destroy(sealed)?;
    session.destroy(public)?;
    Ok(value_is(session, opened, &expected))
}
