// SPDX-License-Identifier: Apache-2.0
//! `metaslot encapsulate` and `metaslot decapsulate`

use super::arguments::{Opened, UserArg};
use super::derive::{Kept, template};
use super::payload::{self, Payload};
use super::target::Target;
use crate::app::App;
use crate::encoding::{base64, from_base64};
use crate::failure::{Failure, Result};
use crate::host::Token;
use crate::key::{self, Family, Key, Kind};
use crate::uri::Class;
use crate::{find, keyfile, scheme};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Session};
use serde_json::json;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  metaslot encapsulate --peer theirs.pem --out sealed.bin --label shared
  metaslot encapsulate --peer theirs.pem --out sealed.bin --type generic:32 --secret secret.bin";

const DECAPSULATE_EXAMPLES: &str = "\
Examples:
  metaslot decapsulate --key me --in sealed.bin --label shared
  metaslot decapsulate --key me --in sealed.bin --type generic:32 --out secret.bin";

const TYPES: &str = "What it is: aes:256, aes:128, chacha20, generic:32 (bytes) and others; pairs of ML-KEM agree on \
32 bytes";

/// What every parameter set of ML-KEM agrees on, in bytes.
const SECRET: usize = 32;

/// The hash of OAEP.
const HASH: &str = "sha256";

/// Arguments of `encapsulate`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, mut_arg("kind", |arg| arg.help(TYPES)))]
pub(crate) struct Args {
    /// The other side's public key, or its certificate: PEM or DER
    #[arg(long, value_name = "FILE", required_unless_present = "key", conflicts_with = "key")]
    peer: Option<PathBuf>,
    /// The public key, where it is in the token
    #[arg(long, value_name = "URI|LABEL")]
    key: Option<String>,
    /// Where the ciphertext for the other side goes; '-' is standard output
    #[arg(long = "out", short = 'o', value_name = "FILE")]
    ciphertext: PathBuf,
    #[command(flatten)]
    kept: Kept,
    /// Write the secret's value to a file, and keep nothing
    #[arg(long = "secret", value_name = "FILE", conflicts_with = "label")]
    output: Option<PathBuf>,
    /// Write the value in hexadecimal
    #[arg(long, requires = "output")]
    hex: bool,
    #[command(flatten)]
    user: UserArg,
}

/// Arguments of `decapsulate`.
#[derive(clap::Args, Debug)]
#[command(after_help = DECAPSULATE_EXAMPLES, mut_arg("kind", |arg| arg.help(TYPES)))]
pub(crate) struct OpenArgs {
    /// The pair that the ciphertext is for
    #[arg(long, value_name = "URI|LABEL")]
    key: String,
    /// The ciphertext, as 'metaslot encapsulate' writes it [default: standard input]
    #[arg(long = "in", short, value_name = "FILE")]
    input: Option<PathBuf>,
    #[command(flatten)]
    kept: Kept,
    /// Write the secret's value to a file, and keep nothing; '-' is standard output
    #[arg(long = "out", short, value_name = "FILE", conflicts_with = "label")]
    output: Option<PathBuf>,
    /// Write the value in hexadecimal
    #[arg(long, requires = "output")]
    hex: bool,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let length = args.kept.check("encapsulated")?;
    let is_stream = args.ciphertext == Path::new("-");
    if args.output.as_deref() == Some(&*args.ciphertext) {
        return Err(Failure::usage("the secret and the ciphertext go to two places"));
    }
    if !args.kept.keeps() {
        payload::refuse_mixed(&app.output, args.output.as_deref())?;
    }
    let Peer { session, token, name, kind, handle } = Peer::open(app, args)?;
    let mechanism = mechanism(&kind, &name)?;
    fits(&kind, &args.kept, length)?;
    let what = template(&args.kept.kind, length);
    let mut ciphertext = Vec::new();
    let made = args.kept.make(&session, |named| {
        let template = key::with(named, &what);
        let (bytes, made) = session.encapsulate(&mechanism, handle, &template)?;
        ciphertext = bytes;
        Ok(made)
    })?;
    let by = mechanism_name(mechanism.number);
    let json = json!({"for": name, "mechanism": by, "ciphertext": base64(&ciphertext)});
    let shown = args.kept.shown("encapsulated", &token, &made, json);
    // A document has it anyway.
    let target = if is_stream && app.output.json { None } else { Some(&*args.ciphertext) };
    let target = target.map(|path| written(path, &ciphertext)).transpose();
    let target = target.inspect_err(|_| made.undo(&session))?;
    if !args.kept.keeps() {
        // A ciphertext whose secret is nowhere replaces none.
        shown.write(app, made, args.output.as_deref(), args.hex)?;
        return target.map_or(Ok(()), Target::finish);
    }
    target.map_or(Ok(()), Target::finish).inspect_err(|_| made.undo(&session))?;
    if is_stream && !app.output.json {
        return Ok(());
    }
    shown.write(app, made, args.output.as_deref(), args.hex)
}

/// The ciphertext in its place, where it appears at the end.
fn written(path: &Path, ciphertext: &[u8]) -> Result<Target> {
    payload::refuse_to_lose_a_key(path)?;
    let mut target = Target::open(Some(path), 0o666)?;
    target.write_whole(ciphertext)?;
    Ok(target)
}

