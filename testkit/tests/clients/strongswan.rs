// SPDX-License-Identifier: Apache-2.0
//! strongSwan's pki: a certificate by a key in the token.

use metaslot_testkit::{USER_PIN, check};

const CLIENT: &str = "strongSwan pki";
const NEEDS: &[&str] = &["pki", "openssl", "pkcs11-tool"];

fn signs(what: &str, kind: &str, family: &str, summary: &str) {
    check(CLIENT, what, NEEDS, |token| {
        token.key_pair(kind, "0a01", "vpn")?;
        token.spy()?;
        let module = token.module().display();
        let configuration = token.write(
            "strongswan.conf",
            format!(
                "pki {{\nload = random nonce pem x509 pkcs1 pkcs8 pubkey gmp constraints sha1 sha2 hmac pkcs11\n\
                 plugins {{ pkcs11 {{ modules {{ token {{ path = {module}\n}} }} }} }} }}\n"
            ),
        )?;
        let made = token
            .program("pki")
            .env("STRONGSWAN_CONF", configuration)
            .line("--self --keyid 0a01 --dn CN=vpn --ca --outform pem --type")
            .arg(family)
            .input(format!("{USER_PIN}\n"))
            .run()?
            .text();
        // The question for the PIN stands before it.
        let start = made.find("-----BEGIN").unwrap_or_default();
        token.write("ca.pem", &made[start..])?;
        token.program("openssl").line("verify -check_ss_sig -CAfile ca.pem ca.pem").run()?;
        token.called(summary)
    });
}

#[test]
fn a_certificate_is_signed_by_an_rsa_key_in_the_token() {
    signs("pki --self, RSA", "rsa:2048", "rsa", "strongswan-pki");
}

#[test]
fn a_certificate_is_signed_by_a_p256_key_in_the_token() {
    signs("pki --self, P-256", "EC:prime256v1", "ecdsa", "strongswan-pki-ec");
}
