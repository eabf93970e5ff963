// SPDX-License-Identifier: Apache-2.0
//! Full TLS 1.3 handshakes of threaded servers, in C with OpenSSL and in Java: the RSA-2048 key in a file, in the token without the
//! lanes, and in the token. The same client asks all, in turn, and the last rounds count.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::cargo::{build, command, module, root, target};
use crate::packages::{self, FOR_RUN, FOR_TESTS};
use crate::report::check;

/// Threads of each server, and of the client.
const THREADS: &str = "64";
/// Rounds that count, and seconds of each.
const ROUNDS: usize = 5;
const SECONDS: &str = "4";
/// The configurations.
const LANES: &str = "metaslot.toml";
const NO_LANES: &str = "without-lanes.toml";
/// Rounds until Java has compiled what it runs.
const WARM_UP: usize = 2;
const PIN: &str = "7482910365";

/// One way to have the key.
struct Arm {
    name: &'static str,
    certificate: &'static str,
    port: u16,
    server: Child,
    rounds: Vec<Round>,
}

/// What one round of the client found.
struct Round {
    /// Handshakes per second.
    rate: f64,
    /// The server's processor time for each, in microseconds.
    cpu: f64,
    /// In milliseconds.
    p99: f64,
}

/// Measures and prints.
pub(crate) fn run() -> Result<()> {
    packages::install(&[FOR_RUN, FOR_TESTS])?;
    build()?;
    let home = target().join("tls");
    drop(fs::remove_dir_all(&home));
    fs::create_dir_all(&home).context("make the directory")?;
    let home = fs::canonicalize(&home).context("find the directory")?;
    prepare(&home)?;
    let module = module().display().to_string();
    let mut arms = Vec::new();
    for (port, (name, certificate, configuration, server, key)) in (24_431..).zip([
        ("OpenSSL, key in a file", "file.pem", LANES, C, vec!["file.pem", "file.key"]),
        ("OpenSSL, token without lanes", "token.pem", NO_LANES, C, vec!["token.pem", &module, PIN]),
        ("OpenSSL, token", "token.pem", LANES, C, vec!["token.pem", &module, PIN]),
        ("Java, key in a file", "file.pem", LANES, JAVA, vec!["site.p12", PIN]),
        ("Java, token without lanes", "token.pem", NO_LANES, JAVA, vec!["token.cfg", PIN]),
        ("Java, token", "token.pem", LANES, JAVA, vec!["token.cfg", PIN]),
    ]) {
        let mut program = server(&home);
        program.args([&port.to_string(), THREADS]).args(key).env("METASLOT_CONF", configuration);
        arms.push(Arm::start(name, certificate, port, &home, program)?);
    }
    for round in 0..WARM_UP + ROUNDS {
        for arm in &mut arms {
            let result = arm.round(&home)?;
            if round >= WARM_UP {
                arm.rounds.push(result);
            }
        }
    }
    print(&arms);
    Ok(())
}

/// A table; each server beside the same one with its key in a file.
fn print(arms: &[Arm]) {
    println!(
        "RSA-2048, {THREADS} threads each side, {ROUNDS} rounds of {SECONDS} s in turn, medians"
    );
    println!(
        "{:<30} {:>12} {:>8} {:>14} {:>10}",
        "", "handshakes/s", "of file", "server's CPU", "p99"
    );
    let mut file = 0.0;
    for arm in arms {
        let of = |value: fn(&Round) -> f64| median(arm.rounds.iter().map(value).collect());
        let (rate, cpu, p99) = (of(|r| r.rate), of(|r| r.cpu), of(|r| r.p99));
        if arm.certificate == "file.pem" {
            file = rate;
        }
        let of_file = rate / file;
        println!("{:<30} {rate:>12.0} {of_file:>8.2} {cpu:>11.0} µs {p99:>7.1} ms", arm.name);
    }
}

/// The server in C, built by [`prepare`].
fn c_server(home: &Path) -> Command {
    Command::new(home.join("tls_server"))
}

