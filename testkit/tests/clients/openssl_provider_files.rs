// SPDX-License-Identifier: Apache-2.0
//! Post-quantum keys of OpenSSL (3.5 or later) in files, without a provider of ours: each set, in each form of a private key, is
//! imported, and each side opens and verifies what the other made.

use std::fs;

use anyhow::{Context, Result, ensure};
use metaslot_testkit::{Output, TestToken, check, command};

use super::openssl_provider::{plain, version};

const CLIENT: &str = "OpenSSL, post-quantum keys in files";
/// A seed, the expanded key, and both (RFC 9881 §6, RFC 9935 §6), as OpenSSL calls them.
const FORMS: [&str; 3] = ["seed-only", "priv-only", "seed-priv"];

fn ours(token: &TestToken, line: &str) -> Result<Output> {
    token.program(&command()).line(line).args(["--pin-source", "pin"]).run()
}

fn theirs(token: &TestToken, line: &str) -> Result<Output> {
    plain(token).line(line).run()
}

/// Files that have the same bytes, and some; they are taken away.
fn same(token: &TestToken, names: [&str; 2]) -> Result<()> {
    let [one, other] = names.map(|name| fs::read(token.path(name)));
    let (one, other) = (one?, other?);
    ensure!(one == other && !one.is_empty(), "{names:?} differ");
    // The command replaces no file by a secret.
    for name in names {
        fs::remove_file(token.path(name))?;
    }
    Ok(())
}

/// Of a file in one form: the key in the token has the public half that OpenSSL finds.
fn imported(token: &TestToken, algorithm: &str, provider: &str, form: &str) -> Result<()> {
    let forms = format!("-provparam {provider}.output_formats={form}");
    let forms = if provider == "slh-dsa" { "" } else { &forms };
    theirs(token, &format!("genpkey -algorithm {algorithm} {forms} -out key.pem"))?;
    theirs(token, "pkey -in key.pem -pubout -out key.pub")?;
    ours(token, "key import key.pem --label theirs")?;
    ours(token, "key export theirs --out ours.pub")?;
    fs::copy(token.path("key.pub"), token.path("theirs.pub"))?;
    same(token, ["theirs.pub", "ours.pub"])
}

fn encapsulates(token: &TestToken) -> Result<()> {
    theirs(token, "pkeyutl -encap -pubin -inkey key.pub -secret one -out sealed")?;
    ours(token, "decapsulate --key theirs --type generic:32 --in sealed --out other")?;
    same(token, ["one", "other"])?;
    ours(token, "encapsulate --key theirs --type generic:32 --out sealed --secret one")?;
    theirs(token, "pkeyutl -decap -inkey key.pem -in sealed -secret other")?;
    same(token, ["one", "other"])
}

fn signs(token: &TestToken) -> Result<()> {
    theirs(token, "pkeyutl -sign -inkey key.pem -rawin -in message -out signature")?;
    ours(token, "verify --key theirs --in message --signature signature")?;
    ours(token, "sign --key theirs --in message --out signature")?;
    let verify = "pkeyutl -verify -pubin -inkey key.pub -rawin -in message -sigfile signature";
    theirs(token, verify).map(|_| ())
}

#[test]
fn keys_of_every_set_and_form_are_one_key_for_both() {
    let command = command();
    check(CLIENT, "every set and form", &["openssl", "pkcs11-tool", &command], |token| {
        let has = plain(token).arg("version").run()?.text();
        let has = has.split_whitespace().nth(1).and_then(version);
        if has.context("openssl says no version")? < (3, 5) {
            return Ok(());
        }
        token.write("message", "what is signed\n")?;
        let kems = ["512", "768", "1024"].map(|set| ("ml-kem", format!("ML-KEM-{set}")));
        let ml_dsas = ["44", "65", "87"].map(|set| ("ml-dsa", format!("ML-DSA-{set}")));
        let slh_dsas = ["SHA2", "SHAKE"].iter().flat_map(|hash| {
            let sets = ["128s", "128f", "192s", "192f", "256s", "256f"];
            sets.map(|set| ("slh-dsa", format!("SLH-DSA-{hash}-{set}")))
        });
        for (provider, algorithm) in kems.into_iter().chain(ml_dsas).chain(slh_dsas) {
            // SLH-DSA has one form.
            let forms = if provider == "slh-dsa" { &FORMS[..1] } else { &FORMS };
            for form in forms {
                let both = || {
                    imported(token, &algorithm, provider, form)?;
                    if provider == "ml-kem" {
                        encapsulates(token)?
                    } else {
                        signs(token)?
                    }
                    ours(token, "key delete theirs --yes").map(|_| ())
                };
                both().with_context(|| format!("{algorithm}, {form}"))?;
            }
        }
        Ok(())
    });
}
