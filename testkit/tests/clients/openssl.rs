// SPDX-License-Identifier: Apache-2.0
//! OpenSSL through Debian's PKCS#11 engine. The token holds no Ed25519 key: that engine cannot list
//! a token with one.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use metaslot_testkit::{Program, Server, TestToken, USER_PIN, check, free_port};

use crate::recipe;

const CLIENT: &str = "OpenSSL, engine pkcs11";
const NEEDS: &[&str] = &["openssl", "pkcs11-tool", "curl"];
const SECTION: &str = "OpenSSL 3, through the engine (`libengine-pkcs11-openssl`)";
/// Where the page has the engine.
pub(crate) const DEBIAN: &str = "/usr/lib/x86_64-linux-gnu/engines-3/pkcs11.so";

/// OpenSSL's configuration with the engine in it, for `token`.
pub(crate) fn configure(token: &mut TestToken) -> Result<()> {
    let engine = engine()?.display().to_string();
    let changes = [(DEBIAN, engine.as_str()), ("init = 0", &format!("PIN = {USER_PIN}\ninit = 0"))];
    let text = recipe::block(token, SECTION, 0, &changes)?;
    let text = format!("{text}[req]\ndistinguished_name = name\n[name]\n");
    let path = token.write("openssl.cnf", text)?;
    token.set("OPENSSL_CONF", path);
    Ok(())
}

/// Where OpenSSL keeps its engines.
pub(crate) fn engine() -> Result<PathBuf> {
    let output = Program::new("openssl").line("version -e").run()?.text();
    let directory = output.split('"').nth(1).context("openssl names no engine directory")?;
    let path = PathBuf::from(directory).join("pkcs11.so");
    ensure!(path.exists(), "libengine-pkcs11-openssl is not installed");
    Ok(path)
}

/// The URI of a private key, as the engine takes it.
pub(crate) fn uri(token: &TestToken, label: &str) -> String {
    format!("pkcs11:token={};object={label};type=private", token.label())
}

/// A self-signed certificate for `localhost` whose key is in the token.
pub(crate) fn certificate(token: &TestToken, label: &str, file: &str) -> Result<()> {
    token
        .program("openssl")
        .line("req -new -x509 -days 30 -sha256 -engine pkcs11 -keyform engine -subj /CN=localhost")
        .line("-addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:TRUE")
        .args(["-key", &uri(token, label), "-out", file])
        .run()?;
    token.program("openssl").line("verify -check_ss_sig").args(["-CAfile", file, file]).run()?;
    Ok(())
}

/// A TLS server whose key is in the token.
pub(crate) fn server(
    token: &TestToken,
    label: &str,
    file: &str,
    more: &str,
) -> Result<(Server, u16)> {
    let port = free_port()?;
    let server = token
        .program("openssl")
        .line("s_server -engine pkcs11 -keyform engine -www -quiet")
        .args(["-accept", &format!("127.0.0.1:{port}"), "-cert", file])
        .args(["-key", &uri(token, label)])
        .line(more)
        .serve(port, token.home())?;
    Ok((server, port))
}

fn fetch(token: &TestToken, port: u16, file: &str, more: &str) -> Result<()> {
    token
        .program("curl")
        .env("OPENSSL_CONF", "/dev/null")
        .args(["--silent", "--show-error", "--cacert", file])
        .args(["--resolve", &format!("localhost:{port}:127.0.0.1")])
        .line(more)
        .arg(format!("https://localhost:{port}/"))
        .run()?
        .with(&["Secure Renegotiation"])
        .map(|_| ())
}

fn serve_and_fetch(what: &str, kind: &str, summary: &str) {
    check(CLIENT, what, NEEDS, |token| {
        token.key_pair(kind, "01", "server")?;
        token.spy()?;
        configure(token)?;
        certificate(token, "server", "server.pem")?;
        let (server, port) = server(token, "server", "server.pem", "")?;
        for _ in 0..3 {
            fetch(token, port, "server.pem", "--tlsv1.3")?;
            fetch(token, port, "server.pem", "--tls-max 1.2")?;
        }
        drop(server);
        token.called(summary)
    });
}

#[test]
fn tls_server_has_its_rsa_key_in_the_token() {
    serve_and_fetch("TLS 1.2 and 1.3 server, RSA", "rsa:2048", "openssl");
}

#[test]
fn tls_server_has_its_p256_key_in_the_token() {
    serve_and_fetch("TLS 1.2 and 1.3 server, P-256", "EC:prime256v1", "openssl-ec");
}

