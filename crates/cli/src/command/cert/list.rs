// SPDX-License-Identifier: Apache-2.0
//! `metaslot cert list`

use super::found::{described, key_of};
use crate::app::App;
use crate::certificate::Stored;
use crate::command::arguments::{Listed, NO_LOGIN, UserArg, every_public};
use crate::failure::Result;
use crate::find::Object;
use crate::key;
use crate::output::{Report, Table};
use crate::uri::Uri;
use crate::x509::{self, Certificate};
use metaslot_client::{Access, Session};
use serde_json::{Value, json};

/// Arguments of `cert list`.
#[derive(clap::Args, Debug)]
#[command(mut_arg("pin_source", |it| it.help(NO_LOGIN.replace("no login", "no login; ask with --trusted"))))]
pub(crate) struct Args {
    /// Which certificates: a PKCS#11 URI or a label [default: all]
    #[arg(value_name = "URI|LABEL")]
    certificates: Option<String>,
    /// Those only that the security officer trusts: it takes the user PIN to see which
    #[arg(long)]
    trusted: bool,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.user.keys(args.certificates.as_deref())?;
    let (mut listed, logged_in) = listed(app, &uri, args)?;
    let mut table = Table::new(&["LABEL", "SUBJECT", "NOT AFTER", "KEY", "URI"], &[]);
    let (mut list, mut uris): (Vec<Value>, _) = (Vec::new(), Vec::new());
    let look = |session: &Session| {
        let keys = key::search(session, &Uri::default())?;
        let mut found = Stored::search(session, &uri)?;
        found.retain(|stored| stored.is_trusted || !args.trusted);
        let with_key = |stored: Stored| {
            let key = key_of(session, &keys, &stored.der).cloned();
            (stored, key)
        };
        Ok(found.into_iter().map(with_key).collect::<Vec<_>>())
    };
    for (token, found) in &listed.each(look)? {
        for (stored, key) in found {
            let key = key.as_ref();
            let (subject, until) = match Certificate::read(&stored.der) {
                Some(read) => (x509::shown(read.subject), read.until.iso()),
                None => (None, String::from("-")),
            };
            let unreadable = || String::from("it cannot be read");
            let uri = stored.uri(token).to_string();
            table.push(vec![
                stored.label.clone(),
                subject.unwrap_or_else(unreadable),
                until,
                key.map_or_else(|| String::from("-"), |key| key.label.clone()),
                uri.clone(),
            ]);
            list.push(described(stored, key, token, logged_in));
            uris.push(uri);
        }
    }
    let is_empty = list.is_empty();
    app.output.print(&Report { text: table.text(), json: json!({"certificates": list}), uris })?;
    if is_empty {
        app.output.note(if args.certificates.is_some() {
            "no certificates match"
        } else {
            "no certificates"
        });
    }
    listed.end()
}

/// Every token without a login; with one, the token whose PIN it is. The last says which.
fn listed(app: &App, uri: &Uri, args: &Args) -> Result<(Listed, bool)> {
    if !args.trusted && !args.user.names_pin() {
        return Ok((every_public(app, uri)?, false));
    }
    let login = args.user.login_with(app, uri)?;
    let (session, _) = app.log_in(&login, Access::ReadOnly)?;
    Ok((Listed::one(login.token, session), true))
}