pub(crate) fn open(app: &App, args: &OpenArgs) -> Result<()> {
    let length = args.kept.check("decapsulated")?;
    if !args.kept.keeps() {
        payload::refuse_mixed(&app.output, args.output.as_deref())?;
    }
    let ciphertext = Payload::short(args.input.as_deref())?;
    let ciphertext = from_base64(&ciphertext).unwrap_or(ciphertext);
    let opened = args.user.open::<Key>(app, &args.key, args.kept.access())?;
    let name = opened.uri();
    let Opened { session, token, it: key, .. } = opened;
    let mechanism = mechanism(&key.kind, &key.label)?;
    fits(&key.kind, &args.kept, length)?;
    let private = key.part(Class::Private).ok_or_else(|| {
        Failure::not_found(format!("the token has only the public half of '{}'", key.label))
    })?;
    let what = template(&args.kept.kind, length);
    let made = args.kept.make(&session, |named| {
        let template = key::with(named, &what);
        let made = session.decapsulate(&mechanism, private, &ciphertext, &template);
        made.map_err(|error| match error.code {
            Error::WRAPPED_KEY_LEN_RANGE
                if key.kind.family == Family::Rsa && ciphertext.len() * 8 == key.kind.size =>
            {
                Failure::from(error)
                    .saying(&format!(
                        "the secret in it is longer or shorter than {}",
                        args.kept.kind
                    ))
                    .hint("give the --type that the other side encapsulated")
            }
            code if NO_CIPHERTEXT.contains(&code) => Failure::failed(format!(
                "that is no ciphertext for {}: it has {} bytes",
                key.kind,
                ciphertext.len()
            ))
            .hint("it is what 'metaslot encapsulate --out' wrote, for this key, byte by byte"),
            _ => Failure::from(error),
        })
    })?;
    let json = json!({"key": name, "mechanism": mechanism_name(mechanism.number)});
    let shown = args.kept.shown("decapsulated", &token, &made, json);
    shown.write(app, made, args.output.as_deref(), args.hex)
}

/// What modules answer to what is no ciphertext for a key.
const NO_CIPHERTEXT: [Error; 5] = [
    Error::WRAPPED_KEY_LEN_RANGE,
    Error::WRAPPED_KEY_INVALID,
    Error::ENCRYPTED_DATA_INVALID,
    Error::ENCRYPTED_DATA_LEN_RANGE,
    Error::PUBLIC_KEY_INVALID,
];

/// Whether the mechanism makes a secret of this type, which has so many bytes.
fn fits(pair: &Kind, kept: &Kept, length: usize) -> Result<()> {
    let message = match (pair.family, scheme::oaep_room(pair, HASH)) {
        (Family::MlKem, _) if length != SECRET => {
            format!("ML-KEM agrees on {SECRET} bytes, and {} has {length}", kept.kind)
        }
        (Family::Rsa, Some(most)) if length > most => format!(
            "{pair} carries up to {most} bytes by OAEP with SHA-256, and {} has {length}",
            kept.kind
        ),
        _ => return Ok(()),
    };
    Err(Failure::usage(message).hint(
        "'--type generic:32 --usage derive' makes a key that 'metaslot derive' makes others of",
    ))
}

/// By what pairs of a type encapsulate: an agreement with a pair for this once whose secret is hashed, and OAEP, by SHA-256.
pub(super) fn mechanism(kind: &Kind, name: &str) -> Result<Mechanism<'static>> {
    let agreed = Params::Ecdh1 { kdf: CKD_SHA256_KDF, shared: &[], public: &[] };
    match kind.family {
        Family::MlKem => Ok(CKM_ML_KEM.into()),
        Family::Rsa => Ok(Mechanism::with(CKM_RSA_PKCS_OAEP, scheme::oaep(HASH)?)),
        Family::Ec | Family::Montgomery => Ok(Mechanism::with(CKM_ECDH1_DERIVE, agreed)),
        _ => Err(Failure::failed(format!("'{name}' is {kind}, which does not encapsulate")).hint(
            "pairs of ML-KEM do: 'metaslot key generate --type ml-kem:768'; so do those of RSA and of curves with '--usage decapsulate'",
        )),
    }
}

/// The key that is encapsulated for, and a session that has it.
struct Peer {
    session: Session,
    token: Token,
    /// How it is called: its file, or its URI.
    name: String,
    kind: Kind,
    handle: ObjectHandle,
}

impl Peer {
    fn open(app: &App, args: &Args) -> Result<Self> {
        let access = args.kept.access();
        if let Some(path) = &args.peer {
            let name = path.display().to_string();
            let pair = keyfile::public_key(&Payload::short(Some(path))?)
                .map_err(|failure| failure.context(path.display()))?;
            mechanism(&pair.kind, &name)?;
            let uri = args.user.uri()?;
            let login = args.user.login(app, &uri)?;
            let (session, _) = app.log_in(&login, access)?;
            let handle = key::for_session(&session, &pair)?;
            return Ok(Self { session, token: login.token, name, kind: pair.kind, handle });
        }
        let asked = args.user.key(args.key.as_deref().unwrap_or_default())?;
        let login = args.user.login_with(app, &asked)?;
        let (session, _) = app.log_in(&login, access)?;
        let key = find::one::<Key>(&session, &login.token.uri(), &asked)?;
        let handle = key.part(Class::Public).ok_or_else(|| {
            Failure::not_found(format!("the token has only the private half of '{}'", key.label))
        })?;
        let name = key.uri(&login.token.uri()).to_string();
        Ok(Self { session, token: login.token, name, kind: key.kind, handle })
    }
}
