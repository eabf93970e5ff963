// SPDX-License-Identifier: Apache-2.0
//! NSS: its tools make keys and certificates, take PKCS#12 in, and its server uses them.

use anyhow::{Result, ensure};
use metaslot_testkit::{Program, TestToken, USER_PIN, check, free_port};

use crate::recipe;

const CLIENT: &str = "NSS";
const NEEDS: &[&str] =
    &["certutil", "modutil", "pk12util", "selfserv", "curl", "openssl", "pkcs11-tool"];

/// A database of certificates that knows the module, with the spy behind it.
fn prepare(token: &mut TestToken) -> Result<()> {
    token.spy()?;
    std::fs::create_dir(token.path("nss"))?;
    token.program("certutil").line("-N -d sql:nss --empty-password").run()?;
    page(token, "modutil", &[])?.run()?;
    token.write("passwords", format!("{}:{USER_PIN}\n", token.label()))?;
    token.write("noise", [7; 64]).map(drop)
}

/// A command of the page.
fn page(token: &TestToken, words: &str, changes: &[(&str, &str)]) -> Result<Program> {
    recipe::command(token, ("NSS", 0), words, changes)
}

fn serve_and_fetch(token: &TestToken, nickname: &str) -> Result<()> {
    let port = free_port()?;
    let key = format!("{}:{nickname}", token.label());
    let changes = [("web:site", &*key), ("4433", &*port.to_string())];
    let _server = page(token, "selfserv", &changes)?.serve(port, token.home())?;
    for version in ["--tlsv1.3", "--tls-max 1.2"] {
        let fetched = token
            .program("curl")
            .args(["--silent", "--show-error", "--insecure", "--max-time", "20"])
            .line(version)
            .arg(format!("https://127.0.0.1:{port}/"))
            .run()?;
        ensure!(fetched.text().contains("GET / HTTP/1.1"), "{}", fetched.told());
    }
    Ok(())
}

#[test]
fn a_key_that_nss_makes_serves() {
    check(CLIENT, "modutil, certutil, selfserv", NEEDS, |token| {
        prepare(token)?;
        let web = ("-h web", &*format!("-h {}", token.label()));
        page(token, "certutil -S", &[web])?.run()?;
        page(token, "certutil -K", &[web])?.run()?.with(&["rsa", "site"])?;
        page(token, "certutil -K", &[web, ("-K", "-L")])?.run()?.with(&["site", "CTu,Cu,Cu"])?;
        serve_and_fetch(token, "site")?;
        token.called("nss")
    });
}

#[test]
fn a_pkcs12_file_is_taken_in_and_serves() {
    check(CLIENT, "pk12util -i", NEEDS, |token| {
        prepare(token)?;
        for (kind, name) in [("rsa:2048", "rsa"), ("ec -pkeyopt ec_paramgen_curve:P-256", "ec")] {
            token
                .program("openssl")
                .line("req -x509 -nodes -keyout key.pem -out cert.pem -newkey")
                .line(kind)
                // Of two certificates for one subject NSS gives the second one the first one's name.
                .args(["-subj", &format!("/CN={name}")])
                .run()?;
            token
                .program("openssl")
                .line(
                    "pkcs12 -export -inkey key.pem -in cert.pem -out both.p12 -passout pass:secret",
                )
                .args(["-name", name])
                .run()?;
            let web = ("-h web", &*format!("-h {}", token.label()));
            let changes = [web, ("key.p12", "both.p12"), ("-W password", "-W secret")];
            page(token, "pk12util", &changes)?.run()?;
            page(token, "certutil -K", &[web])?.run()?.with(&[name])?;
            serve_and_fetch(token, name)?;
        }
        token.called("nss-pkcs12")
    });
}
