// SPDX-License-Identifier: Apache-2.0
//! Commands that are killed while they make a token, or have no room for it: the same command, once more, makes it whole.

#[path = "common/sandbox.rs"]
mod sandbox;

use sandbox::Sandbox;

/// Runs `line`, kills it with all that it started once the token has an officer and no user, and says so. What a guess costs takes long
/// enough to be in time; otherwise it is tried again.
fn half_made(line: &str) -> Sandbox {
    let sandbox = Sandbox::make(&sandbox::module());
    let told = sandbox.run(&format!(
        "printf '[[token]]\\npath = \"%s/token.db\"\\n' $PWD > metaslot.toml; set -m
         for wait in 0 0 0.05 0.05 0.1 0.1 0.2 0.2; do
             rm -rf token.db* conf; {line} > told 2>&1 &
             until [ $(stat -c %s token.db 2> /dev/null || echo 0) -gt 4096 ]; do :; done
             sleep $wait; kill -9 -- -$!; wait 2> /dev/null
             metaslot token list --json | grep -q '\"user_pin\": \"unset\"' && break
         done; metaslot token list --json | grep user_pin\\\""
    ));
    let state = told.last().map(|line| line.trim());
    assert_eq!(state, Some("\"user_pin\": \"unset\","), "{told:?}");
    sandbox
}

#[test]
fn a_token_that_a_kill_left_half_made_is_finished_and_not_asked_to_be_emptied() {
    let line = "metaslot token init --label web --so-pin-source so.pin --pin-source user.pin";
    let sandbox = half_made(line);
    let serial = "metaslot token show --json | grep serial";
    let before = sandbox.run(serial);
    let wrong =
        sandbox.run(&line.replace("so.pin", "user.pin").replace("--label", "--quiet --label"));
    assert!(wrong[0].starts_with("error: wrong PIN"), "{wrong:?}");
    let other = sandbox.run(&line.replace("web", "other")).join("\n");
    assert!(other.contains("slot 0 already has token 'web'"), "{other}");
    let told = sandbox.run(line);
    assert_eq!(told[..2], ["finishing token 'web' in slot 0", "initialised token 'web' in slot 0"]);
    assert_eq!(sandbox.run(serial), before, "it is the same token");
    assert_eq!(sandbox.run("metaslot key list --pin-source user.pin --quiet"), [""; 0]);
    let told = sandbox.run(line).join("\n");
    assert!(told.contains("slot 0 already has token 'web'"), "{told}");
}

/// The file is only read, and the disk is full at one write or another.
#[test]
fn a_restore_that_has_no_room_says_so_of_the_tokens_place() {
    let sandbox = Sandbox::make(&sandbox::module());
    let told = sandbox.run(
        "metaslot token init --label web --so-pin-source so.pin --pin-source user.pin --quiet
         metaslot token backup web.token --pin-source user.pin --quiet; rm token.db*; mkdir place
         printf '[[token]]\npath = \"%s/place/token.db\"\n' $PWD > metaslot.toml
         unshare --mount --map-root-user bash -c 'exec 2>&1; for size in 16 48 80 112; do
             mount -t tmpfs -o size=${size}k,mode=700 none place || exit; echo $size
             metaslot token restore web.token --pin-source user.pin; mount -o remount,size=1m place
             metaslot token restore web.token --pin-source user.pin --quiet
         done'",
    );
    if !told.iter().any(|line| line == "112") {
        return println!("not run: nothing can be mounted here: {told:?}");
    }
    let full = "error: the token's store is full (C_Login: CKR_DEVICE_MEMORY)";
    let detail = "detail: /home/you/place/token.db: no space left";
    let one = |size: &'static str| {
        [size, full, detail, "hint: make room on its disk", "pkcs11:token=web"]
    };
    let all = ["16", "48", "80", "112"].map(one).concat();
    assert_eq!(told[2..], all, "{told:?}");
}

#[test]
fn a_setup_that_was_killed_while_its_token_was_made_goes_on() {
    let line = "metaslot setup gnutls --apply --new site --directory conf";
    let sandbox = half_made(line);
    let told = sandbox.run(line).join("\n");
    assert!(told.contains("metaslot key generate") && !told.contains("error: "), "{told}");
    // Its child goes on where it alone was killed.
    let told = sandbox.run(&format!(
        "rm -rf token.db* conf; {line} > told 2>&1 & until [ -s token.db ]; do :; done; kill -9 $!
         until metaslot token list --json | grep -q '\"user_pin\": \"ok\"'; do sleep 0.1; done; stat -c %s conf/web.token; {line}"
    ));
    assert!(told.iter().any(|line| line == "0"), "it was killed too late: {told:?}");
    assert!(told.iter().any(|line| line.starts_with("metaslot key generate")), "{told:?}");
    assert!(!told.iter().any(|line| line.starts_with("error: ")), "{told:?}");
    // Another's token of this name costs one try, once.
    let told = sandbox.run(&format!(
        "rm -rf token.db*; metaslot token init --label web --so-pin-source so.pin --pin-source user.pin --quiet; : > conf/web.token
         for each in 1 2 3; do {line} > told 2>&1; done; tail -n 1 told; metaslot token list --json | grep user_tries_left"
    ));
    assert!(told.iter().any(|line| line.contains("--pin-source FILE")), "{told:?}");
    assert!(told.last().is_some_and(|line| line.contains("9")), "{told:?}");
}
