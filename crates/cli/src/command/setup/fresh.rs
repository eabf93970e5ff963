// SPDX-License-Identifier: Apache-2.0
//! `metaslot setup --new`: what a program needs before it can use a key, made by the commands that a person would type.

use super::edwards;
use super::files::{make_directory, save};
use super::program::{Bridge, Program};
use super::service;
use crate::app::App;
use crate::command::arguments::token_uri;
use crate::command::target::Target;
use crate::failure::{Exit, Failure, Result};
use crate::output::warn;
use crate::pin::cost::LONG_ENOUGH;
use crate::places;
use crate::uri::Uri;
use metaslot_ck::{CK_OBJECT_CLASS, CKF_USER_PIN_INITIALIZED, CKO_CERTIFICATE, CKO_PUBLIC_KEY};
use metaslot_client::{Access, Template};
use metaslot_memory::Secret;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
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
    // Before the module is asked anything: it reads its configuration once.
    if let Some(user) = program.user() {
        service::is_there(program, user)?;
        configure(app, user)?;
    }
    if program.bridge == Bridge::Engine {
        edwards::beside(app, &wanted.token)?;
    }
    match &app.host(&wanted.token)?.candidates(&wanted.token)?[..] {
        [] => service::may_use_new(program, app)?,
        [token] => service::may_use(program, app, token)?,
        // It is said which there are.
        _ => {}
    }
    make_directory(directory)?;
    let _alone = alone(app, directory)?;
    let step = |line: &[&str]| run(app, line);
    let (token, pin) = token(app, &wanted, directory)?;
    let source = format!("file:{}", pin.display());
    let of_token = ["--token", &*token, "--pin-source", &*source];
    if !has(app, &token, CKO_PUBLIC_KEY, label)? {
        step(&[&["key", "generate", "--label", label], &of_token[..]].concat())?;
    }
    let cert = match wanted.cert {
        Some(cert) => std::path::absolute(cert).unwrap_or_else(|_| PathBuf::from(cert)),
        None => directory.join(format!("{label}.pem")),
    };
    let (file, more) = (cert.display().to_string(), program.certificate());
    if !cert.exists() {
        let names: Vec<&str> = wanted.names.iter().flat_map(|name| ["--dns", name]).collect();
        let more: Vec<&str> = more.split_whitespace().collect();
        let line = ["cert", "selfsign", label, "--out", &*file];
        step(&[&line[..], &more, &names, &of_token].concat())?;
    } else if more.contains("--store") && !has(app, &token, CKO_CERTIFICATE, label)? {
        step(&[&["cert", "import", &*file, "--label", label], &of_token[..]].concat())?;
    }
    if let Some(user) = program.user().filter(|_| program.reads_late()) {
        readable_by(user, &pin, directory)?;
    }
    let key = Uri { object: Some(label.to_owned()), ..token_uri(&token)? };
    Ok(Chosen { key: Some(key.to_string()), cert: cert.display().to_string(), pin: Some(pin) })
}

/// The directory, in which one at a time makes what is missing: the next one finds it there. The system forgets the lock with us;
/// where it has none, on NFS for example, it is done without.
fn alone(app: &App, directory: &Path) -> Result<File> {
    let locked = File::open(directory)
        .map_err(|error| Failure::io(format!("cannot open {}", directory.display()), &error))?;
    if flock(&locked, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        let place = directory.display();
        app.output.note(&format!("waiting for another 'metaslot setup --new' in {place}"));
        flock(&locked, FlockOperation::LockExclusive).ok();
    }
    Ok(locked)
}

/// Refuses what could name no file beside the others, or no host.
pub(super) fn check_names(label: &str, names: &[String]) -> Result<()> {
    let plain =
        |more: &'static [u8]| move |byte: u8| byte.is_ascii_alphanumeric() || more.contains(&byte);
    if label.is_empty() || label.starts_with('.') || !label.bytes().all(plain(b"._@+-")) {
        return Err(Failure::usage(format!(
            "a new key's label is of letters, digits and ._@+-, not '{label}'"
        )));
    }
    match names.iter().find(|name| name.is_empty() || !name.bytes().all(plain(b".-*_"))) {
        Some(name) => Err(Failure::usage(format!("'{name}' is no name in the DNS"))),
        None => Ok(()),
    }
}

