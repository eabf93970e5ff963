// SPDX-License-Identifier: Apache-2.0
//! What zsh and fish complete, by themselves; bash is in the transcripts.

#[path = "common/sandbox.rs"]
mod sandbox;

use sandbox::Sandbox;
use std::env;

/// A token with a key whose label is to be completed.
const MAKE: &str = "metaslot token init --label web --so-pin-source so.pin --pin-source user.pin --quiet && \
    metaslot key generate --label site --id 01 --pin-source user.pin --quiet";

/// Asks for a type, which has a colon within, and for a label.
const ZSH: &str = r"
autoload -U compinit; compinit -D -u; . ./it
_describe() { print -rl -- ${(P)@[-1]} }
words=(metaslot key generate --type ec:p2); CURRENT=5; _clap_dynamic_completer_metaslot
words=(metaslot sign --key s); CURRENT=4; _clap_dynamic_completer_metaslot
";
const FISH: &str = "source it; complete -C 'metaslot key generate --type ec:p2'; complete -C 'metaslot sign --key s'";

fn completes(shell: &str, quiet: &str, script: &str, expected: &[&str]) {
    let sandbox = Sandbox::make(&sandbox::module());
    let is_there =
        sandbox.run(&format!("type {shell}")).last().is_some_and(|said| !said.starts_with('?'));
    assert!(is_there || env::var_os("CI").is_none(), "{shell} is not installed");
    if !is_there {
        return println!("not run: {shell} is not installed");
    }
    let made = sandbox.run(MAKE);
    assert_eq!(made.last().map(String::as_str), Some("pkcs11:token=web;id=%01;object=site"));
    let asked = format!(
        "metaslot completions {shell} > it; cat > ask <<'END'\n{script}\nEND\n{shell} {quiet} ask"
    );
    assert_eq!(sandbox.run(&asked), expected);
}

#[test]
fn zsh_completes_types_and_labels() {
    // A colon ends a value there, and is written otherwise.
    completes("zsh", "-f", ZSH, &["ec\\:p224", "ec\\:p256", "site"]);
}

#[test]
fn fish_completes_types_and_labels() {
    completes("fish", "--no-config", FISH, &["ec:p224", "ec:p256", "site"]);
}
