// SPDX-License-Identifier: Apache-2.0
//! The suite of python-pkcs11, from its source distribution: `cargo xtask test` unpacks it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use metaslot_testkit::{SO_PIN, USER_PIN, check};

use crate::judged;

/// It makes DSA parameters and RSA keys, many times.
const LIMIT: Duration = Duration::from_secs(400);

fn unpacked() -> Result<PathBuf> {
    let suites = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/suites");
    let suite = suites.join("python-pkcs11");
    suite.canonicalize().context("the suite is not there\nhint: cargo xtask test fetches it")
}

#[test]
fn under_legacy() {
    let python = std::env::var("METASLOT_TEST_PYTHON").unwrap_or_else(|_| {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../target/venv/bin/python3").to_owned()
    });
    check("python-pkcs11", "its own suite", &[&python, "pkcs11-tool"], |token| {
        token.policy("legacy")?;
        let pytest = token.program(&python).directory(&unpacked()?).limit(LIMIT);
        let pytest = pytest.line(judged::PYTEST).arg("tests");
        let pytest = pytest.env("PKCS11_MODULE", token.module());
        let pytest = pytest.env("PKCS11_TOKEN_LABEL", token.label());
        let pytest = pytest.env("PKCS11_TOKEN_PIN", USER_PIN).env("PKCS11_TOKEN_SO_PIN", SO_PIN);
        let told = pytest.output()?.all();
        judged::compare("python-pkcs11", &judged::by_pytest("tests/", &told), &told)
    });
}
