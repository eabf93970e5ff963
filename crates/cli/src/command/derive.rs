// SPDX-License-Identifier: Apache-2.0
//! `metaslot derive`

use super::arguments::{self, Opened, UserArg};
use super::key::report;
use super::payload::{self, Payload};
use crate::app::App;
use crate::encoding::{from_hex, hex_line, printable};
use crate::failure::{Failure, Result};
use crate::host::Token;
use crate::key::{self, Brought, Family, Key, Kind, Usage, usage};
use crate::keyfile;
use crate::output::Report;
use crate::scheme::{self, mechanism_number};
use crate::uri::Class;
use crate::x509;
use clap::builder::NonEmptyStringValueParser;
use metaslot_ck::*;
use metaslot_client::{Access, Mechanism, Params, Session, Template};
use metaslot_memory::Secret;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  metaslot derive --key me --peer theirs.pem --type aes:256 --hash sha256 --label shared
  metaslot derive --key me --peer theirs.pem --type generic:32 --out secret.bin
  metaslot derive --key master --info backup-2026 --type aes:256 --label backup-2026";

/// Arguments of `derive`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The key that is derived from: an EC or X25519 pair, or a secret key with --usage derive
    #[arg(long, value_name = "URI|LABEL")]
    key: String,
    /// The other side's public key, or its certificate: PEM or DER
    #[arg(long, value_name = "FILE")]
    peer: Option<PathBuf>,
    /// The mechanism: ecdh, ecdh-cofactor, dh or hkdf, or its name [default: ecdh or dh for pairs, hkdf for secret keys]
    #[arg(long, short, value_name = "NAME")]
    mechanism: Option<String>,
    /// The hash: of hkdf [default: sha256], or of what is made of the agreed value [default: the value itself]
    #[arg(long, value_name = "NAME")]
    hash: Option<String>,
    /// The salt of hkdf in hexadecimal [default: none]
    #[arg(long, value_name = "HEX")]
    salt: Option<String>,
    /// What the key is bound to, a text
    #[arg(long, value_name = "TEXT", conflicts_with = "info_hex")]
    info: Option<String>,
    /// The same in hexadecimal
    #[arg(long, value_name = "HEX")]
    info_hex: Option<String>,
    #[command(flatten)]
    kept: Kept,
    /// Write its value to a file, and keep nothing; '-' is standard output
    #[arg(long = "out", short, value_name = "FILE", conflicts_with = "label")]
    output: Option<PathBuf>,
    /// Write the value in hexadecimal
    #[arg(long, requires = "output")]
    hex: bool,
    #[command(flatten)]
    user: UserArg,
}

/// What becomes of a secret key that is made from others. The file for its value is the argument `output` of each command.
#[derive(clap::Args, Debug)]
pub(super) struct Kept {
    /// What it is: aes:128, aes:192, aes:256, chacha20, generic:32 (bytes)
    #[arg(long = "type", short = 't', value_name = "TYPE", default_value = "aes:256")]
    pub(super) kind: Kind,
    /// Keep it in the token under this name
    #[arg(long, value_name = "LABEL", required_unless_present = "output", value_parser = NonEmptyStringValueParser::new())]
    label: Option<String>,
    /// Its id in hexadecimal [default: random]
    #[arg(long, value_name = "HEX", requires = "label")]
    id: Option<String>,
    /// What it is for: sign, decrypt, unwrap, derive, with their counterparts [default: what the
    /// type is for; never unwrap]
    #[arg(long, value_name = "USE", value_delimiter = ',', requires = "label")]
    usage: Option<Vec<Usage>>,
    /// Let the key leave the token, encrypted by a wrapping key
    #[arg(long, requires = "label")]
    extractable: bool,
    /// Allow a second key with the same label
    #[arg(long)]
    same_label: bool,
}

/// A secret key that was made: in the token, or its value.
#[derive(Debug)]
pub(super) enum Made {
    Kept(Vec<Key>),
    Value(Secret),
}

impl Made {
    /// What the other side was not told of does not stay.
    pub(super) fn undo(&self, session: &Session) {
        if let Self::Kept(keys) = self {
            for handle in keys.iter().filter_map(|key| key.part(Class::Secret)) {
                session.destroy(handle).ok();
            }
        }
    }
}

/// Mechanisms by their short names.
const NAMES: &[(&str, CK_MECHANISM_TYPE)] = &[
    ("ecdh", CKM_ECDH1_DERIVE),
    ("x25519", CKM_ECDH1_DERIVE),
    ("dh", CKM_DH_PKCS_DERIVE),
    ("ecdh-cofactor", CKM_ECDH1_COFACTOR_DERIVE),
    ("hkdf", CKM_HKDF_DERIVE),
];

/// Those names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|row| row.0)
}

