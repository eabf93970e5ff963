// SPDX-License-Identifier: Apache-2.0
//! strongSwan's pki: a certificate by a key in the token.

use metaslot_testkit::{USER_PIN, check};

const CLIENT: &str = "strongSwan pki";
const NEEDS: &[&str] = &["pki", "openssl", "pkcs11-tool"];

#[test]
fn a_certificate_is_signed_by_a_key_in_the_token() {
    check(CLIENT, "pki --self", NEEDS, |token| {
        token.key_pair("rsa:2048", "0a01", "vpn")?;
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
            .line("--self --type rsa --keyid 0a01 --dn CN=vpn --ca --outform pem")
            .input(format!("{USER_PIN}\n"))
            .run()?
            .text();
        // The question for the PIN stands before it.
        let start = made.find("-----BEGIN").unwrap_or_default();
        token.write("ca.pem", &made[start..])?;
        token.program("openssl").line("verify -check_ss_sig -CAfile ca.pem ca.pem").run()?;
        token.called("strongswan-pki")
    });
}
