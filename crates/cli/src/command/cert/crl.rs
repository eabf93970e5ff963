// SPDX-License-Identifier: Apache-2.0
//! `metaslot cert crl`

use super::issue::{ForceArg, HashArg, Issuer, IssuerArg, Signer};
use crate::app::App;
use crate::certificate::{Stored, read};
use crate::command::arguments::UserArg;
use crate::command::payload::{Payload, write_beside};
use crate::encoding::{der_of, hex, pem};
use crate::failure::{Failure, Result};
use crate::find::{self, Object};
use crate::issuer;
use crate::output::Report;
use crate::uri::Uri;
use crate::x509::{self, Certificate, List, PublicKey, Revocations};
use metaslot_client::{Access, Session};
use serde_json::json;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  metaslot cert crl --issuer root --out root.crl
  metaslot cert crl --issuer root --previous root.crl --revoke site.pem --out root.crl
  metaslot cert crl --issuer new-root --previous root.crl --previous-issuer root --out new.crl";

/// Arguments of `cert crl`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    issuer: IssuerArg,
    /// A certificate that is revoked: PEM or DER; again for each
    #[arg(long, value_name = "FILE")]
    revoke: Vec<PathBuf>,
    /// The serial number of one, in hexadecimal; again for each
    #[arg(long, value_name = "HEX")]
    serial: Vec<String>,
    /// The list before this one, whose entries stay
    #[arg(long, value_name = "FILE")]
    previous: Option<PathBuf>,
    /// The certificate of the key that signed --previous, where the CA has another key now: in the token, a PKCS#11 URI or its label
    #[arg(long, value_name = "URI|LABEL", requires = "previous")]
    previous_issuer: Option<String>,
    /// How long until the next list, in days
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=36_500))]
    days: u64,
    #[command(flatten)]
    force: ForceArg,
    #[command(flatten)]
    hash: HashArg,
    /// Where it goes, in PEM [default: standard output]
    #[arg(long = "out", short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.user.key(&args.issuer.issuer)?;
    let login = args.user.login_with(app, &uri)?;
    let kept = |path| contents(path, Payload::replaceable(Some(path))?, "X509 CRL");
    let previous = args.previous.as_deref().map(kept).transpose()?;
    let (session, pin) = app.log_in(&login, Access::ReadOnly)?;
    let token = (&session, &login.token.uri());
    let issuer = Issuer::find(token, &uri, &args.issuer, ("cRLSign", &args.force))?;
    let certificate = issuer.certificate()?;
    let (mut entries, number) = match (&args.previous, &previous) {
        (Some(path), Some(der)) => {
            let token = (&session, login.token.uri());
            taken_over(args, token, &certificate, &path.display().to_string(), der)?
        }
        _ => (Vec::new(), 1),
    };
    let before = entries.len();
    for serial in args.serials(certificate.subject)? {
        if !List::has(&entries, &serial) {
            entries.extend(x509::entry(&serial));
        }
    }
    let signer = Signer::new((&session, &pin), &issuer.key, &args.hash)?;
    let list = Revocations {
        issuer: certificate.subject,
        authority: x509::identifier_in(certificate.extensions),
        entries: &entries,
        number,
        seconds: args.days * 24 * 60 * 60,
    };
    let text = pem("X509 CRL", &list.signed(signer.how())?);
    let serials: Vec<String> = List::serials(&entries).map(hex).collect();
    let json = json!({"crl": text, "number": number, "revoked": serials});
    let report = Report { json, ..Report::default() };
    write_beside(&app.output, args.output.as_deref(), text.as_bytes(), &report)?;
    let new = List::serials(&entries[before..]).count();
    app.output.note(&format!("list {number}: {} revoked, {new} of them new", serials.len()));
    Ok(())
}

fn is_of_one_key(one: &Stored, other: &Stored) -> bool {
    let key = |stored: &Stored| Some(read(&stored.der).ok()?.public_key.to_vec());
    key(one).is_some_and(|one| Some(one) == key(other))
}

/// The entries of the list before, and this one's number. Who can change the file cannot have it believed: the CA's key, or one whose
/// certificate is the token's and is named, must have signed it.
fn taken_over(
    args: &Args,
    (session, token): (&Session, Uri),
    issuer: &Certificate<'_>,
    file: &str,
    der: &[u8],
) -> Result<(Vec<u8>, u64)> {
    let no = || {
        Failure::failed(format!("{file} is no list of revoked certificates"))
            .hint("a list of changes or of a part, a number of more than 8 bytes and unknown algorithms are not taken over")
    };
    let list = List::read(der).ok_or_else(no)?;
    if list.issuer != issuer.subject {
        return Err(Failure::failed(format!("{file} is another issuer's")));
    }
    let former = match &args.previous_issuer {
        Some(former) => {
            let uri = args.user.key(former)?;
            let mut found = Stored::search(session, &uri)?;
            // Of a renewed one each will do: the key counts.
            found.dedup_by(|one, other| is_of_one_key(one, other));
            Some(find::only(found, &uri, &token)?)
        }
        None => None,
    };
    let signer = match &former {
        None => issuer.public_key,
        Some(stored) => {
            let former = read(&stored.der)?;
            issuer::check(&former, &stored.label, "cRLSign")?;
            if former.subject != issuer.subject {
                let message = format!("the certificate '{}' is another issuer's", stored.label);
                return Err(Failure::failed(message));
            }
            former.public_key
        }
    };
    let key = PublicKey::read(signer).ok_or_else(no)?;
    match (list.signed.is_by(session, key)?, former) {
        (true, _) => Ok((list.entries.to_vec(), list.number.saturating_add(1))),
        (false, Some(former)) => {
            let message = format!("{file} is not signed by the key of '{}'", former.label);
            Err(Failure::failed(message))
        }
        (false, None) => Err(Failure::failed(format!("{file} is not signed by the issuer's key"))
            .hint("where the CA had another key then: --previous-issuer and that key's certificate in the token")),
    }
}

/// A list of a million certificates is not longer.
const LONGEST: usize = 64 << 20;

/// The DER of a file.
fn contents(path: &Path, file: Payload, label: &str) -> Result<Vec<u8>> {
    let no = || Failure::failed(format!("{} has no {label}", path.display()));
    der_of(&file.up_to(LONGEST)?, &[label]).ok_or_else(no)
}

impl Args {
    /// The numbers that are revoked, as they stand in certificates.
    fn serials(&self, issuer: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut serials = Vec::new();
        for path in &self.revoke {
            let der = contents(path, Payload::open(Some(path))?, "CERTIFICATE")?;
            let read = Certificate::read(&der)
                .ok_or_else(|| Failure::failed(format!("{} is no certificate", path.display())))?;
            if read.issuer != issuer {
                let message = format!("{} is of another issuer", path.display());
                return Err(Failure::failed(message));
            }
            serials.push(read.serial.to_vec());
        }
        for text in &self.serial {
            serials.push(x509::serial(text).ok_or_else(|| {
                let message = format!("'{text}' is no serial number: 1 to 20 bytes in hexadecimal");
                Failure::usage(message).hint("two digits each, for example --serial 0a1b")
            })?);
        }
        Ok(serials)
    }
}
