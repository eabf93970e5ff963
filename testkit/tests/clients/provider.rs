// SPDX-License-Identifier: Apache-2.0
//! OpenSSL 3 by pkcs11-provider: keys are found by their URI wherever a file can be named, and by PEM files that name a URI.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use metaslot_testkit::{TestToken, check, command, free_port};

use crate::openssl::{self, plain};
use crate::recipe;

const CLIENT: &str = "OpenSSL, pkcs11-provider";

const SECTION: &str = "OpenSSL 3, through the provider (`pkcs11-provider`)";

/// The provider: Debian 12 has it in its backports, whence `cargo xtask test` takes it, later ones have it installed.
pub(crate) fn path() -> String {
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/pkcs11-provider");
    let places =
        ["x86_64", "aarch64"].map(|machine| format!("usr/lib/{machine}-linux-gnu/ossl-modules"));
    let roots = [unpacked.clone(), PathBuf::from("/")];
    let files =
        roots.iter().flat_map(|root| places.iter().map(|at| root.join(at).join("pkcs11.so")));
    let found = files.into_iter().find(|file| file.exists()).unwrap_or(unpacked);
    found.canonicalize().unwrap_or(found).to_string_lossy().into_owned()
}

/// What every check here needs, beside `more`.
pub(crate) fn needs<'a>(provider: &'a str, command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    ["openssl", "pkcs11-tool", provider, command].into_iter().chain(more.iter().copied()).collect()
}

/// OpenSSL's configuration with the provider in it, and the spy behind that; `more` are lines for the provider.
pub(crate) fn configure(token: &mut TestToken, more: &str) -> Result<()> {
    token.spy()?;
    let pin = token.path("pin").display().to_string();
    let provider = ("/usr/lib/x86_64-linux-gnu/ossl-modules/pkcs11.so", &*path());
    let pin = ("/etc/metaslot/pin", &*format!("{pin}\n{more}"));
    let text = recipe::block(token, SECTION, 0, &[provider, pin])?;
    let text = format!("{text}[req]\ndistinguished_name = name\n[name]\n");
    let file = token.write("openssl.cnf", text)?;
    token.set("OPENSSL_CONF", file);
    Ok(())
}

/// A certificate for `localhost` by the key `label`, `site.pem`, and the file that names the key, `site.key`.
pub(crate) fn certificate(token: &TestToken, label: &str) -> Result<()> {
    let uri = openssl::uri(token, label);
    let req = token.program("openssl").line("req -new -x509 -days 30 -subj /CN=localhost");
    req.line("-addext subjectAltName=DNS:localhost -out site.pem").args(["-key", &uri]).run()?;
    token.program(&command()).args(["uri2pem", "--as-is", &uri, "--out", "site.key"]).run()?;
    Ok(())
}

#[test]
fn commands_sign_and_decrypt_by_a_uri() {
    let (provider, command) = (path(), command());
    check(CLIENT, "dgst, pkeyutl", &needs(&provider, &command, &[]), |token| {
        for (kind, id, label) in [
            ("rsa:2048", "01", "rsa"),
            ("EC:prime256v1", "02", "ec"),
            ("EC:edwards25519", "03", "ed"),
        ] {
            token.key_pair(kind, id, label)?;
        }
        configure(token, "")?;
        token.write("message", "what is signed and sealed")?;
        for (label, options) in
            [("rsa", "-sha256"), ("rsa", "-sha256 -sigopt rsa_padding_mode:pss"), ("ec", "-sha256")]
        {
            certificate(token, label)?;
            plain(token, "x509 -in site.pem -noout -pubkey -out public.pem")?;
            let dgst = token.program("openssl").arg("dgst").line(options);
            dgst.args(["-sign", &openssl::uri(token, label), "-out", "signature", "message"])
                .run()?;
            plain(
                token,
                &format!("dgst {options} -verify public.pem -signature signature message"),
            )?;
        }
        certificate(token, "ed")?;
        plain(token, "x509 -in site.pem -noout -pubkey -out public.pem")?;
        let sign = token.program("openssl").line("pkeyutl -sign -rawin -in message -out signature");
        sign.args(["-inkey", &openssl::uri(token, "ed")]).run()?;
        plain(
            token,
            "pkeyutl -verify -rawin -pubin -inkey public.pem -in message -sigfile signature",
        )?;
        certificate(token, "rsa")?;
        let oaep = "-pkeyopt rsa_padding_mode:oaep -pkeyopt rsa_oaep_md:sha256 -pkeyopt rsa_mgf1_md:sha256";
        plain(
            token,
            &format!("pkeyutl -encrypt -certin -inkey site.pem {oaep} -in message -out sealed"),
        )?;
        let open = token.program("openssl").line("pkeyutl -decrypt -in sealed").line(oaep);
        let opened = open.args(["-inkey", &openssl::uri(token, "rsa")]).run()?;
        ensure!(opened.stdout == b"what is signed and sealed", "{}", opened.told());
        token.called("provider")
    });
}

#[test]
fn commands_of_the_page_make_a_certificate_sign_and_open() {
    let (provider, command) = (path(), command());
    check(CLIENT, "the page: req, dgst, pkeyutl", &needs(&provider, &command, &[]), |token| {
        token.key_pair("rsa:2048", "01", "site")?;
        configure(token, "")?;
        token.write("file", "what is signed and sealed")?;
        let page = |words| recipe::command(token, (SECTION, 1), words, &[]);
        page("req ")?.run()?;
        page("dgst ")?.run()?;
        plain(token, "x509 -in site.pem -noout -pubkey -out public.pem")?;
        plain(token, "dgst -sha256 -verify public.pem -signature file.sig file")?;
        let oaep = "-pkeyopt rsa_padding_mode:oaep -pkeyopt rsa_oaep_md:sha256 -pkeyopt rsa_mgf1_md:sha256";
        plain(
            token,
            &format!("pkeyutl -encrypt -certin -inkey site.pem {oaep} -in file -out sealed"),
        )?;
        let opened = page("pkeyutl ")?.run()?;
        ensure!(opened.stdout == b"what is signed and sealed", "{}", opened.told());
        Ok(())
    });
}

fn serves(what: &str, kind: &str, summary: &str, versions: &[&str]) {
    let (provider, command) = (path(), command());
    check(CLIENT, what, &needs(&provider, &command, &["curl"]), |token| {
        token.key_pair(kind, "01", "site")?;
        configure(token, "")?;
        certificate(token, "site")?;
        token.spied()?;
        let port = free_port()?;
        let server = token
            .program("openssl")
            .line("s_server -cert site.pem -key site.key -www -quiet")
            .args(["-accept", &format!("127.0.0.1:{port}")])
            .serve(port, token.home())?;
        for version in versions {
            crate::nginx::fetch(token, port, version)?;
        }
        drop(server);
        token.called(summary)
    });
}

const BOTH: &[&str] = &["--tlsv1.3", "--tls-max 1.2"];

#[test]
fn a_server_reads_a_pem_file_that_names_an_rsa_key() {
    serves("TLS server, RSA", "rsa:2048", "provider-tls", BOTH);
}

#[test]
fn a_server_reads_a_pem_file_that_names_a_p256_key() {
    serves("TLS server, P-256", "EC:prime256v1", "provider-tls-ec", BOTH);
}

#[test]
fn a_server_reads_a_pem_file_that_names_an_ed25519_key() {
    serves("TLS server, Ed25519", "EC:edwards25519", "provider-tls-ed", &["--tlsv1.3"]);
}