/// Root's services give up root's rights: the token has to be one that they may use. Where there is a configuration, or a
/// token without one, it stays as it is.
fn configure(app: &App, user: &str) -> Result<()> {
    let is_configured = places::in_force().is_some() || !places::drop_ins().is_empty();
    let is_set_up = is_configured || places::usual_token().exists();
    if is_set_up || !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    make_directory(Path::new(SYSTEM).parent().unwrap_or_else(|| Path::new("/")))?;
    let text = format!(
        "# Made by 'metaslot setup --new', and never again.\n\
         [[token]]\npath = \"/var/lib/metaslot/{user}/token.db\"\ndescription = \"keys of services of {user}\"\n\
         group = \"{user}\"\npin_min = {LONG_ENOUGH}\n"
    );
    save(Path::new(SYSTEM), &text, 0o644)?;
    app.output.note(&format!("written {SYSTEM}: a token for the group {user}"));
    Ok(())
}

/// The token's URI and the file with its user PIN: the one that was named, or one of our own, in which it was made.
fn token(app: &App, wanted: &Wanted<'_>, directory: &Path) -> Result<(String, PathBuf)> {
    let exists = !app.host(&wanted.token)?.candidates(&wanted.token)?.is_empty();
    let label = match exists {
        true => app.token(&wanted.token)?.info.label,
        false => wanted.token.token.clone().unwrap_or_else(|| "web".to_owned()),
    };
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let name: String = label.chars().map(plain).collect();
    let [own, so, serial] =
        ["pin", "so-pin", "token"].map(|kind| directory.join(format!("{name}.{kind}")));
    // One is begun with an empty file, which is all that a run has of its token that was killed.
    let is_begun = serial.metadata().is_ok_and(|file| file.is_file() && file.len() == 0);
    if exists && !is_begun {
        let token = app.token(&wanted.token)?;
        let pin = match &wanted.pin {
            Some(pin) => pin.clone(),
            None => of_token(own, &serial, &token.info.serial)?,
        };
        return Ok((token.uri().to_string(), pin));
    }
    if serial.exists() && !is_begun {
        let what = format!("{} is of a token that is not there", serial.display());
        return Err(Failure::failed(what).hint(format!(
            "mount its store, or name it in the configuration; for another token: --directory, or move {name}.pin, {name}.so-pin and {name}.token away"
        )));
    }
    // Before one of them is made.
    [&so, &own].into_iter().try_for_each(|path| filled(path))?;
    new_pin(app, &so)?;
    if wanted.pin.is_none() {
        new_pin(app, &own)?;
    }
    let pin = wanted.pin.clone().unwrap_or(own);
    let [so, user] = [&so, &pin].map(|path| format!("file:{}", path.display()));
    save(&serial, "", 0o644)?;
    let is_whole = exists && app.token(&wanted.token)?.has(CKF_USER_PIN_INITIALIZED);
    let line = match is_whole {
        true => ["token", "show", "--token", &label, "--pin-source", &user].to_vec(),
        false => {
            ["token", "init", "--label", &label, "--so-pin-source", &so, "--pin-source", &user]
                .to_vec()
        }
    };
    run(app, &line).map_err(|failure| {
        if exists && failure.is(Exit::Pin) {
            // It is another's, and no PIN is tried there again.
            fs::remove_file(&serial).ok();
            return failure;
        }
        let now = app.host(&wanted.token).and_then(|host| host.candidates(&wanted.token));
        match now.is_ok_and(|now| !now.is_empty()) {
            true => {
                if !is_begun {
                    fs::remove_file(&serial).ok();
                }
                Failure::pin("another command has made the token in the meantime")
                    .hint("name the file with its user PIN: --pin-source FILE")
            }
            false => failure,
        }
    })?;
    let token = app.token(&wanted.token)?;
    save(&serial, &format!("{}\n", token.info.serial), 0o644)?;
    Ok((token.uri().to_string(), pin))
}

