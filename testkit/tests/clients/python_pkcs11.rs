// SPDX-License-Identifier: Apache-2.0
//! python-pkcs11: `testdata/python/python_pkcs11.py` does the work.

use std::path::Path;

use anyhow::Result;
use metaslot_testkit::{TestToken, USER_PIN, check};

use crate::pykcs11;

const CLIENT: &str = "python-pkcs11";

fn works(what: &str, spy: fn(&mut TestToken) -> Result<()>, summary: &str) {
    check(CLIENT, what, &[&pykcs11::python(), "pkcs11-tool"], |token| {
        spy(token)?;
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let python = token.program(&pykcs11::python());
        let python = python.arg(root.join("testdata/python/python_pkcs11.py")).arg(token.module());
        python.args([token.label(), USER_PIN]).run()?.with(&["done"])?;
        token.called(summary)
    });
}

#[test]
fn it_works_by_the_newest_interface() {
    works("C_GetInterface", TestToken::spy, "python-pkcs11-interface");
}

#[test]
fn it_works_by_the_classic_list() {
    works("C_GetFunctionList", TestToken::spy_classic, "python-pkcs11");
}

#[test]
fn program_of_the_page_signs_and_makes_a_key() {
    // A signature of P-256, and a block of AES.
    pykcs11::page_prints(CLIENT, "Python (python-pkcs11)", &[128, 32]);
}
