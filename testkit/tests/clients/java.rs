// SPDX-License-Identifier: Apache-2.0
//! Java's SunPKCS11: keytool and jarsigner, `testdata/java/TokenClient.java` for what the provider does where it is named, and
//! `Checks.java` for what it does where it is not.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use metaslot_testkit::{Output, Program, TestToken, USER_PIN, check};

use crate::recipe;

const CLIENT: &str = "Java SunPKCS11";
const NEEDS: &[&str] = &["java", "javac", "keytool", "pkcs11-tool"];
const LIMIT: Duration = Duration::from_secs(240);

/// SunPKCS11's configuration, as `docs/clients.md` gives it. `compatibility` is what its own handbook
/// gives for tokens that follow the standard's defaults; by itself it makes private keys readable.
pub(crate) fn configure(token: &TestToken) -> Result<()> {
    let slot = if token.is_ours() { "slotListIndex = 0" } else { return configure_by_id(token) };
    write(token, slot)
}

/// SoftHSM numbers its slots anew when a token is initialised, so its slot is looked up.
fn configure_by_id(token: &TestToken) -> Result<()> {
    let list = token.pkcs11_tool().arg("--list-token-slots").run()?.text();
    let id = list
        .split("(0x")
        .nth(1)
        .and_then(|rest| rest.split(')').next())
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .context("no slot")?;
    write(token, &format!("slot = {id}"))
}

fn write(token: &TestToken, slot: &str) -> Result<()> {
    let page = recipe::block(token, "Java", 0, &[("slotListIndex = 0", slot)])?;
    token.write("p11.cfg", page).map(|_| ())
}

fn keytool(token: &TestToken) -> Program {
    token.program("keytool").limit(LIMIT).args(["-J-Xshare:auto", "-J-XX:TieredStopAtLevel=1"])
}

fn store(program: Program) -> Program {
    program
        .line("-keystore NONE -storetype PKCS11 -addprovider SunPKCS11 -providerarg p11.cfg")
        .args(["-storepass", USER_PIN])
}

pub(crate) fn key_pair(token: &TestToken, algorithm: &str, alias: &str) -> Result<()> {
    let changes = [
        ("-keyalg RSA -keysize 2048", algorithm),
        ("-alias site", &*format!("-alias {alias}")),
        ("-dname CN=site", "-dname CN=localhost -ext san=dns:localhost,ip:127.0.0.1"),
    ];
    let page = recipe::block(token, "Java", 1, &changes)?;
    let words = "-J-Xshare:auto -J-XX:TieredStopAtLevel=1 -storepass";
    let line = format!("{} {words} {USER_PIN}", page.trim());
    recipe::shell(token, &line).limit(LIMIT).run().map(drop)
}

/// The compiled client, once for all tests of this process.
fn classes() -> Result<&'static Path> {
    static CLASSES: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    CLASSES
        .get_or_init(|| compile().map_err(|error| format!("{error:#}")))
        .as_deref()
        .map_err(|error| anyhow::anyhow!("{error}"))
}

fn compile() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let out = root.join("target/java");
    std::fs::create_dir_all(&out).context("make the directory of classes")?;
    Program::new("javac")
        .arg("-d")
        .arg(&out)
        .args(["TokenClient.java", "Checks.java"].map(|name| root.join("testdata/java").join(name)))
        .limit(LIMIT)
        .run()?;
    std::fs::canonicalize(out).context("find the classes")
}

fn both_keys(token: &TestToken) -> Result<()> {
    key_pair(token, "-keyalg RSA -keysize 2048", "jrsa")?;
    key_pair(token, "-keyalg EC -groupname secp256r1", "jec")
}

fn run(token: &TestToken, class: &str, what: &str) -> Result<Output> {
    let java = token.program("java").line("-Xshare:auto -XX:TieredStopAtLevel=1 -cp");
    java.arg(classes()?).args([class, "p11.cfg", USER_PIN, what]).limit(LIMIT).run()
}

fn client(what: &str, part: &str) {
    check(CLIENT, what, NEEDS, |token| {
        token.spy()?;
        configure(token)?;
        if part == "keystore" {
            both_keys(token)?;
        }
        token.spied()?;
        run(token, "TokenClient", part)?.with(&["done"])?;
        token.asked(&format!("java-{part}")).map(drop)
    });
}

fn checks(order: &str) {
    check(CLIENT, &format!("21 checks, the provider {order}"), NEEDS, |token| {
        token.spy()?;
        configure(token)?;
        both_keys(token)?;
        token.spied()?;
        run(token, "Checks", order)?.with(&["21 checks passed"])?;
        token.called(&format!("java-{order}"))
    });
}

#[test]
fn keys_of_the_token_find_a_provider_that_is_last() {
    checks("last");
}

