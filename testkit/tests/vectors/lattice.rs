// SPDX-License-Identifier: Apache-2.0
//! ML-DSA.

use anyhow::{Context, Result};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Session, Template};

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
