// SPDX-License-Identifier: Apache-2.0
//! `metaslot unwrap`

use super::way::{Way, WayArg};
use crate::app::App;
use crate::certificate;
use crate::command::arguments::{self, Opened, UserArg};
use crate::command::key::report;
use crate::command::payload::Payload;
use crate::encoding::{from_base64, printable};
use crate::failure::{Failure, Result};
use crate::key::{self, Brought, Family, Key, Kind, Usage, usage};
use crate::output::Report;
use crate::uri::Class;
use clap::builder::NonEmptyStringValueParser;
use metaslot_ck::*;
use metaslot_client::{Access, Session, Template, Value};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  metaslot unwrap --with kek --in backup.wrapped --type aes:256 --label backup
  metaslot unwrap --with kek --in site.wrapped --type rsa --label site -m kwp";

/// Arguments of `unwrap`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The key that unwraps
    #[arg(long = "with", value_name = "URI|LABEL")]
    by: String,
    /// The wrapped key, as 'metaslot wrap' writes it [default: standard input]
    #[arg(long = "in", short, value_name = "FILE")]
    input: Option<PathBuf>,
    /// What it is: aes:256 and other secret keys, or rsa, ec, ed25519, x25519, ml-dsa, ml-kem, slh-dsa
    #[arg(long = "type", short = 't', value_name = "TYPE", value_parser = kind)]
    kind: Kind,
    /// The key's name
    #[arg(long, value_name = "LABEL", value_parser = NonEmptyStringValueParser::new())]
    label: String,
    /// The key's id in hexadecimal [default: the SHA-1 of its public half; of a secret key random]
    #[arg(long, value_name = "HEX")]
    id: Option<String>,
    /// What it is for: sign, decrypt, unwrap, derive, decapsulate [default: what a bound form says, or the type is for]
    #[arg(long, value_name = "USE", value_delimiter = ',')]
    usage: Option<Vec<Usage>>,
    /// Let the key leave the token again, encrypted by a wrapping key
    #[arg(long)]
    extractable: bool,
    /// Allow a second key with the same label
    #[arg(long)]
    same_label: bool,
    #[command(flatten)]
    way: WayArg,
    #[command(flatten)]
    user: UserArg,
}

/// A wrapped key of a pair says its size itself.
fn kind(text: &str) -> std::result::Result<Kind, String> {
    match text.to_ascii_lowercase().as_str() {
        "rsa" => "rsa:2048".parse(),
        "ec" => "ec:p256".parse(),
        "ml-dsa" => "ml-dsa:65".parse(),
        "ml-kem" => "ml-kem:768".parse(),
        "slh-dsa" => "slh-dsa:sha2-128s".parse(),
        other => other.parse(),
    }
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let id = args.id.as_deref().map(arguments::id).transpose()?;
    args.kind.check_usages(args.usage.as_deref())?;
    let wrapped = Payload::short(args.input.as_deref())?;
    let wrapped = from_base64(&wrapped).unwrap_or(wrapped);
    let opened = args.user.open::<Key>(app, &args.by, Access::ReadWrite)?;
    let Opened { session, token, it: by, .. } = opened;
    let unwraps = by.part(Class::Secret).or_else(|| by.part(Class::Private));
    let unwraps = unwraps.ok_or_else(|| {
        Failure::not_found(format!("the token has no half of '{}' that unwraps", by.label))
    })?;
    if !args.same_label {
        key::refuse_same_label(&session, &args.label)?;
    }
    let way = Way::choose(&by.kind, &args.way, &session, token.slot)?;
    let id =
        id.map_or_else(|| Ok((key::random_id(&session)?, false)), |id| Result::Ok((id, true)))?;
    let template = args.template(&way, &id.0);
    let unwrapped = session.unwrap(&way.mechanism(), unwraps, &wrapped, &template);
    let handle = unwrapped.map_err(|error| args.explained(error.into()))?;
    let made = complete(&session, args, handle, id).inspect_err(|_| {
        session.destroy(handle).ok();
    })?;
    let report = report(&token, std::slice::from_ref(&made));
    let uris = report.uris.join("\n");
    let text = format!("unwrapped {} key '{}'\n{uris}\n", made.kind, printable(&made.label));
    let warning = usage::warning(args.usage.as_deref(), args.kind.secret_length().is_none());
    let warning = warning.filter(|_| token.status.is_some());
    app.output.print_warning(&Report { text, ..report }, warning.as_slice())?;
    if made.part(Class::Private).is_some() && made.part(Class::Public).is_none() {
        app.output.note("note: the module does not say its public half, so the token has none");
    }
    Ok(())
}

