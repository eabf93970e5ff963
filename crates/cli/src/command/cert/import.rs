// SPDX-License-Identifier: Apache-2.0
//! `metaslot cert import`

use super::found::twin;
use crate::app::App;
use crate::certificate::{Stored, key_of, labelled, object, read};
use crate::command::arguments::{self, UserArg};
use crate::command::payload::Payload;
use crate::encoding::der_of;
use crate::failure::{Failure, Result};
use crate::output::Report;
use crate::uri::Uri;
use metaslot_ck::CKA_PRIVATE;
use metaslot_client::{Access, Session};
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `cert import`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The certificate: PEM, whose first certificate is taken, or DER; '-' is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Its label [default: that of its key]
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Its id in hexadecimal [default: that of its key]
    #[arg(long, value_name = "HEX")]
    id: Option<String>,
    /// Let it be seen after a login only; many programs look for certificates without one
    #[arg(long)]
    private: bool,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let no = || {
        Failure::failed(format!("{} is no certificate", args.file.display()))
            .hint("it is to be PEM with BEGIN and END CERTIFICATE, or DER, and whole")
    };
    let file = Payload::short(Some(&args.file))?;
    let der = der_of(&file, &["CERTIFICATE", "X509 CERTIFICATE"]).ok_or_else(no)?;
    let public_key = read(&der).map_err(|_| no())?.public_key;
    let id = args.id.as_deref().map(arguments::id).transpose()?;
    let uri = args.user.uri()?;
    let login = args.user.login(app, &uri)?;
    let (session, _) = app.log_in(&login, Access::ReadWrite)?;
    refuse_known(&session, &der, &login.token.uri())?;
    let key = key_of(&session, public_key)?;
    let of_key = key.as_ref().map(|key| (key.id.clone(), key.label.clone()));
    let (key_id, key_label) = of_key.unwrap_or_default();
    let label = args.label.clone().unwrap_or(key_label);
    let id = id.unwrap_or(key_id);
    if label.is_empty() && id.is_empty() {
        return Err(Failure::usage("a certificate without a key in the token needs a --label"));
    }
    let template = object(&der, &label, &id)?.bool(CKA_PRIVATE, args.private);
    let handle = session.create(&template)?;
    let token = login.token.uri();
    let stored = Stored { handle, der, label, id, is_trusted: false };
    let name = stored.uri(&token).to_string();
    let key = key.map(|key| key.uri(&token).to_string());
    let report = Report {
        text: format!("imported {name}\n"),
        json: json!({"imported": name, "key": key}),
        uris: vec![name],
    };
    app.output.print_warning(&report, twin(&session, &token, &stored).as_slice())?;
    if key.is_none() {
        app.output.note("note: the token does not have its key");
    }
    Ok(())
}

/// A second one of the same value could be named by nothing.
fn refuse_known(session: &Session, der: &[u8], token: &Uri) -> Result<()> {
    let all = labelled(session, None)?;
    let Some(known) = all.iter().find(|stored| stored.der == der) else { return Ok(()) };
    let name = known.uri(token);
    Err(Failure::failed("the token has this certificate").hint(format!("it is {name}")))
}
