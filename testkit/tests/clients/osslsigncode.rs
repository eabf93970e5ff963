// SPDX-License-Identifier: Apache-2.0
//! osslsigncode: a Windows program signed by a key in the token.

use metaslot_testkit::check;

use crate::{openssl, recipe};

const CLIENT: &str = "osslsigncode, engine pkcs11";
const NEEDS: &[&str] = &["osslsigncode", "openssl", "pkcs11-tool"];

/// The smallest program that has all the headers: one section, one instruction.
fn program() -> Vec<u8> {
    let mut image = vec![0_u8; 1024];
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"MZ");
    put(60, &[64]);
    put(64, b"PE\0\0\x64\x86\x01\0");
    // The sizes of the optional header, and that it can be run.
    put(84, &[240, 0, 0x22, 0]);
    put(88, &[0x0b, 2, 14, 0, 0, 2]);
    put(104, &[0, 0x10, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0x40, 1, 0, 0, 0]);
    // Alignments, versions, sizes of the image and its headers, the subsystem.
    put(120, &[0, 0x10, 0, 0, 0, 2, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 6]);
    put(144, &[0, 0x20, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 3]);
    put(196, &[16]);
    put(328, b".text\0\0\0\x01\0\0\0\0\x10\0\0\0\x02\0\0\0\x02\0\0");
    put(364, &[0x20, 0, 0, 0x60]);
    put(512, &[0xc3]);
    image
}

#[test]
fn a_program_is_signed_by_a_key_in_the_token() {
    check(CLIENT, "sign and verify", NEEDS, |token| {
        token.key_pair("rsa:2048", "01", "code")?;
        token.spy()?;
        openssl::configure(token)?;
        token
            .program("openssl")
            .line("req -new -x509 -days 30 -engine pkcs11 -keyform engine -subj /CN=code -out code.pem")
            .line("-addext extendedKeyUsage=codeSigning -addext basicConstraints=critical,CA:TRUE")
            .args(["-key", &openssl::uri(token, "code")])
            .run()?;
        token.write("plain.exe", program())?;
        let engine = openssl::engine()?.display().to_string();
        let page = recipe::block(token, "osslsigncode", 0, &[(openssl::DEBIAN, &engine)])?;
        recipe::shell(token, &page).env("OPENSSL_CONF", "/dev/null").run()?;
        token
            .program("osslsigncode")
            .env("OPENSSL_CONF", "/dev/null")
            .line("verify -CAfile code.pem -in signed.exe")
            .run()?
            .with(&["Signature verification: ok"])?;
        token.called("osslsigncode")
    });
}
