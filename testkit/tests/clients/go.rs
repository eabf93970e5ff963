// SPDX-License-Identifier: Apache-2.0
//! Go: programs in `testdata/go` with miekg/pkcs11 and crypto11, and the acceptance test of OpenBao's seal.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use metaslot_testkit::{Program, USER_PIN, check, compile_go, left_out};

use crate::recipe;

const NEEDS: &[&str] = &["go", "gcc", "pkcs11-tool"];

fn source(name: &str) -> Result<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/go").join(name);
    path.canonicalize().context("find the program")
}

fn works(client: &str, program: &str) {
    check(client, "sign, seal, find", NEEDS, |token| {
        let built = token.path(program);
        compile_go(token, &source(program)?, &["build", "."], &built)?;
        token.spy()?;
        let program_ = token.program(&built.to_string_lossy()).arg(token.module());
        program_.args([token.label(), USER_PIN]).run()?.with(&["done"])?;
        token.called(program)
    });
}

#[test]
fn miekg() {
    works("Go miekg/pkcs11", "miekg");
}

#[test]
fn crypto11() {
    works("Go crypto11", "crypto11");
}

#[test]
fn program_of_the_page_signs() {
    check("Go crypto11", "the page", NEEDS, |token| {
        token.key_pair("EC:prime256v1", "01", "site")?;
        let page = recipe::block(token, "Go", 1, &[("\"web\"", "\"testing\"")])?;
        let directory = token.path("page");
        std::fs::create_dir(&directory)?;
        token.write("page/main.go", page)?;
        token.write("pin", USER_PIN)?;
        for name in ["go.mod", "go.sum"] {
            std::fs::copy(source(name)?, directory.join(name)).context("copy")?;
        }
        let built = token.path("built");
        compile_go(token, &directory, &["build", "."], &built)?;
        let signed = token.program(&built.to_string_lossy()).run()?.text();
        // DER: two numbers of up to 33 bytes.
        ensure!((130..=144).contains(&signed.trim().len()), "{signed}");
        Ok(())
    });
}

/// The minor number of Go 1's version, such as 22.
fn version() -> u32 {
    let output = Program::new("go").arg("version").run().map(|output| output.text());
    let minor = output.ok().and_then(|text| text.split("go1.").nth(1).map(str::to_owned));
    minor.and_then(|text| text.split(['.', ' ']).next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn openbao() {
    const CLIENT: &str = "OpenBao go-kms-wrapping";
    const WHAT: &str = "its acceptance test, AES-GCM and RSA-OAEP";
    if (1..22).contains(&version()) {
        return left_out(CLIENT, WHAT, "it wants Go 1.22, and this is an older one");
    }
    check(CLIENT, WHAT, NEEDS, |token| {
        token.pkcs11_user().line("--keygen --key-type AES:32 --id 01 --label seal").run()?;
        token.key_pair("rsa:2048", "02", "seal-rsa")?;
        let test = token.path("openbao.test");
        let package = "github.com/openbao/go-kms-wrapping/wrappers/pkcs11/v2";
        compile_go(token, &source("openbao")?, &["test", "-c", package], &test)?;
        token.spy()?;
        for (label, id, mechanism) in
            [("seal", "01", "CKM_AES_GCM"), ("seal-rsa", "02", "CKM_RSA_PKCS_OAEP")]
        {
            let acceptance = token
                .program(&test.to_string_lossy())
                .env("KMS_ACC_TESTS", "1")
                .env("BAO_HSM_LIB", token.module())
                .env("BAO_HSM_TOKEN_LABEL", token.label())
                .env("BAO_HSM_PIN", USER_PIN)
                .env("BAO_HSM_KEY_LABEL", label)
                .env("BAO_HSM_KEY_ID", id)
                .env("BAO_HSM_MECHANISM", mechanism);
            let told = acceptance.args(["-test.v", "-test.run", "TestAcc"]).run()?.all();
            ensure!(told.contains("--- PASS: TestAccPkcs11Wrapper_Lifecycle"), "{told}");
        }
        token.called("openbao")
    });
}
