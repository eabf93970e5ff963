// SPDX-License-Identifier: Apache-2.0
//! A token for one test: a directory, a configuration, PINs, and the module that serves it.

use std::ffi::OsString;
use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::others;
use crate::process::Program;
use crate::summary;

/// The user's PIN of every test token.
pub const USER_PIN: &str = "123456";
/// The security officer's PIN of every test token.
pub const SO_PIN: &str = "87654321";

/// For the spy: without `C_GetInterface`.
const CLASSIC: &str = "-DCLASSIC";

static NEXT: AtomicU32 = AtomicU32::new(0);

/// An initialised token in a directory of its own.
#[derive(Debug)]
pub struct TestToken {
    home: PathBuf,
    module: PathBuf,
    is_ours: bool,
    label: String,
    environment: Vec<(&'static str, OsString)>,
    launcher: Vec<OsString>,
    limit: Option<Duration>,
}

/// The module under test, if one is built.
#[must_use]
pub fn module_path() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("METASLOT_MODULE") {
        return Some(PathBuf::from(path)).filter(|path| path.exists());
    }
    let target = target();
    ["release", "debug"]
        .iter()
        .map(|profile| target.join(profile).join("libmetaslot.so"))
        .find(|path| path.exists())
}

/// The command: `cargo xtask test` names it.
#[must_use]
pub fn command() -> String {
    let named = std::env::var_os("METASLOT_COMMAND").map(PathBuf::from);
    let built = ["release", "debug"].map(|profile| target().join(profile).join("metaslot"));
    let found = named.into_iter().chain(built).find(|path| path.exists());
    let found = found.map(|path| fs::canonicalize(&path).unwrap_or(path));
    found.unwrap_or_default().to_string_lossy().into_owned()
}

/// Our provider for OpenSSL: where the module or the command was built.
#[must_use]
pub fn openssl_provider() -> String {
    let beside = std::env::var_os("METASLOT_COMMAND").map(PathBuf::from);
    let beside = beside.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let built = ["release", "debug"].map(|profile| target().join(profile));
    let files = beside.into_iter().chain(built).map(|place| place.join("libmetaslot_ossl.so"));
    let found = files.into_iter().find(|path| path.exists());
    let found = found.map(|path| fs::canonicalize(&path).unwrap_or(path));
    found.unwrap_or_else(|| "libmetaslot_ossl.so".into()).to_string_lossy().into_owned()
}

/// Where what the tests build and keep is.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from)
}

impl TestToken {
    /// A directory named after the test, with a token that has both PINs; `None` when no module is
    /// built.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made or the module cannot initialise the token.
    pub fn new(name: &str) -> Result<Option<Self>> {
        let Some(token) = Self::uninitialized(name)? else { return Ok(None) };
        token.initialize()?;
        Ok(Some(token))
    }

    /// As [`TestToken::new`], but the token is not initialised yet.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made.
    pub fn uninitialized(name: &str) -> Result<Option<Self>> {
        let Some(module) = module_path() else { return Ok(None) };
        let module = fs::canonicalize(&module).context("find the module")?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let short: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
            .take(40)
            .collect();
        let home = target().join("tokens").join(format!("{short}-{}-{number}", std::process::id()));
        fs::create_dir_all(&home).with_context(|| format!("make {}", home.display()))?;
        let home = fs::canonicalize(&home).context("find the token's directory")?;
        let mut token = Self {
            home,
            is_ours: module.file_name().is_some_and(|name| name == "libmetaslot.so"),
            module,
            label: "testing".into(),
            environment: Vec::new(),
            launcher: Vec::new(),
            limit: None,
        };
        token.configure()?;
        Ok(Some(token))
    }

    fn configure(&mut self) -> Result<()> {
        for directory in ["tokens", "run", "data", "config"] {
            fs::create_dir_all(self.home.join(directory)).context("make a directory")?;
        }
        fs::write(self.home.join("pin"), USER_PIN).context("write the PIN file")?;
        let soft = self.home.join("softhsm2.conf");
        let text = format!(
            "directories.tokendir = {}\nobjectstore.backend = file\nlog.level = ERROR\n",
            self.home.join("tokens").display()
        );
        fs::write(&soft, text).context("write the configuration")?;
        self.policy("default")?;
        self.environment = vec![
            ("HOME", self.home.clone().into()),
            ("SOFTHSM2_CONF", soft.into()),
            ("XDG_CONFIG_HOME", self.home.join("config").into()),
            ("XDG_DATA_HOME", self.home.join("data").into()),
            ("XDG_RUNTIME_DIR", self.home.join("run").into()),
            ("METASLOT_CONF", self.home.join("metaslot.toml").into()),
            ("METASLOT_MODULE", self.module.clone().into()),
        ];
        Ok(())
    }

    fn initialize(&self) -> Result<()> {
        let label = self.label.clone();
        if self.has_others() {
            let pins = ["--pin", USER_PIN, "--so-pin", SO_PIN];
            self.program("softhsm2-util").args(others::INITIALIZES).args(pins).run()?;
        }
        self.pkcs11_tool()
            .args(["--slot-index", "0", "--init-token", "--label", &label, "--so-pin", SO_PIN])
            .run()
            .context("initialise the token")?;
        self.pkcs11_tool()
            .args(["--token-label", &label, "--login", "--login-type", "so", "--so-pin", SO_PIN])
            .args(["--init-pin", "--pin", USER_PIN])
            .run()
            .context("set the user's PIN")?;
        Ok(())
    }

