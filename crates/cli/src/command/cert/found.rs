// SPDX-License-Identifier: Apache-2.0
//! Which certificates a URI means, and what is told of each.

use crate::app::App;
use crate::certificate::{Stored, labelled};
use crate::command::arguments::UserArg;
use crate::encoding::{hex, significant, word};
use crate::failure::{Failure, Result};
use crate::find::{self, Object};
use crate::key::{self, Key};
use crate::uri::{Class, Uri};
use crate::x509::{self, Certificate};
use metaslot_client::{Access, Session};
use serde_json::{Value, json};

/// A session without a login, and the URI of its token.
pub(super) fn open(app: &App, uri: &Uri) -> Result<(Session, Uri)> {
    let token = app.token_with(uri)?;
    let session = app.host(uri)?.module().open_session(token.slot, Access::ReadOnly)?;
    Ok((session, token.uri()))
}

/// As [`open`], logged in where a PIN's place was named: what the security officer has said is sealed, and
/// seen by none but the user.
pub(super) fn open_for(app: &App, uri: &Uri, user: &UserArg) -> Result<(Session, Uri, bool)> {
    if !user.names_pin() {
        let (session, token) = open(app, uri)?;
        return Ok((session, token, false));
    }
    let login = user.login_with(app, uri)?;
    let (session, _) = app.log_in(&login, Access::ReadOnly)?;
    Ok((session, login.token.uri(), true))
}

/// Which certificate, where a URI is that of several: the one before a renewal has the same label and id.
#[derive(clap::Args, Debug)]
pub(super) struct SerialArg {
    /// Its serial number in hexadecimal, where several have one URI
    #[arg(long, value_name = "HEX")]
    serial: Option<String>,
}

impl SerialArg {
    /// The one that a URI describes.
    pub(super) fn one(&self, session: &Session, token: &Uri, uri: &Uri) -> Result<Stored> {
        numbered(session, token, uri, self.serial.as_deref())
    }
}

/// The one that a URI describes, of several the one with a serial number.
pub(super) fn numbered(
    session: &Session,
    token: &Uri,
    uri: &Uri,
    serial: Option<&str>,
) -> Result<Stored> {
    let Some(text) = serial else { return find::one(session, token, uri) };
    let hint = "'metaslot cert list --json' has it";
    let wanted = x509::serial(text).ok_or_else(|| {
        let message = format!("'{text}' is no serial number: 1 to 20 bytes in hexadecimal");
        Failure::usage(message).hint(hint)
    })?;
    let mut found = Stored::search(session, uri)?;
    let matches = !found.is_empty();
    // Of a negative one, which is against RFC 5280, 4.1.2.2, no zero stands before what is shown.
    found.retain(|stored| {
        let read = Certificate::read(&stored.der);
        read.is_some_and(|read| significant(read.serial) == significant(&wanted))
    });
    if found.is_empty() && matches {
        let uri = uri.key_part();
        let message = format!("no certificate that matches {uri} has the serial number {text}");
        return Err(Failure::not_found(message).hint(hint));
    }
    find::only(found, uri, token)
}

/// What is to be said of a certificate that was stored: an older one of its name is in the way of who names it.
pub(super) fn twin(session: &Session, token: &Uri, stored: &Stored) -> Option<String> {
    let mut others = labelled(session, Some(&stored.label)).ok()?;
    others.retain(|other| other.id == stored.id && other.handle != stored.handle);
    let read = Certificate::read(&others.first()?.der)?;
    let (uri, serial, until) = (word(stored.uri(token)), hex(read.serial), read.until.iso());
    Some(format!(
        "another certificate has this URI, until {until}: metaslot cert delete {uri} --serial {serial} takes it away"
    ))
}

impl Object for Stored {
    const NAMES: [&'static str; 2] = ["certificate", "certificates"];
    const HINT: &'static str = "'metaslot cert list' shows the certificates of a token, with --pin-source the private ones, too";

    fn twins(found: &[Self]) -> String {
        let dated = found.iter().filter_map(|stored| {
            let read = Certificate::read(&stored.der)?;
            Some(format!("{} (until {})", hex(read.serial), read.until.iso()))
        });
        let dated = dated.collect::<Vec<_>>().join(", ");
        format!(
            "they have one URI: 'cert show', 'export', 'set' and 'delete' know them by --serial, 'sign' and 'crl' by --issuer-serial: {dated}"
        )
    }

    fn search(session: &Session, uri: &Uri) -> Result<Vec<Self>> {
        if let Some(other) = uri.class.filter(|class| *class != Class::Certificate) {
            let message = format!("a URI with type={} names no certificate", other.name());
            return Err(Failure::usage(message).hint("type=cert does"));
        }
        let mut found = labelled(session, uri.object.as_deref())?;
        found.retain(|stored| uri.id.as_ref().is_none_or(|id| *id == stored.id));
        Ok(found)
    }

    fn uri(&self, token: &Uri) -> Uri {
        self.uri(token)
    }
}

/// The key of a certificate among these: by what stands in it, and not by a name that anyone may give.
pub(super) fn key_of<'a>(session: &Session, keys: &'a [Key], der: &[u8]) -> Option<&'a Key> {
    let wanted = Certificate::read(der)?.public_key;
    keys.iter().find(|key| {
        let public = key.part(Class::Public);
        let same = |handle| key::public_key(session, key, handle).is_ok_and(|it| it == wanted);
        public.is_some_and(same)
    })
}

/// Of a certificate and its key, for programs. Without a login nobody knows who trusts it.
pub(super) fn described(stored: &Stored, key: Option<&Key>, token: &Uri, logged_in: bool) -> Value {
    let mut json = json!({
        "uri": stored.uri(token).to_string(),
        "label": stored.label,
        "id": hex(&stored.id),
        "key": key.map(|key| key.uri(token).to_string()),
        "trusted": logged_in.then_some(stored.is_trusted),
    });
    if let Some(certificate) = Certificate::read(&stored.der) {
        json["subject"] = x509::shown(certificate.subject).into();
        json["issuer"] = x509::shown(certificate.issuer).into();
        json["serial"] = hex(certificate.serial).into();
        json["not_before"] = certificate.from.iso().into();
        json["not_after"] = certificate.until.iso().into();
    }
    json
}
