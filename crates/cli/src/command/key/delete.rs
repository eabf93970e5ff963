// SPDX-License-Identifier: Apache-2.0
//! `metaslot key delete`

use crate::app::App;
use crate::command::arguments::{Opened, UserArg};
use crate::failure::{Failure, Result};
use crate::key::Key;
use crate::output::Report;
use crate::pin::confirm_deletion;
use crate::uri::Class;
use metaslot_ck::CKA_DESTROYABLE;
use serde_json::json;

/// Arguments of `key delete`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The key: a PKCS#11 URI or its label
    #[arg(value_name = "URI|LABEL")]
    key: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let opened = args.user.open_named::<Key>(app, &args.key)?;
    let name = opened.uri();
    let Opened { session, token, asked, it: mut key, .. } = opened;
    if let Some(half @ (Class::Private | Class::Public)) = asked.class {
        key.parts.retain(|part| part.class == half);
        if key.parts.is_empty() {
            return Err(Failure::not_found(format!("no key matches {}", asked.key_part())));
        }
    }
    for part in &key.parts {
        if session
            .attribute_bool(part.handle, CKA_DESTROYABLE)
            .is_ok_and(|destroyable| !destroyable)
        {
            let message = format!("'{}' cannot be deleted (CKA_DESTROYABLE)", key.label);
            return Err(Failure::failed(message)
                .hint("it goes with the token: 'metaslot token init --force' empties that"));
        }
    }
    let parts = key.part_names().join(" and ");
    if !args.yes {
        confirm_deletion("the key", &format!("delete {name} ({parts})? there is no way back"))?;
    }
    // The private half first: what is left after a failure must not look like a whole key.
    for part in &key.parts {
        session.destroy(part.handle)?;
    }
    app.output.print(&Report {
        text: format!("deleted {name} ({parts})\n"),
        json: json!({"deleted": [key.json(&token.uri())]}),
        uris: vec![name],
    })
}