#[test]
fn commands_of_the_page_make_a_certificate_serve_and_sign() {
    check(CLIENT, "the page: req, s_server, dgst", NEEDS, |token| {
        configure(token)?;
        token.key_pair("rsa:2048", "01", "site")?;
        token.write("file", "what is signed")?;
        let port = free_port()?;
        let page = |words, changes: &[_]| recipe::command(token, (SECTION, 1), words, changes);
        page("req ", &[])?.run()?;
        page("dgst ", &[])?.run()?;
        plain(token, "x509 -in site.pem -noout -pubkey -out public.pem")?;
        plain(token, "dgst -sha256 -verify public.pem -signature file.sig file")?;
        let here = format!("127.0.0.1:{port}");
        let _server = page("s_server ", &[("4433", &here)])?.serve(port, token.home())?;
        let client = token.program("openssl").env("OPENSSL_CONF", "/dev/null");
        let client = client.line("s_client -verify_return_error -CAfile site.pem -connect");
        client.arg(here).run().map(drop)
    });
}

/// `openssl` without the engine.
pub(crate) fn plain(token: &TestToken, line: &str) -> Result<()> {
    token.program("openssl").env("OPENSSL_CONF", "/dev/null").line(line).run().map(drop)
}

#[test]
fn digest_command_signs_and_plain_openssl_verifies() {
    check(CLIENT, "dgst -sign", NEEDS, |token| {
        token.spy()?;
        configure(token)?;
        token.key_pair("rsa:2048", "01", "rsa")?;
        token.key_pair("EC:secp384r1", "02", "ec")?;
        token.write("message", "what is signed")?;
        for (label, options) in [
            ("rsa", "-sha256"),
            ("rsa", "-sha512"),
            ("rsa", "-sha256 -sigopt rsa_padding_mode:pss"),
            ("ec", "-sha384"),
        ] {
            certificate(token, label, "cert.pem")?;
            token
                .program("openssl")
                .line("x509 -in cert.pem -noout -pubkey -out public.pem")
                .run()?;
            token
                .program("openssl")
                .args(["dgst", "-engine", "pkcs11", "-keyform", "engine"])
                .args(["-sign", &uri(token, label), "-out", "signature"])
                .line(options)
                .arg("message")
                .run()?;
            token
                .program("openssl")
                .env("OPENSSL_CONF", "/dev/null")
                .line("dgst -verify public.pem -signature signature")
                .line(options)
                .arg("message")
                .run()?;
        }
        token.called("openssl-dgst")
    });
}

#[test]
fn public_key_command_decrypts() {
    check(CLIENT, "pkeyutl -decrypt", NEEDS, |token| {
        token.spy()?;
        configure(token)?;
        token.key_pair("rsa:2048", "01", "rsa")?;
        certificate(token, "rsa", "cert.pem")?;
        token.write("plain", "secret")?;
        token
            .program("openssl")
            .line("pkeyutl -encrypt -certin -inkey cert.pem -in plain -out sealed")
            .run()?;
        let opened = token
            .program("openssl")
            .line("pkeyutl -engine pkcs11 -keyform engine -decrypt -in sealed")
            .args(["-inkey", &uri(token, "rsa")])
            .run()?;
        ensure!(opened.stdout == b"secret", "not what was encrypted: {}", opened.told());
        token.called("openssl-decrypt")
    });
}

#[test]
fn certificate_request_is_signed_by_an_authority_in_the_token() {
    check(CLIENT, "certificate authority", NEEDS, |token| {
        token.spy()?;
        configure(token)?;
        token.key_pair("EC:prime256v1", "01", "authority")?;
        certificate(token, "authority", "ca.pem")?;
        token
            .program("openssl")
            .line("req -new -newkey rsa:2048 -nodes -keyout leaf.key -out leaf.csr -subj /CN=leaf")
            .run()?;
        token
            .program("openssl")
            .line("x509 -req -in leaf.csr -CA ca.pem -engine pkcs11 -CAkeyform engine -days 3")
            .args(["-CAkey", &uri(token, "authority"), "-out", "leaf.pem", "-set_serial", "7"])
            .run()?;
        token
            .program("openssl")
            .env("OPENSSL_CONF", "/dev/null")
            .line("verify -CAfile ca.pem leaf.pem")
            .run()?
            .with(&["leaf.pem: OK"])?;
        token.called("openssl-ca")
    });
}

#[test]
fn key_that_does_not_exist_is_an_error_of_the_command() {
    check(CLIENT, "missing key", NEEDS, |token| {
        configure(token)?;
        token.key_pair("EC:prime256v1", "01", "key")?;
        token.write("message", "what is signed")?;
        let output = token
            .program("openssl")
            .args(["dgst", "-sha256", "-engine", "pkcs11", "-keyform", "engine"])
            .args(["-sign", &uri(token, "nosuch"), "message"])
            .output()?;
        // The engine calls the module again from OpenSSL's exit handler: that must not crash.
        ensure!(output.status == 1, "{}", output.told());
        Ok(())
    });
}
