// SPDX-License-Identifier: Apache-2.0
//! `metaslot token delete`

use crate::app::App;
use crate::command::arguments::{NamedArg, TokenArg};
use crate::failure::{Failure, Result};
use crate::host::Token;
use crate::output::Report;
use crate::pin::{self, Role, Source};
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  metaslot token delete web
  metaslot token delete web --yes --so-pin-source so.pin";

/// Arguments of `token delete`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    named: NamedArg,
    #[command(flatten)]
    token: TokenArg,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// The SO PIN's place: a file, 'file:/path' or '|command' [default: ask]
    #[arg(long, value_name = "SOURCE")]
    so_pin_source: Option<String>,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.named.or(args.token.uri())?;
    let token = app.token(&uri)?;
    let host = app.host(&uri)?;
    if token.is_others() || !host.module().is_metaslot() {
        return Err(Failure::failed(format!("{} is another module's", token.name()))
            .hint("that module's own tool deletes it"));
    }
    if !args.yes {
        confirm(&token)?;
    }
    let source = Source::find(Role::So, args.so_pin_source.as_deref(), &uri)?;
    let pin = token.pin(Role::So, source.as_ref())?;
    let removed = host.module().remove_token(token.slot, pin.expose(), &token.info.label);
    let removed = removed.ok_or_else(|| Failure::failed("the module cannot do that"))?;
    removed.map_err(|error| host.login_failure(&token, Role::So, error))?;
    let name = token.uri().to_string();
    app.output.print(&Report {
        text: format!("deleted {} and everything in it\n", token.name()),
        json: json!({"deleted": [name]}),
        uris: vec![name],
    })
}

/// There is no way back, so that a habit of answering `y` must not be enough.
fn confirm(token: &Token) -> Result<()> {
    if !pin::is_interactive() {
        return Err(Failure::failed("no terminal to ask on whether to delete the token")
            .hint("--yes deletes it without asking; 'metaslot token backup' makes a copy before"));
    }
    let question =
        format!("{} goes, and every key in it. Type its label to delete it: ", token.name());
    match pin::ask(&question)? == token.info.label {
        true => Ok(()),
        false => Err(Failure::failed("nothing was deleted: that is not its label")),
    }
}
