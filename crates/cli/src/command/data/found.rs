// SPDX-License-Identifier: Apache-2.0
//! Which data a URI means, and what is told of it.

use crate::app::{App, Login};
use crate::failure::{Failure, Result};
use crate::find::{self, Object};
use crate::uri::{Class, Uri};
use metaslot_ck::*;
use metaslot_client::{Access, Session, Template};
use metaslot_memory::Secret;
use serde_json::{Value, json};

/// One object, without what is in it.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) handle: ObjectHandle,
    pub(super) label: String,
    pub(super) application: String,
    pub(super) is_private: bool,
    pub(super) bytes: usize,
}

impl Stored {
    pub(super) fn json(&self, token: &Uri) -> Value {
        json!({
            "uri": self.uri(token).to_string(),
            "label": self.label,
            "application": self.application,
            "private": self.is_private,
            "bytes": self.bytes,
        })
    }
}

/// Of which program it is: others may give several the same label.
#[derive(clap::Args, Debug)]
pub(super) struct ApplicationArg {
    /// Only what is of this program
    #[arg(long, value_name = "TEXT")]
    application: Option<String>,
}

impl ApplicationArg {
    /// The data that a URI describes.
    pub(super) fn search(&self, session: &Session, uri: &Uri) -> Result<Vec<Stored>> {
        let mut found = Stored::search(session, uri)?;
        let said = self.application.as_ref();
        found.retain(|stored| said.is_none_or(|said| *said == stored.application));
        Ok(found)
    }

    /// The one that a URI describes, and the session that shows it: what is public needs no PIN.
    pub(super) fn one(&self, app: &App, login: &Login<'_>) -> Result<(Session, Stored)> {
        let (uri, slot) = (login.uri, login.token.slot);
        let mut session = app.host(uri)?.module().open_session(slot, Access::ReadOnly)?;
        let mut found = self.search(&session, uri)?;
        if found.is_empty() {
            session = app.log_in(login, Access::ReadOnly)?.0;
            found = self.search(&session, uri)?;
        }
        let stored = find::only(found, uri, &login.token.uri())?;
        Ok((session, stored))
    }
}

impl Object for Stored {
    const NAMES: [&'static str; 2] = ["data", "data objects"];
    const HINT: &'static str = "'metaslot data list' shows the data of a token";

    fn twins(_: &[Self]) -> String {
        String::from("they have one URI: --application says which is meant")
    }

    fn search(session: &Session, uri: &Uri) -> Result<Vec<Self>> {
        if let Some(other) = uri.class.filter(|class| *class != Class::Data) {
            let message = format!("a URI with type={} names no data", other.name());
            return Err(Failure::usage(message).hint("type=data does"));
        }
        if uri.id.is_some() {
            return Err(Failure::usage("data has no id").hint("name it by its label"));
        }
        let template = Template::new().class(CKO_DATA).token(true);
        let template = uri.object.iter().fold(template, |template, label| template.label(label));
        let mut found = Vec::new();
        for handle in session.find(&template)? {
            let asked = [CKA_LABEL, CKA_APPLICATION, CKA_PRIVATE, CKA_VALUE];
            let values = session.attributes(handle, &asked)?;
            let [label, application, private, value] =
                <[_; 4]>::try_from(values).unwrap_or_default();
            let text = |bytes: Option<Vec<u8>>| {
                String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
            };
            found.push(Self {
                handle,
                label: text(label),
                application: text(application),
                is_private: private.as_deref() == Some(&[CK_TRUE]),
                bytes: value.map(Secret::taken).map_or(0, |value| value.len()),
            });
        }
        Ok(found)
    }

    fn uri(&self, token: &Uri) -> Uri {
        let object = Some(self.label.clone()).filter(|label| !label.is_empty());
        Uri { object, class: Some(Class::Data), ..token.clone() }
    }
}
