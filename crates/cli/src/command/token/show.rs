// SPDX-License-Identifier: Apache-2.0
//! `metaslot token show`

use super::list;
use super::list::takes_short_pins;
use crate::app::App;
use crate::command::arguments::{NamedArg, UserArg};
use crate::command::policy;
use crate::configured::Configuration;
use crate::encoding::printable;
use crate::failure::Result;
use crate::host::{Host, Token};
use crate::output::Report;
use crate::pin::cost::LONG_ENOUGH;
use metaslot_ck::{self as ck, CK_OBJECT_CLASS};
use metaslot_client::{Access, Session, Template};
use serde_json::json;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Arguments of `token show`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    named: NamedArg,
    #[command(flatten)]
    user: UserArg,
}

/// Classes that are counted, as JSON and people call them.
const CLASSES: &[(CK_OBJECT_CLASS, &str)] = &[
    (ck::CKO_PRIVATE_KEY, "private keys"),
    (ck::CKO_PUBLIC_KEY, "public keys"),
    (ck::CKO_SECRET_KEY, "secret keys"),
    (ck::CKO_OTP_KEY, "one-time password keys"),
    (ck::CKO_CERTIFICATE, "certificates"),
    (ck::CKO_DATA, "data"),
];

/// What belongs to a token on the disk.
struct Store {
    path: PathBuf,
    /// With its log.
    bytes: Option<u64>,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.named.or(args.user.uri())?;
    let login = args.user.login(app, &uri)?;
    let host = app.host(&uri)?;
    let (session, logged_in) = app.log_in_if_possible(&login, Access::ReadOnly)?;
    let token = &login.token;
    let counts = counts(&session)?;
    let store = store(host, token)?;
    let rules = host.module().token_policy(token.slot);
    let policy = rules.as_deref().map(|rules| policy::name(rules, token));
    // What a policy of a name allows beyond another one is not said: the name is.
    let allows = policy == Some("with exceptions");
    let allowed = rules.iter().flatten().filter(|rule| allows && !rule.refused);
    let allowed: Vec<&str> = allowed.map(|rule| rule.name.as_str()).collect();
    let mut json = list::json(token);
    json["policy"] = json!(policy);
    json["allowed"] = json!(allowed);
    json["objects"] =
        counts.iter().map(|(name, count)| (name.replace(' ', "_"), json!(count))).collect();
    json["private_seen"] = logged_in.into();
    json["file"] = json!(store.as_ref().map(|store| store.path.display().to_string()));
    json["bytes"] = json!(store.as_ref().and_then(|store| store.bytes));
    let info = &token.info;
    let mut rows = vec![
        ("label", info.label.clone()),
        ("serial", info.serial.clone()),
        ("slot", token.slot.to_string()),
        ("made by", format!("{} ({})", info.manufacturer, info.model)),
        ("state", list::states(token).join(", ")),
        ("objects", said(&counts)),
    ];
    rows.extend(policy.map(|policy| ("policy", [&[policy], &allowed[..]].concat().join(", "))));
    rows.extend(store.iter().map(|_| ("fast login", fast_login(token))));
    rows.extend(store.iter().map(|store| ("file", store.to_string())));
    rows.push(("URI", token.uri().to_string()));
    let row = |(what, value): &(&str, String)| format!("{what:<11} {}\n", printable(value));
    let text = rows.iter().map(row).collect();
    app.output.print(&Report { text, json, uris: vec![token.uri().to_string()] })?;
    if !logged_in {
        app.output
            .note("hint: not logged in, so what is private is not counted: give --pin-source");
    }
    Ok(())
}

fn fast_login(token: &Token) -> String {
    match &token.fast_login {
        None => String::from("not configured"),
        Some(fast) if fast.possible => {
            let with = match takes_short_pins(token) {
                true => format!(" with a PIN of {LONG_ENOUGH} bytes or more"),
                false => String::new(),
            };
            format!(
                "for {} seconds after a login{with}; its secret is in {}",
                fast.seconds, fast.text
            )
        }
        Some(fast) => format!("configured, and without effect: {}", fast.text),
    }
}

/// How many objects there are of each class, and of those that have no name here.
fn counts(session: &Session) -> Result<Vec<(&'static str, usize)>> {
    let all = session.find(&Template::new().token(true))?.len();
    let mut counts = Vec::new();
    for (class, name) in CLASSES {
        counts.push((*name, session.find(&Template::new().token(true).class(*class))?.len()));
    }
    let named: usize = counts.iter().map(|row| row.1).sum();
    counts.push(("others", all.saturating_sub(named)));
    Ok(counts)
}

fn said(counts: &[(&str, usize)]) -> String {
    let there = counts.iter().filter(|row| row.1 > 0);
    let words: Vec<_> = there.map(|(name, count)| format!("{name}: {count}")).collect();
    if words.is_empty() { String::from("none") } else { words.join(", ") }
}

/// The file of one of our own tokens: the configuration's section that describes its slot.
fn store(host: &Host, token: &Token) -> Result<Option<Store>> {
    if !host.module().is_metaslot() || token.is_others() {
        return Ok(None);
    }
    let described = host.module().slot_info(token.slot)?.description;
    let section = Configuration::read().described(&described);
    Ok(section.map(|section| {
        let mut log = section.path.clone().into_os_string();
        log.push("-wal");
        let length = |path: &Path| fs::metadata(path).map(|file| file.len()).ok();
        let bytes = length(&section.path);
        let bytes = bytes.map(|bytes| bytes + length(Path::new(&log)).unwrap_or(0));
        Store { path: section.path, bytes }
    }))
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        self.bytes.map_or(Ok(()), |bytes| write!(f, ", {} KiB", bytes.div_ceil(1024)))
    }
}
