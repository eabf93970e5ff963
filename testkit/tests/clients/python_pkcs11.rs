// SPDX-License-Identifier: Apache-2.0
//! python-pkcs11: `testdata/python/python_pkcs11.py` does the work.

use std::path::{Path, PathBuf};

use anyhow::Result;
use metaslot_testkit::{TestToken, USER_PIN, check};

use crate::pykcs11;

const CLIENT: &str = "python-pkcs11";

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/python").join(name)
}

fn work(token: &TestToken, module: &Path) -> Result<()> {
    let python = token.program(&pykcs11::python()).arg(testdata("python_pkcs11.py")).arg(module);
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
        token.spy()?;
        let classic = token.path("classic.so");
        let gcc = token.program("gcc").line("-shared -fPIC -Wall -Wextra -Werror -o");
        gcc.arg(&classic).arg(testdata("classic.c")).arg("-ldl").run()?;
        token.set("METASLOT_SPY", token.module().to_owned());
        work(token, &classic)?;
        token.called("python-pkcs11")
    });
}
