// SPDX-License-Identifier: Apache-2.0
//! GnuTLS: its tools make a key and a certificate, and its server uses them.

use anyhow::Result;
use metaslot_testkit::{Program, TestToken, USER_PIN, check, free_port};

use crate::recipe;

/// The page's key.
const P256: &str = "ecdsa --curve secp256r1";
const CLIENT: &str = "GnuTLS";
const NEEDS: &[&str] = &["p11tool", "certtool", "gnutls-serv", "gnutls-cli", "pkcs11-tool"];

/// A command of the page.
fn page(token: &TestToken, words: &str, changes: &[(&str, &str)]) -> Result<Program> {
    let command = recipe::command(token, ("GnuTLS", 0), words, changes)?;
    Ok(command.env("GNUTLS_PIN", USER_PIN))
}

/// A key pair that GnuTLS makes, with a certificate that the token's key gives itself.
fn prepare(token: &TestToken, kind: &str) -> Result<()> {
    page(token, "--generate-privkey", &[(P256, kind)])?.run()?;
    token.write(
        "site.tmpl",
        "cn = localhost\ndns_name = localhost\ntls_www_server\nsigning_key\n",
    )?;
    page(token, "certtool", &[])?.run().map(drop)
}

fn serves(what: &str, kind: &str, summary: &str) {
    check(CLIENT, what, NEEDS, |token| {
        token.spy()?;
        prepare(token, kind)?;
        page(token, "--list-all", &[])?.run()?.with(&["Label: site"])?;
        let port = free_port()?;
        let server = page(token, "gnutls-serv", &[("4433", &format!("{port} --echo"))])?
            .serve(port, token.home())?;
        for version in ["NORMAL:-VERS-ALL:+VERS-TLS1.3", "NORMAL:-VERS-ALL:+VERS-TLS1.2"] {
            token
                .program("gnutls-cli")
                .args(["--x509cafile", "site.pem", "--priority", version])
                .args(["--port", &port.to_string(), "--sni-hostname", "localhost"])
                .args(["--verify-hostname", "localhost", "127.0.0.1"])
                .input("said\n")
                .run()?
                .with(&["The certificate is trusted", "said"])?;
        }
        drop(server);
        token.called(summary)
    });
}

#[test]
fn a_server_has_its_p256_key_in_the_token() {
    serves("p11tool, certtool, server, P-256", P256, "gnutls-ec");
}

#[test]
fn a_server_has_its_rsa_key_in_the_token() {
    serves("p11tool, certtool, server, RSA", "rsa --bits 2048", "gnutls");
}
