// SPDX-License-Identifier: Apache-2.0
//! A token with a key of each kind, the same kinds in files, certificates of all, and the programs.

use super::load::{Held, Running, free_port};
use super::options::{Options, Server};
use super::rows::{Arm, TlsKey};
use super::server::{Site, THREADS, sun_pkcs11};
use crate::bridge::{Bridge, LOOP, Mode, compiled, configuration, provider_beside};
use crate::child::Child;
use crate::role::Role;
use crate::sandbox::{Sandbox, Store};
use crate::speed::Part;
use crate::token::{LABEL, PIN, own_module};
use crate::{Failure, Result};
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The key that Java's server has: its example takes the only one there is.
pub(super) const JAVA_KEY: &str = "rsa2048";

/// The clients.
const CLIENT: &str = include_str!("../../../../examples/tls_load.c");

/// Everything that a run needs.
pub(super) struct Place {
    pub(super) module: PathBuf,
    provider: PathBuf,
    pub(super) client: PathBuf,
    /// The loop.
    pub(super) program: PathBuf,
    /// The server of threads.
    threads: PathBuf,
    store: Store,
    /// A copy of the token for a server that is not root: a token is opened by its owner only.
    given: Option<Store>,
    options: Options,
    /// Goes away after those who work in it.
    place: Sandbox,
}

impl Place {
    /// Makes the token, keys and certificates, and compiles the programs.
    ///
    /// # Errors
    /// There is no module, no provider, no `openssl`, no compiler.
    pub(super) fn new(options: &Options, keys: &[TlsKey]) -> Result<Self> {
        let module = own_module(options.token.module.as_deref())?;
        let provider = options.provider.clone().map_or_else(|| provider_beside(&module), Ok)?;
        let place = Sandbox::guarded(options.token.dir.as_deref(), options.token.keep)?;
        let store = place.store("token")?;
        let part = Role::Speed(Part::Module(module.clone()));
        let mut made = Child::start(store.command(&part)?)?;
        made.answer::<String>()?;
        made.end()?;
        let built = |name: &str, text: &str| {
            compiled(&place, name, text).map_err(|why| {
                Failure::new(why)
                    .hint("install a C compiler and OpenSSL's headers: gcc, libssl-dev")
            })
        };
        let (client, program) = (built("tls_load", CLIENT)?, built("openssl_loop", LOOP)?);
        let threads = built("tls_server", THREADS)?;
        let (given, options) = (None, options.clone());
        let mut place =
            Self { module, provider, client, program, threads, store, given, options, place };
        keys.iter().try_for_each(|key| place.keys(key))?;
        place.given = Some(place.place.copy(&place.store, "given")?);
        Ok(place)
    }

    fn keys(&self, key: &TlsKey) -> Result<()> {
        let uri = format!("pkcs11_uri:pkcs11:token={LABEL};object={}", key.name);
        let own = ["-propquery", "provider=metaslot", "-pkeyopt", &uri];
        for (arm, more) in [(Arm::Token, &own[..]), (Arm::File, &[])] {
            let [certificate, file, both] = self.files(key, arm);
            let openssl = |arguments: &mut dyn FnMut(&mut Command)| -> Result<()> {
                let mut command = Command::new("openssl");
                self.store.configure(&mut command);
                command.env("OPENSSL_CONF", self.openssl_cnf(arm)?);
                arguments(&mut command);
                let output = command.stdin(Stdio::null()).output()?;
                let errors = String::from_utf8_lossy(&output.stderr);
                let why = || Failure::new(format!("{}: {}", key.name, errors.trim()));
                if output.status.success() { Ok(()) } else { Err(why()) }
            };
            openssl(&mut |command| {
                command.arg("genpkey").args(key.generate).args(more).arg("-out").arg(&file);
            })?;
            openssl(&mut |command| {
                command.args(["req", "-new", "-x509", "-days", "30", "-sha256"]);
                command.args(["-subj", "/CN=localhost", "-key"]).arg(&file);
                command.arg("-out").arg(&certificate);
            })?;
            let read = |path: &Path| fs::read(path).map_err(|error| Failure::file(path, &error));
            let text = [read(&certificate)?, read(&file)?].concat();
            fs::write(&both, text).map_err(|error| Failure::file(&both, &error))?;
            if self.options.servers.contains(&Server::Java) && key.name == JAVA_KEY {
                self.key_store(arm, [&certificate, &file])?;
            }
        }
        Ok(())
    }

