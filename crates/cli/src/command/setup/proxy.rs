// SPDX-License-Identifier: Apache-2.0
//! Servers as TLS proxies before a plain server, as `ksslcfg` makes them: by the recipe's sections for that, with a key of a token
//! by the bridge that `metaslot setup` would take.

use super::credential::Credential;
use super::fresh::Chosen;
use super::program::{Bridge, Program};
use super::tested;
use super::values::{Said, Values, pin_file};
use super::{bridged, in_path, plain, program_path, service};
use crate::app::App;
use crate::command::arguments::TokenArg;
use crate::command::{bridges, doctor, uri2pem};
use crate::failure::{Failure, Result};
use crate::host::Token;
use crate::uri::Uri;
use std::fs;
use std::path::{Path, PathBuf};

/// What a service's user reads first.
const PIN: &str = "the file with the PIN";

/// In the order in which one is taken.
const PROXIES: [&str; 2] = ["haproxy", "nginx"];

/// A server that is to be the proxy.
#[derive(Debug)]
pub(crate) struct Proxy {
    program: Program,
}

/// A key of a token, and how a process finds it.
#[derive(Debug)]
pub(crate) struct TokenKey<'a> {
    pub(crate) key: &'a Uri,
    /// The file with the PIN.
    pub(crate) pin: Option<&'a Path>,
    /// The unit that has that file as a credential, if one has it.
    pub(crate) unit: Option<&'a str>,
}

impl Proxy {
    /// The one that was named, or the first that is installed.
    pub(crate) fn choose(named: Option<&str>, module: Option<&Path>) -> Result<Self> {
        let known = |name: &&&str| named.is_none_or(|named| named == **name);
        let all = PROXIES.iter().filter(known).map(|name| Program::find(name));
        let all = all.collect::<Result<Vec<_>>>()?;
        let Some(first) = all.first() else {
            let what = format!("'{}' is no proxy", named.unwrap_or_default());
            return Err(Failure::usage(what).hint(format!("there is {}", PROXIES.join(" and "))));
        };
        let Some(program) = all.iter().find(|program| in_path(program.command)) else {
            let names: Vec<_> = all.iter().map(|program| program.name).collect();
            let what = format!("{} is not installed", names.join(" or "));
            return Err(Failure::failed(what).hint(format!("apt-get install {}", first.package)));
        };
        let program = bridged(program, None, module)?;
        let is_provider = program.bridge.is_provider();
        Ok(Self { program: if is_provider { program } else { program.by(Bridge::Provider)? } })
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.program.name
    }

    /// Its file.
    pub(crate) fn path(&self) -> PathBuf {
        program_path(self.program.command).unwrap_or_else(|| self.program.command.into())
    }

    /// The user whose rights Debian's package gives it.
    pub(crate) fn user(&self) -> Option<&'static str> {
        let usual = if self.name() == "haproxy" { "haproxy" } else { "www-data" };
        Some(self.program.user().unwrap_or(usual)).filter(|user| doctor::is_user(user))
    }

    /// OpenSSL's configuration by which it finds the key, with its name, and the file in PEM that names the key.
    pub(crate) fn finds(
        &self,
        app: &App,
        key: &TokenKey<'_>,
    ) -> Result<((&'static str, String), String)> {
        let program = &self.program;
        if program.bridge == Bridge::Provider && !bridges::pkcs11_provider() {
            return Err(Failure::failed("no provider for PKCS#11 is installed for OpenSSL")
                .hint("install the package metaslot, or apt-get install pkcs11-provider"));
        }
        if let Some(pin) = key.pin {
            pin_file(pin, program)?;
        }
        let credential = key.unit.map(|unit| Credential::of_unit(unit.to_owned()));
        let chosen = Chosen { key: None, cert: String::new(), pin: key.pin.map(Path::to_owned) };
        let said = Said {
            token: &TokenArg::new(None),
            is_run: false,
            is_daemons: false,
            chosen: &chosen,
            credential: credential.as_ref(),
            module: app.named_module(),
            program,
            directory: Path::new(""),
        };
        let values = said.of_machine(app.host(key.key)?, true)?;
        let name = program.file().unwrap_or_default();
        let file = program.plan(&values).files.into_iter().find(|file| file.0 == name);
        let file =
            file.ok_or_else(|| Failure::failed(format!("{} has no bridge", program.name)))?;
        Ok((file, uri2pem::pem_of(&key.key.to_string())))
    }

    /// Refuses a user who could not use the token, or not read the file.
    pub(crate) fn may_use(
        &self,
        user: &str,
        app: &App,
        token: &Token,
        pin: Option<&Path>,
    ) -> Result<()> {
        service::user_may_use(&self.program, user, app, token)?;
        pin.map_or(Ok(()), |pin| may_read(user, pin, PIN))
    }

    /// Its configuration, with its name.
    pub(crate) fn configuration(&self, values: &Values) -> Option<(&'static str, String)> {
        self.program.proxy(values).find(|(name, _)| !["check", "service", "daemon"].contains(name))
    }

    /// What the recipe has of this name.
    pub(crate) fn section(&self, name: &str, values: &Values) -> String {
        self.program.proxy(values).find(|row| row.0 == name).map_or_else(String::new, |row| row.1)
    }
}

/// Refuses a file that a user may not read, where root asks for another one.
pub(crate) fn may_read(user: &str, file: &Path, what: &str) -> Result<()> {
    let why = Some(user).filter(|_| rustix::process::geteuid().is_root());
    match why.and_then(|user| doctor::unreadable(user, file, what)) {
        Some((why, fix)) => Err(Failure::failed(why).hint(fix)),
        None => Ok(()),
    }
}

/// Whether a service's user is there.
pub(crate) fn is_user(name: &str) -> bool {
    doctor::is_user(name)
}

/// The name of the user who asks.
pub(crate) fn own_user() -> Option<String> {
    doctor::own_user()
}

/// Runs a line of a shell; its last words where it fails. What was made for it then goes: a signal ends us here.
pub(crate) fn runs(line: &str, openssl: Option<&Path>, made: &Path) -> Result<()> {
    tested::run(line, openssl).or_else(|failed| {
        fs::remove_dir_all(made).ok();
        failed.after(None)
    })
}

/// Refuses paths that a shell or a configuration would read as more.
pub(crate) fn check_paths(paths: &[(&'static str, String)]) -> Result<()> {
    plain::check(paths, None)
}
