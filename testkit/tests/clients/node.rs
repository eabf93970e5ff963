// SPDX-License-Identifier: Apache-2.0
//! Node.js: `testdata/node/client.js` does the work, by graphene-pk11 over pkcs11js.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use metaslot_testkit::{USER_PIN, check, find_program};

use crate::recipe;

const CLIENT: &str = "Node graphene-pk11";

/// The program, its packages, and what of them was compiled: `cargo xtask test` does that.
fn installed() -> (&'static str, PathBuf, String) {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/node/node_modules");
    let addon = modules.join("pkcs11js/build/Release/pkcs11.node").to_string_lossy().into_owned();
    (name(), modules, addon)
}

/// What Debian calls the program: the one name, or the other.
pub(crate) fn name() -> &'static str {
    let node = ["node", "nodejs"].into_iter().find(|name| find_program(name).is_some());
    node.unwrap_or("node")
}

#[test]
fn a_program_signs_seals_and_agrees() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (node, modules, addon) = installed();
    check(CLIENT, "sign, seal, agree", &[node, "pkcs11-tool", &addon], |token| {
        token.spy()?;
        let program = token.program(node).env("NODE_PATH", &modules);
        let program = program.arg(root.join("testdata/node/client.js")).arg(token.module());
        program.args([token.label(), USER_PIN]).run()?.with(&["done"])?;
        token.called("node")
    });
}

#[test]
fn code_of_the_page_signs() {
    let (node, modules, addon) = installed();
    check(CLIENT, "the page", &[node, "pkcs11-tool", &addon], |token| {
        token.key_pair("EC:prime256v1", "01", "site")?;
        let page = recipe::block(token, "Node.js (graphene-pk11)", 0, &[])?;
        let program = token.write("sign.js", page)?;
        token.write("pin", USER_PIN)?;
        let signed = token.program(node).env("NODE_PATH", &modules).arg(program).run()?;
        ensure!(signed.text().trim().len() == 128, "{}", signed.text());
        Ok(())
    });
}
