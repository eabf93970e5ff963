// SPDX-License-Identifier: Apache-2.0
//! `metaslot token pin`

use super::identity;
use super::init::{NewPins, check_length};
use crate::app::App;
use crate::command::arguments::{NamedArg, TokenArg};
use crate::failure::Result;
use crate::output::Report;
use crate::pin::{self, Role, Source};
use crate::uri::Uri;
use metaslot_client::{Access, User};
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  metaslot token pin
  metaslot token pin web --reset     unlocks the user's PIN with the SO's";

/// Arguments of `token pin`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    named: NamedArg,
    #[command(flatten)]
    token: TokenArg,
    /// Change the SO PIN
    #[arg(long, conflicts_with = "reset")]
    so: bool,
    /// As security officer, set a new user PIN; this also unlocks it
    #[arg(long)]
    reset: bool,
    /// The present user PIN's place: a file, 'file:/path' or '|command' [default: ask]
    #[arg(long, value_name = "SOURCE", conflicts_with_all = ["so", "reset"])]
    pin_source: Option<String>,
    /// Change the PIN of the identity of this name [default: $METASLOT_IDENTITY, or the user]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["so", "reset"])]
    identity: Option<String>,
    /// The present SO PIN's place [default: ask]
    #[arg(long, value_name = "SOURCE")]
    so_pin_source: Option<String>,
    /// The new PIN's place [default: ask]
    #[arg(long, value_name = "SOURCE")]
    new_pin_source: Option<String>,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.named.or(args.token.uri())?;
    let (changer, changed) = match (args.so, args.reset) {
        (true, _) => (Role::So, Role::So),
        (_, true) => (Role::So, Role::User),
        _ => (Role::User, Role::User),
    };
    let present = match changer {
        Role::User => args.pin_source.as_deref(),
        Role::So => args.so_pin_source.as_deref(),
    };
    let new = args.new_pin_source.as_deref();
    let identity = match changer {
        Role::User => pin::identity(args.identity.as_deref())?,
        Role::So => None,
    };
    if let Some(name) = identity {
        let source = Source::find(Role::User, present, &uri)?;
        let present = app.token(&uri)?.identity_pin(name, source.as_ref())?;
        return identity::change(app, &uri, (name, &present), new);
    }
    changed_by(app, &Change { uri: &uri, changer, changed, present, new })
}

/// Arguments of `token unlock`.
#[derive(clap::Args, Debug)]
pub(crate) struct UnlockArgs {
    #[command(flatten)]
    named: NamedArg,
    #[command(flatten)]
    token: TokenArg,
    /// The SO PIN's place: a file, 'file:/path' or '|command' [default: ask]
    #[arg(long, value_name = "SOURCE")]
    so_pin_source: Option<String>,
    /// The new PIN's place [default: ask]
    #[arg(long, value_name = "SOURCE")]
    new_pin_source: Option<String>,
}

pub(crate) fn unlock(app: &App, args: &UnlockArgs) -> Result<()> {
    let (present, new) = (args.so_pin_source.as_deref(), args.new_pin_source.as_deref());
    let uri = args.named.or(args.token.uri())?;
    changed_by(app, &Change { uri: &uri, changer: Role::So, changed: Role::User, present, new })
}

/// Makes the change, and says so.
fn changed_by(app: &App, order: &Change<'_>) -> Result<()> {
    let done = change(app, order)?;
    let report = Report {
        text: format!("the {} of {} is changed\n", order.changed.words(), done.token.name()),
        json: json!({"token": super::list::json(&done.token)}),
        uris: vec![done.token.uri().to_string()],
    };
    done.print(app, &report)
}

/// A PIN that is to be changed, and where the PINs are.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    pub(crate) uri: &'a Uri,
    pub(crate) changer: Role,
    pub(crate) changed: Role,
    pub(crate) present: Option<&'a str>,
    pub(crate) new: Option<&'a str>,
}

/// Reads or asks for the PINs, and changes the one.
pub(crate) fn change(app: &App, change: &Change<'_>) -> Result<NewPins> {
    let Change { uri, changer, changed, .. } = *change;
    let token = app.token(uri)?;
    let host = app.host(uri)?;
    let source = Source::find(changer, change.present, uri)?;
    let label = &token.info.label;
    let present = token.pin(changer, source.as_ref())?;
    let new_source = change.new.map(Source::parse).transpose()?;
    let new = pin::chosen(changed, label, new_source.as_ref())?;
    check_length(changed, &new, &token.info)?;
    let session = host.module().open_session(token.slot, Access::ReadWrite)?;
    let user = if changer == Role::So { User::SecurityOfficer } else { User::User };
    let logged_in = session.login(user, present.expose());
    logged_in.map_err(|error| host.login_failure(&token, changer, error))?;
    if changer == changed {
        session.set_pin(present.expose(), new.expose())?;
    } else {
        session.init_pin(new.expose())?;
    }
    session.logout()?;
    Ok(NewPins { token: app.token(&token.uri())?, pins: vec![(changed, new.len())] })
}
