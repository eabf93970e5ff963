// SPDX-License-Identifier: Apache-2.0
//! Full TLS 1.3 handshakes of a threaded Java server: its RSA-2048 key in a file, and in the token. The same client asks both, in
//! turn, and the last rounds count.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::cargo::{command, module, root, target};
use crate::packages::{self, FOR_RUN, FOR_TESTS};
use crate::report::check;
use crate::test::build;

/// Threads of the server, and of the client.
const THREADS: &str = "16";
/// Rounds that count, and seconds of each.
const ROUNDS: usize = 5;
const SECONDS: &str = "4";
/// Rounds until Java has compiled what it runs.
const WARM_UP: usize = 2;
const PIN: &str = "7482910365";

/// One way to have the key.
struct Arm {
    name: &'static str,
    store: PathBuf,
    port: u16,
    server: Child,
    rates: Vec<f64>,
    p99: Vec<f64>,
}

/// Measures and prints.
pub(crate) fn run() -> Result<()> {
    packages::install(&[FOR_RUN, FOR_TESTS])?;
    build()?;
    let home = target().join("tls");
    drop(fs::remove_dir_all(&home));
    fs::create_dir_all(&home).context("make the directory")?;
    let home = fs::canonicalize(&home).context("find the directory")?;
    let certificate = prepare(&home)?;
    let mut arms = [
        Arm::start("key in a file (Java's own RSA)", &home, "site.p12", 24_431)?,
        Arm::start("key in the token", &home, "token.cfg", 24_432)?,
    ];
    for round in 0..WARM_UP + ROUNDS {
        for arm in &mut arms {
            let result = load(&home, arm.port, &certificate)?;
            ensure!(result["failures"] == 0, "{}: handshakes failed: {result}", arm.name);
            if round >= WARM_UP {
                let number = |key: &str| result[key].as_f64().unwrap_or_default();
                arm.rates.push(number("handshakes") / number("seconds"));
                arm.p99.push(number("p99_ms"));
            }
        }
    }
    let file = median(&arms[0].rates);
    println!("{THREADS} threads each side, {ROUNDS} rounds of {SECONDS} s in turn, medians");
    println!("{:<34} {:>14} {:>10} {:>10}", "", "handshakes/s", "of file", "p99");
    for arm in &arms {
        let rate = median(&arm.rates);
        let (of_file, p99) = (rate / file, median(&arm.p99));
        println!("{:<34} {rate:>14.0} {of_file:>10.2} {p99:>7.1} ms", arm.name);
    }
    Ok(())
}

/// Token, key, certificate, the same key's kind in a file, and the client.
fn prepare(home: &Path) -> Result<PathBuf> {
    let write = |name: &str, text: &str| {
        fs::write(home.join(name), text).with_context(|| format!("write {name}"))
    };
    let token = format!("[[token]]\npath = \"{}\"\n", home.join("token.db").display());
    write("metaslot.toml", &token)?;
    write("pin", PIN)?;
    let module = module();
    write(
        "token.cfg",
        &format!(
            "name = metaslot\nlibrary = {}\nslot = 0\nattributes(*, CKO_PRIVATE_KEY, *) = {{ CKA_SIGN = true }}\n",
            module.display()
        ),
    )?;
    let metaslot = || {
        let mut program = Command::new(command());
        program
            .current_dir(home)
            .env("METASLOT_CONF", "metaslot.toml")
            .env("METASLOT_MODULE", &module);
        program
    };
    check(
        metaslot()
            .args(["token", "init", "--label", "tls", "--pin-source", "pin"])
            .args(["--so-pin-source", "pin"]),
    )?;
    let keytool = |store: &[&str], what: &[&str]| {
        let mut program = Command::new("keytool");
        program.current_dir(home).env("METASLOT_CONF", "metaslot.toml");
        program.args(what).args(store).args(["-storepass", PIN, "-alias", "site"]);
        check(&mut program).map(|_| ())
    };
    let provider = [
        "-keystore",
        "NONE",
        "-storetype",
        "PKCS11",
        "-providerClass",
        "sun.security.pkcs11.SunPKCS11",
        "-providerArg",
        "token.cfg",
    ];
    let file = ["-keystore", "site.p12", "-storetype", "PKCS12"];
    for (store, certificate) in [(&provider[..], "token.pem"), (&file[..], "file.pem")] {
        keytool(
            store,
            &["-genkeypair", "-keyalg", "RSA", "-keysize", "2048", "-dname", "CN=localhost"],
        )?;
        keytool(store, &["-exportcert", "-rfc", "-file", certificate])?;
    }
    let both =
        [fs::read_to_string(home.join("token.pem"))?, fs::read_to_string(home.join("file.pem"))?];
    write("certificates.pem", &both.concat())?;
    let source = root().join("examples/tls_load.c");
    let mut cc = Command::new("cc");
    check(cc.args(["-O2", "-o"]).arg(home.join("tls_load")).arg(source).args([
        "-lssl",
        "-lcrypto",
        "-lpthread",
    ]))?;
    Ok(home.join("certificates.pem"))
}

impl Arm {
    fn start(name: &'static str, home: &Path, store: &str, port: u16) -> Result<Self> {
        let log = File::create(home.join(format!("{port}.log"))).context("make a log")?;
        let errors = log.try_clone().context("share the log")?;
        let server = Command::new("java")
            .arg(root().join("examples/TlsServer.java"))
            .args([&port.to_string(), THREADS, store, PIN])
            .current_dir(home)
            .env("METASLOT_CONF", "metaslot.toml")
            .stdin(Stdio::piped())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .context("start java")?;
        let arm = Self {
            name,
            store: home.join(store),
            port,
            server,
            rates: Vec::new(),
            p99: Vec::new(),
        };
        arm.wait_until_it_listens(home)?;
        Ok(arm)
    }

    fn wait_until_it_listens(&self, home: &Path) -> Result<()> {
        for _ in 0..600 {
            let said = fs::read_to_string(home.join(format!("{}.log", self.port)))?;
            if said.contains("ready") {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        anyhow::bail!("the server with {} does not listen", self.store.display())
    }
}

impl Drop for Arm {
    fn drop(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

fn load(home: &Path, port: u16, certificate: &Path) -> Result<Value> {
    let output = Command::new(home.join("tls_load"))
        .arg(port.to_string())
        .arg(certificate)
        .args([THREADS, SECONDS])
        .output()
        .context("run the client")?;
    serde_json::from_slice(&output.stdout).context("read what the client says")
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