#[test]
fn a_provider_that_is_first_does_all_that_it_has() {
    checks("first");
}

#[test]
fn a_jar_is_signed_by_a_key_in_the_token() {
    let needs: Vec<&str> = NEEDS.iter().copied().chain(["jar", "jarsigner"]).collect();
    check("jarsigner", "sign and verify", &needs, |token| {
        token.spy()?;
        configure(token)?;
        token.spied()?;
        both_keys(token)?;
        token.called("keytool")?;
        token.spied()?;
        token.write("file", "what is signed")?;
        token.program("jar").line("--create --file plain.jar file").limit(LIMIT).run()?;
        for alias in ["jrsa", "jec"] {
            let changes = [
                ("jar site", &*format!("jar {alias}")),
                ("-keystore", &*format!("-storepass {USER_PIN} -keystore")),
            ];
            let page = recipe::block(token, "Java", 3, &changes)?;
            recipe::shell(token, &page).limit(LIMIT).run()?.with(&["jar signed."])?;
            let verify = token.program("jarsigner").limit(LIMIT).line("-verify signed.jar");
            verify.run()?.with(&["jar verified."])?;
        }
        token.called("jarsigner")
    });
}

#[test]
fn keytool_generates_and_lists() {
    check(CLIENT, "keytool", NEEDS, |token| {
        token.spy()?;
        configure(token)?;
        key_pair(token, "-keyalg RSA -keysize 2048", "jrsa")?;
        key_pair(token, "-keyalg EC -groupname secp256r1", "jec")?;
        store(keytool(token).line("-genseckey -keyalg AES -keysize 256 -alias jaes")).run()?;
        let keys = token.pkcs11_user().line("--list-objects --type privkey").run()?.text();
        ensure!(keys.matches("never extractable").count() == 2, "a private key can leave: {keys}");
        store(keytool(token).arg("-list")).run()?.with(&[
            "jrsa, PrivateKeyEntry",
            "jec, PrivateKeyEntry",
            "jaes, SecretKeyEntry",
        ])?;
        store(keytool(token).line("-delete -alias jec")).run()?;
        let left = store(keytool(token).arg("-list")).run()?.all();
        ensure!(!left.contains("jec"), "the entry is still there: {left}");
        token.called("keytool-entries")
    });
}

#[test]
fn keytool_imports_a_key_made_in_software() {
    check(CLIENT, "import by keytool", NEEDS, |token| {
        token.spy()?;
        configure(token)?;
        let program =
            keytool(token).line("-genkeypair -keyalg EC -groupname secp256r1 -alias soft");
        store(program.line("-dname CN=soft")).run()?;
        store(keytool(token).line("-list")).run()?.with(&["soft, PrivateKeyEntry"])?;
        token.asked("keytool-import").map(drop)
    });
}

#[test]
fn keytool_imports_a_pkcs12_file() {
    check(CLIENT, "keytool -importkeystore", NEEDS, |token| {
        token.spy()?;
        configure(token)?;
        for (alias, algorithm) in
            [("jrsa", "RSA -keysize 2048"), ("jec", "EC -groupname secp256r1")]
        {
            keytool(token)
                .line("-genkeypair -keystore soft.p12 -storetype PKCS12 -storepass secret -keyalg")
                .line(algorithm)
                .args(["-alias", alias, "-dname", &format!("CN={alias}")])
                .run()?;
        }
        let page = recipe::block(token, "Java", 2, &[("keys.p12", "soft.p12")])?;
        let line = format!("{} -srcstorepass secret -deststorepass {USER_PIN}", page.trim());
        recipe::shell(token, &line)
            .limit(LIMIT)
            .run()?
            .with(&["2 entries successfully imported"])?;
        token.asked("keytool-pkcs12")?;
        run(token, "TokenClient", "keystore")?.with(&["done"]).map(drop)
    });
}

#[test]
fn signatures_are_made_and_verified() {
    client("Signature", "signature");
}

#[test]
fn ciphers_open_what_they_sealed() {
    client("Cipher", "cipher");
}

#[test]
fn key_store_gives_keys_that_sign() {
    client("KeyStore", "keystore");
}

#[test]
fn digests_and_macs_match_those_of_the_runtime() {
    client("MessageDigest and Mac", "digest");
}

#[test]
fn key_agreement_gives_both_sides_one_secret() {
    client("KeyAgreement", "agreement");
}

#[test]
fn tls_server_has_its_key_in_the_token() {
    check(CLIENT, "TLS server", NEEDS, |token| {
        token.spy()?;
        configure(token)?;
        both_keys(token)?;
        token.spied()?;
        run(token, "TokenClient", "tls")?.with(&["done"])?;
        token.called("java-tls")
    });
}
