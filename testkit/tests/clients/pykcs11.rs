// SPDX-License-Identifier: Apache-2.0
//! Python's PyKCS11: `testdata/python/client.py` does the work.

use std::path::{Path, PathBuf};

use anyhow::ensure;
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

/// Runs the program of a section, which prints lines of these lengths.
pub(crate) fn page_prints(client: &str, section: &str, lengths: &[usize]) {
    check(client, "the page", &[&python(), "pkcs11-tool"], |token| {
        token.key_pair("EC:prime256v1", "01", "site")?;
        token.write("pin", USER_PIN)?;
        let page = recipe::block(token, section, 0, &[])?;
        let program = token.write("page.py", page.replace("\"web\"", "\"testing\""))?;
        let printed = token.program(&python()).arg(program).run()?.text();
        let found: Vec<usize> = printed.lines().map(str::len).collect();
        ensure!(found == lengths, "{printed}");
        Ok(())
    });
}

#[test]
fn program_of_the_page_signs() {
    page_prints(CLIENT, "Python (PyKCS11)", &[128]);
}
