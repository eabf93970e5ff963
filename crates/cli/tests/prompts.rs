// SPDX-License-Identifier: Apache-2.0
//! The command on a terminal: what it asks, what it shows of the answers, and how it leaves the
//! terminal.

#[path = "common/sandbox.rs"]
mod sandbox;
#[path = "common/terminal.rs"]
mod terminal;

use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, tcgetattr};
use sandbox::Sandbox;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::Duration;
use terminal::Terminal;

fn start(sandbox: &Sandbox, arguments: &[&str]) -> Terminal {
    // `setsid --ctty` makes it the controlling terminal, which is what /dev/tty means.
    let mut setsid = sandbox.program("setsid");
    setsid.args(["--ctty", "--wait", "metaslot"]).args(arguments);
    Terminal::start(setsid)
}

fn sandbox() -> Sandbox {
    Sandbox::make(&sandbox::module())
}

#[test]
fn a_new_token_asks_for_both_pins_twice_and_shows_neither() {
    let sandbox = sandbox();
    let mut terminal = start(&sandbox, &["token", "init", "--label", "web"]);
    for (question, answer) in [
        ("new SO PIN for token 'web': ", "12345678\n"),
        ("the same SO PIN again: ", "12345678\n"),
        ("new user PIN for token 'web': ", "secreX\x7ft\n"),
        ("the same user PIN again: ", "wrong\x15secret\n"),
    ] {
        let before = terminal.expect(question);
        assert!(!before.contains("1234") && !before.contains("secre"), "{before}");
        terminal.answer(answer);
    }
    let (screen, code) = terminal.end();
    assert!(screen.contains("initialised token 'web' in slot 0"), "{screen}");
    assert!(!screen.contains("secre"), "{screen}");
    assert_eq!(code, Some(0));

    let mut terminal = start(&sandbox, &["key", "generate", "--label", "site"]);
    terminal.expect("user PIN of token 'web': ");
    terminal.answer("secret\n");
    let (screen, code) = terminal.end();
    assert!(screen.contains("generated ec:p256 key 'site'"), "{screen}");
    assert_eq!(code, Some(0));
}

#[test]
fn a_question_stays_on_the_terminal_until_it_is_answered() {
    let sandbox = sandbox();
    let pins = "--so-pin-source so.pin --pin-source user.pin";
    sandbox.run(&format!("metaslot token init --label web {pins}"));
    sandbox.run("metaslot key generate --label site --pin-source user.pin; echo text > letter");
    let mut terminal = start(&sandbox, &["sign", "--key", "site", "--in", "letter"]);
    terminal.expect("user PIN of token 'web': ");
    // After a second other commands say how far they are.
    thread::sleep(Duration::from_millis(1500));
    terminal.answer("23456789\n");
    let (screen, code) = terminal.end();
    assert!(!screen.contains("reading"), "{screen:?}");
    assert_eq!(code, Some(0));
}

#[test]
fn no_pin_is_asked_for_that_would_not_be_tried() {
    let sandbox = sandbox();
    let pins = "--so-pin-source so.pin --pin-source user.pin";
    sandbox.run(&format!("metaslot token init --label web {pins}"));
    sandbox.run("echo 00000000 > wrong.pin");
    // A pause begins after the third one; until it is over the next ones are not tried.
    for _ in 0..3 {
        sandbox.run("metaslot key list --pin-source wrong.pin");
    }
    let (screen, code) = loop {
        let mut terminal = start(&sandbox, &["key", "list"]);
        let shown = terminal.expect_one(&["user PIN of token 'web': ", "would not be tried now"]);
        if shown == 1 {
            break terminal.end();
        }
        // The machine was so slow that the pause is over. The next one is longer.
        terminal.answer("00000000\n");
        terminal.end();
    };
    assert!(
        screen.contains("tries are left before the PIN is locked; the next one in"),
        "{screen}"
    );
    assert_eq!(code, Some(4));
}

#[test]
fn a_file_s_passphrase_is_asked_for_once_and_before_the_pin() {
    let sandbox = sandbox();
    sandbox.run("metaslot token init --label web --so-pin-source so.pin --pin-source user.pin");
    sandbox.run(
        "openssl genpkey -algorithm ec -pkeyopt ec_paramgen_curve:P-256 -aes256 -pass 'pass:a phrase' -out old.pem",
    );
    let import = ["key", "import", "old.pem", "--label", "old"];
    let mut terminal = start(&sandbox, &import);
    terminal.expect("Enter passphrase: ");
    terminal.answer("another\n");
    let (screen, code) = terminal.end();
    assert!(screen.contains("the passphrase is wrong") && !screen.contains("PIN of"), "{screen}");
    assert_eq!(code, Some(4));
    let mut terminal = start(&sandbox, &import);
    terminal.expect("Enter passphrase: ");
    terminal.answer("a phrase\n");
    terminal.expect("user PIN of token 'web': ");
    terminal.answer("23456789\n");
    let (screen, code) = terminal.end();
    assert!(
        screen.contains("imported ec:p256 key 'old'") && !screen.contains("phrase"),
        "{screen}"
    );
    assert_eq!(code, Some(0));
}

