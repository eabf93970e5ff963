// SPDX-License-Identifier: Apache-2.0
//! Triple DES and RC4: OpenSSL's vectors, in `testdata/openssl`.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Session};
use metaslot_testkit::user_session;
use serde_json::Value;

use crate::cipher::{both_ways, key};
use crate::file::hex;

/// Every vector, in one part and in several, both ways.
pub(crate) fn run() -> Result<()> {
    let (_module, session) = user_session()?;
    for name in ["des3", "rc4"] {
        let path = format!("../testdata/openssl/{name}.json");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let file: Value =
            serde_json::from_slice(&std::fs::read(path).context("read the vectors")?)?;
        let tests = file["tests"].as_array().context("no vectors")?;
        for (at, vector) in tests.iter().enumerate() {
            one(&session, vector).with_context(|| format!("{name}, vector {at}"))?;
        }
        println!("    {name:<48} {:>5} passed", tests.len());
    }
    Ok(())
}

fn one(session: &Session, vector: &Value) -> Result<()> {
    let value = hex(&vector["key"])?;
    let iv = if vector["iv"].is_null() { Vec::new() } else { hex(&vector["iv"])? };
    let mechanism = match vector["mode"].as_str() {
        Some("ecb") => Mechanism::new(CKM_DES3_ECB),
        Some("cbc") => Mechanism::with(CKM_DES3_CBC, Params::Bytes(&iv)),
        Some(_) => Mechanism::with(CKM_DES3_CBC_PAD, Params::Bytes(&iv)),
        None => Mechanism::new(CKM_RC4),
    };
    let key_type = match (vector["mode"].is_null(), value.len()) {
        (true, _) => CKK_RC4,
        (false, 16) => CKK_DES2,
        (false, _) => CKK_DES3,
    };
    let key = key(session, key_type, &value)?;
    let (plain, sealed) = (hex(&vector["msg"])?, hex(&vector["ct"])?);
    let verdict = both_ways(session, &mechanism, key, &plain, &sealed);
    session.destroy(key)?;
    ensure!(verdict.is_accepted(), "{verdict:?}");
    Ok(())
}
