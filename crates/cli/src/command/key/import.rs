// SPDX-License-Identifier: Apache-2.0
//! `metaslot key import`

use super::report::report;
use crate::app::App;
use crate::certificate;
use crate::command::arguments::{self, UserArg};
use crate::command::payload::Payload;
use crate::encoding::{printable, secret_from_hex};
use crate::failure::{Failure, Result};
use crate::host::Token;
use crate::key::{self, Brought, Key, Kind, Trial, Usage};
use crate::keyfile::{self, Certificate, Contents, Opener};
use crate::output::Report;
use crate::uri::{Class, Uri};
use crate::x509;
use clap::builder::NonEmptyStringValueParser;
use metaslot_ck::ObjectHandle;
use metaslot_client::{Access, Session};
use metaslot_memory::Secret;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  metaslot key import site.pem --label site
  metaslot key import site.p12 --passphrase-source phrase
  metaslot key import ~/.ssh/id_ed25519 --label me
  metaslot key import key.bin --type aes:256 --label backup";

/// Arguments of `key import`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The key: PEM, DER, PKCS #8, PKCS #1, SEC 1, PKCS #12, OpenSSH's form, or the bytes of a secret
    /// key; '-' is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The key's name [default: what the file calls it]
    #[arg(long, value_name = "LABEL", value_parser = NonEmptyStringValueParser::new())]
    label: Option<String>,
    /// The key's id in hexadecimal [default: the SHA-1 of its public half; of a secret key random]
    #[arg(long, value_name = "HEX")]
    id: Option<String>,
    /// Whose pair it is, such as 'CN=site, O=Acme': the subject of its certificate
    #[arg(long, value_name = "NAME", conflicts_with = "kind")]
    subject: Option<String>,
    /// The file is a secret key of this type: aes:128, aes:192, aes:256, chacha20, generic:32 (bytes),
    /// hotp:20 (bytes), or for old data des3, des2, rc4:128 (bits), and
    /// other ciphers of old or of a country, as camellia:256, aria:256 or seed
    #[arg(long = "type", short = 't', value_name = "TYPE")]
    kind: Option<Kind>,
    /// The secret key is written in hexadecimal
    #[arg(long, requires = "kind")]
    hex: bool,
    /// What it is for: sign, decrypt, unwrap, derive, decapsulate, with their counterparts
    /// [default: what the type is for; never unwrap]
    #[arg(long, value_name = "USE", value_delimiter = ',')]
    usage: Option<Vec<Usage>>,
    /// Let the key leave the token, encrypted by a wrapping key
    #[arg(long)]
    extractable: bool,
    /// Let the value of a secret key be read
    #[arg(long, requires = "kind")]
    readable: bool,
    /// Allow a second key with the same label
    #[arg(long)]
    same_label: bool,
    /// The place of the file's passphrase: a file, 'file:/path' or '|command' [default: ask]
    #[arg(long, value_name = "SOURCE")]
    passphrase_source: Option<String>,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let id = args.id.as_deref().map(arguments::id).transpose()?;
    let subject = args.subject.as_deref().map(x509::name).transpose()?;
    let uri = args.user.uri()?;
    let login = args.user.login(app, &uri)?;
    let file = Payload::short_secret(&args.file)?;
    let named = |failure: Failure| failure.context(args.file.display());
    if file.is_empty() {
        return Err(Failure::failed(format!("{} is empty", args.file.display())));
    }
    if let Some(kind) = &args.kind {
        let value = value(file, kind, args.hex).map_err(named)?;
        let (session, _) = app.log_in(&login, Access::ReadWrite)?;
        let keys = bring_secret(&session, args, kind, &value, id)?;
        return finish(app, args, &login.token, &keys, &[]);
    }
    // The file is read without a login: it may be none.
    let session = app.host(&uri)?.module().open_session(login.token.slot, Access::ReadOnly)?;
    let opener = Opener::new(&session, args.passphrase_source.as_deref());
    let contents = keyfile::read(&opener, file.expose()).map_err(named)?;
    let labels = labels(args, &contents, id.is_some()).map_err(named)?;
    let (session, _) = app.log_in(&login, Access::ReadWrite)?;
    let (keys, certificates) =
        bring(&session, args, &contents, (&labels, id, subject)).map_err(named)?;
    finish(app, args, &login.token, &keys, &certificates)
}