#[test]
fn pins_that_differ_change_nothing() {
    let sandbox = sandbox();
    let mut terminal = start(&sandbox, &["token", "init", "--label", "web"]);
    terminal.expect("new SO PIN for token 'web': ");
    terminal.answer("12345678\n");
    terminal.expect("the same SO PIN again: ");
    terminal.answer("12345679\n");
    let (screen, code) = terminal.end();
    assert!(screen.contains("error: the two PINs differ"), "{screen}");
    assert_eq!(code, Some(4));
    assert_eq!(sandbox.run("metaslot token list --quiet"), ["pkcs11:slot-id=0"]);
}

#[test]
fn an_interrupted_question_leaves_the_terminal_as_it_was() {
    let sandbox = sandbox();
    let mut terminal = start(&sandbox, &["token", "init"]);
    terminal.expect("new SO PIN for token 'metaslot': ");
    let modes = |terminal: &Terminal| tcgetattr(&terminal.master).expect("modes").local_modes;
    assert!(!modes(&terminal).contains(LocalModes::ECHO));
    terminal.answer("1234\x03");
    terminal.expect("error: cancelled");
    assert_eq!(terminal.child.wait().expect("the command ends").code(), Some(4));
    let wanted = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
    assert!(modes(&terminal).contains(wanted));
    let mut terminal = start(&sandbox, &["token", "init"]);
    terminal.expect("new SO PIN for token 'metaslot': ");
    kill_process(Pid::from_child(&terminal.child), Signal::TERM).expect("it is there");
    let ended = terminal.child.wait().expect("the command ends");
    assert_eq!(ended.signal(), Some(Signal::TERM.as_raw()));
    assert!(modes(&terminal).contains(wanted));
}

/// Also where something was typed.
#[test]
fn the_end_of_the_input_cancels_a_question() {
    let sandbox = sandbox();
    for typed in ["\x04", "1234\x04\n"] {
        let mut terminal = start(&sandbox, &["token", "init"]);
        terminal.expect("new SO PIN for token 'metaslot': ");
        terminal.answer(typed);
        terminal.expect("error: cancelled");
        assert_eq!(terminal.end().1, Some(4));
    }
}

#[test]
fn top_gives_the_terminal_back_however_it_ends() {
    let sandbox = sandbox();
    let modes = |terminal: &Terminal| tcgetattr(&terminal.master).expect("modes").local_modes;
    let ends: [fn(&mut Terminal); 3] = [
        |terminal| terminal.answer("q"),
        |terminal| terminal.answer("\x03"),
        |terminal| {
            let process = Pid::from_child(&terminal.child);
            kill_process(process, Signal::TERM).expect("it is there");
        },
    ];
    for end in ends {
        let mut terminal = start(&sandbox, &["top", "0.2"]);
        terminal.expect("choose");
        assert!(!modes(&terminal).contains(LocalModes::ICANON));
        end(&mut terminal);
        terminal.expect("\x1b[?1049l");
        assert_eq!(terminal.child.wait().expect("the command ends").code(), Some(0));
        assert!(modes(&terminal).contains(LocalModes::ECHO | LocalModes::ICANON));
    }
}

#[test]
fn the_screen_ends_with_its_terminal() {
    let sandbox = sandbox();
    // Also where the signal that says so is ignored, as under nohup.
    for before in ["", "trap '' HUP; "] {
        let mut program = sandbox.program("setsid");
        program.args(["--ctty", "--wait", "bash", "-c", &format!("{before}exec metaslot top")]);
        let mut terminal = Terminal::start(program);
        terminal.expect("choose");
        let Terminal { master, mut child, .. } = terminal;
        drop(master);
        child.wait().expect("the command ends");
    }
}

#[test]
fn what_cannot_be_undone_is_asked_first() {
    let sandbox = sandbox();
    let pins = "--so-pin-source so.pin --pin-source user.pin";
    sandbox.run(&format!("metaslot token init --label web {pins}"));
    sandbox.run("metaslot key generate --label site --id 01 --pin-source user.pin");
    let delete = ["key", "delete", "site", "--pin-source", "user.pin"];
    for (answer, left) in [("n\n", 1), ("\n", 1), ("yes\n", 0)] {
        let mut terminal = start(&sandbox, &delete);
        terminal.expect("(private and public)? there is no way back [y/N] ");
        terminal.answer(answer);
        terminal.end();
        let keys = sandbox.run("metaslot key list --quiet --pin-source user.pin");
        assert_eq!(keys.len(), left, "{answer:?}: {keys:?}");
    }
    let mut terminal = start(&sandbox, &["token", "init"]);
    terminal.expect("slot 0 has token 'web': delete every key in it? [y/N] ");
    terminal.answer("n\n");
    let (screen, code) = terminal.end();
    assert!(screen.contains("error: nothing was changed"), "{screen}");
    assert_eq!(code, Some(1));
}

