// SPDX-License-Identifier: Apache-2.0
//! The programs in `examples`, in each language: a key found, a signature, a key made, data sealed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use metaslot_testkit::{Program, TestToken, USER_PIN, check, command, compile_go};

use crate::{java, pykcs11};

const CLIENT: &str = "examples";
/// Lines: a reader shall see all of it at once.
const LONGEST: usize = 80;

fn source(name: &str) -> Result<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name);
    let lines = std::fs::read_to_string(&path).context("read the example")?.lines().count();
    ensure!(lines < LONGEST, "{name} has {lines} lines");
    path.canonicalize().context("find the example")
}

/// What an example says, whose signature OpenSSL verifies too.
fn signs(token: &TestToken, example: Program) -> Result<()> {
    let output = example.run()?.with(&["bytes sealed and opened"])?;
    let text = output.text();
    let digits = text.lines().find_map(|line| line.strip_prefix("signature: "));
    let digits = digits.context("no signature")?.as_bytes().chunks(2);
    let bytes: Vec<u8> = digits
        .map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?))
        .collect::<Result<_>>()?;
    token.write("message", "message")?;
    // Not by pkcs11-tool: version 0.23 reads an EC key's parameters after it has freed them (see `opensc::public_key`).
    let uri = format!("pkcs11:token={};id=%01", token.label());
    token.program(&command()).args(["key", "export", &uri, "--out", "public.pem"]).run()?;
    // PKCS#11 puts r beside s; others want them in DER.
    let der = if bytes.first() == Some(&0x30) && bytes.len() != 64 { bytes } else { der(&bytes) };
    token.write("signature", der)?;
    let openssl = token.program("openssl");
    openssl.line("dgst -sha256 -verify public.pem -signature signature message").run()?;
    Ok(())
}

fn der(raw: &[u8]) -> Vec<u8> {
    let length = |content: &[u8]| u8::try_from(content.len()).unwrap_or(u8::MAX);
    let integer = |number: &[u8]| {
        let start = number.iter().position(|byte| *byte != 0).unwrap_or(number.len() - 1);
        let mut content = number[start..].to_vec();
        if content[0] & 0x80 != 0 {
            content.insert(0, 0);
        }
        [&[2, length(&content)], &content[..]].concat()
    };
    let (r, s) = raw.split_at(raw.len() / 2);
    let both = [integer(r), integer(s)].concat();
    [&[0x30, length(&both)], &both[..]].concat()
}

fn example(what: &str, needs: &[&str], program: impl FnOnce(&TestToken) -> Result<Program>) {
    let command = command();
    let needs: Vec<&str> =
        ["pkcs11-tool", "openssl", &command].into_iter().chain(needs.iter().copied()).collect();
    check(CLIENT, what, &needs, |token| {
        token.key_pair("EC:prime256v1", "01", "a site")?;
        token.spy()?;
        let uri = format!("pkcs11:token={};object=a%20site", token.label());
        let program = program(token)?.arg(token.module()).args([&uri, "pin"]);
        signs(token, program)?;
        token.called(&format!("example-{}", what.to_lowercase()))
    });
}

#[test]
fn python() {
    let python = pykcs11::python();
    example("Python", &[&python], |token| Ok(token.program(&python).arg(source("sign.py")?)));
}

#[test]
fn rust() {
    // `cargo build --example sign` builds it beside the tests.
    let test = std::env::current_exe().unwrap_or_default();
    let target = test.parent().and_then(Path::parent).unwrap_or_else(|| Path::new("."));
    let built = target.join("examples/sign").to_string_lossy().into_owned();
    example("Rust", &[&built], |token| {
        source("sign.rs")?;
        Ok(token.program(&built))
    });
}

#[test]
fn go() {
    example("Go", &["go", "gcc"], |token| {
        let source = source("go/sign.go")?;
        let directory = source.parent().context("no directory")?;
        compile_go(token, directory, &["build", "."], &token.path("sign"))?;
        Ok(token.program("./sign"))
    });
}

#[test]
fn java() {
    check(CLIENT, "Java", &["java", "keytool", "pkcs11-tool", "openssl"], |token| {
        token.spy()?;
        java::configure(token)?;
        // A key with a certificate, as Java wants it.
        java::key_pair(token, "-keyalg EC -groupname secp256r1", "site")?;
        token.write("pin", USER_PIN)?;
        token.spied()?;
        let program = token.program("java").limit(Duration::from_secs(240));
        let program = program.arg(source("Sign.java")?).args(["p11.cfg", "site", "pin"]);
        program.run()?.with(&["signature: ", "bytes sealed and opened"])?;
        token.called("example-java")
    });
}

#[test]
fn c() {
    check(CLIENT, "C is short", &[], |_| source("aes_cbc.c").map(drop));
}