/// The bytes of a secret key.
fn value(file: Secret, kind: &Kind, hex: bool) -> Result<Secret> {
    let Some(length) = kind.secret_length() else {
        return Err(Failure::usage(format!(
            "--type says what a secret key is, and {kind} is a pair"
        ))
        .hint("the file of a pair says its type itself"));
    };
    let decoded = secret_from_hex(file.expose().trim_ascii());
    let fits = decoded.as_ref().is_some_and(|decoded| decoded.len() == length);
    let value = match (hex, decoded) {
        (true, Some(decoded)) => decoded,
        (true, None) => return Err(Failure::failed("it is no hexadecimal")),
        (false, _) => file,
    };
    if value.len() == length {
        return Ok(value);
    }
    let failure = Failure::failed(format!(
        "it has {} bytes, and a key of the type {kind} has {length}",
        value.len()
    ));
    Err(if fits { failure.hint("it is hexadecimal: --hex") } else { failure })
}

/// The label of each key, which must be there and of one key only.
fn labels(args: &Args, contents: &Contents, has_id: bool) -> Result<Vec<String>> {
    if contents.keys.is_empty() {
        let failure = Failure::failed("there is no key in it");
        return Err(match contents.certificates.is_empty() {
            true => failure,
            false => failure.hint("'metaslot cert import' takes a certificate alone"),
        });
    }
    if contents.keys.len() > 1 && (args.label.is_some() || args.subject.is_some() || has_id) {
        let failure = Failure::usage(format!("there are {} keys in it", contents.keys.len()));
        return Err(failure.hint("--label, --id and --subject are for a file of one key"));
    }
    let named = |pair: &keyfile::Pair| args.label.clone().or_else(|| pair.name.clone());
    let labels: Option<Vec<String>> = contents.keys.iter().map(named).collect();
    let labels = labels.ok_or_else(|| Failure::usage("it does not say how its key is called"));
    let labels = labels.map_err(|failure| failure.hint("give the key a --label"))?;
    let twice = labels.iter().enumerate().find(|(at, label)| labels[..*at].contains(label));
    match twice.filter(|_| !args.same_label) {
        Some((_, label)) => Err(Failure::failed(format!("there are two keys '{label}' in it"))
            .hint("--same-label allows two with one label")),
        None => Ok(labels),
    }
}

fn bring_secret(
    session: &Session,
    args: &Args,
    kind: &Kind,
    value: &Secret,
    id: Option<Vec<u8>>,
) -> Result<Vec<Key>> {
    let label = args.label.as_deref();
    let label = label.ok_or_else(|| Failure::usage("a secret key needs a --label"))?;
    kind.check_usages(args.usage.as_deref())?;
    args.refuse_same(session, label)?;
    let id = id.map_or_else(|| key::random_id(session), Ok)?;
    let handle = key::bring_secret(session, kind, value, &args.brought(label, &id))?;
    key::made(session, (label, &id), &[handle])
}

/// What was made, for the report.
type Made = (Vec<Key>, Vec<Uri>);

/// Tries all of it, then stores all of it, or nothing.
fn bring(
    session: &Session,
    args: &Args,
    contents: &Contents,
    (labels, id, subject): (&[String], Option<Vec<u8>>, Option<Vec<u8>>),
) -> Result<Made> {
    labels.iter().try_for_each(|label| args.refuse_same(session, label))?;
    let usages = args.usage.as_deref();
    let trials = contents.keys.iter().map(|pair| Trial::of(session, pair, usages));
    let trials: Vec<Trial<'_>> = trials.collect::<Result<_>>()?;
    if let Some((one, two)) = twice(&trials) {
        let message = format!("'{}' and '{}' in it are one key", labels[one], labels[two]);
        return Err(Failure::failed(message));
    }
    let mut names = Vec::new();
    for (trial, label) in trials.iter().zip(labels) {
        certificate::refuse_known(session, &trial.public_key, trial.is_private())?;
        let made = || key::identifier(session, &trial.public_key);
        names.push((label.clone(), id.clone().map_or_else(made, Ok)?));
    }
    let mut stored = Stored { session, handles: Vec::new(), is_kept: false };
    for (trial, (label, id)) in trials.iter().zip(&names) {
        let how = Brought { subject: subject.as_deref(), ..args.brought(label, id) };
        stored.handles.extend(trial.store(session, &how)?);
    }
    let keys = stored.handles.clone();
    let mut certificates = Vec::new();
    for certificate in &contents.certificates {
        let name = certificate_name(session, certificate, &trials, &names)?;
        certificates.extend(stored.certificate(certificate, name)?);
    }
    stored.is_kept = true;
    let made = names.iter().map(|(label, id)| key::made(session, (label, id), &keys));
    let made: Vec<Vec<Key>> = made.collect::<Result<_>>()?;
    Ok((made.concat(), certificates))
}

