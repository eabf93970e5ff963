// SPDX-License-Identifier: Apache-2.0
//! Files of keys as other programs write them, whole, cut and changed; into our token and into one of SoftHSM's.

#[path = "common/sandbox.rs"]
mod sandbox;

use sandbox::Sandbox;
use std::env;

/// A token, a passphrase, and keys that the programs start from.
const MAKE: &str = "echo 'a phrase' > phrase; chmod 600 phrase user.pin so.pin
    openssl genpkey -quiet -algorithm rsa -pkeyopt rsa_keygen_bits:2048 -out rsa.pem
    openssl genpkey -algorithm ec -pkeyopt ec_paramgen_curve:P-256 -out ec.pem
    openssl req -x509 -key ec.pem -subj /CN=site -days 9 -out ec.crt
    openssl pkcs12 -export -inkey ec.pem -in ec.crt -name site -passout file:phrase -out ec.p12
    metaslot token init --label web --so-pin-source so.pin --pin-source user.pin --quiet";

const IMPORT: &str =
    "metaslot key import --passphrase-source phrase --pin-source user.pin --same-label --quiet";

/// The program that is needed, how it writes the file `it`, and the type of the key.
type Row = (&'static str, &'static str, &'static str);

const ROWS: &[Row] = &[
    ("openssl", "openssl pkcs8 -topk8 -in rsa.pem -passout file:phrase -out it", "rsa:2048"),
    (
        "openssl",
        "openssl pkcs8 -topk8 -v2 des3 -in rsa.pem -passout file:phrase -out it",
        "rsa:2048",
    ),
    (
        "openssl",
        "openssl pkcs8 -topk8 -v2prf hmacWithSHA512 -in ec.pem -passout file:phrase -outform der -out it",
        "ec:p256",
    ),
    (
        "openssl",
        "openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES -in ec.pem -passout file:phrase -out it",
        "ec:p256",
    ),
    (
        "openssl",
        "openssl rsa -in rsa.pem -traditional -aes256 -passout file:phrase -out it",
        "rsa:2048",
    ),
    ("openssl", "openssl ec -in ec.pem -des3 -passout file:phrase -out it", "ec:p256"),
    ("openssl", "openssl ec -in ec.pem -outform der -out it", "ec:p256"),
    ("openssl", "openssl ec -in ec.pem -conv_form compressed -out it", "ec:p256"),
    ("openssl", "openssl rsa -in rsa.pem -traditional -outform der -out it", "rsa:2048"),
    ("openssl", "openssl genpkey -algorithm ed25519 -out it", "ed25519"),
    ("openssl", "openssl genpkey -algorithm x25519 -outform der -out it", "x25519"),
    (
        "openssl",
        "openssl genpkey -algorithm ec -pkeyopt ec_paramgen_curve:secp521r1 -out it",
        "ec:p521",
    ),
    ("openssl", "cp ec.p12 it", "ec:p256"),
    (
        "openssl",
        "openssl pkcs12 -export -inkey rsa.pem -nocerts -macalg sha512 -iter 5000 -passout file:phrase -out it",
        "rsa:2048",
    ),
    (
        "openssl",
        "openssl pkcs12 -export -inkey rsa.pem -nocerts -keypbe PBE-SHA1-3DES -passout file:phrase -out it",
        "rsa:2048",
    ),
    (
        "openssl",
        "openssl pkcs12 -export -inkey rsa.pem -nocerts -passout pass: -out it",
        "rsa:2048",
    ),
    (
        "openssl",
        "openssl pkcs12 -export -inkey rsa.pem -nocerts -keypbe NONE -nomac -passout pass: -out it",
        "rsa:2048",
    ),
    (
        "openssl",
        "openssl pkcs12 -export -legacy -inkey ec.pem -in ec.crt -passout file:phrase -out it",
        "ec:p256",
    ),
    (
        "openssl",
        "openssl pkcs12 -export -legacy -inkey rsa.pem -nocerts -keypbe PBE-SHA1-RC2-128 -passout file:phrase -out it",
        "rsa:2048",
    ),
    ("ssh-keygen", "ssh-keygen -q -t rsa -b 2048 -N '' -C it -f it", "rsa:2048"),
    ("ssh-keygen", "ssh-keygen -q -t ecdsa -b 384 -N '' -C it -f it", "ec:p384"),
    ("ssh-keygen", "ssh-keygen -q -t ed25519 -N 'a phrase' -C it -f it", "ed25519"),
    ("ssh-keygen", "ssh-keygen -q -t ed25519 -N 'a phrase' -Z aes128-cbc -C it -f it", "ed25519"),
    (
        "ssh-keygen",
        "ssh-keygen -q -t ecdsa -N 'a phrase' -Z aes256-gcm@openssh.com -C it -f it",
        "ec:p256",
    ),
    (
        "ssh-keygen",
        "ssh-keygen -q -t rsa -b 2048 -N 'a phrase' -Z aes128-gcm@openssh.com -f it",
        "rsa:2048",
    ),
    ("ssh-keygen", "ssh-keygen -q -t ecdsa -N 'a phrase' -m PKCS8 -f it", "ec:p256"),
    // As OpenSSL does from 3.4 on.
    (
        "openssl",
        "openssl pkcs12 -export -inkey ec.pem -in ec.crt -nomac -passout file:phrase -out bare; /usr/bin/python3 $TESTDATA/python/pbmac1.py bare it sha256 sha256 'a phrase'",
        "ec:p256",
    ),
    (
        "openssl",
        "openssl pkcs12 -export -inkey rsa.pem -nocerts -nomac -passout file:phrase -out bare; /usr/bin/python3 $TESTDATA/python/pbmac1.py bare it sha512 sha384 'a phrase'",
        "rsa:2048",
    ),
    // Without lengths, as a stream.
    (
        "pk12util",
        "mkdir -p nss; certutil -N -d nss --empty-password; pk12util -d nss -i ec.p12 -W 'a phrase'; pk12util -d nss -o it -n site -W 'a phrase'",
        "ec:p256",
    ),
    (
        "keytool",
        "keytool -genkeypair -keyalg RSA -keysize 2048 -alias it -dname CN=it -keystore it -storetype PKCS12 -storepass 'a phrase'",
        "rsa:2048",
    ),
    (
        "certtool",
        "certtool --to-p12 --load-privkey ec.pem --load-certificate ec.crt --p12-name it --outder --outfile it --password 'a phrase'",
        "ec:p256",
    ),
];

fn there(sandbox: &Sandbox, program: &str) -> bool {
    let there =
        sandbox.run(&format!("type {program}")).last().is_some_and(|said| !said.starts_with('?'));
    assert!(there || env::var_os("CI").is_none(), "{program} is not installed");
    if !there {
        println!("not run: {program} is not installed");
    }
    there
}

#[test]
fn files_of_other_programs_become_keys_that_work() {
    let sandbox = Sandbox::make(&sandbox::module());
    sandbox.run(MAKE);
    for (number, (program, command, kind)) in ROWS.iter().enumerate() {
        if !there(&sandbox, program) {
            continue;
        }
        let made =
            sandbox.run(&format!("rm -f it it.pub; ({command}) > said 2>&1; cat said; test -s it"));
        assert!(made.last().is_none_or(|last| !last.starts_with('?')), "{command}: {made:?}");
        // What a file calls its key is one of the things that are tested elsewhere.
        let imported = sandbox.run(&format!("{IMPORT} it --label it{number}"));
        assert!(imported[0].starts_with("pkcs11:token=web;id="), "{command}: {imported:?}");
        let shown = sandbox.run(&format!("metaslot key list it{number} --pin-source user.pin"));
        assert!(
            shown[1].contains(&format!(" {kind} ")) && shown[1].contains("private+public"),
            "{command}: {shown:?}"
        );
        if *kind != "x25519" {
            let works = sandbox.run(&format!("metaslot key test it{number} --pin-source user.pin"));
            assert!(works[0].starts_with("works: "), "{command}: {works:?}");
        }
        sandbox.run(&format!("metaslot key delete it{number} --yes --pin-source user.pin; metaslot cert delete it{number} --yes --pin-source user.pin"));
    }
}

#[test]
fn a_cut_or_changed_file_stores_nothing() {
    let sandbox = Sandbox::make(&sandbox::module());
    sandbox.run(MAKE);
    let files = "openssl pkcs8 -topk8 -in ec.pem -passout file:phrase -outform der -out enc.der
        ssh-keygen -q -t ed25519 -N '' -C it -f it; cp ec.pem it.pem";
    sandbox.run(files);
    let cut = format!(
        "for file in enc.der ec.p12 it it.pem rsa.pem; do
           for length in $(seq 1 61 $(($(stat -c %s $file) - 2))); do
             head -c $length $file > cut; {IMPORT} cut --label cut 2> said && echo $file $length
           done
         done; true"
    );
    assert_eq!(sandbox.run(&cut), [""; 0], "nothing was taken");
    // One byte is another one. What is not encrypted of PKCS #8 says how it is decrypted.
    let changed = format!(
        "for file in enc.der ec.p12; do
           for at in $(seq 5 13 $(($(stat -c %s $file) - 1))); do
             /usr/bin/python3 -c 'import sys; b = bytearray(open(sys.argv[1], \"rb\").read()); b[int(sys.argv[2])] ^= 0x11; \
               open(\"changed\", \"wb\").write(b)' $file $at
             {IMPORT} changed --label changed 2> said && echo $file $at
           done
         done; true"
    );
    assert_eq!(sandbox.run(&changed), [""; 0], "nothing was taken");
    assert_eq!(
        sandbox.run("metaslot key list --pin-source user.pin; metaslot cert list"),
        ["no keys", "no certificates"]
    );
}

#[test]
fn what_says_that_it_was_changed_is_looked_at() {
    let sandbox = Sandbox::make(&sandbox::module());
    sandbox.run(MAKE);
    sandbox.run(
        "openssl pkcs12 -export -inkey ec.pem -nocerts -keypbe NONE -nomac -passout pass: -out bare
        /usr/bin/python3 $TESTDATA/python/pbmac1.py bare it sha256 sha256 'another phrase'
        ssh-keygen -q -t ed25519 -N 'a phrase' -Z aes256-gcm@openssh.com -C it -f ssh
        tail -n +2 ssh | head -n -1 | base64 -d > raw; size=$(stat -c %s raw)
        printf x | dd of=raw bs=1 seek=$((size - 1)) conv=notrunc status=none
        (head -1 ssh; base64 raw; tail -1 ssh) > changed",
    );
    for file in ["it", "changed"] {
        let said = sandbox.run(&format!("{IMPORT} {file} --label it"));
        let expected = format!("error: {file}: the passphrase is wrong, or the file was changed");
        assert_eq!((&*said[0], &*said[1]), (&*expected, "? 4"), "{said:?}");
    }
}

#[test]
fn a_mac_that_is_soon_guessed_says_nothing() {
    let sandbox = Sandbox::make(&sandbox::module());
    sandbox.run(MAKE);
    sandbox.run(
        "openssl pkcs12 -export -inkey ec.pem -nocerts -nomac -passout file:phrase -out bare
        for length in 1 19 20; do
          /usr/bin/python3 $TESTDATA/python/pbmac1.py bare it$length sha256 sha256 'a phrase' $length
        done",
    );
    for length in [1, 19] {
        let said = sandbox.run(&format!("{IMPORT} it{length} --label it"));
        let expected =
            format!("error: it{length}: the key of its MAC has no length from 20 to 128 bytes");
        assert_eq!((&*said[0], &*said[1]), (&*expected, "? 1"), "{said:?}");
    }
    let taken = sandbox.run(&format!("{IMPORT} it20 --label it"));
    assert!(taken[0].starts_with("pkcs11:token=web;id="), "{taken:?}");
}

#[test]
fn another_module_s_token_takes_them_too() {
    let module = "/usr/lib/softhsm/libsofthsm2.so";
    let sandbox = Sandbox::make(module.as_ref());
    if !there(&sandbox, "softhsm2-util") {
        return;
    }
    let soft = "export SOFTHSM2_CONF=$PWD/soft.conf; mkdir -p tokens; echo directories.tokendir = $PWD/tokens > soft.conf";
    // The token is made by its own tool; the rest of what is made needs no module.
    sandbox.run(MAKE);
    sandbox.run(&format!(
        "{soft}; softhsm2-util --init-token --free --label web --so-pin 12345678 --pin 23456789"
    ));
    let steps = [
        (
            "openssl pkcs8 -topk8 -in rsa.pem -passout file:phrase -out it; ",
            "it --label rsa --id 01",
            "pkcs11:token=web;id=%01;object=rsa",
        ),
        ("", "ec.p12 --id 02", "pkcs11:token=web;id=%02;object=site"),
        (
            "ssh-keygen -q -t ed25519 -N 'a phrase' -C me -f me; ",
            "me --id 03",
            "pkcs11:token=web;id=%03;object=me",
        ),
    ];
    for (before, arguments, uri) in steps {
        let made = sandbox.run(&format!("{soft}; {before}{IMPORT} {arguments}"));
        assert_eq!(made.first().map(String::as_str), Some(uri), "{made:?}");
    }
    for label in ["rsa", "site"] {
        let works =
            sandbox.run(&format!("{soft}; metaslot key test {label} --pin-source user.pin"));
        assert!(works[0].starts_with("works: "), "{works:?}");
    }
}
