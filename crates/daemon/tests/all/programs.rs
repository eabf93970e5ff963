// SPDX-License-Identifier: Apache-2.0
//! Programs of others through the door, by the `p11-kit-client.so` of the distribution: no line of theirs knows us.

use crate::common::Place;
use metaslot_testkit::not_run;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const CLIENT: &str = "/usr/lib/x86_64-linux-gnu/pkcs11/p11-kit-client.so";
const SO_PIN: [&str; 2] = ["--so-pin", "so-pin-1"];
const LOGIN: [&str; 3] = ["--login", "--pin", "user-pin-1"];

/// Whether what these tests need is installed.
fn is_installed() -> bool {
    let programs = ["/usr/bin/pkcs11-tool", "/usr/bin/openssl", CLIENT];
    let missing = programs.iter().find(|file| !Path::new(file).exists());
    let told =
        |file: &&&str| not_run("metaslotd", "programs of others", &format!("there is no {file}"));
    missing.inspect(told).is_none()
}

fn run(command: &mut Command) -> Output {
    let output = command.output().expect("it is installed");
    assert!(
        output.status.success(),
        "{command:?}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// `pkcs11-tool` in the place's directory.
fn tool(place: &Place, arguments: &[&str]) -> String {
    let address = format!("unix:path={}", place.socket().display());
    let mut command = Command::new("/usr/bin/pkcs11-tool");
    command.current_dir(place.path()).env("P11_KIT_SERVER_ADDRESS", address);
    command.env("OPENSSL_CONF", "/dev/null").args(["--module", CLIENT]).args(arguments);
    String::from_utf8_lossy(&run(&mut command).stdout).into_owned()
}

/// The same, logged in.
fn user(place: &Place, arguments: &[&str]) -> String {
    tool(place, &[&LOGIN[..], arguments].concat())
}

fn openssl(place: &Place, arguments: &[&str]) -> String {
    let mut command = Command::new("/usr/bin/openssl");
    command.current_dir(place.path()).env("OPENSSL_CONF", "/dev/null").args(arguments);
    String::from_utf8_lossy(&run(&mut command).stdout).into_owned()
}

/// A token with both PINs, an RSA key (`01`) and one of P-256 (`02`), and their public halves in files.
fn with_keys() -> Place {
    let place = Place::served();
    tool(&place, &[&["--init-token", "--slot", "0", "--label", "door"], &SO_PIN[..]].concat());
    let pin = ["--init-pin", "--new-pin", "user-pin-1", "--login", "--login-type", "so"];
    tool(&place, &[&pin[..], &SO_PIN].concat());
    for (kind, id, file) in [("rsa:2048", "01", "rsa"), ("EC:prime256v1", "02", "ec")] {
        let generate = ["--keypairgen", "--key-type", kind, "--id", id, "--label", file];
        user(&place, &generate);
        let der = format!("{file}.der");
        let read = ["--read-object", "--type", "pubkey", "--id", id, "--output-file", &der];
        tool(&place, &read);
        let pem = format!("{file}.pem");
        openssl(&place, &["pkey", "-pubin", "-inform", "DER", "-in", &der, "-out", &pem]);
    }
    fs::write(place.path().join("words"), "some words").expect("a file is written");
    place
}

#[test]
fn what_pkcs11_tool_signs_through_the_door_openssl_verifies() {
    if !is_installed() {
        return;
    }
    let place = with_keys();
    let verify = |key, more: &[&str]| {
        let what = ["dgst", "-sha256", "-verify", key, "-signature", "signature"];
        let told = openssl(&place, &[&what[..], more, &["words"]].concat());
        assert_eq!(told.trim(), "Verified OK");
    };
    let what = ["--sign", "--id", "01", "--mechanism", "SHA256-RSA-PKCS"];
    let files = ["--input-file", "words", "--output-file", "signature"];
    user(&place, &[&what[..], &files].concat());
    verify("rsa.pem", &[]);
    // What is signed by PSS and by bare RSA is a digest.
    openssl(&place, &["dgst", "-sha256", "-binary", "-out", "digest", "words"]);
    let what =
        ["--sign", "--id", "01", "--mechanism", "RSA-PKCS-PSS", "--hash-algorithm", "SHA256"];
    let how = ["--mgf", "MGF1-SHA256", "--salt-len", "32"];
    let files = ["--input-file", "digest", "--output-file", "signature"];
    user(&place, &[&what[..], &how, &files].concat());
    let pss = ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:32"];
    verify("rsa.pem", &pss);
    let what = ["--sign", "--id", "02", "--mechanism", "ECDSA", "--signature-format", "openssl"];
    user(&place, &[&what[..], &files].concat());
    verify("ec.pem", &[]);
    let told = user(
        &place,
        &[
            "--verify",
            "--id",
            "02",
            "--mechanism",
            "ECDSA",
            "--signature-format",
            "openssl",
            "--input-file",
            "digest",
            "--signature-file",
            "signature",
        ],
    );
    assert!(told.contains("Signature is valid"), "{told}");
}

#[test]
fn pkcs11_tool_decrypts_hashes_lists_and_deletes_through_the_door() {
    if !is_installed() {
        return;
    }
    let place = with_keys();
    let encrypt = ["pkeyutl", "-encrypt", "-pubin", "-inkey", "rsa.pem", "-in", "words"];
    openssl(&place, &[&encrypt[..], &["-out", "sealed"]].concat());
    let files = ["--input-file", "sealed", "--output-file", "opened"];
    user(&place, &[&["--decrypt", "--id", "01", "--mechanism", "RSA-PKCS"], &files[..]].concat());
    assert_eq!(fs::read(place.path().join("opened")).expect("it is there"), b"some words");
    let oaep = ["-pkeyopt", "rsa_padding_mode:oaep", "-pkeyopt", "rsa_oaep_md:sha256"];
    openssl(&place, &[&encrypt[..], &oaep, &["-out", "sealed"]].concat());
    let how = ["--hash-algorithm", "SHA256", "--mgf", "MGF1-SHA256"];
    let what = ["--decrypt", "--id", "01", "--mechanism", "RSA-PKCS-OAEP"];
    user(&place, &[&what[..], &how, &files].concat());
    assert_eq!(fs::read(place.path().join("opened")).expect("it is there"), b"some words");
    let hash = ["--hash", "--mechanism", "SHA256", "--input-file", "words"];
    tool(&place, &[&hash[..], &["--output-file", "digest"]].concat());
    openssl(&place, &["dgst", "-sha256", "-binary", "-out", "expected", "words"]);
    let read = |name| fs::read(place.path().join(name)).expect("it is there");
    assert_eq!(read("digest"), read("expected"));
    tool(&place, &["--generate-random", "100", "--output-file", "random"]);
    assert_eq!(read("random").len(), 100);
    let listed = user(&place, &["--list-objects"]);
    assert_eq!(listed.matches("Private Key Object").count(), 2, "{listed}");
    user(&place, &["--delete-object", "--type", "privkey", "--id", "02"]);
    let listed = user(&place, &["--list-objects"]);
    assert_eq!(listed.matches("Private Key Object").count(), 1, "{listed}");
    assert!(tool(&place, &["--list-token-slots"]).contains("door"));
    assert!(tool(&place, &["--list-mechanisms"]).contains("ECDSA"));
    let new = ["--change-pin", "--new-pin", "another-pin"];
    user(&place, &new);
}

#[test]
fn p11tool_sees_the_token_and_its_keys_through_the_door() {
    let p11tool = "/usr/bin/p11tool";
    if !is_installed() || !Path::new(p11tool).exists() {
        return;
    }
    let place = with_keys();
    let tool = |arguments: &[&str]| {
        let address = format!("unix:path={}", place.socket().display());
        let mut command = Command::new(p11tool);
        command.env("P11_KIT_SERVER_ADDRESS", address).env("GNUTLS_PIN", "user-pin-1");
        command.args(["--provider", CLIENT, "--batch"]).args(arguments);
        String::from_utf8_lossy(&run(&mut command).stdout).into_owned()
    };
    assert!(tool(&["--list-tokens"]).contains("token=door"));
    let listed = tool(&["--login", "--list-privkeys", "pkcs11:token=door"]);
    assert_eq!(listed.matches("Type: Private key").count(), 2, "{listed}");
    // It verifies itself what it has signed, and fails where that is wrong.
    tool(&["--login", "--test-sign", "pkcs11:token=door;object=rsa;type=private"]);
}

#[test]
fn the_tests_that_pkcs11_tool_brings_pass_through_the_door() {
    if !is_installed() {
        return;
    }
    let told = user(&with_keys(), &["--test"]);
    assert!(told.contains("No errors"), "{told}");
}