#[test]
fn pktool_asks_for_each_kind_of_key() {
    let sandbox = sandbox();
    let pins = "--so-pin-source so.pin --pin-source user.pin";
    sandbox.run(&format!("metaslot pktool inittoken newlabel=web {pins}"));
    sandbox.run("metaslot pktool genkeypair label=site --pin-source user.pin");
    let delete = ["pktool", "delete", "label=site", "--pin-source", "user.pin"];
    for (private, public, left) in [("n\n", "n\n", 1), ("y\n", "n\n", 1), ("", "y\n", 0)] {
        let mut terminal = start(&sandbox, &delete);
        for (kind, answer) in [("private", private), ("public", public)] {
            if !answer.is_empty() {
                terminal
                    .expect(&format!("1 {kind} key(s) found, do you want to delete them? [y/N] "));
                terminal.answer(answer);
            }
        }
        assert_eq!(terminal.end().1, Some(0));
        let keys = sandbox.run("metaslot key list --quiet --pin-source user.pin");
        assert_eq!(keys.len(), left, "{private:?} {public:?}: {keys:?}");
    }
}

#[test]
fn a_passphrase_is_typed_twice_to_encrypt_and_once_to_decrypt() {
    let sandbox = sandbox();
    let encrypt = ["encrypt", "-a", "aes", "-i", "user.pin", "-o", "sealed"];
    for (again, code) in [("other\n", 1), ("open sesame\n", 0)] {
        let mut terminal = start(&sandbox, &encrypt);
        terminal.expect("Enter passphrase: ");
        terminal.answer("open sesame\n");
        terminal.expect("Re-enter passphrase: ");
        terminal.answer(again);
        let (screen, ended) = terminal.end();
        assert_eq!(ended, Some(code), "{screen}");
        assert!(!screen.contains("sesame"), "{screen}");
    }
    let mut terminal = start(&sandbox, &encrypt);
    terminal.expect("Enter passphrase: ");
    terminal.answer(&format!("{}\n", "x".repeat(1025)));
    let (screen, ended) = terminal.end();
    assert_eq!(ended, Some(1), "{screen}");
    assert!(screen.contains("it is longer than 1024 bytes"), "{screen}");
    let mut terminal = start(&sandbox, &["decrypt", "-a", "aes", "-i", "sealed"]);
    terminal.expect("Enter passphrase: ");
    terminal.answer("open sesame\n");
    let (screen, ended) = terminal.end();
    assert_eq!((ended, screen.trim()), (Some(0), "23456789"), "{screen}");
}

#[test]
fn a_long_file_says_how_far_it_is() {
    let sandbox = sandbox();
    let pipe = sandbox.directory().join("pipe");
    sandbox.run("mkfifo pipe; head -c 32 /dev/zero > key; head -c 200000 /dev/zero > it");
    sandbox.run("metaslot encrypt -a aes -k key -i it -o sealed");
    for (verb, input) in [("encrypt", "it"), ("decrypt", "sealed")] {
        let bytes = fs::read(sandbox.directory().join(input)).expect("it is there");
        let line = [verb, "-a", "aes", "-k", "key", "-i", "pipe", "-o", "out"];
        let mut terminal = start(&sandbox, &line);
        let mut writer = OpenOptions::new().write(true).open(&pipe).expect("it is read");
        writer.write_all(&bytes[..100]).expect("it is read");
        terminal.expect("reading pipe, 1 s");
        writer.write_all(&bytes[100..]).expect("it is read");
        drop(writer);
        let (screen, code) = terminal.end();
        assert!(screen.ends_with("\r\x1b[K"), "{screen:?}");
        assert_eq!(code, Some(0), "{screen:?}");
    }
}

#[test]
fn a_token_goes_when_its_label_was_typed() {
    let sandbox = sandbox();
    sandbox.run("metaslot token init --label web --so-pin-source so.pin --pin-source user.pin");
    let line = ["token", "delete", "--so-pin-source", "so.pin"];
    for (answer, code, left) in [("yes\n", 1, "pkcs11:token=web"), ("web\n", 0, "pkcs11:slot-id=0")]
    {
        let mut terminal = start(&sandbox, &line);
        terminal.expect("Type its label to delete it: ");
        terminal.answer(answer);
        let (screen, ended) = terminal.end();
        assert_eq!(ended, Some(code), "{screen}");
        assert_eq!(sandbox.run("metaslot token list --quiet"), [left]);
    }
}