    /// A key and its certificate where Java finds them.
    fn key_store(&self, arm: Arm, [certificate, key]: [&Path; 2]) -> Result<()> {
        let pin = self.place.file("pin");
        write_own(&pin, PIN).map_err(|error| Failure::file(&pin, &error))?;
        let mut command = match arm {
            Arm::File => {
                let mut command = Command::new("openssl");
                command.args(["pkcs12", "-export", "-name", "site", "-inkey"]).arg(key);
                command.arg("-in").arg(certificate).arg("-passout");
                command.arg(format!("file:{}", pin.display()));
                command.arg("-out").arg(certificate.with_extension("p12"));
                command
            }
            _ => {
                let config = certificate.with_extension("cfg");
                fs::write(&config, sun_pkcs11(&self.module))
                    .map_err(|error| Failure::file(&config, &error))?;
                let beside = std::env::current_exe()?.with_file_name("metaslot");
                let beside = if beside.exists() { beside } else { PathBuf::from("metaslot") };
                let mut command = Command::new(beside);
                command.env("METASLOT_MODULE", &self.module);
                command.args(["cert", "import", "--pin-source"]).arg(&pin).arg(certificate);
                command
            }
        };
        self.store.configure(&mut command);
        let output = command.stdin(Stdio::null()).output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        let why = || Failure::new(format!("a key store for Java: {}", errors.trim()));
        if output.status.success() { Ok(()) } else { Err(why()) }
    }

    /// A certificate, its key, and both.
    fn files(&self, key: &TlsKey, arm: Arm) -> [PathBuf; 3] {
        let place = if arm.is_of_token() { "token" } else { "file" };
        ["pem", "key", "both"].map(|end| self.place.file(&format!("{}-{place}.{end}", key.name)))
    }

    fn openssl_cnf(&self, arm: Arm) -> Result<PathBuf> {
        let (file, jobs) = (self.provider.as_path(), arm == Arm::Jobs);
        let bridge = match arm {
            Arm::File | Arm::FileJobs | Arm::Alone => Bridge::None,
            Arm::Token | Arm::Jobs | Arm::Daemon => {
                Bridge::Provider { file, mode: Mode::Keys, jobs }
            }
        };
        let text = configuration(bridge, &self.module, &String::from_utf8_lossy(PIN));
        let text = format!("{text}[req]\ndistinguished_name = name\n[name]\n");
        let path = self.place.file(&format!("{}.cnf", arm.word()));
        fs::write(&path, text).map_err(|error| Failure::file(&path, &error))?;
        Ok(path)
    }

    /// Where the processes of the loop count.
    pub(super) fn counters(&self) -> PathBuf {
        self.store.counters()
    }

    /// The loop with a key, ready to be told how.
    pub(super) fn signing(&self, key: &TlsKey, arm: Arm) -> Result<(Command, PathBuf)> {
        let mut command = Command::new(&self.program);
        self.store.configure(&mut command);
        command.env("OPENSSL_CONF", self.openssl_cnf(arm)?);
        let [_, file, _] = self.files(key, arm);
        Ok((command, file))
    }

