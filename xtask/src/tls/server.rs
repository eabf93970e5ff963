// SPDX-License-Identifier: Apache-2.0
//! The servers whose handshakes are measured, and the keys and certificates that they have.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo::{command, module, root};
use crate::packages;
use crate::report::check;

/// The kinds of keys, as `metaslot key generate --type` has them.
pub(super) const KINDS: &[&str] = &["rsa:2048", "ec:p256"];

/// The configurations.
const LANES: &str = "metaslot.toml";
const NO_LANES: &str = "without-lanes.toml";
const PIN: &str = "7482910365";

/// Where the key is.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Place {
    File,
    /// By our provider, where OpenSSL wants one.
    Token,
    /// With `lanes = false`.
    TokenWithoutLanes,
    /// By what others have for OpenSSL.
    TokenByProvider,
    TokenByEngine,
}

impl Place {
    pub(super) const ALL: [Self; 5] = [
        Self::File,
        Self::TokenWithoutLanes,
        Self::Token,
        Self::TokenByProvider,
        Self::TokenByEngine,
    ];

    /// What nginx finds the key by, as `metaslot setup --bridge` has it, and the file that OpenSSL is told of it by.
    const fn bridge(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::File => None,
            Self::Token | Self::TokenWithoutLanes => Some(("metaslot", "nginx-openssl.cnf")),
            Self::TokenByProvider => Some(("pkcs11-provider", "nginx-openssl.cnf")),
            Self::TokenByEngine => Some(("engine", "openssl.cnf")),
        }
    }
}

/// A program that serves TLS.
pub(super) struct Server {
    pub(super) name: &'static str,
    /// It says nothing before it is asked for a page.
    pub(super) asked: bool,
    kind: Program,
}

#[derive(PartialEq)]
enum Program {
    C,
    Java,
    Nginx,
}

pub(super) const SERVERS: &[Server] = &[
    Server { name: "OpenSSL", asked: false, kind: Program::C },
    Server { name: "nginx", asked: true, kind: Program::Nginx },
    Server { name: "Java", asked: false, kind: Program::Java },
];

/// The name of a certificate's file.
pub(super) fn certificate(kind: &str, place: Place) -> String {
    let place = if place == Place::File { "file" } else { "token" };
    format!("{}-{place}.pem", label(kind))
}

/// Where what nginx includes is.
fn directory(kind: &str, bridge: &str) -> String {
    format!("{}-{bridge}", label(kind))
}

/// `rsa` or `ec`.
fn label(kind: &str) -> &str {
    kind.split(':').next().unwrap_or(kind)
}

const fn configuration(place: Place) -> &'static str {
    match place {
        Place::TokenWithoutLanes => NO_LANES,
        _ => LANES,
    }
}

impl Server {
    /// Workers of nginx sign one after the other, and P-256 gains nothing from blocking threads: lanes make no difference there.
    /// Java's example has an RSA key.
    pub(super) fn runs(&self, kind: &str, place: Place) -> bool {
        let rsa = kind == KINDS[0];
        let nginx = self.kind == Program::Nginx;
        (rsa || self.kind != Program::Java)
            && match place {
                Place::File | Place::Token => true,
                Place::TokenWithoutLanes => rsa && !nginx,
                Place::TokenByProvider | Place::TokenByEngine => nginx,
            }
    }

    pub(super) fn program(
        &self,
        home: &Path,
        kind: &str,
        place: Place,
        port: u16,
        threads: &str,
    ) -> Result<Command> {
        let (port, certificate) = (port.to_string(), certificate(kind, place));
        let file = place == Place::File;
        let mut program = match self.kind {
            Program::C => {
                let mut program = Command::new(home.join("tls_server"));
                program.args([&*port, threads, &certificate]);
                match file {
                    true => program.arg(format!("{}-file.key", label(kind))),
                    false => program.arg(module()).arg(PIN),
                };
                program
            }
            Program::Java => {
                let mut program = Command::new("java");
                program.arg(root().join("examples/TlsServer.java")).args([&*port, threads]);
                program.args([if file { "site.p12" } else { "token.cfg" }, PIN]);
                program
            }
            Program::Nginx => {
                let conf = format!("nginx-{port}.conf");
                fs::write(home.join(&conf), nginx(home, kind, place, &port))
                    .with_context(|| format!("write {conf}"))?;
                let mut program = Command::new("nginx");
                program.arg("-p").arg(home).arg("-e").arg(home.join("error.log"));
                program.arg("-c").arg(home.join(conf));
                if let Some((bridge, file)) = place.bridge() {
                    let directory = home.join(directory(kind, bridge));
                    program.env("OPENSSL_CONF", directory.join(file));
                }
                if let (Place::TokenByProvider, Some(place)) = (place, packages::unpacked()) {
                    program.env("OPENSSL_MODULES", place);
                }
                program
            }
        };
        program.env("METASLOT_CONF", home.join(configuration(place)));
        Ok(program)
    }
}

