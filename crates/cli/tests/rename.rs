// SPDX-License-Identifier: Apache-2.0
//! Labels that two commands give at a time.

#[path = "common/sandbox.rs"]
mod sandbox;

use sandbox::Sandbox;

/// A stress test: the order of the two commands is not fixed.
#[test]
fn two_commands_give_no_label_twice() {
    let sandbox = Sandbox::make(&sandbox::module());
    let run = |command: &str| sandbox.run(command);
    let two = "printf '[[token]]\\npath = \"%s/other.db\"\\nkdf = \"weak-for-tests\"\\n' $PWD >> metaslot.toml";
    assert!(run(two).is_empty());
    for label in ["one", "two"] {
        let made = format!(
            "metaslot token init --label {label} --so-pin-source so.pin --pin-source user.pin"
        );
        run(&made);
    }
    for round in 0..20 {
        run(&format!(
            "for slot in 0 1; do metaslot token rename --token pkcs11:slot-id=$slot new{round} --pin-source user.pin & done; wait"
        ));
        let labels = run("metaslot token list | tail -2 | awk '{print $2}'");
        assert_eq!(labels.len(), 2, "{labels:?}");
        assert_ne!(labels[0], labels[1]);
    }
}

/// A stress test, too. The second one takes back what it made; where both did, one makes it again.
#[test]
fn two_commands_make_no_two_tokens_of_one_label() {
    let sandbox = Sandbox::make(&sandbox::module());
    let run = |command: &str| sandbox.run(command);
    let two = "printf '[[token]]\\npath = \"%s/other.db\"\\nkdf = \"weak-for-tests\"\\n' $PWD >> metaslot.toml";
    assert!(run(two).is_empty());
    for round in 0..20 {
        let told = run(
            "for slot in 0 1; do metaslot token init --slot $slot --label same --so-pin-source so.pin --pin-source user.pin & done; wait",
        );
        let made = run("metaslot token list --quiet | grep -c same");
        assert_eq!(made[0], "1", "round {round}: {told:?}");
        assert!(run("rm -f token.db* other.db*").is_empty());
    }
}

/// The PINs cost their usual time, so that all four have begun before the first is done.
#[test]
fn who_comes_second_is_told_so_and_not_that_it_may_not_write() {
    let sandbox = Sandbox::make(&sandbox::module());
    let run = |command: &str| sandbox.run(command);
    assert!(run("printf '[[token]]\\npath = \"%s/token.db\"\\n' $PWD > metaslot.toml").is_empty());
    let told = run("for label in a b c d; do \
         metaslot token init --label $label --so-pin-source so.pin --pin-source user.pin & done; wait");
    let told = told.join("\n");
    assert_eq!(told.matches("initialised token").count(), 1, "{told}");
    let others = told.matches("error: another process has just made a token in slot 0").count()
        + told.matches("error: slot 0 already has token").count();
    assert_eq!(others, 3, "{told}");
}
