// SPDX-License-Identifier: Apache-2.0
//! `metaslot cert selfsign`

use super::issue::{Made, Signer, identifier, serial};
use super::who::{Names, Purposes};
use crate::app::App;
use crate::command::arguments::UserArg;
use crate::failure::Result;
use crate::find;
use crate::key::Key;
use crate::x509::{self, Subject, Time};

const EXAMPLES: &str = "\
Examples:
  metaslot cert selfsign site --dns www.example.org --out site.pem
  metaslot cert selfsign root --for ca --subject 'CN=Acme Root, O=Acme' --days 3650 --store";

/// Arguments of `cert selfsign`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The key: a PKCS#11 URI or its label
    #[arg(value_name = "URI|LABEL")]
    key: String,
    #[command(flatten)]
    names: Names,
    #[command(flatten)]
    purposes: Purposes,
    #[command(flatten)]
    made: Made,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let others = args.names.others()?;
    let uri = args.user.key(&args.key)?;
    let login = args.user.login_with(app, &uri)?;
    let (session, pin) = app.log_in(&login, args.made.access())?;
    let token = login.token.uri();
    let key = find::one::<Key>(&session, &token, &uri)?;
    let signer = Signer::new((&session, &pin), &key, &args.made.hash)?;
    let name = args.names.subject(&key)?;
    let identifier = identifier(&session, &signer.public_key)?;
    let extensions = [
        args.purposes.extensions(key.kind.family)?,
        x509::key_identifier(&identifier),
        x509::names(&others, false),
    ];
    let public_key = signer.public_key.clone();
    let subject = Subject { name, public_key, extensions: extensions.concat() };
    let (number, until) = (serial(&session)?, Time::from_now(args.made.seconds()));
    let der = x509::certificate(&subject, &subject.name, &number, &until, signer.how())?;
    args.made.finish(app, (&session, &token), der, (key.label.clone(), key.id.clone()))
}
