// SPDX-License-Identifier: Apache-2.0
//! `metaslot token pin`

use super::init::check_length;
use crate::app::App;
use crate::command::arguments::TokenArg;
use crate::failure::Result;
use crate::output::Report;
use crate::pin::{self, Role, Source};
use crate::uri::Uri;
use metaslot_client::{Access, User};
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  metaslot token pin
  metaslot token pin --token web --reset     unlocks the user's PIN with the SO's";

/// Arguments of `token pin`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
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
    /// The present SO PIN's place [default: ask]
    #[arg(long, value_name = "SOURCE")]
    so_pin_source: Option<String>,
    /// The new PIN's place [default: ask]
    #[arg(long, value_name = "SOURCE")]
    new_pin_source: Option<String>,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.token.uri()?;
    let token = app.token(&uri)?;
    let host = app.host(&uri)?;
    let (changer, changed) = match (args.so, args.reset) {
        (true, _) => (Role::So, Role::So),
        (_, true) => (Role::So, Role::User),
        _ => (Role::User, Role::User),
    };
    let (option, user) = match changer {
        Role::User => (args.pin_source.as_deref(), User::User),
        Role::So => (args.so_pin_source.as_deref(), User::SecurityOfficer),
    };
    let source = Source::find(changer, option, &uri)?;
    let label = &token.info.label;
    let present = pin::existing(changer, label, source.as_ref())?;
    let new_source = args.new_pin_source.as_deref().map(Source::parse).transpose()?;
    let new = pin::chosen(changed, label, new_source.as_ref())?;
    check_length(changed, &new, &token.info)?;
    let session = host.module().open_session(token.slot, Access::ReadWrite)?;
    let logged_in = session.login(user, present.expose());
    logged_in.map_err(|error| host.login_failure(&token, changer, error))?;
    if args.reset {
        session.init_pin(new.expose())?;
    } else {
        session.set_pin(present.expose(), new.expose())?;
    }
    session.logout()?;
    let uri: Uri = token.uri();
    let token = app.token(&uri)?;
    let report = Report {
        text: format!("the {} of {} is changed\n", changed.words(), token.name()),
        json: json!({"token": super::list::json(&token)}),
        uris: vec![uri.to_string()],
    };
    let warnings = pin::cost::warnings(token.cost, &[(changed, new.len())]);
    app.output.print_warning(&report, &warnings)?;
    pin::cost::tell(app.output, token.cost, changed);
    Ok(())
}
