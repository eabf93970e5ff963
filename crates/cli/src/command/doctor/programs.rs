// SPDX-License-Identifier: Apache-2.0
//! Checks of what stands between programs and the module: lists of paths, engines, the policy.

use super::checks::Setup;
use super::finding::Finding;
use crate::command::{bridges, engine};
use crate::encoding::word;
use crate::failure::{Failure, Result};
use crate::host::{Host, Token};
use crate::key::{self, Family, Key};
use crate::uri::Uri;
use metaslot_client::Access;
use std::fs;
use std::path::Path;

/// What ssh-agent loads modules from, unless it is told otherwise: `-P` of ssh-agent(1).
const AGENT: [&str; 2] = ["/usr/lib", "/usr/local/lib"];

/// RSA keys below this, in bits, sign nothing under the usual policies (docs/policy.md).
const SHORT: usize = 2048;

/// Whether ssh-agent takes the module.
pub(super) fn agent(setup: &Setup<'_>) -> Vec<Finding> {
    let Ok(host) = &setup.host else { return Vec::new() };
    // The agent follows links before it looks.
    let Ok(path) = fs::canonicalize(host.module().path()) else { return Vec::new() };
    let Some(pattern) = agent_pattern(&path) else {
        return vec![Finding::ok("the module is where ssh-agent takes modules from")];
    };
    vec![Finding::warning(
        format!(
            "ssh-agent refuses {}: it is neither below /usr/lib nor below /usr/local/lib",
            path.display()
        ),
        format!("install it there, or start the agent so: ssh-agent -P {}", word(pattern)),
    )]
}

/// What `-P` of ssh-agent(1) is to allow, for a module that it does not take otherwise.
pub(crate) fn agent_pattern(module: &Path) -> Option<String> {
    let directory = module.parent().unwrap_or(module).display();
    (!is_allowed(module)).then(|| format!("{directory}/*"))
}

/// `/usr/lib*/*` and `/usr/local/lib*/*`
fn is_allowed(path: &Path) -> bool {
    let text = path.to_string_lossy();
    AGENT.iter().any(|start| text.strip_prefix(start).is_some_and(|rest| rest.contains('/')))
}

/// Whether programs of OpenSSL's can use a module at all.
pub(super) fn openssl(setup: &Setup<'_>) -> Vec<Finding> {
    let module = setup.host.as_ref().ok().map(|host| host.module().path());
    if let Ok(own) = bridges::own(module) {
        let own = own.display();
        return vec![match bridges::loads(module) {
            Ok(()) => Finding::ok(format!("{own}: programs of OpenSSL's can use keys")),
            Err(why) => Finding::warning(
                format!("OpenSSL does not load {own}: {why}"),
                "it needs OpenSSL 3.0 or later; metaslot setup PROGRAM --bridge engine goes without it",
            ),
        }];
    }
    let there = bridges::of_others();
    let hidden = match bridges::engine() {
        Ok(_) => hidden(setup),
        Err(_) => Vec::new(),
    };
    if !hidden.is_empty() {
        return hidden;
    }
    vec![match there.first() {
        Some(first) => {
            Finding::ok(format!("{}: programs of OpenSSL's can use keys", first.display()))
        }
        None => Finding::warning(
            "neither an engine nor a provider for PKCS#11: nginx, Apache and others that use OpenSSL find no key",
            "install metaslot.so (cargo xtask install, or our package), or apt-get install libengine-pkcs11-openssl; then metaslot setup PROGRAM",
        ),
    }]
}

/// Keys beside which the engine finds no other.
fn hidden(setup: &Setup<'_>) -> Vec<Finding> {
    let Ok(host) = &setup.host else { return Vec::new() };
    let failures = setup.made().filter_map(|token| engine::finds_keys(host, token, None).err());
    let finding = |why: Failure| Finding::warning(why.message(), why.advice().unwrap_or_default());
    failures.map(finding).collect()
}

/// Keys that a policy keeps from what they are for. Nobody is logged in: public halves tell.
pub(super) fn keys(setup: &Setup<'_>) -> Vec<Finding> {
    let Ok(host) = &setup.host else { return Vec::new() };
    let tokens = setup.made();
    tokens.flat_map(|token| refused(host, token).unwrap_or_default()).collect()
}

fn refused(host: &Host, token: &Token) -> Result<Vec<Finding>> {
    let rules = host.module().token_policy(token.slot).unwrap_or_default();
    let is_refused = |name: &str| rules.iter().any(|rule| rule.name == name && rule.refused);
    let session = host.module().open_session(token.slot, Access::ReadOnly)?;
    let keys = key::search(&session, &Uri::default())?;
    let weak = keys.iter().filter_map(|key| Some((key, weakness(key)?)));
    let weak = weak.filter(|(_, rule)| is_refused(rule));
    let finding = |(key, rule): (&Key, &str)| {
        Finding::warning(
            format!("{}: the policy lets {} sign nothing", key.uri(&token.uri()), key.kind),
            format!("make a stronger key; or allow = [\"{rule}\"] in the token's section"),
        )
    };
    Ok(weak.map(finding).collect())
}

/// The rule that is about a key as it is.
fn weakness(key: &Key) -> Option<&'static str> {
    match key.kind.family {
        Family::Rsa if (1..SHORT).contains(&key.kind.size) => Some("weak-rsa"),
        _ if key.kind.is_on_weak_curve() => Some("weak-curves"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_takes_what_its_pattern_matches() {
        for (path, allowed) in [
            ("/usr/lib/x86_64-linux-gnu/pkcs11/libmetaslot.so", true),
            ("/usr/lib64/libmetaslot.so", true),
            ("/usr/lib/libmetaslot.so", true),
            ("/usr/local/lib/libmetaslot.so", true),
            ("/usr/libmetaslot.so", false),
            ("/opt/usr/lib/libmetaslot.so", false),
            ("/home/you/.local/lib/libmetaslot.so", false),
        ] {
            assert_eq!(is_allowed(Path::new(path)), allowed, "{path}");
        }
    }
}
