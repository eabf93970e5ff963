// SPDX-License-Identifier: Apache-2.0
//! Curves over GF(2^m): OpenSSL's keys, secrets and signatures, in `testdata/lanes/binary-curves.json`.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Session, Template};
use metaslot_testkit::user_session;
use serde_json::Value;

use crate::derive::secret;
use crate::file::hex;
use crate::signature::{CURVES, Curve};

/// Every vector: import of both halves, the secrets with and without the cofactor, the signature.
pub(crate) fn run() -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/lanes/binary-curves.json");
    let file: Value = serde_json::from_slice(&std::fs::read(path).context("read the vectors")?)?;
    let (_module, session) = user_session()?;
    for curve in CURVES.iter().filter(|curve| curve.name.starts_with("sect")) {
        let name = curve.name;
        let tests = file[name].as_array().context("no vectors")?;
        for (at, pair) in tests.windows(2).enumerate() {
            one(&session, curve, &pair[0], &pair[1])
                .with_context(|| format!("{name}, vector {at}"))?;
        }
        println!("    {name:<48} {:>5} passed", tests.len() - 1);
    }
    Ok(())
}

fn one(session: &Session, curve: &Curve, own: &Value, next: &Value) -> Result<()> {
    let half = |class| {
        Template::new()
            .class(class)
            .key_type(CKK_EC)
            .token(false)
            .bytes(CKA_EC_PARAMS, curve.params)
    };
    let point = hex(&own["public"])?;
    let private = half(CKO_PRIVATE_KEY).bool(CKA_DERIVE, true).bool(CKA_SIGN, true);
    let private = session.create(&private.bytes(CKA_VALUE, hex(&own["private"])?))?;
    let computed = session.attribute(private, CKA_EC_POINT)?;
    ensure!(computed.ends_with(&point), "another public key");
    let public = half(CKO_PUBLIC_KEY).bool(CKA_VERIFY, true);
    let public = session.create(&public.bytes(CKA_EC_POINT, computed))?;
    let peer = hex(&next["public"])?;
    for (mechanism, expected) in
        [(CKM_ECDH1_DERIVE, "secret"), (CKM_ECDH1_COFACTOR_DERIVE, "cofactor_secret")]
    {
        let Some(expected) = own.get(expected).filter(|value| value.is_string()) else { continue };
        let params = Params::Ecdh1 { kdf: CKD_NULL, shared: &[], public: &peer };
        let made = session.derive(
            &Mechanism::with(mechanism, params),
            private,
            &secret(curve.bytes as u64),
        )?;
        ensure!(session.attribute(made, CKA_VALUE)? == hex(expected)?, "another secret");
        session.destroy(made)?;
    }
    let (digest, mechanism) = (hex(&own["digest"])?, Mechanism::new(CKM_ECDSA));
    session.verify(&mechanism, public, &digest, &hex(&own["signature"])?)?;
    let signature = session.sign(&mechanism, private, &digest)?;
    session.verify(&mechanism, public, &digest, &signature)?;
    let other = session.verify(&mechanism, public, b"another digest", &signature);
    ensure!(other.is_err(), "a signature of something else");
    session.destroy(private)?;
    Ok(session.destroy(public)?)
}
