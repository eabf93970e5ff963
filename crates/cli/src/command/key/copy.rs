// SPDX-License-Identifier: Apache-2.0
//! `metaslot key copy`

use super::report::report;
use crate::app::App;
use crate::command::arguments::{self, Opened, UserArg};
use crate::encoding::printable;
use crate::failure::{Failure, Result};
use crate::key::{self, Key, Part};
use crate::output::Report;
use crate::uri::Class;
use clap::builder::NonEmptyStringValueParser;
use metaslot_ck::*;
use metaslot_client::{Access, Session, Template};

/// Arguments of `key copy`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The key: a PKCS#11 URI or its label
    #[arg(value_name = "URI|LABEL")]
    key: String,
    /// The copy's name
    #[arg(long, value_name = "LABEL", value_parser = NonEmptyStringValueParser::new())]
    label: String,
    /// The copy's id in hexadecimal [default: random]
    #[arg(long, value_name = "HEX")]
    id: Option<String>,
    /// Make a copy only if it can leave the token, encrypted by a wrapping key
    #[arg(long, conflicts_with = "unextractable")]
    extractable: bool,
    /// Keep the copy in the token, though the key can leave it
    #[arg(long)]
    unextractable: bool,
    /// Hide the copy's value, though the key's can be read
    #[arg(long)]
    sensitive: bool,
    /// Allow a second key with the same label
    #[arg(long)]
    same_label: bool,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let id = args.id.as_deref().map(arguments::id).transpose()?;
    let opened = args.user.open(app, &args.key, Access::ReadWrite)?;
    let Opened { session, token, it: key, .. } = opened;
    check(&session, &key, args)?;
    if !args.same_label {
        key::refuse_same_label(&session, &args.label)?;
    }
    let id = id.map_or_else(|| key::random_id(&session), Ok)?;
    let handles = copies(&session, &key, args, &id)?;
    let report = report(&token, &key::made(&session, (&args.label, &id), &handles)?);
    let (from, uris) = (printable(&key.label), report.uris.join("\n"));
    let text = format!("copied '{from}' to '{}'\n{uris}\n", printable(&args.label));
    app.output.print(&Report { text, ..report })
}

/// What the standard has refused by a code that says less.
fn check(session: &Session, key: &Key, args: &Args) -> Result<()> {
    let refused = |why: &str| Err(Failure::failed(format!("'{}' {why}", key.label)));
    if args.extractable && key.extractable != Some(true) {
        return refused(
            "is not extractable (CKA_EXTRACTABLE), and a copy can do no more than the key",
        );
    }
    for Part { handle, .. } in &key.parts {
        if session.attribute_bool(*handle, CKA_COPYABLE).is_ok_and(|copyable| !copyable) {
            return refused("is not to be copied (CKA_COPYABLE)");
        }
    }
    Ok(())
}

/// Copies every half, or none.
fn copies(session: &Session, key: &Key, args: &Args, id: &[u8]) -> Result<Vec<ObjectHandle>> {
    let asked =
        [(args.unextractable, CKA_EXTRACTABLE, false), (args.sensitive, CKA_SENSITIVE, true)];
    let changes = |part: &Part| {
        let named = Template::new().token(true).label(&args.label).bytes(CKA_ID, id);
        let of_part = asked.iter().filter(|row| row.0 && part.class != Class::Public);
        of_part.fold(named, |all, (_, attribute, value)| all.bool(*attribute, *value))
    };
    let copied = |part: &Part| session.copy(part.handle, &changes(part));
    key::all_or_none(session, key.parts.iter().map(copied))
}