/// Two workers; what the token needs is what `metaslot setup nginx` wrote.
fn nginx(home: &Path, kind: &str, place: Place, port: &str) -> String {
    let (home, label) = (home.display(), label(kind));
    let (main, server) = match place.bridge() {
        None => (
            String::new(),
            format!(
                "ssl_protocols TLSv1.3; ssl_certificate {home}/{label}-file.pem; ssl_certificate_key {home}/{label}-file.key;"
            ),
        ),
        Some((bridge, _)) => {
            let directory = directory(kind, bridge);
            (
                format!("include {home}/{directory}/nginx-main.conf;"),
                format!("include {home}/{directory}/nginx-server.conf;"),
            )
        }
    };
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|what| format!("{what}_temp_path {home}/tmp;\n"))
        .collect();
    format!(
        "daemon off;\nuser root;\nworker_processes 2;\npid {home}/nginx-{port}.pid;\n{main}\n\
         events {{ worker_connections 512; }}\nhttp {{\naccess_log off;\n{temporary}\
         server {{ listen 127.0.0.1:{port} ssl;\nssl_session_tickets off;\n{server}\n\
         location / {{ return 200 \"hello\\n\"; }} }} }}\n"
    )
}

/// Token, keys, certificates, the same kinds of keys in files, and the client.
pub(super) fn prepare(home: &Path) -> Result<()> {
    let write = |name: &str, text: &str| {
        fs::write(home.join(name), text).with_context(|| format!("write {name}"))
    };
    let token = format!("[[token]]\npath = \"{}\"\n", home.join("token.db").display());
    write(LANES, &token)?;
    write(NO_LANES, &format!("lanes = false\n{token}"))?;
    write("pin", PIN)?;
    write(
        "token.cfg",
        &format!(
            "name = metaslot\nlibrary = {}\nslot = 0\nattributes(*, CKO_PRIVATE_KEY, *) = {{ CKA_SIGN = true }}\n",
            module().display()
        ),
    )?;
    metaslot(home, "token init --label tls --pin-source pin --so-pin-source pin")?;
    share(home)?;
    for kind in KINDS {
        let label = label(kind);
        let (token, file) = (certificate(kind, Place::Token), certificate(kind, Place::File));
        metaslot(home, &format!("key generate --label {label} --type {kind} --pin-source pin"))?;
        // Java's example wants one key with a certificate in the token.
        let store = if *kind == KINDS[0] { "--store" } else { "" };
        let selfsign = format!("cert selfsign {label} --dns localhost --pin-source pin {store}");
        metaslot(home, &format!("{selfsign} --out {token}"))?;
        let setup =
            format!("setup nginx --key {label} --cert {} --apply", home.join(&token).display());
        for (bridge, _) in Place::ALL.into_iter().filter_map(Place::bridge) {
            let directory = directory(kind, bridge);
            let line =
                format!("{setup} --bridge {bridge} --pin-source pin --directory {directory}");
            metaslot(home, &line)?;
        }
        let new =
            if *kind == KINDS[0] { "rsa:2048" } else { "ec -pkeyopt ec_paramgen_curve:P-256" };
        openssl(
            home,
            &format!(
                "req -x509 -nodes -subj /CN=localhost -keyout {label}-file.key -out {file} -newkey {new}"
            ),
        )?;
    }
    openssl(
        home,
        "pkcs12 -export -name site -inkey rsa-file.key -in rsa-file.pem -out site.p12 -passout file:pin",
    )?;
    for name in ["tls_load", "tls_server"] {
        let mut cc = Command::new("cc");
        cc.arg("-O2").arg("-I").arg(root().join("include")).arg("-o").arg(home.join(name));
        cc.arg(root().join("examples").join(format!("{name}.c")));
        check(cc.args(["-lssl", "-lcrypto", "-lpthread", "-ldl"]))?;
    }
    Ok(())
}

/// Gives the token to the user that Debian's nginx has: `setup` writes nothing for one that may not use it.
fn share(home: &Path) -> Result<()> {
    let line = "chgrp www-data . token.db* && chmod 2770 . && chmod 660 token.db*";
    check(Command::new("sh").current_dir(home).args(["-c", line])).map(|_| ())
}

fn metaslot(home: &Path, line: &str) -> Result<()> {
    let mut program = Command::new(command());
    program.current_dir(home).env("METASLOT_CONF", LANES).env("METASLOT_MODULE", module());
    check(program.args(line.split_whitespace())).map(|_| ())
}

fn openssl(home: &Path, line: &str) -> Result<()> {
    let mut program = Command::new("openssl");
    check(program.current_dir(home).args(line.split_whitespace())).map(|_| ())
}
