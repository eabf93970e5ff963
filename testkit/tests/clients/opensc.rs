// SPDX-License-Identifier: Apache-2.0
//! OpenSC's `pkcs11-tool`, and plain OpenSSL to judge what it made.

use anyhow::{Result, ensure};
use metaslot_testkit::{TestToken, USER_PIN, check, command};

use crate::recipe;

const CLIENT: &str = "OpenSC pkcs11-tool";
const NEEDS: &[&str] = &["pkcs11-tool", "openssl"];

/// Signs `message` with the key `id` and lets plain OpenSSL verify it; `verify` holds OpenSSL's
/// options.
fn sign_and_verify(token: &TestToken, id: &str, mechanism: &[&str], verify: &[&str]) -> Result<()> {
    token.write("message", "what is signed")?;
    token
        .pkcs11_user()
        .args(["--sign", "--id", id, "--input-file", "message", "--output-file", "signature"])
        .args(mechanism)
        .run()?;
    public_key(token, id)?;
    token.program("openssl").args(verify).run()?;
    Ok(())
}

/// Writes the public key `id` to `public.pem`, read without login.
///
/// OpenSC 0.23 frees the parameters of an EC key before it makes the key of them: whether they are still there is up to
/// the allocator (with `tcache_count=0` the tool fails whatever the module). Long lists of free blocks leave them alone.
fn public_key(token: &TestToken, id: &str) -> Result<()> {
    token
        .pkcs11_tool()
        .env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=127")
        .args(["--token-label", token.label(), "--read-object", "--type", "pubkey", "--id", id])
        .args(["--output-file", "public.der"])
        .run()?;
    token
        .program("openssl")
        .line("pkey -pubin -inform DER -in public.der -out public.pem")
        .run()
        .map(|_| ())
}

/// A check that keeps what the tool calls.
fn spied(what: &str, summary: &str, work: impl FnOnce(&TestToken) -> Result<()>) {
    check(CLIENT, what, NEEDS, |token| {
        token.spy()?;
        work(token)?;
        token.asked(&format!("pkcs11-tool-{summary}")).map(drop)
    });
}

const DGST: &[&str] =
    &["dgst", "-sha256", "-verify", "public.pem", "-signature", "signature", "message"];

#[test]
fn commands_of_the_page_make_a_key_and_sign() {
    spied("the page: a key, a list, a signature", "page", |token| {
        token.write("file", "what is signed")?;
        let login = format!("--login --pin {USER_PIN}");
        let place = ("pkcs11-tool (OpenSC)", 0);
        let changes = [("label web", "label testing"), ("--login", &*login)];
        let run = |words| recipe::command(token, place, words, &changes)?.run();
        run("--keypairgen")?;
        run("--list-objects")?.with(&["Private Key Object", "label:      site"])?;
        run("--sign")?;
        let export = token.program(&command()).line("key export site --out public.pem");
        export.run()?;
        let verify = "dgst -sha256 -verify public.pem -signature file.sig file";
        token.program("openssl").line(verify).run().map(drop)
    });
}

#[test]
fn rsa_signature_is_verified_by_openssl() {
    spied("RSA PKCS#1 signature", "sign-rsa", |token| {
        token.key_pair("rsa:2048", "01", "rsa")?;
        sign_and_verify(token, "01", &["-m", "SHA256-RSA-PKCS"], DGST)
    });
}

#[test]
fn pss_signature_is_verified_by_openssl() {
    spied("RSA PSS signature", "sign-pss", |token| {
        token.key_pair("rsa:2048", "01", "rsa")?;
        let mut verify = DGST.to_vec();
        verify.splice(2..2, ["-sigopt", "rsa_padding_mode:pss"]);
        sign_and_verify(token, "01", &["-m", "SHA256-RSA-PKCS-PSS"], &verify)
    });
}

#[test]
fn ecdsa_signature_is_verified_by_openssl() {
    spied("ECDSA signature", "sign-ecdsa", |token| {
        token.key_pair("EC:prime256v1", "02", "ec")?;
        sign_and_verify(token, "02", &["-m", "ECDSA-SHA256", "--signature-format", "openssl"], DGST)
    });
}

