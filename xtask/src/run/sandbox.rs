// SPDX-License-Identifier: Apache-2.0
//! Where the demonstration happens, and each of its programs.

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::process::{Program, Timed};
use super::table::Table;
use crate::cargo::{command, module, target};

/// The token's label.
pub(super) const LABEL: &str = "run";
/// The keys: label, type in the command's words, the lab's cell that measures its signature, and
/// what it is called in the table.
pub(super) const KEYS: &[Key] = &[
    Key { label: "rsa", kind: "rsa:2048", cell: "rsa2048-sign", shown: "RSA-2048" },
    Key { label: "p256", kind: "ec:p256", cell: "p256-sign", shown: "P-256" },
];

/// One key pair of the demonstration.
pub(super) struct Key {
    pub(super) label: &'static str,
    pub(super) kind: &'static str,
    pub(super) cell: &'static str,
    pub(super) shown: &'static str,
}

/// Where everything is.
pub(super) struct Sandbox {
    pub(super) home: PathBuf,
}

impl Sandbox {
    /// A new, empty directory with a configuration and two PINs.
    pub(super) fn make() -> Result<Self> {
        let home = target().join("run");
        drop(fs::remove_dir_all(&home));
        fs::create_dir_all(home.join("runtime/metaslot"))
            .with_context(|| format!("make {}", home.display()))?;
        let home = fs::canonicalize(&home).context("find the directory")?;
        let place = Self { home };
        let text = format!(
            "# Made by `cargo xtask run`.\n[[token]]\npath = \"{}\"\n",
            place.path("token.db").display()
        );
        fs::write(place.path("metaslot.toml"), text).context("write the configuration")?;
        for name in ["pin", "so-pin"] {
            place.write_secret(name, &random_digits()?)?;
        }
        Ok(place)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    pub(super) fn write_secret(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path(name);
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .with_context(|| format!("make {}", path.display()))?;
        std::io::Write::write_all(&mut file, text.as_bytes()).context("write a PIN")
    }

    /// A program in the directory, with the token's configuration.
    pub(super) fn program(&self, program: impl AsRef<std::ffi::OsStr>) -> Program {
        Program::new(program, &self.home)
            .env("METASLOT_CONF", self.path("metaslot.toml"))
            .env("METASLOT_MODULE", module())
            .env("XDG_RUNTIME_DIR", self.path("runtime"))
    }

    /// The `metaslot` command.
    pub(super) fn metaslot(&self) -> Program {
        self.program(command())
    }

    /// A row of the table for a program that has just ended.
    pub(super) fn row(&self, table: &mut Table, what: &str, done: &Timed) -> Result<()> {
        table.row(what, &self.counted(done.pid)?.providers, done.took);
        Ok(())
    }

    pub(super) fn make_token(&self) -> Result<Timed> {
        let program = self.metaslot().line("token init --label").arg(LABEL);
        program.line("--pin-source pin --so-pin-source so-pin").run()
    }

    pub(super) fn generate(&self, key: &Key) -> Result<Timed> {
        let program = self.metaslot().line("key generate --pin-source pin");
        let program = program.args(["--label", key.label, "--type", key.kind, "--token", LABEL]);
        program.run()
    }

    /// OpenSSL's configuration, as everybody has it written.
    pub(super) fn configure_openssl(&self) -> Result<Timed> {
        let program = self.metaslot().line("setup openssl --apply --directory . --pin-source pin");
        program.args(["--key", KEYS[0].label]).run()
    }

    /// An OpenSSL with the provider.
    pub(super) fn openssl(&self) -> Program {
        self.program("openssl").env("OPENSSL_CONF", self.path("metaslot-openssl.cnf"))
    }

    /// Signs a real file in the token.
    pub(super) fn sign(&self, key: &Key) -> Result<Timed> {
        let signature = format!("{}.sig", key.label);
        let uri = format!("pkcs11:token={LABEL};object={};type=private", key.label);
        self.metaslot()
            .line("sign --pin-source pin --hash sha256 --in")
            .arg(module())
            .args(["--key", &uri, "--out", &signature])
            .run()
    }

    /// Verifies the signature with an OpenSSL that knows nothing of the token.
    pub(super) fn verify(&self, key: &Key) -> Result<()> {
        let (signature, public) = (format!("{}.sig", key.label), format!("{}.pub", key.label));
        let certificate = format!("{}.pem", key.label);
        let plain = || Program::new("openssl", &self.home).env("OPENSSL_CONF", "/dev/null");
        plain().args(["x509", "-in", &certificate, "-noout", "-pubkey", "-out", &public]).run()?;
        let verified = plain()
            .args(["dgst", "-sha256", "-verify", &public, "-signature", &signature])
            .arg(module())
            .run()?;
        ensure!(verified.text.contains("Verified OK"), "openssl says: {}", verified.text);
        Ok(())
    }

    /// The lab's figures for one signature: the module over the raw library.
    pub(super) fn compare(&self, table: &mut Table) -> Result<()> {
        let cells: Vec<&str> = KEYS.iter().map(|key| key.cell).collect();
        let result = self
            .metaslot()
            .line("lab speed --threads 1 --repetitions 11 --seconds 6 --no-openssl --json --filter")
            .arg(cells.join(","))
            .run()?;
        table.compare(&serde_json::from_str(&result.text).context("read the lab's result")?)
    }
}

fn random_digits() -> Result<String> {
    let mut bytes = [0; 12];
    let mut source = fs::File::open("/dev/urandom").context("open /dev/urandom")?;
    std::io::Read::read_exact(&mut source, &mut bytes).context("read /dev/urandom")?;
    Ok(bytes.iter().map(|byte| char::from(b'0' + byte % 10)).collect())
}
