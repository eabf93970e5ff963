// SPDX-License-Identifier: Apache-2.0
//! The key and the certificates of a proxy: in a token, brought into one, or in a file that the server reads itself.

use super::arguments::{Create, Format};
use crate::app::{App, Login};
use crate::certificate::{Stored, issuers, key_of, labelled, read};
use crate::command::payload::Payload;
use crate::command::setup;
use crate::encoding::{blocks, from_base64, pem, word};
use crate::failure::{Failure, Result};
use crate::find;
use crate::host::Token;
use crate::output::warn;
use crate::personality::material::token_spec;
use crate::pin::{self, Role, Source};
use crate::uri::{Class, Uri};
use crate::x509::Certificate;
use metaslot_ck::CKF_LOGIN_REQUIRED;
use metaslot_client::Access;
use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const CERTIFICATE: &str = "CERTIFICATE";

/// What the proxy shows, and by what it signs.
pub(super) enum Material {
    InToken(Box<InToken>),
    /// A file with all of it.
    File(PathBuf),
}

/// A key that stays in its token.
pub(super) struct InToken {
    pub(super) token: Token,
    pub(super) key: Uri,
    /// The file with the PIN, by its whole name.
    pub(super) pin: Option<PathBuf>,
    /// The certificate and those of its issuers, in PEM.
    pub(super) chain: String,
}

impl Material {
    pub(super) fn find(app: &App, args: &Create) -> Result<Self> {
        match (args.format, &args.token, &args.file) {
            (Format::Pkcs11, Some(token), _) => {
                let label = args.certificate.clone().unwrap_or_default();
                in_token(app, args, token, &label, args.password.as_deref())
            }
            (_, Some(token), Some(file)) => brought(app, args, token, file),
            (Format::Pem, None, Some(file)) => in_file(file).map(Self::File),
            (_, _, file) => {
                let what =
                    "a server reads no PKCS #12, and no key is written to a disk in the clear";
                let file = file.as_deref().unwrap_or_else(|| Path::new("FILE")).display();
                Err(Failure::failed(what).hint(format!(
                    "-T TOKEN brings the key into a token: -f pkcs12 -i {file} -T TOKEN"
                )))
            }
        }
    }

    /// What it is called in a list.
    pub(super) fn name(&self) -> String {
        match self {
            Self::InToken(it) => it.key.to_string(),
            Self::File(path) => path.display().to_string(),
        }
    }
}

/// The certificate of a label, its key, and those of its issuers.
fn in_token(
    app: &App,
    args: &Create,
    token: &str,
    label: &str,
    pin: Option<&Path>,
) -> Result<Material> {
    let uri = token_spec(token)?;
    let token = app.token(&uri)?;
    let pin = pin_file(&token, pin)?;
    let option = pin.as_ref().map(|pin| format!("file:{}", pin.display()));
    // The proxy that has the key logs in as the user.
    pin::only_as_user()?;
    let login =
        Login { token, uri: &uri, option: option.as_deref(), identity: None, is_named: false };
    let (session, _) = app.log_in(&login, Access::ReadOnly)?;
    let token = login.token;
    let wanted =
        Uri { object: Some(label.to_owned()), class: Some(Class::Certificate), ..Uri::default() };
    let found: Stored = find::one(&session, &token.uri(), &wanted)?;
    let certificate = read(&found.der)?;
    let key = key_of(&session, certificate.public_key)?;
    let Some(key) = key.filter(|key| key.part(Class::Private).is_some()) else {
        let what = format!("the token does not have the key of the certificate '{label}'");
        return Err(Failure::not_found(what).hint(
            "'metaslot key import' brings it there; 'metaslot key list' shows what there is",
        ));
    };
    let key = Uri { class: Some(Class::Private), ..key.uri(&token.uri()) };
    let more = match &args.chain {
        Some(file) => chain(file, &certificate)?,
        None => {
            let all = issuers(&session, &found.der)?.into_iter().map(|issuer| issuer.der);
            // Who checks has the root already.
            let is_root = |der: &[u8]| read(der).is_ok_and(|it| it.issuer == it.subject);
            all.filter(|der| !is_root(der)).collect()
        }
    };
    let chain = [found.der].into_iter().chain(more);
    let chain = chain.map(|der| pem(CERTIFICATE, &der)).collect();
    Ok(Material::InToken(Box::new(InToken { token, key, pin, chain })))
}

/// A service cannot ask for a PIN: it is in a file.
fn pin_file(token: &Token, said: Option<&Path>) -> Result<Option<PathBuf>> {
    let variable = env::var(Role::User.variable()).ok().filter(|text| !text.is_empty());
    let source = match (said, variable) {
        (Some(path), _) => Some(Source::File(path.display().to_string())),
        (None, Some(text)) => Some(Source::parse(&text)?),
        (None, None) => None,
    };
    match source {
        Some(Source::File(path)) => fs::canonicalize(&path)
            .map(Some)
            .map_err(|error| Failure::io(format!("cannot read the PIN file {path}"), &error)),
        None if !token.has(CKF_LOGIN_REQUIRED) => Ok(None),
        _ => Err(Failure::pin("the proxy reads the user PIN from a file, and none is named")
            .hint("name it: -p FILE")),
    }
}

