// SPDX-License-Identifier: Apache-2.0
//! What a recipe says of the key, its token and this machine.

use super::credential::Credential;
use super::fresh::Chosen;
use super::program::{Bridge, Program};
use super::{edwards, plain};
use crate::app::App;
use crate::command::arguments::{TokenArg, key_uri};
use crate::command::{bridges, doctor, uri2pem};
use crate::encoding::{der_of, hex, pem, word};
use crate::failure::{Exit, Failure, Result};
use crate::host::{Host, Token};
use crate::key::{self, Family, Key};
use crate::uri::{Class, Uri};
use crate::x509::Certificate;
use metaslot_ck::{CKA_ID, CKF_LOGIN_REQUIRED, CKO_CERTIFICATE};
use metaslot_client::{Access, Session, Template};
use metaslot_memory::Secret;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// libp11's engine reads so many bytes of a file with a PIN, and takes them for the PIN.
const LONGEST_OF_ENGINE: usize = 31;

/// What is typed before pkcs11-provider is there.
const PROVIDER: &str =
    "apt-get install pkcs11-provider          # Debian 12: from bookworm-backports\n";

/// What stands in the place of names in a recipe.
pub(super) type Values = Vec<(&'static str, String)>;

/// What is known of the key that the program is to use.
pub(super) struct Found {
    pub(super) values: Values,
    /// The public half, in PEM.
    pub(super) public: String,
    /// Where it is; none where the recipe goes without.
    pub(super) token: Option<Token>,
}

/// What is said on the command line, and what was made.
pub(super) struct Said<'a> {
    pub(super) token: &'a TokenArg,
    /// Whether the program is to be run.
    pub(super) is_run: bool,
    /// Whether the daemon has the key, and its PIN.
    pub(super) is_daemons: bool,
    pub(super) chosen: &'a Chosen,
    pub(super) credential: Option<&'a Credential>,
    /// The module that the user named.
    pub(super) module: Option<&'a Path>,
    pub(super) program: &'a Program,
    pub(super) directory: &'a Path,
}

impl Said<'_> {
    /// Of a recipe that says nothing of a key none needs to be there.
    pub(super) fn find(&self, app: &App) -> Result<Found> {
        let without = |app: &App| {
            let values = self.of_machine(app.host(&Uri::default())?, true)?;
            Ok(Found { values, public: String::new(), token: None })
        };
        if self.program.bridge == Bridge::All {
            return without(app);
        }
        let is_named = self.chosen.key.is_some() || self.token.uri()? != Uri::default();
        let is_free = !self.is_run && !is_named && !self.program.names_key();
        match self.of_key(app) {
            Err(failure) if is_free && failure.is(Exit::NotFound) => {
                let found = without(app)?;
                app.output.note(&format!("note: no key was looked at: {}", failure.message()));
                Ok(found)
            }
            found => found,
        }
    }

    fn of_key(&self, app: &App) -> Result<Found> {
        let (chosen, program) = (self.chosen, self.program);
        let uri = chosen.key.as_deref().map(key_uri).transpose()?.unwrap_or_default();
        let uri = self.token.of(uri)?;
        let host = app.host(&uri)?;
        let token = app.token_with(&uri)?;
        let session = host.module().open_session(token.slot, Access::ReadOnly)?;
        let key = one(key::search(&session, &uri)?, &uri, &token.uri())?;
        let mut full = Uri { class: Some(Class::Private), ..key.uri(&token.uri()) };
        // A label is enough where there is one, and some programs take no id.
        full.id = full.id.filter(|_| key.label.is_empty());
        if self.is_run {
            has_certificate(program, &session, &key, &Uri { class: None, ..full.clone() })?;
        }
        let bare = full.to_string();
        let source = self.source()?;
        full.pin_source = source.as_deref().map(|path| format!("file:{}", path.display()));
        edwards::check(program, host, &token, &key)?;
        let family = match key.kind.family {
            Family::Rsa => "rsa",
            Family::Edwards if key.kind.size == 32 => "ed25519",
            Family::Edwards => "ed448",
            _ => "ecdsa",
        };
        let public = key.part(Class::Public).map(|half| key::public_key(&session, &key, half));
        let public = public.transpose()?.unwrap_or_default();
        if program.says(&["cert"]) {
            of_this_key(&chosen.cert, &public)?;
        }
        for (what, name) in [("token", &token.info.label), ("label", &key.label)] {
            program.take_name(what, name)?;
        }
        let mut values =
            self.of_machine(host, token.has(CKF_LOGIN_REQUIRED) && !self.is_daemons)?;
        values.extend([
            ("barepem", uri2pem::pem_of(&bare).trim_end().to_owned()),
            ("bare", bare),
            ("uri", full.to_string()),
            ("keyuri", key.uri(&token.uri()).to_string()),
            ("tokenuri", token.uri().to_string()),
            ("token", token.info.label.clone()),
            ("serial", pattern(&token.info.serial)),
            ("label", key.label.clone()),
            ("id", hex(&key.id)),
            ("slot", token.slot.to_string()),
            ("family", family.to_owned()),
            ("pem", uri2pem::pem_of(&full.to_string()).trim_end().to_owned()),
            // OpenSSH has none for some curves.
            ("sshkey", key::ssh_line(&key.kind, &public, "").unwrap_or_default()),
            ("kind", key.kind.to_string()),
        ]);
        plain::check(&values, source.as_deref().filter(|_| self.is_run))?;
        Ok(Found { values, public: pem("PUBLIC KEY", &public), token: Some(token) })
    }

    /// The file with the PIN, as the URI names it.
    fn source(&self) -> Result<Option<PathBuf>> {
        let pin = self.chosen.pin.as_deref();
        let source = pin.map(|path| pin_file(path, self.program)).transpose()?;
        Ok(self.credential.map(Credential::file).or(source))
    }

    /// Where the key is in a token that asks for no PIN, none is named.
    pub(super) fn of_machine(&self, host: &Host, asks: bool) -> Result<Values> {
        let Self { is_run, chosen, credential, program, directory, .. } = self;
        let module = fs::canonicalize(host.module().path())
            .map_err(|error| Failure::io("cannot find the module", &error))?;
        let command = if *is_run { env::current_exe() } else { Ok(PathBuf::new()) };
        let command = command.map_err(|error| Failure::io("cannot find this command", &error))?;
        let agent = match doctor::agent_pattern(&module) {
            Some(pattern) => format!("ssh-agent -P '{pattern}'"),
            None => String::from("ssh-agent"),
        };
        let engine =
            if program.bridge == Bridge::Engine { bridges::engine()? } else { PathBuf::new() };
        let provider = match program.bridge {
            Bridge::Own | Bridge::All => bridges::own(self.module)?,
            _ => PathBuf::new(),
        };
        let pin = self.source()?;
        // There it stands in a configuration.
        let named = pin.clone().filter(|_| program.bridge.is_provider());
        // A service has no terminal to ask at.
        let is_said = pin.is_some() || program.user().is_some() && asks;
        let pin = pin.unwrap_or_else(|| PathBuf::from("/etc/metaslot/pin"));
        let source =
            if is_said { format!("pin-source = file:{}\n", pin.display()) } else { String::new() };
        let needs = if program.bridge == Bridge::Provider { PROVIDER } else { "" };
        let values = vec![
            ("module", module.display().to_string()),
            ("metaslot", command.display().to_string()),
            ("engine", engine.display().to_string()),
            ("provider", provider.display().to_string()),
            ("source", source),
            ("needs", needs.to_owned()),
            ("cnf", program.file().unwrap_or_default().to_owned()),
            ("directory", directory.display().to_string()),
            ("cert", chosen.cert.clone()),
            ("agent", agent),
            ("credential", credential.map_or_else(String::new, |it| format!("\n{}", it.line()))),
            ("pinfile", pin.display().to_string()),
        ];
        plain::check(&values, named.as_deref())?;
        Ok(values)
    }
}

