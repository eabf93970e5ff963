// SPDX-License-Identifier: Apache-2.0
//! pkcs11-check, a suite of tests in Python: what it says of functions, attributes, key usage, messages and post-quantum keys, and,
//! where `cargo xtask suites` asks for it, all of it.

use std::time::Duration;

use metaslot_testkit::{SO_PIN, USER_PIN, check};

use crate::judged;

/// Its files that are run with every change, in a twentieth of the time; `docs/mechanisms.md` holds the flags, which most of the others ask for.
const PART: &[&str] = &[
    "test_access_levels.py",
    "test_attribute_defaults.py",
    "test_attribute_enforcement.py",
    "test_attribute_invariants.py",
    "test_authenticated_wrap.py",
    "test_buffers.py",
    "test_hash_ml_dsa.py",
    "test_hash_slh_dsa.py",
    "test_interface.py",
    "test_interface_negotiation.py",
    "test_kem.py",
    "test_key_flags.py",
    "test_key_usage_policy.py",
    "test_mech_attribute.py",
    "test_mech_derive.py",
    "test_mech_kem.py",
    "test_mech_keygen.py",
    "test_mech_message.py",
    "test_mech_wrap.py",
    "test_mechanism_objects.py",
    "test_message_crypto.py",
    "test_multipart.py",
    "test_object_visibility.py",
    "test_operation_state.py",
    "test_operation_termination.py",
    "test_pqc_sign.py",
    "test_profiles.py",
    "test_search.py",
    "test_sensitivity.py",
    "test_session_state_machine.py",
    "test_session_validation_flags.py",
    "test_set_attribute.py",
    "test_stateful_sigs.py",
    "test_surface_audit.py",
    "test_trust_objects.py",
    "test_v30_session.py",
    "test_validation_objects.py",
    "test_verify_signature.py",
];

/// Where its tests are: they come with the package.
const WHERE: &str = "import pkcs11_check.testcases as t; print(t.__path__[0])";

fn file_of(test: &str) -> &str {
    test.split("::").next().unwrap_or(test)
}

/// Where it is set, all of the suite is run.
const WHOLE: &str = "METASLOT_SUITES_WHOLE";

#[test]
fn under_legacy() {
    let (files, count, limit) = match std::env::var_os(WHOLE) {
        Some(_) => (&[""][..], "passed", Duration::from_secs(3600)),
        None => (PART, "passed of the part", Duration::from_secs(900)),
    };
    let python = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/pkcs11-check/bin/python3");
    check("pkcs11-check", count, &[python, "pkcs11-tool"], |token| {
        token.policy("legacy")?;
        let home = token.program(python).args(["-c", WHERE]).run()?.text();
        let pytest = token.program(python).limit(limit);
        let pytest = pytest.line(judged::PYTEST).arg("--timeout=120");
        // Four gigabytes go through a digest in those that it calls slow.
        let pytest = pytest.args(["-m", "not slow"]);
        let pytest = pytest.args(files.iter().map(|name| format!("{}/{name}", home.trim())));
        let pytest = pytest.arg("--p11-module").arg(token.module());
        let pytest = pytest.env("P11TEST_PIN", USER_PIN).env("P11TEST_SO_PIN", SO_PIN);
        let told = pytest.output()?.all();
        let ran = judged::by_pytest("/testcases/", &told);
        println!("{}", told.lines().last().unwrap_or_default());
        let runs = |test: &str| count == "passed" || files.contains(&file_of(test));
        judged::compare_part("pkcs11-check", count, &ran, &told, runs)
    });
}
