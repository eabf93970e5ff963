// SPDX-License-Identifier: Apache-2.0
//! What zsh and fish complete, by themselves, and bash with files; with names it is in the transcripts.

#[path = "common/sandbox.rs"]
mod sandbox;
#[path = "common/terminal.rs"]
mod terminal;

use sandbox::Sandbox;
use std::env;
use terminal::Terminal;

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

#[test]
fn a_word_that_is_no_text_is_left_aside() {
    let sandbox = Sandbox::make(&sandbox::module());
    sandbox.run(MAKE);
    let line = "metaslot sign --in \"$(printf '\\377')\" --key s";
    assert_eq!(sandbox.run(&format!("METASLOT_COMPLETE=fish metaslot -- {line}")), ["site"]);
}

/// Other people's files have names that mean something to a shell.
#[test]
fn bash_quotes_the_names_of_files() {
    let sandbox = Sandbox::make(&sandbox::module());
    sandbox.run("touch 'a;touch RAN;.pem' b.pem; metaslot completions bash > it");
    let mut bash = sandbox.program("bash");
    bash.args(["--norc", "--noprofile", "-i"]).env("TERM", "dumb").env_remove("HISTFILE");
    let mut terminal = Terminal::start(bash);
    terminal.answer(". ./it; PS1='ready> '\n");
    terminal.expect("\nready> ");
    for line in ["key import a", "sign --key x --in a", "sign --key x --in=a", "key import 'a"] {
        terminal.answer(&format!("metaslot {line}\t\n"));
        terminal.expect("error: ");
        terminal.expect("\nready> ");
    }
    terminal.answer("printf '%s\\n' key import b\t | tail -1; exit\n");
    let (screen, code) = terminal.end();
    assert!(screen.contains("b.pem") && code == Some(0), "{screen}");
    let there = sandbox.run("ls");
    assert!(!there.contains(&"RAN".to_owned()), "{there:?}");
    assert!(there.contains(&"a;touch RAN;.pem".to_owned()), "{there:?}");
}
