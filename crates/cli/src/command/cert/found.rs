// SPDX-License-Identifier: Apache-2.0
//! Which certificates a URI means, and what is told of each.

use crate::app::App;
use crate::certificate::{Stored, labelled};
use crate::command::arguments::UserArg;
use crate::encoding::hex;
use crate::failure::{Failure, Result};
use crate::find::Object;
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

impl Object for Stored {
    const NAMES: [&'static str; 2] = ["certificate", "certificates"];
    const HINT: &'static str = "'metaslot cert list' shows the certificates of a token, with --pin-source the private ones, too";

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