/// What makes a key of the agreed value (X9.63), by the hash.
const KDFS: &[(CK_MECHANISM_TYPE, CK_ULONG)] = &[
    (CKM_SHA_1, CKD_SHA1_KDF),
    (CKM_SHA224, CKD_SHA224_KDF),
    (CKM_SHA256, CKD_SHA256_KDF),
    (CKM_SHA384, CKD_SHA384_KDF),
    (CKM_SHA512, CKD_SHA512_KDF),
];

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let length = args.kept.check("derived")?;
    if args.kept.label.is_none() {
        payload::refuse_mixed(&app.output, args.output.as_deref())?;
    }
    let input = Input::read(args)?;
    let opened = args.user.open::<Key>(app, &args.key, args.kept.access())?;
    let Opened { session, token, it: key, .. } = opened;
    let base = key.part(Class::Private).or_else(|| key.part(Class::Secret));
    let base = base.ok_or_else(|| {
        Failure::not_found(format!("the token has only the public half of '{}'", key.label))
    })?;
    let mechanism = input.mechanism(&key, args)?;
    let template = template(&args.kept.kind, length);
    let made = args.kept.make(&session, |named| {
        Ok(session.derive(&mechanism, base, &key::with(named, &template))?)
    })?;
    let json = match made {
        Made::Kept(_) => json!({}),
        Made::Value(_) => json!({"key": key.uri(&token.uri()).to_string()}),
    };
    let shown = args.kept.shown("derived", &token, &made, json);
    shown.write(app, made, args.output.as_deref(), args.hex)
}

impl Kept {
    /// Bytes of the key, whose type and uses fit.
    pub(super) fn check(&self, what: &str) -> Result<usize> {
        let Some(length) = self.kind.secret_length() else {
            let message = format!("{} is a pair, and what is {what} is a secret key", self.kind);
            return Err(Failure::usage(message));
        };
        self.kind.check_usages(self.usage.as_deref()).map(|()| length)
    }

    pub(super) const fn access(&self) -> Access {
        if self.label.is_some() { Access::ReadWrite } else { Access::ReadOnly }
    }

    /// Whether the token keeps it.
    pub(super) const fn keeps(&self) -> bool {
        self.label.is_some()
    }

    /// Makes it by a template that says what it is called, or that its value can be read.
    pub(super) fn make(
        &self,
        session: &Session,
        make: impl FnOnce(Template) -> Result<ObjectHandle>,
    ) -> Result<Made> {
        if let Some(label) = &self.label {
            return store(session, self, label, make).map(Made::Kept);
        }
        let open = Template::new().token(false).bool(CKA_SENSITIVE, false);
        let handle = make(open.bool(CKA_EXTRACTABLE, true))?;
        key::value(session, handle).map(Made::Value)
    }

    /// What is said of it; `json` is added to that for programs.
    pub(super) fn shown(&self, verb: &str, token: &Token, made: &Made, json: Value) -> Shown {
        let (report, warning) = match made {
            Made::Kept(made) => {
                let report = report(token, made);
                let label = printable(self.label.as_deref().unwrap_or_default());
                let uris = report.uris.join("\n");
                let text = format!("{verb} {} key '{label}'\n{uris}\n", self.kind);
                let warning = usage::warning(self.usage.as_deref(), false);
                let json = joined(report.json, json);
                (Report { text, json, ..report }, warning.filter(|_| token.status.is_some()))
            }
            Made::Value(value) => {
                let is = json!({"type": self.kind.to_string(), "bytes": value.len()});
                let json = joined(json, is);
                (Report { json, ..Report::default() }, None)
            }
        };
        Shown { report, warning }
    }
}

/// Two documents as one.
fn joined(mut first: Value, second: Value) -> Value {
    if let (Value::Object(all), Value::Object(more)) = (&mut first, second) {
        all.extend(more);
    }
    first
}

/// What is printed of a key that was made.
pub(super) struct Shown {
    report: Report,
    warning: Option<String>,
}

impl Shown {
    /// Writes the value, where it is not kept, and says what was made.
    pub(super) fn write(
        &self,
        app: &App,
        made: Made,
        output: Option<&Path>,
        hex: bool,
    ) -> Result<()> {
        let Made::Value(value) = made else {
            return app.output.print_warning(&self.report, self.warning.as_slice());
        };
        let written = if hex { hex_line(&value) } else { value };
        payload::write_secret(&app.output, output, &written, &self.report)
    }
}

/// What the key is.
pub(super) fn template(kind: &Kind, length: usize) -> Template {
    let template = Template::new().class(CKO_SECRET_KEY).key_type(kind.key_type());
    // PKCS#11 3.2 §5.18.5: of a type with one length none is said.
    if kind.has_one_length() {
        return template;
    }
    template.ulong(CKA_VALUE_LEN, length as CK_ULONG)
}

/// Derives into the token, by a template that names the key.
fn store(
    session: &Session,
    args: &Kept,
    label: &str,
    derive: impl FnOnce(Template) -> Result<ObjectHandle>,
) -> Result<Vec<Key>> {
    if !args.same_label {
        key::refuse_same_label(session, label)?;
    }
    let id = args.id.as_deref().map(arguments::id).transpose()?;
    let id = id.map_or_else(|| key::random_id(session), Ok)?;
    let usages = args.kind.usages(args.usage.as_deref());
    let extractable = args.extractable;
    let how = Brought {
        label,
        id: &id,
        subject: None,
        usages: Some(usages),
        sensitive: true,
        extractable,
    };
    let handle = derive(usage::secret(key::protected(&how, true), usages))?;
    key::made(session, (label, &id), &[handle])
}