/// The certificates of a file in PEM, the first of which issued this one.
fn chain(file: &Path, of: &Certificate<'_>) -> Result<Vec<Vec<u8>>> {
    let bytes = Payload::short(Some(file))?;
    let name = file.display();
    let wrong = |what: &str| Failure::failed(format!("{name}: {what}"));
    let text = str::from_utf8(&bytes).map_err(|_| wrong("it is no PEM"))?;
    let (blocks, cut) = blocks(text);
    if cut.is_some() {
        return Err(wrong("its end is missing"));
    }
    let of_block = |block: &crate::encoding::Block<'_>| {
        let der =
            from_base64(block.content.as_bytes()).filter(|der| Certificate::read(der).is_some());
        der.ok_or_else(|| wrong("one of its certificates is none"))
    };
    let all = blocks.iter().filter(|block| block.label == CERTIFICATE).map(of_block);
    let all = all.collect::<Result<Vec<_>>>()?;
    match all.first().and_then(|first| Certificate::read(first)) {
        None => Err(wrong("there is no certificate in it")
            .hint("-h takes the certificates of the CAs in PEM, the issuer of the server's first")),
        Some(first) if first.subject == of.issuer => Ok(all),
        Some(_) => {
            warn(format!(
                "{name}: its first certificate is not the issuer of the server's: clients may refuse it"
            ));
            Ok(all)
        }
    }
}

/// Brings the key of a file into the token, once.
fn brought(app: &App, args: &Create, token: &str, file: &Path) -> Result<Material> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let label = args.certificate.clone().unwrap_or(stem);
    let uri = token_spec(token)?;
    let found = app.token(&uri)?;
    let said = args.pin_source.as_deref().map(Source::parse).transpose()?;
    let said = match said {
        Some(Source::File(path)) => Some(PathBuf::from(path)),
        Some(_) => {
            return Err(Failure::usage(
                "the proxy reads the PIN from a file, and not from a command",
            ));
        }
        None => None,
    };
    let pin = pin_file(&found, said.as_deref())?;
    let session = app.host(&uri)?.module().open_session(found.slot, Access::ReadOnly)?;
    if labelled(&session, Some(&label))?.is_empty() {
        let token = found.uri().to_string();
        let file = file.display().to_string();
        let mut line = vec!["key", "import", &file, "--label", &label, "--token", &token];
        let pin = pin.as_ref().map(|pin| format!("file:{}", pin.display()));
        line.extend(pin.iter().flat_map(|pin| ["--pin-source", pin]));
        let phrase = args.password.as_ref().map(|path| format!("file:{}", path.display()));
        line.extend(phrase.iter().flat_map(|phrase| ["--passphrase-source", phrase]));
        setup::run_command(app, &line)?;
        app.output
            .note(&format!("the key is in the token now: {} is not needed any more", word(&file)));
    } else {
        app.output.note(&format!(
            "the token has a certificate '{label}': it is used, and {} is not read",
            file.display()
        ));
    }
    in_token(app, args, token, &label, pin.as_deref())
}

/// A file that the server reads by itself, at every start.
fn in_file(file: &Path) -> Result<PathBuf> {
    let cannot = |error| Failure::io(format!("cannot read {}", file.display()), &error);
    let whole = fs::canonicalize(file).map_err(cannot)?;
    let bytes = Payload::short_secret(&whole)?;
    let text = str::from_utf8(bytes.expose()).unwrap_or_default();
    let (blocks, _) = blocks(text);
    let keys = blocks.iter().filter(|block| block.label.ends_with("PRIVATE KEY"));
    let sealed = |block: &&crate::encoding::Block<'_>| {
        block.label.starts_with("ENCRYPTED") || block.headers.iter().any(|row| row.0 == "Proc-Type")
    };
    let name = file.display();
    if keys.clone().count() == 0 || !blocks.iter().any(|block| block.label == CERTIFICATE) {
        return Err(Failure::failed(format!("{name} has no private key and certificate in PEM"))
            .hint("both are in one file: the certificate, those of its CAs, the key"));
    }
    if keys.clone().any(|block| sealed(&block)) {
        return Err(Failure::failed(format!(
            "the key in {name} is encrypted, and the server cannot ask for its password"
        ))
        .hint(format!("-T TOKEN brings it into a token: -f pem -i {name} -T TOKEN")));
    }
    if whole.metadata().map_err(cannot)?.mode() & 0o006 != 0 {
        warn(format!(
            "every user of this machine may read or change the key in {name}: chmod 600 {name}"
        ));
    }
    Ok(whole)
}