#[test]
fn ed25519_signature_is_verified_by_the_tool() {
    spied("Ed25519 signature", "sign-ed25519", |token| {
        token.key_pair("EC:edwards25519", "05", "ed")?;
        token.write("message", "what is signed")?;
        token
            .pkcs11_user()
            .line("--sign --id 05 -m EDDSA --input-file message --output-file signature")
            .run()?;
        ensure!(std::fs::metadata(token.path("signature"))?.len() == 64, "not 64 bytes");
        token
            .pkcs11_user()
            .line("--verify --id 05 -m EDDSA --input-file message --signature-file signature")
            .run()?
            .with(&["Signature is valid"])
            .map(|_| ())
    });
}

#[test]
fn wrong_signature_is_refused() {
    spied("wrong signature", "verify", |token| {
        token.key_pair("rsa:2048", "01", "rsa")?;
        token.write("message", "what is signed")?;
        token.write("signature", [1; 256])?;
        let output = token
            .pkcs11_user()
            .line("--verify --id 01 -m SHA256-RSA-PKCS --input-file message")
            .line("--signature-file signature")
            .output()?;
        output.with(&["Invalid signature"]).map(|_| ())
    });
}

#[test]
fn secret_key_encrypts_and_decrypts() {
    spied("AES-CBC with padding", "encrypt", |token| {
        token
            .pkcs11_user()
            .line("--keygen --key-type AES:32 --id 04 --label aes --sensitive")
            .run()?;
        token.write("plain", "a text that is longer than two blocks of the cipher")?;
        let parameters = "--id 04 -m AES-CBC-PAD --iv 000102030405060708090a0b0c0d0e0f";
        token
            .pkcs11_user()
            .line(parameters)
            .line("--encrypt --input-file plain --output-file sealed")
            .run()?;
        token
            .pkcs11_user()
            .line(parameters)
            .line("--decrypt --input-file sealed --output-file opened")
            .run()?;
        let (plain, opened) =
            (std::fs::read(token.path("plain"))?, std::fs::read(token.path("opened"))?);
        ensure!(plain == opened, "decryption gives {:?}", String::from_utf8_lossy(&opened));
        Ok(())
    });
}

#[test]
fn oaep_from_openssl_is_decrypted() {
    spied("RSA OAEP decryption", "decrypt-oaep", |token| {
        token.key_pair("rsa:2048", "01", "rsa")?;
        public_key(token, "01")?;
        token.write("plain", "secret")?;
        let options = "-pkeyopt rsa_padding_mode:oaep -pkeyopt rsa_oaep_md:sha256 \
                       -pkeyopt rsa_mgf1_md:sha256";
        token
            .program("openssl")
            .line("pkeyutl -encrypt -pubin -inkey public.pem -in plain -out sealed")
            .line(options)
            .run()?;
        token
            .pkcs11_user()
            .line("--decrypt --id 01 -m RSA-PKCS-OAEP --hash-algorithm SHA256")
            .line("--input-file sealed --output-file opened")
            .run()?;
        ensure!(std::fs::read(token.path("opened"))? == b"secret", "not what was encrypted");
        Ok(())
    });
}

#[test]
fn certificates_and_data_live_beside_keys() {
    spied("certificates and data objects", "objects", |token| {
        token
            .program("openssl")
            .line("req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -subj /CN=x")
            .run()?;
        token.program("openssl").line("x509 -in cert.pem -outform DER -out cert.der").run()?;
        token
            .pkcs11_user()
            .line("--write-object cert.der --type cert --id 07 --label certificate")
            .run()?;
        token.write("note", "some data")?;
        token
            .pkcs11_user()
            .line("--write-object note --type data --label note --application-label tests")
            .run()?;
        token.pkcs11_user().arg("--list-objects").run()?.with(&[
            "Certificate Object",
            "certificate",
            "Data object",
            "note",
        ])?;
        token
            .pkcs11_user()
            .line("--read-object --type cert --id 07 --output-file read.der")
            .run()?;
        ensure!(
            std::fs::read(token.path("read.der"))? == std::fs::read(token.path("cert.der"))?,
            "the certificate came back changed"
        );
        token.pkcs11_user().line("--delete-object --type cert --id 07").run()?;
        let left = token.pkcs11_user().arg("--list-objects").run()?.all();
        ensure!(!left.contains("Certificate Object"), "the certificate is still there: {left}");
        Ok(())
    });
}

