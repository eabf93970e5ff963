// SPDX-License-Identifier: Apache-2.0
//! `metaslot doctor`: what depends on the programs that are installed.

#[path = "common/sandbox.rs"]
mod sandbox;

use sandbox::Sandbox;

/// An engine that finds no key, as libp11's does in a token with an Ed25519 or ML-DSA key, and one that finds each.
#[test]
fn a_key_that_hides_the_others_from_the_engine_is_named() {
    let sandbox = Sandbox::make(&sandbox::module());
    sandbox.run("metaslot token init --label web --so-pin-source so.pin --pin-source user.pin");
    // Without our provider beside them.
    sandbox.run("mkdir bin; cp $METASLOT_MODULE bin/libmetaslot.so; cp $(command -v metaslot) bin");
    let doctor = |openssl: &str| {
        sandbox.run(&format!("ln -sf {openssl} bin/openssl"));
        let told = sandbox
            .run("METASLOT_MODULE=$PWD/bin/libmetaslot.so PATH=$PWD/bin:$PATH metaslot doctor");
        let from = told.iter().position(|line| line.starts_with("OpenSSL")).expect("a line");
        told[from..from + 2].join("\n")
    };
    if !doctor("/bin/true").contains("engines-3/pkcs11.so") {
        return println!("not run: OpenSSL's engine for PKCS#11 is not installed");
    }
    sandbox.run("metaslot key generate --label site --id 02 --pin-source user.pin --quiet");
    for kind in ["ed25519", "ml-dsa:65", "slh-dsa:sha2-128f", "ml-kem:768"] {
        let line = format!("metaslot key generate --label login --type {kind} --id 01");
        sandbox.run(&format!("{line} --pin-source user.pin --quiet"));
        assert!(doctor("/bin/true").contains("programs of OpenSSL's can use keys"));
        let told = doctor("/bin/false");
        let named = format!("has one of type {kind}: pkcs11:token=web;id=%01;object=login");
        assert!(told.contains("warning") && told.contains(&named), "{told}");
        assert!(told.contains("fix: keep it in a token of its own"), "{told}");
        sandbox.run("metaslot key delete login --yes --pin-source user.pin");
    }
}

#[test]
fn a_provider_that_openssl_does_not_load_is_named() {
    let sandbox = Sandbox::make(&sandbox::module());
    sandbox.run("mkdir fakes; : > fakes/metaslot.so");
    let doctor = |more: &str| sandbox.run(&format!("{more} metaslot doctor")).join("\n");
    if sandbox.run("command -v openssl").is_empty() {
        return println!("not run: openssl is not installed");
    }
    assert!(doctor("").contains("/usr/lib/metaslot.so: programs of OpenSSL's can use keys"));
    let told = doctor("OPENSSL_MODULES=$PWD/fakes");
    assert!(told.contains("OpenSSL does not load /home/you/fakes/metaslot.so: "), "{told}");
    assert!(told.contains("fix: it needs OpenSSL 3.0 or later"), "{told}");
}

/// As root it is the system's directory that counts; of another user, the user's own.
#[test]
fn p11_kit_is_told_of_the_module_by_its_plain_path() {
    let sandbox = Sandbox::make(&sandbox::module());
    sandbox.run("mkdir lib; cp $METASLOT_MODULE lib/libmetaslot.so; chmod -R a+rX lib .");
    let told = |with: &str| {
        let line = "metaslot --module ./lib/./libmetaslot.so doctor";
        let told = sandbox.run(&format!("XDG_CONFIG_HOME=$PWD/own {with} {line}"));
        let at = told.iter().position(|line| line.contains("unknown to p11-kit"));
        at.map(|at| told[at + 1].trim_start().to_owned())
    };
    let Some(fix) = told("") else { return println!("not run: p11-kit knows the module here") };
    assert!(fix.starts_with("fix: write 'module: /home/you/lib/libmetaslot.so' into /"), "{fix}");
    let is_root = rustix::process::geteuid().is_root();
    let own = "/home/you/own/pkcs11/modules/metaslot.module";
    assert_eq!(fix.ends_with(own), !is_root, "{fix}");
    if !is_root {
        return;
    }
    let fix = told("setpriv --reuid 65534 --regid 65534 --clear-groups env").expect("the same");
    assert!(fix.ends_with(own), "{fix}");
}

