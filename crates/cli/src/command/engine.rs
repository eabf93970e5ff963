// SPDX-License-Identifier: Apache-2.0
//! What libp11's engine for OpenSSL finds in a token.

use crate::failure::{Failure, Result};
use crate::host::{Host, Token};
use crate::key::{self, Family, Key};
use crate::uri::{Class, Uri};
use metaslot_client::Access;
use std::process::{Command, Stdio};

/// How long the engine may look for a key, in seconds.
const PATIENCE: &str = "20";

/// Whether a key is on an Edwards or Montgomery curve.
pub(crate) fn is_edwards(key: &Key) -> bool {
    matches!(key.kind.family, Family::Edwards | Family::Montgomery)
}

/// Whether an older engine finds no key beside this one: on such a curve, or of a parameter set.
fn hides_others(key: &Key) -> bool {
    is_edwards(key) || key.kind.set().is_some()
}

/// Refuses a token in which an older engine finds no key, beside one that hides them. Newer ones leave such keys alone or take them: it is tried, with the key or another one. No PIN is needed for the public half, and
/// none is asked for where there is no terminal.
pub(crate) fn finds_keys(host: &Host, token: &Token, key: Option<&Key>) -> Result<()> {
    let session = host.module().open_session(token.slot, Access::ReadOnly)?;
    let all = key::search(&session, &Uri::default())?;
    let Some(obstacle) = all.iter().find(|key| hides_others(key)) else { return Ok(()) };
    let Some(key) = key.or_else(|| all.iter().find(|key| !hides_others(key))) else {
        return Ok(());
    };
    let public = Uri { class: Some(Class::Public), ..key.uri(&token.uri()) };
    let found = Command::new("timeout")
        .args([PATIENCE, "setsid", "--wait", "openssl"])
        .args("pkey -engine pkcs11 -pubin -inform engine -noout -in".split(' '))
        .arg(public.to_string())
        .env("OPENSSL_CONF", "/dev/null")
        .env("PKCS11_MODULE_PATH", host.module().path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match found {
        Ok(status) if !status.success() => {
            let (kind, obstacle) = (&obstacle.kind, obstacle.uri(&token.uri()));
            let what = format!(
                "OpenSSL's engine finds no key in a token that has one of type {kind}: {obstacle}"
            );
            Err(Failure::failed(what)
                .hint("keep it in a token of its own: metaslot token init; or take a newer engine, of libp11 0.4.13 or later"))
        }
        // Without the command nothing is known.
        _ => Ok(()),
    }
}
