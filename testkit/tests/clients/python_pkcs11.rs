// SPDX-License-Identifier: Apache-2.0
//! python-pkcs11: `testdata/python/python_pkcs11.py` does the work.

use std::path::Path;

use anyhow::Result;
use metaslot_testkit::{TestToken, USER_PIN, check};

use crate::{classic, pykcs11};

const CLIENT: &str = "python-pkcs11";

fn work(token: &TestToken, module: &Path) -> Result<()> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/python/python_pkcs11.py");
    let python = token.program(&pykcs11::python()).arg(script).arg(module);
    python.args([token.label(), USER_PIN]).run()?.with(&["done"]).map(drop)
}

#[test]
fn it_works_by_the_newest_interface() {
    check(CLIENT, "C_GetInterface", &[&pykcs11::python(), "pkcs11-tool"], |token| {
        work(token, token.module())
    });
}

#[test]
fn it_works_by_the_classic_list() {
    check(CLIENT, "C_GetFunctionList", &[&pykcs11::python(), "pkcs11-tool", "gcc"], |token| {
        let classic = classic::spy(token)?;
        work(token, &classic)?;
        token.called("python-pkcs11")
    });
}