/// Two that have one value, which would have one id, too.
fn twice(trials: &[Trial<'_>]) -> Option<(usize, usize)> {
    (0..trials.len()).find_map(|two| {
        let known = |one: &Trial<'_>| one.public_key == trials[two].public_key;
        Some((trials[..two].iter().position(known)?, two))
    })
}

/// Label and id of a certificate: those of its key, in the file or in the token, or else its own.
fn certificate_name(
    session: &Session,
    certificate: &Certificate,
    trials: &[Trial<'_>],
    names: &[(String, Vec<u8>)],
) -> Result<(String, Vec<u8>)> {
    let read = certificate::read(&certificate.der)?;
    let is_its = |trial: &Trial<'_>| trial.public_key == read.public_key;
    if let Some(at) = trials.iter().position(is_its) {
        return Ok(names[at].clone());
    }
    if let Some(key) = certificate::key_of(session, read.public_key)? {
        return Ok((key.label, key.id));
    }
    let label = certificate.name.clone().or_else(|| x509::shown(read.subject)).unwrap_or_default();
    Ok((label, key::identifier(session, read.public_key)?))
}

/// Objects that go again unless all are there.
struct Stored<'a> {
    session: &'a Session,
    handles: Vec<ObjectHandle>,
    is_kept: bool,
}

impl Stored<'_> {
    /// `None` for one that the token has.
    fn certificate(
        &mut self,
        certificate: &Certificate,
        (label, id): (String, Vec<u8>),
    ) -> Result<Option<Uri>> {
        let der = &certificate.der;
        if certificate::labelled(self.session, None)?.iter().any(|there| there.der == *der) {
            return Ok(None);
        }
        let handle = certificate::store(self.session, der, &label, &id)?;
        self.handles.push(handle);
        let stored = certificate::Stored { handle, der: Vec::new(), label, id, is_trusted: false };
        Ok(Some(stored.uri(&Uri::default())))
    }
}

impl Drop for Stored<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.handles.iter().for_each(|handle| {
                self.session.destroy(*handle).ok();
            });
        }
    }
}

fn finish(app: &App, args: &Args, token: &Token, keys: &[Key], certificates: &[Uri]) -> Result<()> {
    let mut report = report(token, keys);
    let mut text = String::new();
    for (key, uri) in keys.iter().zip(&report.uris) {
        text += &format!("imported {} key '{}'\n{uri}\n", key.kind, printable(&key.label));
    }
    let certificates = certificates.iter().map(|uri| uri.clone().on(&token.uri()).to_string());
    let certificates: Vec<String> = certificates.collect();
    certificates.iter().for_each(|uri| text += &format!("imported a certificate\n{uri}\n"));
    report.json["certificates"] = certificates.clone().into();
    report.uris.extend(certificates);
    let is_secret = keys.iter().any(|key| key.part(Class::Public).is_none() || key.parts.len() > 1);
    let pair = keys.iter().any(|key| key.part(Class::Secret).is_none());
    let warning = key::usage::warning(args.usage.as_deref(), pair);
    let warning = warning.filter(|_| token.status.is_some());
    app.output.print_warning(&Report { text, ..report }, warning.as_slice())?;
    if is_secret && args.file.as_os_str() != "-" {
        app.output.note(&format!("note: {} still holds the key", args.file.display()));
    }
    Ok(())
}

impl Args {
    fn brought<'a>(&'a self, label: &'a str, id: &'a [u8]) -> Brought<'a> {
        Brought {
            label,
            id,
            subject: None,
            usages: self.usage.as_deref(),
            sensitive: !self.readable,
            extractable: self.extractable || self.readable,
        }
    }

    fn refuse_same(&self, session: &Session, label: &str) -> Result<()> {
        if self.same_label { Ok(()) } else { key::refuse_same_label(session, label) }
    }
}