/// As a `token init --new` that was killed leaves it.
#[test]
fn a_slot_that_was_added_and_has_no_token_is_named_with_what_helps() {
    let sandbox = Sandbox::make(&sandbox::module());
    let pins = "--so-pin-source so.pin --pin-source user.pin --quiet";
    sandbox.run(&format!(
        "unset METASLOT_CONF; metaslot token init --label base {pins}; metaslot token init --new --label more {pins}
         rm -r .local/share/metaslot/more"
    ));
    let doctor = || sandbox.run("unset METASLOT_CONF; metaslot doctor").join("\n");
    let told = doctor();
    let found = "warning  slot 1: no token in /home/you/.local/share/metaslot/more/token.db yet";
    assert!(told.contains(found), "{told}");
    let make = "fix: metaslot token init --slot 1 --label NAME makes it; for none: ";
    let at = told.find(make).expect("a fix") + make.len();
    let remove = told[at..].lines().next().expect("a line").replace("/home/you", "$HOME");
    sandbox.run(&format!("unset METASLOT_CONF; metaslot token init --slot 1 --label more {pins}"));
    assert!(!doctor().contains("no token in"), "{}", doctor());
    sandbox.run(&format!("rm -r .local/share/metaslot/more; {remove}"));
    assert!(!doctor().contains("slot 1"), "{}", doctor());
}

/// What another program is told then is that the device's memory is at its end.
#[test]
fn a_disk_without_room_is_said_to_be_full() {
    let sandbox = Sandbox::make(&sandbox::module());
    let within = "unshare --map-root-user --mount sh -c 'mount -t tmpfs metaslot full -o size=";
    let doctor_of = |size: &str, lines: &str| {
        let doctor = "metaslot doctor 2> /dev/null' | grep -A1 '^files'";
        sandbox.run(&format!("{within}{size} && {lines}; {doctor}"))
    };
    let doctor = |lines: &str| doctor_of("512k", lines);
    sandbox.run("mkdir full; sed -i 's|/token.db|/full/token.db|' metaslot.toml");
    let make = "chmod 700 full && metaslot token init --label web --so-pin-source so.pin --pin-source user.pin --quiet";
    let told = doctor(make);
    if !told.first().is_some_and(|line| line.contains("full/token.db: mode")) {
        let why = format!("no mount is possible: {told:?}");
        return metaslot_testkit::left_out("cli", "a full disk", &why);
    }
    assert!(told[0].contains(" ok "), "{told:?}");
    // Without a limit it has no number of blocks.
    let told = doctor_of("0", make);
    assert!(told[0].contains(" ok "), "{told:?}");
    let told = doctor(&format!("{make}; head -c 1M /dev/zero > full/more 2> /dev/null")).join("\n");
    assert!(
        told.contains("error    /home/you/full/token.db: 0 bytes are left on its disk"),
        "{told}"
    );
    assert!(told.contains("fix: make room"), "{told}");
}

/// A token that is not made yet is in nobody's way who can make it.
#[test]
fn a_directory_that_the_user_may_make_is_no_obstacle() {
    let sandbox = Sandbox::make(&sandbox::module());
    let conf = r#"printf '[[token]]\npath = "%s"\n' $PWD/new/store/token.db > own.toml"#;
    let told = |user: &str| {
        let line = format!("METASLOT_CONF=$PWD/own.toml metaslot doctor --user {user}");
        let told = sandbox.run(&format!("{line} | grep ' use .*/new/store'"));
        told.join("\n")
    };
    sandbox.run(&format!("{conf}; chmod 755 ."));
    let own = told("$(id -un)");
    assert!(own.contains("access         ok") && own.contains("once it is made"), "{own}");
    let other = told("nobody");
    assert!(other.contains("access         error"), "{other}");
}
