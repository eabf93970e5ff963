// SPDX-License-Identifier: Apache-2.0
//! Python's PyKCS11: `testdata/python/client.py` does the work.

use std::path::{Path, PathBuf};

use metaslot_testkit::{TestToken, USER_PIN, check};

use crate::recipe;

const CLIENT: &str = "PyKCS11";

/// The Python with PyKCS11 in it: `cargo xtask test` makes it.
pub(crate) fn python() -> String {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/venv/bin/python3");
    std::env::var_os("METASLOT_TEST_PYTHON")
        .map_or(made, PathBuf::from)
        .to_string_lossy()
        .into_owned()
}

fn client(what: &str, part: &str) {
    check(CLIENT, what, &[&python(), "pkcs11-tool"], |token: &mut TestToken| {
        token.spy()?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/python/client.py");
        token
            .program(&python())
            .arg(script)
            .arg(token.module())
            .args([token.label(), USER_PIN, part])
            .run()?
            .with(&["done"])?;
        token.asked(&format!("pykcs11-{part}")).map(drop)
    });
}

#[test]
fn signatures_are_made_and_verified() {
    client("signatures", "sign");
}

#[test]
fn ciphers_open_what_they_sealed() {
    client("ciphers", "cipher");
}

#[test]
fn digests_match_those_of_python() {
    client("digests", "digest");
}

#[test]
fn objects_are_found_changed_and_destroyed() {
    client("objects", "objects");
}

/// Runs the code of a section after what it takes for granted, and before what has to hold then.
pub(crate) fn page_works(client: &str, section: &str, before: &str, after: &str) {
    check(client, "the page", &[&python(), "pkcs11-tool"], |token| {
        token.key_pair("EC:prime256v1", "01", "site")?;
        let page = recipe::block(token, section, 0, &[])?;
        let page = page.replace("\"web\"", "\"testing\"");
        let program = format!("pin = \"{USER_PIN}\"\n{before}\n{page}\n{after}\n");
        let program = token.write("page.py", program)?;
        token.program(&python()).arg(program).run().map(drop)
    });
}

#[test]
fn code_of_the_page_signs() {
    let (before, after) = ("import PyKCS11\ndigest = bytes(32)", "assert len(signature) == 64");
    page_works(CLIENT, "Python (PyKCS11)", before, after);
}
