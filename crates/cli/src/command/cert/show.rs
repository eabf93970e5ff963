// SPDX-License-Identifier: Apache-2.0
//! `metaslot cert show`

use super::found::{SerialArg, described, key_of, open_for};
use crate::app::App;
use crate::certificate;
use crate::command::arguments::{NO_LOGIN, UserArg};
use crate::encoding::hex;
use crate::failure::Result;
use crate::key;
use crate::output::Report;
use crate::uri::Uri;
use crate::x509;
use metaslot_ck::{CKA_PRIVATE, CKM_SHA256};
use metaslot_client::Session;

/// Arguments of `cert show`.
#[derive(clap::Args, Debug)]
#[command(mut_arg("pin_source", |it| it.help(NO_LOGIN)))]
pub(crate) struct Args {
    /// The certificate: a PKCS#11 URI or its label
    #[arg(value_name = "URI|LABEL")]
    certificate: String,
    #[command(flatten)]
    serial: SerialArg,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.user.key(&args.certificate)?;
    let (session, token, logged_in) = open_for(app, &uri, &args.user)?;
    let stored = args.serial.one(&session, &token, &uri)?;
    let read = certificate::read(&stored.der)?;
    let keys = key::search(&session, &Uri::default())?;
    let key = key_of(&session, &keys, &stored.der);
    let name = |der| x509::shown(der).unwrap_or_else(|| String::from("it cannot be read"));
    let fingerprint = fingerprint(&session, &stored.der)?;
    let mut rows = vec![
        ("subject", name(read.subject)),
        ("issuer", name(read.issuer)),
        ("serial", hex(read.serial)),
        ("not before", read.from.iso()),
        ("not after", read.until.iso()),
        ("SHA-256", fingerprint.clone()),
        ("key", key.map_or_else(|| String::from("-"), |key| key.uri(&token).to_string())),
    ];
    rows.extend(stored.is_trusted.then(|| ("trusted", String::from("by the security officer"))));
    let is_private = session.attribute_bool(stored.handle, CKA_PRIVATE).unwrap_or_default();
    rows.extend(is_private.then(|| ("seen", String::from("after a login only"))));
    rows.push(("URI", stored.uri(&token).to_string()));
    let text = rows.iter().map(|(what, value)| format!("{what:<11} {value}\n")).collect();
    let mut json = described(&stored, key, &token, logged_in);
    json["sha256"] = fingerprint.into();
    json["private"] = is_private.into();
    app.output.print(&Report { text, json, uris: vec![stored.uri(&token).to_string()] })
}

/// As other programs show it, without colons.
fn fingerprint(session: &Session, der: &[u8]) -> Result<String> {
    let mut digest = [0; 32];
    session.digest_init(&CKM_SHA256.into())?;
    session.digest_into(der, &mut digest)?;
    Ok(hex(&digest))
}