/// Refuses a key without a certificate in the token where the program shows none such.
fn has_certificate(program: &Program, session: &Session, key: &Key, uri: &Uri) -> Result<()> {
    let Some(why) = program.shows_by_certificate() else { return Ok(()) };
    let of_key = Template::new().class(CKO_CERTIFICATE).bytes(CKA_ID, &key.id);
    if !session.find(&of_key)?.is_empty() {
        return Ok(());
    }
    let message = format!("{why}, and {uri} has none in the token");
    let options = program.certificate();
    Err(Failure::failed(message).hint(format!(
        "metaslot cert selfsign {} {options} --dns NAME; or of a CA: metaslot cert import FILE",
        word(uri)
    )))
}

/// What finds a serial number, and means nothing else to a shell.
fn pattern(serial: &str) -> String {
    serial.replace(|letter: char| !letter.is_ascii_alphanumeric(), ".")
}

/// Refuses a certificate that is there and is another key's.
fn of_this_key(file: &str, public: &[u8]) -> Result<()> {
    let Ok(text) = fs::read(file) else { return Ok(()) };
    let der = der_of(&text, &["CERTIFICATE"]).unwrap_or(text);
    match Certificate::read(&der) {
        Some(certificate) if certificate.public_key == public => Ok(()),
        Some(_) => Err(Failure::failed(format!("the certificate {file} is another key's"))
            .hint("name the key's own with --cert, or move that one away")),
        None => Err(Failure::failed(format!("{file} is no certificate"))),
    }
}

/// The one key pair.
fn one(mut keys: Vec<Key>, uri: &Uri, token: &Uri) -> Result<Key> {
    keys.retain(|key| key.part(Class::Public).is_some());
    if keys.is_empty() && uri.object.is_none() {
        return Err(Failure::not_found("the token has no key pair yet")
            .hint("metaslot key generate --label site"));
    }
    key::only(keys, uri, token).map_err(|failure| failure.chosen_by("--key"))
}

/// The whole name of the PIN's file, if the program takes what is in it for the PIN.
pub(super) fn pin_file(path: &Path, program: &Program) -> Result<PathBuf> {
    let cannot = |error| Failure::io(format!("cannot read {}", path.display()), &error);
    let bytes = Secret::taken(fs::read(path).map_err(cannot)?);
    if bytes.expose().trim_ascii_end().is_empty() {
        return Err(Failure::pin(format!("{} is empty: there is no PIN in it", path.display()))
            .hint(format!("write it: printf %s PIN > {}", path.display())));
    }
    if program.bridge == Bridge::Engine && bytes.expose().ends_with(b"\n") {
        let message = format!(
            "{} ends with a newline, which OpenSSL's engine takes for a part of the PIN: each start would cost a try",
            path.display()
        );
        return Err(Failure::failed(message).hint("write it by printf %s"));
    }
    if program.bridge == Bridge::Engine && bytes.expose().len() > LONGEST_OF_ENGINE {
        let message = format!(
            "{} is longer than the {LONGEST_OF_ENGINE} bytes that OpenSSL's engine reads: each start would cost a try",
            path.display()
        );
        return Err(Failure::failed(message).hint("set a shorter PIN: metaslot token pin"));
    }
    fs::canonicalize(path).map_err(cannot)
}
