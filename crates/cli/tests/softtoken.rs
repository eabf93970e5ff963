// SPDX-License-Identifier: Apache-2.0
//! A Solaris keystore that somebody tampered with.

#[path = "common/sandbox.rs"]
mod sandbox;

use sandbox::Sandbox;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const IMPORT: &str =
    "metaslot import-softtoken pkcs11_softtoken --passphrase-source old --pin-source user.pin";

/// Where the code that authenticates an object stands in its file, and its data.
const TAG: usize = 20;

fn keystore() -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::make(&sandbox::module());
    let output = sandbox.program("pwd").output().expect("pwd runs").stdout;
    let directory = String::from_utf8(output).expect("a path is text").trim_end().into();
    sandbox.run(
        "echo 'old phrase' > old; /usr/bin/python3 $TESTDATA/python/softtoken.py . 'old phrase'",
    );
    sandbox.run("metaslot token init --label web --so-pin-source so.pin --pin-source user.pin");
    (sandbox, directory)
}

/// What is said to this content of the file, which is put back afterwards.
fn said(sandbox: &Sandbox, path: &Path, content: &[u8]) -> Vec<String> {
    let before = fs::read(path).expect("it is there");
    fs::write(path, content).expect("it can be written");
    let said = sandbox.run(IMPORT);
    fs::write(path, before).expect("it can be written");
    said
}

#[test]
fn no_changed_byte_of_a_private_object_is_taken() {
    let (sandbox, directory) = keystore();
    let path = directory.join("pkcs11_softtoken/private/obj5");
    let object = fs::read(&path).expect("it is there");
    let changed = (TAG..object.len()).step_by(41).map(|at| {
        let mut changed = object.clone();
        changed[at] ^= 1;
        changed
    });
    let cut = (0..object.len()).step_by(97).map(|length| object[..length].to_vec());
    for content in changed.chain(cut).chain([[&object[..], &[0; 16]].concat()]) {
        let said = said(&sandbox, &path, &content);
        assert!(said[0].starts_with("error: "), "{said:?}");
        assert!(said[0].contains("private/obj5"), "{said:?}");
        assert_eq!(said.last().map(String::as_str), Some("? 1"), "{said:?}");
    }
    assert_eq!(sandbox.run("metaslot key list --pin-source user.pin"), ["no keys"]);
}

#[test]
fn what_is_no_file_of_its_own_is_not_opened() {
    let (sandbox, directory) = keystore();
    let public = directory.join("pkcs11_softtoken/public");
    symlink("obj12", public.join("obj100")).expect("it can be made");
    let said = sandbox.run(IMPORT);
    assert!(said[0].contains("cannot read pkcs11_softtoken/public/obj100"), "{said:?}");
    sandbox.run("rm pkcs11_softtoken/public/obj100; mkfifo pkcs11_softtoken/public/obj100");
    let said = sandbox.run(IMPORT);
    assert!(said[0].contains("it is no file of a keystore"), "{said:?}");
}

#[test]
fn a_keystore_without_end_is_refused() {
    let (sandbox, directory) = keystore();
    let public = directory.join("pkcs11_softtoken/public");
    let object = fs::read(public.join("obj12")).expect("it is there");
    // 44 bytes of the object, behind 36 of the file's, stand before the number of attributes.
    let many = [&object[..80], &[0, 0, 0x10, 0], &object[84..], &[0; 16 * 4096]].concat();
    let said = said(&sandbox, &public.join("obj12"), &many);
    assert!(said[0].contains("4096 attributes are more than"), "{said:?}");
    for number in 100..200 {
        let file = fs::File::create(public.join(format!("obj{number}"))).expect("it can be made");
        file.set_len(1 << 20).expect("it can be long");
    }
    let said = sandbox.run(IMPORT);
    assert!(said[0].contains("the objects are more than 64 MiB"), "{said:?}");
    assert_eq!(said.last().map(String::as_str), Some("? 1"), "{said:?}");
}

#[test]
fn a_changed_description_is_refused_or_says_the_same() {
    let (sandbox, directory) = keystore();
    let path = directory.join("pkcs11_softtoken/objstore_info");
    let description = fs::read(&path).expect("it is there");
    for at in [0, 3, 40, 55, 56, 71, 79] {
        let mut changed = description.clone();
        changed[at] ^= 1;
        let said = said(&sandbox, &path, &changed);
        let words = match at {
            0..32 => "it is no keystore of format 2.20",
            // The key that decrypts is wrong, or the one that verifies.
            40..56 => "private/obj2: ",
            56..72 => "no private object opens",
            _ => "objstore_info: it ends too early",
        };
        assert!(said[0].contains(words), "byte {at}: {said:?}");
    }
    for length in (0..description.len()).step_by(7) {
        let said = said(&sandbox, &path, &description[..length]);
        assert!(said[0].contains("objstore_info: it "), "{said:?}");
    }
    let said = said(&sandbox, &path, &[&description[..], b"x"].concat());
    assert!(said[0].contains("there is more than a description has"), "{said:?}");
    assert_eq!(sandbox.run("metaslot key list --pin-source user.pin"), ["no keys"]);
}