/// The PIN's file of our own, if it was made for this token: it is tried at no other one.
fn of_token(pin: PathBuf, serial: &Path, token: &str) -> Result<PathBuf> {
    let hint = "name a file with the user PIN, without a newline: --pin-source FILE";
    if !pin.exists() {
        let what = "the token is there already, and its PIN is not known";
        return Err(Failure::pin(what).hint(hint));
    }
    filled(&pin)?;
    match fs::read_to_string(serial) {
        Ok(known) if known.trim() == token => Ok(pin),
        _ => {
            let what = format!("{} is not known to be the PIN of this token", pin.display());
            Err(Failure::pin(what).hint(hint))
        }
    }
}

/// Refuses a file in which there is no PIN: it may be another run's that the disk had no room for.
fn filled(pin: &Path) -> Result<()> {
    match pin.metadata() {
        Ok(file) if file.is_file() && file.len() == 0 => {
            let path = pin.display();
            Err(Failure::pin(format!("{path} is empty")).hint(format!(
                "rm {path}: for a new token one is made; of a token that is there, write its PIN into it: printf %s PIN > {path}"
            )))
        }
        _ => Ok(()),
    }
}

fn has(app: &App, token: &str, class: CK_OBJECT_CLASS, label: &str) -> Result<bool> {
    let token = app.token(&token_uri(token)?)?;
    let session = app.host(&Uri::default())?.module().open_session(token.slot, Access::ReadOnly)?;
    Ok(!session.find(&Template::new().class(class).label(label))?.is_empty())
}

/// The provider reads the PIN in the processes of the service's user. A file that is not of our directory stays as it is.
fn readable_by(group: &str, pin: &Path, directory: &Path) -> Result<()> {
    if !rustix::process::geteuid().is_root() || pin.parent() != Some(directory) {
        return Ok(());
    }
    let changed = Command::new("chgrp").arg(group).arg(pin).stderr(Stdio::null()).status();
    if !changed.is_ok_and(|status| status.success()) {
        return Err(Failure::failed(format!("{} cannot be given to group {group}", pin.display()))
            .hint("'getent group' lists the groups"));
    }
    fs::set_permissions(pin, Permissions::from_mode(0o640))
        .map_err(|error| Failure::io(format!("cannot change {}", pin.display()), &error))
}

/// Random digits in a file that only its owner can read; no newline, which OpenSSL's engine would take for a part of it. One
/// that is there is taken: it may be another run's.
fn new_pin(app: &App, path: &Path) -> Result<()> {
    let random = Secret::taken(run_quietly(app, &["random", PIN_BYTES])?);
    let mut file = Target::create(path, 0o600)?;
    file.write(random.expose().trim_ascii_end())?;
    match file.finish() {
        Err(_) if path.exists() => Ok(()),
        made => made,
    }
}

/// Says which command it is, and runs it.
pub(crate) fn run(app: &App, line: &[&str]) -> Result<()> {
    app.output.note(&format!("metaslot {}", line.join(" ")));
    run_quietly(app, line).map(drop)
}

/// Runs this command, with the same module; its own explanation is the failure's.
fn run_quietly(app: &App, line: &[&str]) -> Result<Vec<u8>> {
    let program = env::current_exe().unwrap_or_else(|_| PathBuf::from("metaslot"));
    let module = app.named_module().map(|path| [OsStr::new("--module"), path.as_os_str()]);
    let output = Command::new(program)
        .args(line)
        .args(module.into_iter().flatten())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::io("cannot run metaslot", &error))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let of = |mark: &str| {
        said.lines()
            .filter_map(|line| line.strip_prefix(mark))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    of("warning: ").into_iter().for_each(warn);
    if output.status.success() {
        return Ok(output.stdout);
    }
    let why = of("error: ").into_iter().next().unwrap_or_else(|| output.status.to_string());
    let exit = match output.status.code() {
        Some(3) => Exit::NotFound,
        Some(4) => Exit::Pin,
        _ => Exit::Failed,
    };
    let failure = Failure::new(exit, format!("metaslot {}: {why}", line[..2].join(" ")));
    Err(of("hint: ").into_iter().fold(failure, Failure::hint))
}