fn java_server(_: &Path) -> Command {
    let mut java = Command::new("java");
    java.arg(root().join("examples/TlsServer.java"));
    java
}

/// How to start a server: port, threads and key follow.
type Server = fn(&Path) -> Command;
const C: Server = c_server;
const JAVA: Server = java_server;

/// Token, key, certificate, the same key's kind in a file, and the client.
fn prepare(home: &Path) -> Result<()> {
    let write = |name: &str, text: &str| {
        fs::write(home.join(name), text).with_context(|| format!("write {name}"))
    };
    let token = format!("[[token]]\npath = \"{}\"\n", home.join("token.db").display());
    write(LANES, &token)?;
    write(NO_LANES, &format!("lanes = false\n{token}"))?;
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
        program.current_dir(home).env("METASLOT_CONF", LANES).env("METASLOT_MODULE", &module);
        program
    };
    check(
        metaslot()
            .args(["token", "init", "--label", "tls", "--pin-source", "pin"])
            .args(["--so-pin-source", "pin"]),
    )?;
    let keytool = |store: &[&str], what: &[&str]| {
        let mut program = Command::new("keytool");
        program.current_dir(home).env("METASLOT_CONF", LANES);
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
    let mut openssl = Command::new("openssl");
    openssl.args(["pkcs12", "-in", "site.p12", "-nodes", "-nocerts", "-out", "file.key"]);
    check(openssl.args(["-passin", "file:pin"]).current_dir(home))?;
    for name in ["tls_load", "tls_server"] {
        let mut cc = Command::new("cc");
        cc.arg("-O2").arg("-I").arg(root().join("include")).arg("-o").arg(home.join(name));
        cc.arg(root().join("examples").join(format!("{name}.c")));
        check(cc.args(["-lssl", "-lcrypto", "-lpthread", "-ldl"]))?;
    }
    Ok(())
}

impl Arm {
    fn start(
        name: &'static str,
        certificate: &'static str,
        port: u16,
        home: &Path,
        mut program: Command,
    ) -> Result<Self> {
        let log = File::create(home.join(format!("{port}.log"))).context("make a log")?;
        let errors = log.try_clone().context("share the log")?;
        let server = program
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("start the server: {name}"))?;
        let arm = Self { name, certificate, port, server, rounds: Vec::new() };
        arm.wait_until_it_listens(home)?;
        Ok(arm)
    }

    fn wait_until_it_listens(&self, home: &Path) -> Result<()> {
        let log = home.join(format!("{}.log", self.port));
        for _ in 0..600 {
            if fs::read_to_string(&log)?.contains("ready") {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        anyhow::bail!("{} does not listen:\n{}", self.name, fs::read_to_string(&log)?)
    }

    /// One round of the client.
    fn round(&self, home: &Path) -> Result<Round> {
        let before = self.cpu()?;
        let output = Command::new(home.join("tls_load"))
            .args([&self.port.to_string(), self.certificate, THREADS, SECONDS])
            .current_dir(home)
            .output()
            .context("run the client")?;
        let result: Value =
            serde_json::from_slice(&output.stdout).context("read what the client says")?;
        ensure!(result["failures"] == 0, "{}: handshakes failed: {result}", self.name);
        let number = |key: &str| result[key].as_f64().unwrap_or_default();
        let handshakes = number("handshakes");
        Ok(Round {
            rate: handshakes / number("seconds"),
            cpu: 1e6 * (self.cpu()? - before) / handshakes,
            p99: number("p99_ms"),
        })
    }

    /// The server's processor time so far, in seconds.
    fn cpu(&self) -> Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.server.id()))
            .context("read the server's times")?;
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
        let ticks: f64 =
            fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
        Ok(ticks / TICKS)
    }
}

/// Clock ticks in a second, as /proc counts them on every Linux (proc(5)).
const TICKS: f64 = 100.0;

impl Drop for Arm {
    fn drop(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
