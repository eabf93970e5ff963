// SPDX-License-Identifier: Apache-2.0
//! Node.js, whose OpenSSL is Debian's or one of its own, by our provider: `testdata/openssl-provider/node.js` does the work.

use std::fs;

use anyhow::{Result, ensure};
use metaslot_testkit::{Program, TestToken, check, command, openssl_provider};

use super::node;
use super::openssl_provider::{configure, counted, line, rose};
use super::openssl_provider_all::{configure_all, modes};

const CLIENT: &str = "Node.js, our provider";
const CLIENT_JS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/openssl-provider/node.js");

fn program(token: &TestToken, parts: &str) -> Program {
    token.program(node::name()).arg(CLIENT_JS).arg(parts)
}

fn check_node(what: &str, work: impl FnOnce(&mut TestToken) -> Result<()>) {
    let (provider, command) = (openssl_provider(), command());
    let needs = [node::name(), "openssl", "pkcs11-tool", &provider, &command];
    check(CLIENT, what, &needs, work);
}

#[test]
fn node_uses_keys_of_the_token() {
    check_node("keys of a token", |token| {
        for (kind, id, mechanism) in
            [("rsa:2048", "01", "CKM_SHA256_RSA_PKCS"), ("EC:prime256v1", "02", "CKM_ECDSA_SHA256")]
        {
            token.key_pair(kind, id, id)?;
            configure(token)?;
            let uri = format!("pkcs11:token=testing;object={id};type=private");
            let pem = token.program(&command()).line("uri2pem --as-is --out site.key").arg(uri);
            pem.run()?;
            line(token, "+ req -new -x509 -key site.key -subj /CN=localhost -out site.pem")?;
            for configure in modes(token) {
                configure(token)?;
                let before = counted(token)?;
                program(token, "key,tls").arg("stays").run()?.with(&["done"])?;
                rose(token, mechanism, &before)?;
            }
            fs::remove_file(token.path("site.key"))?;
        }
        Ok(())
    });
}

const MECHANISMS: &str = "CKM_SHA256 CKM_MD5 CKM_SHA256_HMAC CKM_AES_GCM CKM_AES_CCM CKM_CHACHA20_POLY1305 CKM_AES_CBC CKM_AES_CTR \
    CKM_HKDF_DERIVE CKM_PKCS5_PBKD2 CKM_RSA_PKCS_KEY_PAIR_GEN CKM_SHA256_RSA_PKCS CKM_ECDSA_SHA384 CKM_EDDSA CKM_RSA_PKCS_OAEP \
    CKM_ECDH1_DERIVE";

/// In mode `all`. Another module may be made of libcrypto itself.
#[test]
fn what_node_computes_is_computed_by_the_module_and_is_the_same() {
    check_node("mode all", |token| {
        if !token.is_ours() {
            return Ok(());
        }
        configure_all(token)?;
        line(token, "- genrsa -out site.key 2048")?;
        line(token, "- req -new -x509 -key site.key -subj /CN=localhost -out site.pem")?;
        let all = "digests,ciphers,derivations,pairs,key,tls";
        let without = program(token, all).env("OPENSSL_CONF", "/dev/null").run()?.text();
        let before = counted(token)?;
        let with = program(token, all).run()?.text();
        ensure!(with == without && with.ends_with("done\n"), "{without}\n{with}");
        MECHANISMS.split_whitespace().try_for_each(|mechanism| rose(token, mechanism, &before))
    });
}
