// SPDX-License-Identifier: Apache-2.0
//! ML-DSA beside OpenSSL's, by Python's cryptography: `testdata/python/ml_dsa.py`.

#[path = "common/sandbox.rs"]
mod sandbox;

use sandbox::Sandbox;
use std::env;
use std::path::{Path, PathBuf};

/// The Python with packages in it: `cargo xtask test` makes it.
fn python(sandbox: &Sandbox) -> Option<String> {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/python3");
    let python = env::var_os("METASLOT_TEST_PYTHON").map_or(made, PathBuf::from);
    let python = python.display().to_string();
    let module = "cryptography.hazmat.primitives.asymmetric.mldsa";
    let there = sandbox.run(&format!("{python} -c 'import {module}' 2> said")).is_empty();
    assert!(there || env::var_os("CI").is_none(), "{python} has no {module}");
    if !there {
        println!("not run: {python} has no {module}");
    }
    there.then_some(python)
}

#[test]
fn another_implementation_takes_our_keys_signatures_and_certificates_and_we_take_its() {
    let sandbox = Sandbox::make(&sandbox::module());
    let Some(python) = python(&sandbox) else { return };
    let script = format!("{python} $TESTDATA/python/ml_dsa.py");
    let made = sandbox.run(&format!(
        "set -e; export METASLOT_PIN_SOURCE=user.pin; {script} make
        metaslot token init --label web --so-pin-source so.pin --pin-source user.pin --quiet
        for set in 44 65 87; do
          metaslot key import theirs$set.key --label theirs$set --quiet
          metaslot verify --key theirs$set --in letter --signature theirs$set.sig
          metaslot key generate --type ml-dsa:$set --label ours$set --quiet
          for key in theirs$set ours$set; do
            metaslot key export $key --out $key.pem
            metaslot sign --key $key --in letter --out $key.new
            metaslot cert selfsign $key --subject CN=$key --for ca --out $key.crt
            metaslot cert csr $key --subject CN=$key --out $key.csr
          done
        done"
    ));
    let valid = made.iter().filter(|line| line.starts_with("valid: CKM_ML_DSA by ")).count();
    assert_eq!(valid, 3, "{made:?}");
    assert_eq!(sandbox.run(&format!("{script} judge")), ["done"]);
}
