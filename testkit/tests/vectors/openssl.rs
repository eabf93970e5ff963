// SPDX-License-Identifier: Apache-2.0
//! Ciphers by OpenSSL's vectors, in `testdata/openssl/ciphers.json`; each names its mechanism.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use metaslot_ck::mechanism::{MechanismRow, Shape};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Session};
use metaslot_testkit::user_session;
use serde_json::Value;

use crate::cipher::{both_ways, key};
use crate::file::hex;

/// Every vector, in one part and in several, both ways.
pub(crate) fn run() -> Result<()> {
    let (_module, session) = user_session()?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/openssl/ciphers.json");
    let file: Value = serde_json::from_slice(&std::fs::read(path).context("read the vectors")?)?;
    let tests = file["tests"].as_array().context("no vectors")?;
    for (at, vector) in tests.iter().enumerate() {
        one(&session, vector).with_context(|| format!("vector {at}: {}", vector["mechanism"]))?;
    }
    println!("    {:<48} {:>5} passed", "ciphers", tests.len());
    Ok(())
}

fn one(session: &Session, vector: &Value) -> Result<()> {
    let name = vector["mechanism"].as_str().context("no mechanism")?;
    let row =
        mechanism_by_name(name).and_then(MechanismRow::find).context("an unknown mechanism")?;
    let iv = hex(&vector["iv"])?;
    let mechanism = match row.shape {
        Shape::None => Mechanism::new(row.number),
        Shape::Ctr => {
            let block = iv.as_slice().try_into().context("a counter block of another length")?;
            Mechanism::with(row.number, Params::Ctr { bits: 64, block })
        }
        _ => Mechanism::with(row.number, Params::Bytes(&iv)),
    };
    let value = hex(&vector["key"])?;
    let two_keys = row.keys.contains(&CKK_DES2) && value.len() == 16;
    let key = key(session, if two_keys { CKK_DES2 } else { row.keys[0] }, &value)?;
    let (plain, sealed) = (hex(&vector["msg"])?, hex(&vector["ct"])?);
    let verdict = both_ways(session, &mechanism, key, &plain, &sealed);
    session.destroy(key)?;
    ensure!(verdict.is_accepted(), "{verdict:?}");
    Ok(())
}
