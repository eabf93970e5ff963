// SPDX-License-Identifier: Apache-2.0
//! ML-DSA and ML-KEM.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Session, Template};
use metaslot_testkit::user_session;

use crate::derive::{secret, value_is};
use crate::file::{Expected, File, Vector, Verdict};

const SETS: &[(&str, CK_ML_DSA_PARAMETER_SET_TYPE)] =
    &[("ML-DSA-44", CKP_ML_DSA_44), ("ML-DSA-65", CKP_ML_DSA_65), ("ML-DSA-87", CKP_ML_DSA_87)];

/// Verifies; where there is a private key it signs, too, and the public one has the last word: signatures are hedged.
pub(crate) fn ml_dsa(session: &Session, vector: &Vector<'_>) -> Result<Verdict> {
    let set = SETS.iter().find(|row| vector.is_file_of(row.0)).context("an unknown set")?.1;
    // µ in place of a message.
    let is_mu = !vector.has("msg");
    let context = if vector.has("ctx") { vector.bytes("ctx")? } else { Vec::new() };
    let mechanism = match vector.has("ctx") {
        _ if is_mu => Mechanism::new(CKM_ML_DSA_EXTERNAL_MU),
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
    let data = vector.bytes(if is_mu { "mu" } else { "msg" })?;
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
        let expected = if vector.has("K") { vector.bytes("K")? } else { Vec::new() };
        return Ok(value_is(session, opened, &expected));
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

/// What NIST calls a hash function, the mechanism that digests, and the one that does all of it; 0 where the standard has none.
const HASHES: &[(&str, CK_MECHANISM_TYPE, CK_MECHANISM_TYPE)] = &[
    ("SHA2-224", CKM_SHA224, CKM_HASH_ML_DSA_SHA224),
    ("SHA2-256", CKM_SHA256, CKM_HASH_ML_DSA_SHA256),
    ("SHA2-384", CKM_SHA384, CKM_HASH_ML_DSA_SHA384),
    ("SHA2-512", CKM_SHA512, CKM_HASH_ML_DSA_SHA512),
    ("SHA2-512/224", CKM_SHA512_224, 0),
    ("SHA2-512/256", CKM_SHA512_256, 0),
    ("SHA3-224", CKM_SHA3_224, CKM_HASH_ML_DSA_SHA3_224),
    ("SHA3-256", CKM_SHA3_256, CKM_HASH_ML_DSA_SHA3_256),
    ("SHA3-384", CKM_SHA3_384, CKM_HASH_ML_DSA_SHA3_384),
    ("SHA3-512", CKM_SHA3_512, CKM_HASH_ML_DSA_SHA3_512),
    ("SHAKE-128", 0, CKM_HASH_ML_DSA_SHAKE128),
    ("SHAKE-256", 0, CKM_HASH_ML_DSA_SHAKE256),
];

/// NIST's vectors: each by every mechanism that does it, in one part and, where there are several, in several.
pub(crate) fn nist() -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/nist/ml_dsa.json");
    let (_module, session) = user_session()?;
    let mut count = 0;
    for vector in File::read(&path)?.vectors() {
        count += one_of_nist(&session, &vector)
            .with_context(|| format!("vector {}", vector.number()))?;
    }
    ensure!(count == 77, "{count} ways");
    println!("    {:<48} {count:>5} passed", "ML-DSA and HashML-DSA");
    Ok(())
}

/// How many ways there are.
fn one_of_nist(session: &Session, vector: &Vector<'_>) -> Result<usize> {
    let set = SETS.iter().find(|row| row.0 == vector.word("parameterSet"));
    let is_private = vector.group_has("privateKey");
    let key = Template::new()
        .key_type(CKK_ML_DSA)
        .token(false)
        .ulong(CKA_PARAMETER_SET, set.context("an unknown set")?.1);
    let key = match is_private {
        true => key
            .class(CKO_PRIVATE_KEY)
            .bool(CKA_SIGN, true)
            .bytes(CKA_VALUE, vector.group_bytes("privateKey")?),
        false => key
            .class(CKO_PUBLIC_KEY)
            .bool(CKA_VERIFY, true)
            .bytes(CKA_VALUE, vector.group_bytes("publicKey")?),
    };
    let key = session.create(&key)?;
    let (data, signature) = (vector.bytes("msg")?, vector.bytes("sig")?);
    let context = if vector.has("ctx") { vector.bytes("ctx")? } else { Vec::new() };
    let mut ways = 0;
    for (number, digest) in ways_of(vector.word("preHash"))? {
        let hedge = CKH_DETERMINISTIC_REQUIRED;
        let (params, data) = match digest {
            None => (Params::SignContext { hedge, context: &context }, data.clone()),
            Some(hash) => (
                Params::HashSignContext { hedge, context: &context, hash },
                session.digest(&hash.into(), &data)?,
            ),
        };
        let mechanism = Mechanism::with(number, params);
        let right = match is_private {
            true => {
                signed(
                    session,
                    &mechanism,
                    key,
                    &data,
                    digest.is_none() && number != CKM_ML_DSA_EXTERNAL_MU,
                )? == signature
            }
            false => {
                let verified = session.verify(&mechanism, key, &data, &signature);
                verified.is_ok() == (vector.expected() == Expected::Valid)
            }
        };
        ensure!(right, "mechanism {number:#x}");
        ways += 1;
    }
    session.destroy(key)?;
    Ok(ways)
}

/// Mechanisms, with the one that digests before.
fn ways_of(name: &str) -> Result<Vec<(CK_MECHANISM_TYPE, Option<CK_MECHANISM_TYPE>)>> {
    if name == "pure" {
        return Ok(vec![(CKM_ML_DSA, None)]);
    }
    if name == "mu" {
        return Ok(vec![(CKM_ML_DSA_EXTERNAL_MU, None)]);
    }
    let row = HASHES.iter().find(|row| row.0 == name).context("an unknown hash")?;
    let whole = (row.2 != 0).then_some((row.2, None));
    let digested = (row.1 != 0).then_some((CKM_HASH_ML_DSA, Some(row.1)));
    Ok(whole.into_iter().chain(digested).collect())
}

/// A deterministic signature; in parts it is the same.
fn signed(
    session: &Session,
    mechanism: &Mechanism<'_>,
    key: ObjectHandle,
    data: &[u8],
    in_parts: bool,
) -> Result<Vec<u8>> {
    let whole = session.sign(mechanism, key, data)?;
    if in_parts {
        session.sign_init(mechanism, key)?;
        for part in data.chunks(100) {
            session.sign_update(part)?;
        }
        ensure!(session.sign_final()? == whole, "in parts it is another one");
    }
    Ok(whole)
}