/// The key as it is, with a public half where there can be one.
fn complete(
    session: &Session,
    args: &Args,
    handle: ObjectHandle,
    (id, is_said): (Vec<u8>, bool),
) -> Result<Key> {
    let made = found(session, args, &id, handle)?;
    if let Some(length) = args.kind.secret_length() {
        // Some modules do not say how long a key is.
        if made.kind == args.kind || made.kind.size == 0 {
            return Ok(made);
        }
        let failure =
            Failure::failed(format!("what is wrapped is {}, and not {}", made.kind, args.kind));
        return Err(failure.hint(format!("{} has {length} bytes", args.kind)));
    }
    let info = session.attribute(handle, CKA_PUBLIC_KEY_INFO).unwrap_or_default();
    if info.is_empty() {
        return Ok(made);
    }
    certificate::refuse_known(session, &info, true)?;
    let id = if is_said { id } else { key::identifier(session, &info)? };
    session.set_attribute(handle, CKA_ID, Value::Bytes(id.clone()))?;
    // A bound form says itself what the key is for.
    let uses = made.usages.of_private();
    let usages = Some(&*uses);
    let how = Brought {
        label: &args.label,
        id: &id,
        subject: None,
        usages,
        sensitive: true,
        extractable: false,
    };
    key::bring_public(session, &info, &made.kind, &how)?;
    found(session, args, &id, handle)
}

fn found(session: &Session, args: &Args, id: &[u8], handle: ObjectHandle) -> Result<Key> {
    let made = key::made(session, (&args.label, id), &[handle])?.into_iter().next();
    made.ok_or_else(|| Failure::failed("the key went away meanwhile"))
}

impl Args {
    /// The standard has one code for every template that does not fit what arrives, and one for every length.
    fn explained(&self, failure: Failure) -> Failure {
        let kind = self.kind.to_string();
        let words = match failure.code() {
            Some(Error::TEMPLATE_INCONSISTENT) => {
                format!("what is wrapped is no {} key", kind.split(':').next().unwrap_or_default())
            }
            Some(Error::WRAPPED_KEY_LEN_RANGE) if self.kind.secret_length().is_some() => {
                format!("what is wrapped is longer or shorter than {kind}")
            }
            _ => return failure,
        };
        if failure.advice().is_some() { failure } else { failure.saying(&words) }
    }

    fn template(&self, way: &Way, id: &[u8]) -> Template {
        let length = self.kind.secret_length();
        let is_secret = length.is_some();
        let class = if is_secret { CKO_SECRET_KEY } else { CKO_PRIVATE_KEY };
        let (label, extractable) = (&*self.label, self.extractable);
        let how = Brought { label, id, subject: None, usages: None, sensitive: true, extractable };
        let mut template = key::protected(&how, true).class(class).key_type(self.kind.key_type());
        // Of AES keys the length shows, and some modules take none.
        if let Some(length) = length.filter(|_| way.fills() && self.kind.family != Family::Aes) {
            template = template.ulong(CKA_VALUE_LEN, length as CK_ULONG);
        }
        if way.is_bound() && self.usage.is_none() {
            // It says what the key is for, and takes no more.
            return template;
        }
        let usages = self.kind.usages(self.usage.as_deref());
        match is_secret {
            true => usage::secret(template, usages),
            false => usage::private(template, usages),
        }
    }
}
