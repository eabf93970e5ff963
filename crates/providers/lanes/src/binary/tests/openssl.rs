// SPDX-License-Identifier: Apache-2.0
//! Vectors made with OpenSSL, and the program itself.

use super::{derive_each, sign_each, verify_each};
use crate::binary::curve::{Curve, Kind};
use crate::binary::key::public_keys_with;
use crate::binary::{BATCH, PrivateKey, PublicKey, generate};
use serde_json::Value;
use std::fs;
use std::process::Command;

fn bytes(value: &Value) -> Vec<u8> {
    let digits = value.as_str().unwrap();
    let byte = |at: usize| u8::from_str_radix(&digits[2 * at..][..2], 16).unwrap();
    (0..digits.len() / 2).map(byte).collect()
}

/// Runs the vectors of a curve in batches of varying size; the portable form, which is slow, only some.
fn check(curve: Curve, kind: Kind, tests: &[Value]) {
    let shown = format!("{curve:?} {kind:?}");
    let column = |name: &str| tests.iter().map(|test| bytes(&test[name])).collect::<Vec<_>>();
    let privates = column("private");
    let keys: Vec<_> =
        privates.iter().map(|bytes| PrivateKey::from_bytes(curve, bytes).unwrap()).collect();
    let encodings = column("public");
    let encodings: Vec<_> = encodings.iter().map(Vec::as_slice).collect();
    let parsed = PublicKey::parse_with(kind, curve, &encodings);
    let public: Vec<_> = parsed.into_iter().map(Result::unwrap).collect();
    let (secrets, digests, signatures) = (column("secret"), column("digest"), column("signature"));
    let (mut start, mut size) = (0, 1);
    while start + size < tests.len() {
        let range = start..start + size;
        let own: Vec<_> = keys[range.clone()].iter().collect();
        assert_eq!(public_keys_with(kind, &own), public[range.clone()], "{shown}");
        let pairs: Vec<_> = range.clone().map(|at| (&keys[at], &public[at + 1])).collect();
        assert_eq!(derive_each(kind, &pairs, false), secrets[range.clone()], "{shown}");
        for at in range.clone() {
            let secret = &tests[at]["cofactor_secret"];
            if secret.is_string() {
                assert_eq!(derive_each(kind, &pairs[at - start..][..1], true)[0], bytes(secret));
            }
        }
        let what: Vec<_> = range
            .map(|at| (&public[at], digests[at].as_slice(), signatures[at].as_slice()))
            .collect();
        assert!(verify_each(kind, &what).iter().all(Result::is_ok), "{shown}");
        start += size;
        size = size % BATCH + 1;
    }
    assert_eq!(keys[0].to_bytes().expose(), privates[0]);
    assert_eq!(public[0].to_bytes(), encodings[0]);
}

#[test]
fn openssl_computed_the_same() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../testdata/lanes/binary-curves.json");
    let file: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    for curve in Curve::ALL {
        let tests = file[curve.name()].as_array().unwrap();
        for kind in Kind::all() {
            let most = if matches!(kind, Kind::Portable) { 20 } else { tests.len() };
            check(curve, kind, &tests[..most.min(tests.len())]);
        }
    }
}

/// A value of ASN.1 in DER.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    let mut out = if length < 128 { vec![tag, length] } else { vec![tag, 0x81, length] };
    out.extend_from_slice(content);
    out
}

fn subject_public_key_info(key: &PublicKey) -> Vec<u8> {
    let algorithm = [&[6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1], key.curve().oid()].concat();
    let point = [&[0], key.to_bytes().as_slice()].concat();
    der(0x30, &[der(0x30, &algorithm), der(3, &point)].concat())
}

fn signature_in_der(signature: &[u8]) -> Vec<u8> {
    let integer = |half: &[u8]| {
        let skip = half.iter().take_while(|byte| **byte == 0).count();
        der(2, &[&[0][..usize::from(half[skip] > 127)], &half[skip..]].concat())
    };
    let (r, s) = signature.split_at(signature.len() / 2);
    der(0x30, &[integer(r), integer(s)].concat())
}

#[test]
fn openssl_verifies_what_is_signed() {
    let folder = std::env::temp_dir().join(format!("metaslot-binary-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, content).unwrap();
        path
    };
    for curve in Curve::ALL {
        for kind in Kind::all() {
            let pairs = generate(curve, 1).unwrap();
            let (key, public) = &pairs[0];
            let signature = &sign_each(kind, &[key], &[0x3c; 48])[0];
            let key = file("key", &subject_public_key_info(public));
            let digest = file("digest", &[0x3c; 48]);
            let signature = file("signature", &signature_in_der(signature));
            let out = Command::new("openssl")
                .args(["pkeyutl", "-verify", "-pubin", "-keyform", "DER"])
                .arg("-inkey")
                .arg(key)
                .arg("-in")
                .arg(digest)
                .arg("-sigfile")
                .arg(signature)
                .output()
                .unwrap();
            assert!(out.status.success(), "{curve:?} {kind:?} {out:?}");
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}
