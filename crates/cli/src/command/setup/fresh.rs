// SPDX-License-Identifier: Apache-2.0
//! `metaslot setup --new`: what a program needs before it can use a key, made by the commands that a person would type.

use super::files::{OURS, make_directory, save};
use super::program::Program;

use crate::app::App;
use crate::command::target::Target;
use crate::failure::{Failure, Result};
use crate::places;
use crate::uri::Uri;
use metaslot_ck as ck;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The configuration of a machine whose services share a token.
const SYSTEM: &str = "/etc/metaslot/metaslot.toml";

/// Bytes of a PIN that nobody types, two digits each.
const PIN_BYTES: &str = "12";

/// Which key a program is to use.
#[derive(Debug)]
pub(super) struct Chosen {
    /// A URI or a label; otherwise the only one that there is.
    pub(super) key: Option<String>,
    pub(super) cert: String,
    /// The file with the PIN.
    pub(super) pin: Option<PathBuf>,
}

/// What is to be made where it is missing.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    /// The key's label.
    pub(super) label: &'a str,
    /// The certificate's names in the DNS.
    pub(super) names: &'a [String],
    pub(super) token: Uri,
    /// The certificate's file [default: in the directory, by the key's label].
    pub(super) cert: Option<&'a str>,
    /// The file with the user PIN [default: in the directory].
    pub(super) pin: Option<PathBuf>,
}

/// Makes what is missing, and leaves alone what is there.
pub(super) fn make(
    app: &App,
    wanted: Wanted<'_>,
    program: &Program,
    directory: &Path,
) -> Result<Chosen> {
    let label = wanted.label;
    make_directory(directory)?;
    if let Some(user) = program.user() {
        configure(app, user)?;
    }
    let step = |line: &[&str]| run(app, line);
    let pin = pin(app, &wanted, directory)?;
    let source = format!("file:{}", pin.display());
    let token = wanted.token;
    if !has_token(app, &token)? {
        let so = directory.join("so-pin");
        new_pin(&so)?;
        let so = format!("file:{}", so.display());
        let name = token.token.as_deref().unwrap_or("web");
        step(&["token", "init", "--label", name, "--so-pin-source", &so, "--pin-source", &source])?;
    }
    let token = app.token(&token)?.uri().to_string();
    let of_token = ["--token", &*token, "--pin-source", &*source];
    if run_quietly(&["key", "show", label, "--token", &token]).is_err() {
        step(&[&["key", "generate", "--label", label], &of_token[..]].concat())?;
    }
    let cert = match wanted.cert {
        Some(cert) => std::path::absolute(cert).unwrap_or_else(|_| PathBuf::from(cert)),
        None => directory.join(format!("{label}.pem")),
    };
    if !cert.exists() {
        let file = cert.display().to_string();
        let names: Vec<&str> = wanted.names.iter().flat_map(|name| ["--dns", name]).collect();
        let line = [&["cert", "selfsign", label, "--out", &*file][..], &names, &of_token].concat();
        step(&line)?;
    }
    Ok(Chosen { key: Some(label.to_owned()), cert: cert.display().to_string(), pin: Some(pin) })
}

/// Root's services give up root's rights: the token has to be one that they may use. Where there is a configuration, or a
/// token without one, it stays as it is.
fn configure(app: &App, user: &str) -> Result<()> {
    let is_set_up = places::in_force().is_some() || places::usual_token().exists();
    if is_set_up || !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    make_directory(Path::new(SYSTEM).parent().unwrap_or_else(|| Path::new("/")))?;
    let text = format!(
        "{OURS}[[token]]\npath = \"/var/lib/metaslot/{user}/token.db\"\ndescription = \"keys of services of {user}\"\n\
         group = \"{user}\"\n"
    );
    save(Path::new(SYSTEM), &text)?;
    app.output.note(&format!("written {SYSTEM}: a token for the group {user}"));
    Ok(())
}

/// The file with the user PIN: the one that was named, or one of our own.
fn pin(app: &App, wanted: &Wanted<'_>, directory: &Path) -> Result<PathBuf> {
    if let Some(named) = &wanted.pin {
        return Ok(named.clone());
    }
    let pin = directory.join("pin");
    if pin.exists() {
        return Ok(pin);
    }
    if has_token(app, &wanted.token)? {
        return Err(Failure::pin("the token is there already, and its PIN is not known")
            .hint("name a file with the user PIN, without a newline: --pin-source FILE"));
    }
    new_pin(&pin)?;
    Ok(pin)
}

fn has_token(app: &App, uri: &Uri) -> Result<bool> {
    let tokens = app.host(uri)?.matching(uri)?;
    Ok(tokens.iter().any(|token| token.has(ck::CKF_TOKEN_INITIALIZED)))
}

/// Random digits in a file that only its owner can read; no newline, which OpenSSL's engine would take for a part of it.
fn new_pin(path: &Path) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    let random = run_quietly(&["random", PIN_BYTES])?;
    let mut file = Target::open(Some(path), 0o600)?;
    file.write(random.trim_ascii_end())?;
    file.finish()
}

/// Says which command it is, and runs it.
fn run(app: &App, line: &[&str]) -> Result<()> {
    app.output.note(&format!("metaslot {}", line.join(" ")));
    run_quietly(line).map(drop)
}

/// Runs this command; its own explanation is the failure's.
fn run_quietly(line: &[&str]) -> Result<Vec<u8>> {
    let program = env::current_exe().unwrap_or_else(|_| PathBuf::from("metaslot"));
    let output = Command::new(program)
        .args(line)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::io("cannot run metaslot", &error))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or_default();
    let said = said.strip_prefix("error: ").unwrap_or(said);
    Err(Failure::failed(format!("metaslot {}: {said}", line[..2].join(" "))))
}
