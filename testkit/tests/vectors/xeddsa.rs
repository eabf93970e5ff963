// SPDX-License-Identifier: Apache-2.0
//! XEdDSA by the vectors in `testdata/xeddsa`: good signatures, those that are to be refused, and new ones by the same keys.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Session, Template};
use metaslot_testkit::user_session;
use serde_json::Value;

use crate::file::{Verdict, hex};
use crate::signature::{Curve, tagged};

/// Every vector.
pub(crate) fn run() -> Result<()> {
    let (_module, session) = user_session()?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/xeddsa/vectors.json");
    let file: Value = serde_json::from_slice(&std::fs::read(path).context("read the vectors")?)?;
    for kind in ["good", "refused"] {
        let vectors = file[kind].as_array().context("no vectors")?;
        for vector in vectors {
            one(&session, vector, kind == "good").with_context(|| vector.to_string())?;
        }
        println!("    {:<48} {:>5} passed", format!("xeddsa, {kind}"), vectors.len());
    }
    Ok(())
}

fn one(session: &Session, vector: &Value, good: bool) -> Result<()> {
    let hash = vector["hash"].as_str().and_then(mechanism_by_name).context("an unknown hash")?;
    // The structure has nothing but this number.
    let mechanism = Mechanism::with(CKM_XEDDSA, Params::Ulong(hash));
    let curve = Curve::named("curve25519").context("an unknown curve")?;
    let half = |class| {
        let template = Template::new().class(class).key_type(curve.key_type).token(false);
        template.bytes(CKA_EC_PARAMS, curve.params)
    };
    let point = tagged(4, &hex(&vector["public"])?);
    let template = half(CKO_PUBLIC_KEY).bool(CKA_VERIFY, true).bytes(CKA_EC_POINT, point);
    let public = session.create(&template)?;
    let (message, signature) = (hex(&vector["message"])?, hex(&vector["signature"])?);
    let verdict = Verdict::of_check(session.verify(&mechanism, public, &message, &signature));
    ensure!(verdict.is_accepted() == good, "{verdict:?}");
    if good {
        let value = hex(&vector["private"])?;
        let template = half(CKO_PRIVATE_KEY).bool(CKA_SIGN, true).bytes(CKA_VALUE, value);
        let private = session.create(&template)?;
        let signature = session.sign(&mechanism, private, &message)?;
        session.verify(&mechanism, public, &message, &signature)?;
        session.destroy(private)?;
    }
    session.destroy(public)?;
    Ok(())
}