    /// Where the test may write.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// A file in the test's directory.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    /// Writes a file into the test's directory.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.path(name);
        fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
        Ok(path)
    }

    /// The module that serves the token.
    #[must_use]
    pub fn module(&self) -> &Path {
        &self.module
    }

    /// The token's label.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// From now on programs are given a spy in the module's place, which writes down what they call.
    ///
    /// # Errors
    ///
    /// When it cannot be compiled.
    pub fn spy(&mut self) -> Result<()> {
        self.spy_by("")
    }

    /// The same by the classic list of functions alone, without `C_GetInterface`.
    ///
    /// # Errors
    ///
    /// As [`TestToken::spy`].
    pub fn spy_classic(&mut self) -> Result<()> {
        self.spy_by(CLASSIC)
    }

    fn spy_by(&mut self, more: &str) -> Result<()> {
        let log = self.write("spy.log", "")?;
        // Servers write it as another user.
        fs::set_permissions(&log, Permissions::from_mode(0o666)).context("share the log")?;
        // Another module may have the classic list alone.
        let more = if self.is_ours { more } else { CLASSIC };
        self.module = summary::spy(&self.home, &self.module, &log, more)?;
        Ok(())
    }

    /// Begins the spy's log anew: what prepared the test is not the program's.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn spied(&self) -> Result<()> {
        fs::write(self.path("spy.log"), "").context("empty the spy's log")
    }

    /// Compares what the programs have called since [`TestToken::spy`] with `testdata/clients/NAME.txt`.
    ///
    /// # Errors
    ///
    /// When they called something else, or used no key.
    pub fn called(&self, name: &str) -> Result<()> {
        summary::uses_a_key(&self.asked(name)?)
    }

    /// The same for programs that may use no key; what they called. Another module answers otherwise, and is not compared.
    ///
    /// # Errors
    ///
    /// When they called something else.
    pub fn asked(&self, name: &str) -> Result<String> {
        let log = fs::read(self.path("spy.log")).context("read the spy's log")?;
        let summary = summary::of(&String::from_utf8_lossy(&log));
        if self.is_ours {
            summary::compare(name, &summary)?;
        }
        Ok(summary)
    }

    /// Lets a group's members use the token, as a service does that gives up root's rights.
    ///
    /// # Errors
    ///
    /// When its files cannot be given to the group.
    pub fn share(&self, group: &str) -> Result<()> {
        let line =
            format!("chgrp -R {group} tokens && chmod 2770 tokens && chmod 660 tokens/*.db*");
        self.program("sh").args(["-c", &line]).run()?;
        fs::set_permissions(self.path("run"), Permissions::from_mode(0o1777))
            .context("share the counters")
    }

    /// Is the module under test our own?
    #[must_use]
    pub const fn is_ours(&self) -> bool {
        self.is_ours
    }

    /// Serves the token under the policy `name`, where the module is our own.
    ///
    /// # Errors
    ///
    /// When the configuration cannot be written.
    pub fn policy(&mut self, name: &str) -> Result<()> {
        self.policy_allowing(name, &[])
    }

    /// The same, with what it allows besides.
    ///
    /// # Errors
    ///
    /// When the configuration cannot be written.
    pub fn policy_allowing(&mut self, name: &str, allow: &[&str]) -> Result<()> {
        let mut text = format!(
            "counters = \"{home}/run\"\n\n[[token]]\npath = \"{home}/tokens/token.db\"\npolicy = \
             \"{name}\"\nallow = {allow:?}\nkdf = \"weak-for-tests\"\n",
            home = self.home.display()
        );
        if self.has_others() {
            text.push_str(&others::section(&self.path("pin"), name));
            self.write("costs.tsv", others::costs())?;
        }
        self.write("metaslot.toml", text).map(|_| ())
    }

    /// Is it served by other modules, too?
    fn has_others(&self) -> bool {
        self.is_ours() && std::env::var_os(others::VARIABLE).is_some()
    }

    /// Adds a variable to the environment of every program run with this token.
    pub fn set(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.environment.retain(|(old, _)| *old != name);
        self.environment.push((name, value.into()));
    }

    /// Every program run with this token is from now on an argument of this command: in namespaces of its own, say.
    pub fn within(&mut self, command: impl IntoIterator<Item = OsString>) {
        self.launcher = command.into_iter().collect();
    }

    /// How long each program run with this token may take.
    pub const fn limit(&mut self, limit: Duration) {
        self.limit = Some(limit);
    }

    /// A program that runs in the test's directory and finds this token.
    #[must_use]
    pub fn program(&self, name: &str) -> Program {
        let program = match self.launcher.split_first() {
            Some((first, more)) => Program::new(first).args(more).arg(name),
            None => Program::new(name),
        };
        let program = program.directory(&self.home);
        let program = match self.limit {
            Some(limit) => program.limit(limit),
            None => program,
        };
        self.environment.iter().fold(program, |program, (name, value)| program.env(name, value))
    }

    /// `pkcs11-tool` with the module.
    #[must_use]
    pub fn pkcs11_tool(&self) -> Program {
        self.program("pkcs11-tool").arg("--module").arg(&self.module)
    }

    /// `pkcs11-tool` with the module and the user logged in to this token.
    #[must_use]
    pub fn pkcs11_user(&self) -> Program {
        self.pkcs11_tool().args(["--token-label", &self.label, "--login", "--pin", USER_PIN])
    }

    /// Makes a key pair with `pkcs11-tool`; `kind` in its words, `id` in hexadecimal.
    ///
    /// # Errors
    ///
    /// When the module refuses.
    pub fn key_pair(&self, kind: &str, id: &str, label: &str) -> Result<()> {
        self.pkcs11_user()
            .args(["--keypairgen", "--key-type", kind, "--id", id, "--label", label])
            .run()
            .map(|_| ())
    }

    /// Takes the directory away; a test that failed keeps it.
    pub(crate) fn remove(&self) {
        drop(fs::remove_dir_all(&self.home));
    }
}
