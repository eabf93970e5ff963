// SPDX-License-Identifier: Apache-2.0
//! `metaslot token rename`

use super::examine::Who;
use super::init::{check_label, refuse_same_label};
use crate::app::App;
use crate::configured::Configuration;
use crate::encoding::printable;
use crate::failure::{Failure, Result};
use crate::output::Report;
use crate::pin::Role;
use crate::uri::Uri;
use metaslot_ck::{CKU_SO, CKU_USER};
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  metaslot token rename --token web www
  metaslot token rename --token web www --so";

/// Arguments of `token rename`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The new label, at most 32 bytes
    #[arg(value_name = "LABEL")]
    label: String,
    /// Let two tokens have one label
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    who: Who,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let label = check_label(&args.label)?;
    let opened = args.who.open(app)?;
    let (host, token) = (opened.host, &opened.token);
    if !args.force {
        refuse_same_label(host, token, label)?;
    }
    let user = if opened.role == Role::So { CKU_SO } else { CKU_USER };
    let whose = (token.slot, user, opened.pin.expose());
    let rename = |label: &str| {
        let renamed = host.module().rename_token(whose, label).ok_or_else(cannot)?;
        renamed.map_err(|error| match token.is_others() {
            true => cannot(),
            false => host.login_failure(token, opened.role, error),
        })
    };
    rename(label)?;
    if !args.force
        && let Err(refused) = refuse_same_label(host, token, label)
    {
        // Another command has given it to another token meanwhile: the later of two sees that, or both.
        rename(&token.info.label)?;
        return Err(refused);
    }
    let made = app.token(&Uri { slot_id: Some(token.slot.0), ..Uri::default() })?;
    let uri = made.uri().to_string();
    let report = Report {
        text: format!("{} is now {}\n{uri}\n", printable(&token.name()), printable(&made.name())),
        json: json!({"token": super::list::json(&made)}),
        uris: vec![uri],
    };
    app.output.print_warning(&report, named(&token.info.label).as_slice())
}

fn cannot() -> Failure {
    Failure::failed("this token cannot get another label")
        .hint("a token of another module keeps the one that it was initialised with")
}

/// Where the configuration calls it by its old label.
fn named(label: &str) -> Option<String> {
    let named = Configuration::read().metaslot.filter(|named| named.trim_end() == label)?;
    Some(format!(
        "the configuration's [metaslot] names '{named}' still: 'metaslot config show' says where"
    ))
}