#[test]
fn private_key_of_openssl_is_imported() {
    spied("import of an RSA key", "import", |token| {
        token.program("openssl").line("genrsa -traditional -out key.pem 2048").run()?;
        token.program("openssl").line("rsa -in key.pem -outform DER -out key.der").run()?;
        token.program("openssl").line("rsa -in key.pem -pubout -out public.pem").run()?;
        token
            .pkcs11_user()
            .line("--write-object key.der --type privkey --id 09 --label imported --usage-sign")
            .run()?;
        token.write("message", "what is signed")?;
        token
            .pkcs11_user()
            .line("--sign --id 09 -m SHA256-RSA-PKCS")
            .line("--input-file message --output-file signature")
            .run()?;
        token.program("openssl").args(DGST).run().map(|_| ())
    });
}

#[test]
fn slots_tokens_and_mechanisms_are_listed() {
    spied("lists", "list", |token| {
        token.pkcs11_tool().arg("--list-token-slots").run()?.with(&[token.label()])?;
        token
            .pkcs11_tool()
            .arg("--list-mechanisms")
            .run()?
            .with(&["RSA-PKCS", "ECDSA", "AES-CBC", "SHA256"])
            .map(|_| ())
    });
}

#[test]
fn wrong_pin_is_refused() {
    spied("wrong PIN", "wrong-pin", |token| {
        let output = token
            .pkcs11_tool()
            .args(["--token-label", token.label(), "--login", "--pin", "999999", "-O"])
            .output()?;
        ensure!(output.status != 0, "a wrong PIN was taken");
        output.with(&["CKR_PIN_INCORRECT"]).map(|_| ())
    });
}

#[test]
fn pin_is_changed_by_its_owner() {
    spied("change of the PIN", "change-pin", |token| {
        token.key_pair("EC:prime256v1", "02", "ec")?;
        token.pkcs11_user().line("--change-pin --new-pin 112233").run()?;
        token
            .pkcs11_tool()
            .args(["--token-label", token.label(), "--login", "--pin", "112233", "-O"])
            .run()?
            .with(&["Private Key Object"])?;
        let old = token.pkcs11_user().arg("-O").output()?;
        ensure!(old.status != 0, "the old PIN is still taken");
        Ok(())
    });
}

#[test]
fn own_test_of_the_tool_finds_no_error() {
    spied("--test", "test", |token| {
        token.key_pair("rsa:2048", "01", "rsa")?;
        let output = token.pkcs11_user().arg("--test").run()?;
        // SoftHSM's OAEP takes SHA-1 only, which the tool counts as an error.
        if token.is_ours() {
            output.with(&["No errors"])?;
        }
        Ok(())
    });
}

#[test]
fn child_after_fork_initializes_again() {
    spied("--test-fork", "test-fork", |token| {
        let output = token.pkcs11_user().arg("--test-fork").run()?;
        if token.is_ours() {
            output.with(&["*** Calling C_Initialize in forked child process ***"])?;
        }
        Ok(())
    });
}

#[test]
fn threads_of_the_tool_run_to_their_end() {
    check(CLIENT, "--test-threads", NEEDS, |token| {
        token.key_pair("rsa:2048", "01", "rsa")?;
        token
            .pkcs11_tool()
            .line("--test-threads ILGISLT0 --test-threads ILGISLT0 --test-threads GISLT0 -L")
            .run()
            .map(|_| ())
    });
}
