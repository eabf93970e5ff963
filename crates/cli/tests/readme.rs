// SPDX-License-Identifier: Apache-2.0
//! The commands of the README, as they are printed and in their order, on a terminal of a user who has nothing yet.

#[path = "common/sandbox.rs"]
mod sandbox;
#[path = "common/terminal.rs"]
mod terminal;

use sandbox::Sandbox;
use std::env;
use terminal::Terminal;

/// What becomes of a line.
enum Line {
    /// It ends by itself, after these questions and answers.
    Ends(&'static [(&'static str, &'static str)]),
    /// It goes on until it is ended by typing this, once it has shown something.
    GoesOn { shows: &'static str, end: &'static str },
    /// It is not run here, for this reason.
    Elsewhere(&'static str),
}

use Line::{Elsewhere, Ends, GoesOn};

const PIN: (&str, &str) = ("user PIN of token 'web': ", "23456789\n");
const PHRASE: (&str, &str) = ("Enter passphrase: ", "a phrase\n");
const AGAIN: (&str, &str) = ("Re-enter passphrase: ", "a phrase\n");
const SO_PIN: &str = "12345678\n";
const LAB: Line = Elsewhere("the lab measures with release builds: its own tests run it");

const FIRST: Line =
    Elsewhere("cargo xtask test runs these lines, as root of a system of their own");

const LINES: &[(&str, Line)] = &[
    ("cargo xtask run", Elsewhere("cargo xtask test runs it")),
    ("cargo xtask install", Elsewhere("cargo xtask test packs and installs the same files")),
    ("dpkg -i metaslot_0.1.0_amd64.deb", FIRST),
    ("metaslot setup nginx --apply --new site --dns localhost --enable --verify", FIRST),
    ("OPENSSL_CONF=/etc/metaslot/nginx-openssl.cnf nginx", FIRST),
    ("curl --cacert /etc/metaslot/site.pem https://localhost/", FIRST),
    ("mkdir -p ~/.config/metaslot", Ends(&[])),
    (
        r#"test -e ~/.config/metaslot/metaslot.toml || printf '[[token]]\npath = "%s/.local/share/metaslot/token.db"\n' ~ > ~/.config/metaslot/metaslot.toml"#,
        Ends(&[]),
    ),
    (
        "metaslot token init --label web",
        Ends(&[
            ("new SO PIN for token 'web': ", SO_PIN),
            ("the same SO PIN again: ", SO_PIN),
            ("new user PIN for token 'web': ", PIN.1),
            ("the same user PIN again: ", PIN.1),
        ]),
    ),
    ("metaslot key generate --label site --type ec:p256", Ends(&[PIN])),
    ("metaslot sign --key site --in file --out file.sig", Ends(&[PIN])),
    ("metaslot key import old.p12", Ends(&[PHRASE, PIN])),
    ("metaslot cert import site.pem --label site", Ends(&[PIN])),
    ("metaslot cert list", Ends(&[])),
    ("metaslot digest -a sha256 file", Ends(&[])),
    ("metaslot mac -a sha256_hmac file", Ends(&[PHRASE])),
    ("metaslot encrypt -a aes -i file -o file.enc", Ends(&[PHRASE, AGAIN])),
    ("metaslot decrypt -a aes -i file.enc -o copy", Ends(&[PHRASE])),
    ("metaslot cryptoadm list", Ends(&[])),
    ("metaslot pktool list", Ends(&[])),
    ("metaslot ksslcfg list", Ends(&[])),
    (
        "metaslot token import --from /usr/lib/softhsm/libsofthsm2.so",
        Elsewhere("docs/commands/token-import.md has a token for it"),
    ),
    ("metaslot import-softtoken DIRECTORY", Elsewhere("softtoken.rs has keystores for it")),
    ("metaslot config show", Ends(&[])),
    ("metaslot doctor", Ends(&[])),
    ("metaslot stat 1", GoesOn { shows: "\n", end: "\x03" }),
    ("metaslot top", GoesOn { shows: "choose", end: "q" }),
    ("metaslot provider list", Ends(&[])),
    ("metaslot policy show", Ends(&[])),
    ("metaslot tune", Elsewhere("measures for two minutes: a transcript runs a short one")),
    ("metaslot explain aes-gcm --size 8192", Ends(&[])),
    ("metaslot lab probe", LAB),
    ("metaslot lab speed", LAB),
    ("metaslot lab local --eagain", LAB),
    ("metaslot lab lanes", LAB),
    ("metaslot lab study aes", LAB),
    ("metaslot lab tcp --profile", LAB),
    ("metaslot lab report X.labx", LAB),
    (
        "export PKCS11_MODULE_PATH=/usr/local/lib/x86_64-linux-gnu/pkcs11/libmetaslot.so",
        Elsewhere("the module under test is named instead"),
    ),
    ("pkcs11-tool --module $PKCS11_MODULE_PATH --list-mechanisms", Ends(&[])),
    ("ssh-keygen -D $PKCS11_MODULE_PATH", Ends(&[])),
    ("metaslot setup openssl --key site --apply --directory ~/.config/metaslot", Ends(&[])),
    (
        "OPENSSL_CONF=~/.config/metaslot/metaslot-openssl.cnf openssl req -new -x509 -key \
         \"pkcs11:token=web;object=site;type=private\" -subj /CN=site",
        Ends(&[("Enter pass phrase for PIN of token web:", PIN.1)]),
    ),
];

/// What a reader would type: what is in fences, and the first column of tables of commands.
fn printed(readme: &str) -> Vec<&str> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in readme.lines() {
        match line.strip_prefix("| ") {
            _ if line.starts_with("```") => inside = !inside,
            _ if inside => lines.push(line),
            Some(row) => {
                let first = row.split(" | ").next().unwrap_or_default();
                let commands = first.split('`').skip(1).step_by(2);
                lines.extend(commands.filter(|command| command.starts_with("metaslot ")));
            }
            None => {}
        }
    }
    lines
}

fn run(sandbox: &Sandbox, command: &str, line: &Line) {
    let (questions, end) = match line {
        Ends(questions) => (*questions, None),
        GoesOn { shows, end } => (&[(*shows, *end)][..], Some(*end)),
        Elsewhere(reason) => return println!("not run: {command}: {reason}"),
    };
    let mut program = sandbox.program("setsid");
    program.args(["--ctty", "--wait", "timeout", "--foreground", "60", "bash", "-c", command]);
    // A new user has no configuration.
    program.env("PKCS11_MODULE_PATH", sandbox::module()).env_remove("METASLOT_CONF");
    let mut terminal = Terminal::start(program);
    for (question, answer) in questions {
        terminal.expect(question);
        terminal.answer(answer);
    }
    let (screen, code) = terminal.end();
    let ended = end.is_some() || code == Some(0);
    assert!(ended && !screen.contains("error"), "{command}: {code:?}: {screen}");
}

#[test]
fn every_command_of_the_readme_works_as_it_is_printed() {
    let readme = include_str!("../../../README.md");
    let known: Vec<&str> = LINES.iter().map(|(command, _)| *command).collect();
    assert_eq!(
        printed(readme),
        known,
        "each line of the README is in this file, and the other way round"
    );
    let sandbox = Sandbox::make(&sandbox::module());
    let made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=site \
                -keyout /dev/null -out site.pem; \
                openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=old \
                -keyout old.pem -out old.crt; \
                openssl pkcs12 -export -inkey old.pem -in old.crt -name old -passout 'pass:a phrase' -out old.p12";
    sandbox.run(&format!("echo something > file; {made}"));
    for (command, line) in LINES {
        // Variables stand before it.
        let program = command.split(' ').find(|word| !word.contains('=')).unwrap_or_default();
        let there = sandbox
            .run(&format!("type {program}"))
            .last()
            .is_some_and(|said| !said.starts_with('?'));
        assert!(there || env::var_os("CI").is_none(), "{program} is not installed");
        match there {
            true => run(&sandbox, command, line),
            false => println!("not run: {command}: {program} is not installed"),
        }
        if command.contains("cert import") {
            // It is not of the token's key, of which the lines after this take it to be.
            sandbox.run("rm site.pem");
        }
    }
}
