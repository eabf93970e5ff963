// SPDX-License-Identifier: Apache-2.0
//! strongSwan's pki: a certificate by a key in the token.

use metaslot_testkit::{USER_PIN, check};

use crate::recipe;

const SECTION: &str = "strongSwan (pki)";
const CLIENT: &str = "strongSwan pki";
const NEEDS: &[&str] = &["pki", "openssl", "pkcs11-tool"];

fn signs(what: &str, kind: &str, family: &str, summary: &str) {
    check(CLIENT, what, NEEDS, |token| {
        token.key_pair(kind, "0a01", "vpn")?;
        token.spy()?;
        let configuration = recipe::block(token, SECTION, 0, &[])?;
        let configuration = token.write("strongswan.conf", configuration)?;
        let page =
            recipe::block(token, SECTION, 1, &[("--type rsa", &format!("--type {family}"))])?;
        let made = recipe::shell(token, &page)
            .env("STRONGSWAN_CONF", configuration)
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
