// SPDX-License-Identifier: Apache-2.0
//! `metaslot token init --new` beside tokens of the system, of another user and of another module.

#[path = "common/sandbox.rs"]
mod sandbox;

use sandbox::Sandbox;

const PINS: &str = "--so-pin-source so.pin --pin-source user.pin --quiet";

/// Runs a script whose system is empty, by root.
fn within(script: &str) -> Option<Vec<String>> {
    let sandbox = Sandbox::make(&sandbox::module());
    let begin = "unset METASLOT_CONF && mount -t tmpfs none /etc && mount -t tmpfs none /var/lib && echo begun";
    let script = format!("{begin}\npins='{PINS}'\n{script}").replace('\'', "'\\''");
    let mut told =
        sandbox.run(&format!("unshare --mount --map-root-user bash -c 'exec 2>&1; {script}'"));
    if told.first().is_none_or(|line| line != "begun") {
        println!("not run: nothing can be mounted here: {told:?}");
        return None;
    }
    told.remove(0);
    Some(told)
}

/// A system with a token, and what else it has.
fn system(more: &str) -> String {
    format!(
        "mkdir -m 755 /etc/metaslot
         printf '[[token]]\\npath = \"/var/lib/metaslot/all/token.db\"\\n{more}' > /etc/metaslot/metaslot.toml
         metaslot token init --label all $pins\n"
    )
}

#[test]
fn every_user_reads_what_root_adds_to_the_system() {
    let script = system("")
        + "umask 077; metaslot token init --new --label web $pins
           cd /etc/metaslot/metaslot.d && stat -c '%a %n' . * /var/lib/metaslot";
    let Some(told) = within(&script) else { return };
    let expected = ["pkcs11:token=all", "pkcs11:token=web", "755 .", "644 90-web.toml"];
    assert_eq!(told[..4], expected, "{told:?}");
}

#[test]
fn the_slot_that_was_added_is_the_one_that_is_filled() {
    let own = system("")
        + "mkdir -p .config/metaslot/metaslot.d
           printf '[[token]]\\npath = \"%s/own/token.db\"\\n' $PWD > .config/metaslot/metaslot.d/own.toml
           metaslot token init --new --label web $pins; ls own; ls /var/lib/metaslot";
    let Some(told) = within(&own) else { return };
    let expected = "pkcs11:token=all
pkcs11:token=web
ls: cannot access 'own': No such file or directory
all
web";
    assert_eq!(told.join("\n"), expected);
    let module = "/usr/lib/softhsm/libsofthsm2.so";
    if !std::path::Path::new(module).exists() {
        return println!("not run: {module} is not there");
    }
    let foreign = system(&format!("[[foreign]]\\nname = \"soft\"\\nmodule = \"{module}\"\\n"));
    let others = format!(
        "mkdir soft; echo \"directories.tokendir = $PWD/soft\" > soft.conf; export SOFTHSM2_CONF=$PWD/soft.conf
         {foreign} metaslot token init --new --label web $pins; ls soft; ls /var/lib/metaslot"
    );
    let told = within(&others).expect("it could before");
    assert_eq!(told, ["pkcs11:token=all", "pkcs11:token=web", "all", "web"]);
}

#[test]
fn a_drop_in_that_says_of_another_module_stays_beside_its_slots() {
    let module = "/usr/lib/softhsm/libsofthsm2.so";
    if !std::path::Path::new(module).exists() {
        return println!("not run: {module} is not there");
    }
    let sandbox = Sandbox::make(&sandbox::module());
    let told = sandbox.run(&format!(
        "unset METASLOT_CONF; mkdir -p soft .config/metaslot/metaslot.d; echo \"directories.tokendir = $PWD/soft\" > soft.conf
         export SOFTHSM2_CONF=$PWD/soft.conf
         printf '[[foreign]]\\nname = \"soft\"\\nmodule = \"{module}\"\\n' > .config/metaslot/metaslot.d/soft.toml
         metaslot token init --new --label web {PINS}; ls soft; ls .config/metaslot/metaslot.d"
    ));
    assert_eq!(told, ["pkcs11:token=web", "soft.toml", "z90-web.toml"]);
}

#[test]
fn root_makes_nothing_in_the_home_of_another() {
    let sandbox = Sandbox::make(&sandbox::module());
    if !sandbox.run("mkdir -p other/.config/metaslot; chown -R 65500 other").is_empty() {
        return println!("not run: no file can be given away");
    }
    let told = sandbox.run(&format!(
        "unset METASLOT_CONF; for own in .config/metaslot .; do
             HOME=$PWD/other metaslot token init --new --label web {PINS}; find other -mindepth 1; rm -rf other/.config
         done"
    ));
    let hint =
        "hint: the variables HOME, XDG_CONFIG_HOME and XDG_DATA_HOME say where the user's own are";
    let expected = [
        "error: --new: /home/you/other/.config/metaslot is another user's",
        hint,
        "other/.config",
        "other/.config/metaslot",
        "error: --new: /home/you/other is another user's",
        hint,
    ];
    assert_eq!(told, expected);
}

/// The first slot that is added takes the place of the usual one.
#[test]
fn a_token_that_is_made_while_another_gets_a_slot_has_one() {
    let sandbox = Sandbox::make(&sandbox::module());
    let told = sandbox.run(&format!(
        "unset METASLOT_CONF; echo 'metaslot token init --new --label web {PINS} >&2; cat user.pin' > slow; chmod +x slow
         metaslot token init --label mine --so-pin-source so.pin --pin-source '|./slow' --quiet; metaslot token list --quiet"
    ));
    assert_eq!(told[0], "pkcs11:token=web", "{told:?}");
    assert_eq!(told[told.len() - 2..], ["pkcs11:token=web", "pkcs11:token=mine"], "{told:?}");
}

/// A stress test: as many as come at once.
#[test]
fn many_commands_add_as_many_slots() {
    let sandbox = Sandbox::make(&sandbox::module());
    let told = sandbox.run(&format!(
        "unset METASLOT_CONF
         for each in $(seq 6); do metaslot token init --new --label t$each {PINS} > told.$each 2>&1 & done; wait
         cat told.* | sort; metaslot token list --quiet | sort; ls .config/metaslot/metaslot.d | wc -l"
    ));
    let all: Vec<String> = (1..=6).map(|each| format!("pkcs11:token=t{each}")).collect();
    assert_eq!(told, [&all[..], &all, &["6".to_owned()]].concat());
}

#[test]
fn a_restore_that_comes_to_nothing_leaves_nothing() {
    let sandbox = Sandbox::make(&sandbox::module());
    let told = sandbox.run(&format!(
        "metaslot token init --label web {PINS} && metaslot token backup web.token --pin-source user.pin --quiet
         unset METASLOT_CONF; head -c 20000 web.token > cut.token; mkdir directory.token
         for file in web cut none directory; do
             metaslot token restore --new $file.token --pin-source $([ $file = web ] && echo so.pin || echo user.pin) > told 2>&1 && echo made
             find .config .local -type f -o -mindepth 3 -type d ! -name metaslot.d
         done"
    ));
    assert_eq!(told, ["pkcs11:token=web", "web.token"]);
}
