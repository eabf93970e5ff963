// SPDX-License-Identifier: Apache-2.0
//! GnuTLS: its tools make a key and a certificate, and its server uses them.

use anyhow::Result;
use metaslot_testkit::{TestToken, USER_PIN, check, free_port};

const CLIENT: &str = "GnuTLS";
const NEEDS: &[&str] = &["p11tool", "certtool", "gnutls-serv", "gnutls-cli", "pkcs11-tool"];

fn tool(token: &TestToken, name: &str) -> metaslot_testkit::Program {
    token.program(name).env("GNUTLS_PIN", USER_PIN).arg("--provider").arg(token.module())
}

/// A key pair that GnuTLS makes, with a certificate that the token's key gives itself.
fn prepare(token: &TestToken, kind: &str) -> Result<String> {
    let uri = format!("pkcs11:token={}", token.label());
    tool(token, "p11tool")
        .line("--login --outfile site.pub --label site --id 01")
        .line(kind)
        .arg(&uri)
        .run()?;
    token.write(
        "site.tmpl",
        "cn = localhost\ndns_name = localhost\ntls_www_server\nsigning_key\n",
    )?;
    tool(token, "certtool")
        .line("--generate-self-signed --template site.tmpl --outfile site.pem")
        .args(["--load-privkey", &format!("{uri};object=site;type=private")])
        .args(["--load-pubkey", &format!("{uri};object=site;type=public")])
        .run()?;
    Ok(uri)
}

fn serves(what: &str, kind: &str, summary: &str) {
    check(CLIENT, what, NEEDS, |token| {
        token.spy()?;
        let uri = prepare(token, kind)?;
        tool(token, "p11tool")
            .args(["--login", "--list-all", &uri])
            .run()?
            .with(&["Label: site"])?;
        let port = free_port()?;
        let server = tool(token, "gnutls-serv")
            .args(["--port", &port.to_string(), "--x509certfile", "site.pem"])
            .args(["--x509keyfile", &format!("{uri};object=site;type=private"), "--echo"])
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
    let kind = "--generate-privkey ecdsa --curve secp256r1";
    serves("p11tool, certtool, server, P-256", kind, "gnutls-ec");
}

#[test]
fn a_server_has_its_rsa_key_in_the_token() {
    serves("p11tool, certtool, server, RSA", "--generate-privkey rsa --bits 2048", "gnutls");
}