    /// Starts a server.
    ///
    /// # Errors
    /// It does not listen.
    pub(super) fn serve(&self, server: Server, key: &TlsKey, arm: Arm) -> Result<Running> {
        let name = format!("{}-{}-{}", server.word(), key.name, arm.word());
        let home = self.place.file(&name);
        let counters = home.join("counters");
        for directory in [&home, &counters, &home.join("tmp")] {
            fs::create_dir_all(directory).map_err(|error| Failure::file(directory, &error))?;
        }
        let [certificate, private, both] = self.files(key, arm);
        let port = free_port()?;
        let files = [certificate.as_path(), &private, &both];
        let (key, module, workers) = (*key, self.module.as_path(), self.options.workers);
        let threads = self.options.connections.iter().copied().max().unwrap_or(1);
        let site = Site { arm, key, module, home: &home, files, port, workers, threads };
        let file = home.join(if server == Server::Java { "Server.java" } else { "server.conf" });
        let installed = || server.program().unwrap_or_default();
        let program = if server == Server::Threads { self.threads.clone() } else { installed() };
        let user = server.user().filter(|_| rustix::process::getuid().is_root());
        let store = self.given.as_ref().filter(|_| user.is_some()).unwrap_or(&self.store);
        // Processes that are forked log in anew, and 64 that take the long way at once wait too long for each other.
        let token = format!("[[token]]\npath = {:?}\nfast_login = \"15m\"\n", store.database());
        let lanes = arm != Arm::Alone;
        let (daemon, token) = match arm {
            Arm::Daemon => self.held(&home, &counters, &token)?,
            _ => (None, token),
        };
        let own = format!("lanes = {lanes}\ncounters = {counters:?}\n{token}");
        for (path, text) in
            [(&file, server.configuration(site)), (&home.join("metaslot.toml"), own)]
        {
            fs::write(path, text).map_err(|error| Failure::file(path, &error))?;
        }
        let mut command = match user {
            None => Command::new(&program),
            Some(user) => {
                self.give(user, store, &home, &files)?;
                let mut command = Command::new("setpriv");
                let (user, group) = (format!("--reuid={user}"), format!("--regid={user}"));
                command.args([&*user, &*group, "--clear-groups", "--pdeathsig", "TERM", "--"]);
                command.arg(&program);
                command
            }
        };
        server.arguments(&mut command, site, &file);
        command.env("METASLOT_CONF", home.join("metaslot.toml"));
        let bridged = if server.has_threads() { Arm::File } else { arm };
        command.env("OPENSSL_CONF", self.openssl_cnf(bridged)?);
        let asked = !server.has_threads();
        let log = home.join("log");
        Running::start((&command, daemon), asked, port, &log, certificate, counters)
            .map_err(|failure| failure.context(name))
    }

    /// The daemon of this build.
    pub(super) fn daemon() -> Option<PathBuf> {
        let daemon = std::env::current_exe().ok()?.with_file_name("metaslotd");
        daemon.is_file().then_some(daemon)
    }

    /// A daemon that has the token, and what its client is configured with.
    fn held(&self, home: &Path, counters: &Path, token: &str) -> Result<(Option<Held>, String)> {
        let program = Self::daemon().ok_or_else(|| Failure::new("there is no metaslotd"))?;
        let [socket, pin, file] = ["socket", "pin", "metaslotd.toml"].map(|name| home.join(name));
        let user = rustix::process::geteuid().as_raw();
        let text = format!(
            "counters = {counters:?}\n{token}pin-source = \"file:{}\"\n[daemon]\nsocket = {socket:?}\n\
             [[client]]\nservices = [\"user:{user}\"]\ntoken = \"{LABEL}\"\noperations = [\"sign\"]\n",
            pin.display(),
        );
        write_own(&pin, PIN).map_err(|error| Failure::file(&pin, &error))?;
        fs::write(&file, text).map_err(|error| Failure::file(&file, &error))?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "--"]).arg(program).arg("--config").arg(file);
        let client = format!("[[foreign]]\nname = \"held\"\nsocket = {socket:?}\n");
        Ok((Some(Held { command, socket }), client))
    }

    /// What a server needs that is not root, to its user; root may read it all the same. The configuration of the others stays root's.
    fn give(&self, user: &str, store: &Store, home: &Path, files: &[&Path]) -> Result<()> {
        let database = store.database();
        let token = database.parent().unwrap_or(home);
        let mut chown = Command::new("chown");
        chown.args(["-R", user]).args([home, token]).args(files);
        if !chown.status()?.success() {
            return Err(Failure::new(format!("chown to {user} fails")));
        }
        let open = Permissions::from_mode(0o711);
        for path in [self.place.file(""), store.file("")] {
            fs::set_permissions(&path, open.clone())
                .map_err(|error| Failure::file(&path, &error))?;
        }
        Ok(())
    }
}

/// Writes a file with a PIN, which nobody but its user reads.
fn write_own(path: &Path, pin: &[u8]) -> io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // One that was there before has the mode that it had.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(pin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_a_pin_is_its_users_alone() {
        let path = std::env::temp_dir().join(format!("metaslot-lab-pin-{}", std::process::id()));
        fs::write(&path, "a longer text than the PIN").expect("it is written");
        fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("it is ours");
        write_own(&path, PIN).expect("it is written");
        let mode = fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!((mode & 0o777, fs::read(&path).expect("it is there")), (0o600, PIN.to_vec()));
        fs::remove_file(path).expect("it is there");
    }
}
