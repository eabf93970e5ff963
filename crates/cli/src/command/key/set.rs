// SPDX-License-Identifier: Apache-2.0
//! `metaslot key set`

use super::report::report;
use crate::app::App;
use crate::certificate;
use crate::command::arguments::{self, Opened, UserArg};
use crate::encoding::printable;
use crate::failure::{Failure, Result};
use crate::host::Token;
use crate::key::{self, Key, Part, Usage};
use crate::output::Report;
use crate::uri::{Class, Uri};
use crate::x509;
use clap::ArgGroup;
use clap::builder::NonEmptyStringValueParser;
use metaslot_ck::*;
use metaslot_client::{Access, Session, Template, Value};

const EXAMPLES: &str = "\
Examples:
  metaslot key set site --label site-2026
  metaslot key set backup --unextractable
  metaslot key set partner --trusted        as security officer";

/// Arguments of `key set`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("change").required(true).multiple(true))]
pub(crate) struct Args {
    /// The key: a PKCS#11 URI or its label
    #[arg(value_name = "URI|LABEL")]
    key: String,
    /// Its name from now on
    #[arg(long, group = "change", value_name = "LABEL", value_parser = NonEmptyStringValueParser::new())]
    label: Option<String>,
    /// Its id in hexadecimal from now on, and that of its certificates
    #[arg(long, group = "change", value_name = "HEX")]
    id: Option<String>,
    /// Whose key it is, such as 'CN=site, O=Acme': the subject of its certificate
    #[arg(long, group = "change", value_name = "NAME")]
    subject: Option<String>,
    /// What it states that it is for: sign, decrypt, unwrap, derive, decapsulate, with their counterparts
    #[arg(long, group = "change", value_name = "USE", value_delimiter = ',')]
    usage: Option<Vec<Usage>>,
    /// Hide its value; there is no way back
    #[arg(long, group = "change")]
    sensitive: bool,
    /// Keep it in the token; there is no way back
    #[arg(long, group = "change")]
    unextractable: bool,
    /// So many one-time keys of an HSS or XMSS key are left: fewer than there were, or as many in a token that was restored
    #[arg(long, group = "change", value_name = "NUMBER")]
    one_time_left: Option<CK_ULONG>,
    /// As security officer, trust it to wrap others
    #[arg(long, group = "change", conflicts_with_all = ["label", "id", "subject", "usage", "one_time_left", "sensitive", "unextractable", "identity"])]
    trusted: bool,
    /// As security officer, trust it no more
    #[arg(long, group = "change", conflicts_with_all = ["label", "id", "subject", "usage", "one_time_left", "sensitive", "unextractable", "identity", "trusted"])]
    untrusted: bool,
    /// Allow a second key with the same label
    #[arg(long)]
    same_label: bool,
    /// The SO PIN's place, for --trusted: a file, 'file:/path' or '|command' [default: ask]
    #[arg(long, value_name = "SOURCE")]
    so_pin_source: Option<String>,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    if args.trusted || args.untrusted {
        return trust(app, args);
    }
    let id = args.id.as_deref().map(arguments::id).transpose()?;
    let subject = args.subject.as_deref().map(x509::name).transpose()?;
    let opened = args.user.open(app, &args.key, Access::ReadWrite)?;
    let Opened { session, token, it: key, .. } = opened;
    check(&session, &key, args)?;
    let new = args.label.as_ref().filter(|label| **label != key.label);
    if let Some(label) = new.filter(|_| !args.same_label) {
        key::refuse_same_label(&session, label)?;
    }
    let certificates = match id {
        Some(_) => certificate::of_key(&session, &key)?,
        None => Vec::new(),
    };
    for part in &key.parts {
        let changes = args.changes(&key, *part, (id.as_deref(), subject.as_deref()));
        if changes.iter().next().is_some() {
            let set = session.set_attributes(part.handle, &changes);
            set.map_err(|error| {
                let half = format!("the {} half", part.class.name());
                let failure = Failure::from(error).context(half);
                // What is smaller was compared before.
                let left = args.one_time_left.filter(|_| part.class == Class::Private);
                match (left.is_some_and(key::is_beyond_told), failure.code()) {
                    (true, Some(Error::ATTRIBUTE_READ_ONLY)) => {
                        failure.hint("one-time keys never become more")
                    }
                    _ => failure,
                }
            })?;
        }
    }
    for certificate in certificates {
        let id = Value::Bytes(id.clone().unwrap_or_default());
        session.set_attribute(certificate.handle, CKA_ID, id)?;
    }
    finish(app, &session, &token, &key)
}

