// SPDX-License-Identifier: Apache-2.0
//! The suite of Go's crypto11, compiled from its module.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use metaslot_testkit::{TestToken, USER_PIN, check, compile_go};

use crate::judged::{self, Ran};

const NEEDS: &[&str] = &["go", "gcc", "pkcs11-tool"];
/// It makes RSA and DSA keys, many times.
const LIMIT: Duration = Duration::from_secs(300);

/// What a line such as `--- FAIL: TestSigningDSA (0.00s)` says.
fn outcome(line: &str) -> Option<(String, bool)> {
    let (word, rest) = line.strip_prefix("--- ")?.split_once(": ")?;
    let passed = match word {
        "PASS" => true,
        "FAIL" => false,
        _ => return None,
    };
    Some((rest.split(' ').next()?.to_owned(), passed))
}

fn run(token: &mut TestToken) -> Result<()> {
    token.policy("legacy")?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/go").canonicalize()?;
    let built = token.path("crypto11.test");
    compile_go(token, &source, &["test", "-c", "github.com/ThalesIgnite/crypto11"], &built)?;
    let config = format!(
        "{{\"Path\": {:?}, \"TokenLabel\": {:?}, \"Pin\": {USER_PIN:?}}}",
        token.module(),
        token.label()
    );
    let directory = token.path("suite");
    std::fs::create_dir(&directory)?;
    std::fs::write(directory.join("config"), config)?;
    let suite = token.program(&built.to_string_lossy()).directory(&directory).limit(LIMIT);
    let told = suite.arg("-test.v").output()?.all();
    let ran: Ran = told.lines().filter_map(outcome).collect();
    judged::compare("crypto11", &ran, &told)
}

#[test]
fn under_legacy() {
    check("Go crypto11", "its own suite", NEEDS, run);
}