/// The number that a public key is.
fn number(values: &Template) -> Option<Vec<u8>> {
    match values.find(CKA_VALUE) {
        Some(metaslot_client::Value::Bytes(bytes)) => Some(bytes.clone()),
        _ => None,
    }
}

/// What goes into the derivation beside the key.
#[derive(Debug)]
struct Input {
    /// The type of the other side's key, and its point.
    peer: Option<(Kind, Vec<u8>)>,
    salt: Option<Vec<u8>>,
    info: Vec<u8>,
}

impl Input {
    fn read(args: &Args) -> Result<Self> {
        let bytes = |option: &str, text: &Option<String>| {
            let wrong = || Failure::usage(format!("{option} is no hexadecimal"));
            text.as_deref().map(|text| from_hex(text).ok_or_else(wrong)).transpose()
        };
        let peer = match &args.peer {
            None => None,
            Some(path) => {
                let pair = keyfile::public_key(&Payload::short(Some(path))?)
                    .map_err(|failure| failure.context(path.display()))?;
                let info = pair.public.unwrap_or_default();
                let point = match pair.kind.family {
                    Family::Dh => keyfile::public_values(&info).ok().as_ref().and_then(number),
                    _ => x509::key_bits(&info).map(<[u8]>::to_vec),
                };
                Some((pair.kind, point.unwrap_or_default()))
            }
        };
        let info = bytes("--info-hex", &args.info_hex)?;
        let info = info.or_else(|| args.info.clone().map(String::into_bytes)).unwrap_or_default();
        Ok(Self { peer, salt: bytes("--salt", &args.salt)?, info })
    }

    fn mechanism(&self, key: &Key, args: &Args) -> Result<Mechanism<'_>> {
        let agrees = matches!(key.kind.family, Family::Ec | Family::Montgomery);
        let usual = match key.kind.key_type() {
            _ if agrees => CKM_ECDH1_DERIVE,
            CKK_DH => CKM_DH_PKCS_DERIVE,
            _ => CKM_HKDF_DERIVE,
        };
        let named = |name: &String| {
            let row = NAMES.iter().find(|row| row.0.eq_ignore_ascii_case(name));
            row.map_or_else(|| mechanism_number(name), |row| Ok(row.1))
        };
        let number = args.mechanism.as_ref().map_or(Ok(usual), named)?;
        match number {
            CKM_HKDF_DERIVE => self.hkdf(args),
            CKM_DH_PKCS_DERIVE | CKM_ECDH1_DERIVE | CKM_ECDH1_COFACTOR_DERIVE => {
                self.agreement(number, key, args)
            }
            _ => Err(Failure::usage("that mechanism is not served by this command")
                .hint("one of ecdh, ecdh-cofactor, dh, hkdf")),
        }
    }

    fn hkdf(&self, args: &Args) -> Result<Mechanism<'_>> {
        if self.peer.is_some() {
            return Err(Failure::usage("hkdf has no --peer"));
        }
        let salt_type = if self.salt.is_some() { CKF_HKDF_SALT_DATA } else { CKF_HKDF_SALT_NULL };
        let params = Params::Hkdf {
            extract: true,
            expand: true,
            prf: scheme::digest(args.hash.as_deref().unwrap_or("sha256"))?,
            salt_type,
            salt: self.salt.as_deref().unwrap_or_default(),
            salt_key: ObjectHandle(0),
            info: &self.info,
        };
        Ok(Mechanism::with(CKM_HKDF_DERIVE, params))
    }

    fn agreement(
        &self,
        number: CK_MECHANISM_TYPE,
        key: &Key,
        args: &Args,
    ) -> Result<Mechanism<'_>> {
        let Some((kind, public)) = &self.peer else {
            return Err(Failure::usage("an agreement needs the other side's public key: --peer"));
        };
        if *kind != key.kind {
            return Err(Failure::failed(format!(
                "the other side's key is {kind}, and '{}' is {}",
                key.label, key.kind
            )));
        }
        if self.salt.is_some() {
            return Err(Failure::usage("--salt is for hkdf"));
        }
        if number == CKM_DH_PKCS_DERIVE {
            return match args.hash.is_some() || !self.info.is_empty() {
                true => Err(Failure::usage("dh has no --hash and no --info")),
                false => Ok(Mechanism::with(number, Params::Bytes(public))),
            };
        }
        let kdf = match args.hash.as_deref().map(scheme::digest).transpose()? {
            None if !self.info.is_empty() => {
                return Err(Failure::usage("--info goes into a hash: say which with --hash"));
            }
            None => CKD_NULL,
            Some(hash) => {
                KDFS.iter().find(|row| row.0 == hash).map(|row| row.1).ok_or_else(|| {
                    Failure::usage("that hash makes no key of an agreed value")
                        .hint("one of sha1, sha224, sha256, sha384, sha512")
                })?
            }
        };
        Ok(Mechanism::with(number, Params::Ecdh1 { kdf, shared: &self.info, public }))
    }
}