/// What the standard has refused by a code that says less.
fn check(session: &Session, key: &Key, args: &Args) -> Result<()> {
    let refused = |why: &str| Err(Failure::failed(format!("'{}' {why}", key.label)));
    if let Some(usages) = &args.usage {
        key.kind.check_usages(Some(usages))?;
    }
    if args.subject.is_some() && key.parts.iter().all(|part| part.class == Class::Secret) {
        return refused("is a secret key, which has no subject");
    }
    if let Some(number) = args.one_time_left {
        let left = key::one_time_left(session, key);
        match left {
            None => return refused("is no private key of one-time keys"),
            Some(left) if number > left && !key::is_all_told(left) => {
                return refused(&format!("has {left} one-time keys left: they never become more"));
            }
            Some(_) => {}
        }
    }
    let hides = args.sensitive || args.unextractable;
    if hides && key.parts.iter().all(|part| part.class == Class::Public) {
        return refused("is a public half alone, which hides nothing");
    }
    for Part { handle, .. } in &key.parts {
        if session.attribute_bool(*handle, CKA_MODIFIABLE).is_ok_and(|modifiable| !modifiable) {
            return refused("cannot be changed (CKA_MODIFIABLE)");
        }
    }
    Ok(())
}

/// The officer sees what anybody sees, and trusts what wraps: secret keys and public halves.
fn trust(app: &App, args: &Args) -> Result<()> {
    let uri = args.user.key(&args.key)?;
    let (session, token) = app.log_in_officer(&uri, args.so_pin_source.as_deref())?;
    let keys = key::search(&session, &uri)?;
    if keys.is_empty() {
        let failure =
            Failure::not_found(format!("no key that the officer sees matches {}", uri.key_part()));
        return Err(
            failure.hint("the officer sees what is public: no private half, and few secret keys")
        );
    }
    let key = key::only(keys, &uri, &token.uri())?;
    for part in &key.parts {
        session.set_attribute(part.handle, CKA_TRUSTED, Value::Bool(args.trusted))?;
    }
    finish(app, &session, &token, &key)
}

/// Shows the key as it is now.
fn finish(app: &App, session: &Session, token: &Token, key: &Key) -> Result<()> {
    let mut keys = key::search(session, &Uri::default())?;
    keys.retain(|it| it.parts.iter().any(|part| key.part(part.class) == Some(part.handle)));
    let report = report(token, &keys);
    let text = format!("changed '{}'\n{}", printable(&key.label), report.text);
    app.output.print(&Report { text, ..report })
}

impl Args {
    /// What is to be changed in one object.
    fn changes(
        &self,
        key: &Key,
        part: Part,
        (id, subject): (Option<&[u8]>, Option<&[u8]>),
    ) -> Template {
        let mut changes = Template::new();
        changes
            .extend(self.label.iter().map(|label| (CKA_LABEL, Value::Bytes(label.clone().into()))));
        changes.extend(id.map(|id| (CKA_ID, Value::Bytes(id.to_vec()))));
        if part.class != Class::Secret {
            changes.extend(subject.map(|subject| (CKA_SUBJECT, Value::Bytes(subject.to_vec()))));
        }
        if part.class == Class::Private {
            let left = self.one_time_left;
            changes.extend(left.map(|left| (CKA_HSS_KEYS_REMAINING, Value::Ulong(left))));
        }
        if part.class != Class::Public {
            let hidden = [
                (self.sensitive, CKA_SENSITIVE, true),
                (self.unextractable, CKA_EXTRACTABLE, false),
            ];
            let asked = hidden.into_iter().filter(|row| row.0);
            changes.extend(asked.map(|(_, attribute, value)| (attribute, Value::Bool(value))));
        }
        if let Some(usages) = &self.usage {
            let said = key::usage::of_class(part.class, usages);
            let other = said.filter(|(attribute, is_on)| key.usages.has(*attribute) != *is_on);
            changes.extend(other.map(|(attribute, is_on)| (attribute, Value::Bool(is_on))));
        }
        changes
    }
}
