// SPDX-License-Identifier: Apache-2.0
//! Node.js: `testdata/node/client.js` does the work, by graphene-pk11 over pkcs11js.

use std::path::Path;

use metaslot_testkit::{USER_PIN, check, find_program};

const CLIENT: &str = "Node graphene-pk11";

#[test]
fn a_program_signs_seals_and_agrees() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    // `cargo xtask test` makes it.
    let modules = root.join("target/node/node_modules");
    let addon = modules.join("pkcs11js/build/Release/pkcs11.node").to_string_lossy().into_owned();
    // Debian calls it by the one name, or by the other.
    let node = ["node", "nodejs"].into_iter().find(|name| find_program(name).is_some());
    let node = node.unwrap_or("node");
    check(CLIENT, "sign, seal, agree", &[node, "pkcs11-tool", &addon], |token| {
        token.spy()?;
        let program = token.program(node).env("NODE_PATH", &modules);
        let program = program.arg(root.join("testdata/node/client.js")).arg(token.module());
        program.args([token.label(), USER_PIN]).run()?.with(&["done"])?;
        token.called("node")
    });
}
