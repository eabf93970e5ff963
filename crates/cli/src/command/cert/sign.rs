// SPDX-License-Identifier: Apache-2.0
//! `metaslot cert sign`

use super::issue::{ForceArg, Issuer, IssuerArg, Made, Signer, identifier, serial};
use super::who::{Names, Purposes};
use crate::app::App;
use crate::certificate::key_of;
use crate::command::arguments::UserArg;
use crate::command::payload::Payload;
use crate::encoding::der_of;
use crate::failure::{Failure, Result};
use crate::issuer;
use crate::x509::{self, Request, Subject};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  metaslot cert sign site.csr --issuer root --out site.pem
  metaslot cert sign site.csr --issuer root --dns www.example.org --days 90 > site.pem";

/// Arguments of `cert sign`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The request: PEM or DER; '-' is standard input
    #[arg(value_name = "FILE")]
    request: PathBuf,
    #[command(flatten)]
    issuer: IssuerArg,
    #[command(flatten)]
    names: Names,
    #[command(flatten)]
    purposes: Purposes,
    #[command(flatten)]
    force: ForceArg,
    #[command(flatten)]
    made: Made,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.user.key(&args.issuer.issuer)?;
    let file = args.request.display();
    let unknown = || {
        let message = format!("{file} is no request for a certificate, or of an unknown algorithm");
        Failure::failed(message).hint(
            "it is to be PEM with BEGIN and END CERTIFICATE REQUEST, or DER, of an RSA, EC or Ed25519 key: 'metaslot cert csr' and 'openssl req -new' make one",
        )
    };
    let contents = Payload::short(Some(&args.request))?;
    let der = der_of(&contents, &["CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"]);
    let der = der.ok_or_else(unknown)?;
    let request = Request::read(&der).ok_or_else(unknown)?;
    let asking = request.key().ok_or_else(unknown)?;
    if asking.is_weak() {
        return Err(Failure::failed(format!("the key in {file} is too weak: {}", asking.kind)));
    }
    let family = asking.kind.family;
    let (name, others) = granted(args, &request)?;
    let shown: Vec<String> = others.iter().filter_map(|name| x509::shown_name(name)).collect();
    let who = x509::shown(&name).filter(|who| !who.is_empty());
    if who.is_none() && (others.is_empty() || args.purposes.is_of_ca()) {
        return Err(Failure::failed(format!("the request in {file} says no name to be certified"))
            .hint("give one with --subject"));
    }
    let login = args.user.login_with(app, &uri)?;
    let (session, pin) = app.log_in(&login, args.made.access())?;
    let token = login.token.uri();
    if !request.signed.is_by(&session, asking)? {
        let message = format!("the request in {file} is not signed by its own key");
        return Err(Failure::failed(message));
    }
    let issuer =
        Issuer::find((&session, &token), &uri, &args.issuer, ("keyCertSign", &args.force))?;
    let certificate = issuer.certificate()?;
    issuer::check_signs(&certificate, issuer.label(), args.purposes.is_of_ca())?;
    let signer = Signer::new((&session, &pin), &issuer.key, &args.made.hash)?;
    let by = x509::identifier_in(certificate.extensions);
    let own = identifier(&session, request.public_key)?;
    let extensions = [
        args.purposes.extensions(family)?,
        x509::key_identifier(&own),
        by.map(x509::authority).unwrap_or_default(),
        x509::names(&others, who.is_none()),
    ];
    let subject =
        Subject { name, public_key: request.public_key.to_vec(), extensions: extensions.concat() };
    let (number, (until, remark)) =
        (serial(&session)?, issuer::end(&certificate, args.made.seconds()));
    let made = x509::certificate(&subject, certificate.subject, &number, &until, signer.how())?;
    let all: Vec<String> = who.into_iter().chain(shown).collect();
    let of_key = key_of(&session, request.public_key)?.map(|key| (key.label, key.id));
    let names = of_key.unwrap_or_else(|| (all.first().cloned().unwrap_or_default(), Vec::new()));
    args.made.finish(app, (&session, &token), made, names)?;
    app.output.note(&format!("certified {}", all.join(", ")));
    remark.iter().for_each(|remark| app.output.note(remark));
    Ok(())
}

/// The names that are certified: those that are said here, otherwise what the request asks for.
fn granted(args: &Args, request: &Request<'_>) -> Result<(Vec<u8>, Vec<Vec<u8>>)> {
    let name = match args.names.said()? {
        Some(name) => name,
        None if x509::is_name(request.subject) => request.subject.to_vec(),
        None => {
            return Err(Failure::failed("the request's subject is no name to be certified")
                .hint("it has characters of no text, or a part that is too long, such as a CN of more than 64 characters; give one with --subject"));
        }
    };
    let others = args.names.others()?;
    if !others.is_empty() {
        return Ok((name, others));
    }
    let wanted = x509::wanted_names(request.extensions).ok_or_else(|| {
        Failure::failed("the request asks for a name of a kind that is not certified here")
            .hint("give the names with --dns, --ip, --email, --uri")
    })?;
    Ok((name, wanted))
}
