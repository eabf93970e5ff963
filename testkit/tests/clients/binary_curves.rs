// SPDX-License-Identifier: Apache-2.0
//! Keys on curves over GF(2^m) in the token, and the `openssl` command on the other side. What the token does runs in a
//! process of its own.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Session, Template};
use metaslot_testkit::{Output, Program, TestToken, apart, user_session};

const CLIENT: &str = "OpenSSL, binary curves";

/// Name, last number of the object identifier 1.3.132.0, bytes of a coordinate, whether the default policy has it.
const CURVES: &[(&str, u8, usize, bool)] = &[
    ("sect163k1", 1, 21, false),
    ("sect163r1", 2, 21, false),
    ("sect163r2", 15, 21, false),
    ("sect233k1", 26, 30, true),
    ("sect233r1", 27, 30, true),
    ("sect283k1", 16, 36, true),
    ("sect283r1", 17, 36, true),
    ("sect409k1", 36, 52, true),
    ("sect409r1", 37, 52, true),
    ("sect571k1", 38, 72, true),
    ("sect571r1", 39, 72, true),
];

/// Runs `work` under a policy.
fn with_session(what: &str, name: &str, policy: &str, work: fn(&Session) -> Result<()>) {
    let name = format!("binary_curves::{name}");
    let prepare = |token: &mut TestToken| token.policy(policy);
    apart(CLIENT, what, &name, prepare, || work(&user_session()?.1));
}

fn path(name: &str) -> Result<PathBuf> {
    Ok(PathBuf::from(std::env::var_os("HOME").context("no home")?).join(name))
}

fn write(name: &str, content: impl AsRef<[u8]>) -> Result<()> {
    Ok(fs::write(path(name)?, content)?)
}

fn openssl(line: &str) -> Result<Output> {
    Program::new("openssl").directory(&path("")?).line(line).run()
}

fn params(last: u8) -> [u8; 7] {
    [6, 5, 0x2b, 0x81, 4, 0, last]
}

/// A key pair of the session's: public, private.
fn generate(session: &Session, last: u8) -> metaslot_client::Result<(ObjectHandle, ObjectHandle)> {
    session.generate_key_pair(
        &Mechanism::new(CKM_EC_KEY_PAIR_GEN),
        &Template::new().token(false).bool(CKA_VERIFY, true).bytes(CKA_EC_PARAMS, params(last)),
        &Template::new()
            .token(false)
            .bool(CKA_SIGN, true)
            .bool(CKA_DERIVE, true)
            .bool(CKA_EXTRACTABLE, true),
    )
}

/// DER: a tag, a length below 256, and the content.
fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap_or(u8::MAX);
    let mut der = if length < 128 { vec![tag, length] } else { vec![tag, 0x81, length] };
    der.extend(content);
    der
}

/// A signature as OpenSSL wants it: a sequence of two numbers.
fn sequence(signature: &[u8]) -> Vec<u8> {
    let number = |half: &[u8]| {
        let zeros = half.iter().take_while(|byte| **byte == 0).count();
        let mut number = half[zeros..].to_vec();
        if number.first().is_none_or(|first| *first >= 0x80) {
            number.insert(0, 0);
        }
        tagged(2, &number)
    };
    let (r, s) = signature.split_at(signature.len() / 2);
    tagged(0x30, &[number(r), number(s)].concat())
}

#[test]
fn openssl_verifies_what_the_token_signs() {
    let name = "openssl_verifies_what_the_token_signs";
    with_session("dgst -verify, pkeyutl -verify", name, "legacy", |session| {
        for (curve, last, ..) in CURVES {
            let (public, private) = generate(session, *last)?;
            write("public.der", session.attribute(public, CKA_PUBLIC_KEY_INFO)?)?;
            write("message", curve)?;
            for (mechanism, hash) in [
                (CKM_ECDSA_SHA1, "sha1"),
                (CKM_ECDSA_SHA256, "sha256"),
                (CKM_ECDSA_SHA512, "sha512"),
                (CKM_ECDSA_SHA3_384, "sha3-384"),
            ] {
                let signature =
                    session.sign(&Mechanism::new(mechanism), private, curve.as_bytes())?;
                write("signature", sequence(&signature))?;
                openssl(&format!(
                    "dgst -{hash} -verify public.der -keyform DER -signature signature message"
                ))
                .with_context(|| curve.to_string())?;
            }
            // Longer than any order.
            let digest = [0xa5; 64];
            write("digest", digest)?;
            let signature = session.sign(&Mechanism::new(CKM_ECDSA), private, &digest)?;
            write("signature", sequence(&signature))?;
            openssl("pkeyutl -verify -pubin -inkey public.der -keyform DER -in digest -sigfile signature")
                .with_context(|| curve.to_string())?;
        }
        Ok(())
    });
}

#[test]
fn openssl_derives_the_same_secret() {
    let name = "openssl_derives_the_same_secret";
    with_session("pkeyutl -derive", name, "default", |session| {
        for (curve, last, bytes, _) in CURVES.iter().filter(|row| row.3) {
            let (public, private) = generate(session, *last)?;
            write("public.der", session.attribute(public, CKA_PUBLIC_KEY_INFO)?)?;
            openssl(&format!("ecparam -name {curve} -genkey -noout -out peer.pem"))?;
            let peer = openssl("pkey -in peer.pem -pubout -outform DER")?.stdout;
            let peer = &peer[peer.len() - 1 - 2 * bytes..];
            for (mechanism, mode) in [(CKM_ECDH1_DERIVE, 0), (CKM_ECDH1_COFACTOR_DERIVE, 1)] {
                let theirs = openssl(&format!(
                    "pkeyutl -derive -inkey peer.pem -peerkey public.der -peerform DER -pkeyopt \
                     ecdh_cofactor_mode:{mode}"
                ))?
                .stdout;
                let params = Params::Ecdh1 { kdf: CKD_NULL, shared: &[], public: peer };
                let mechanism = Mechanism::with(mechanism, params);
                let template = Template::new()
                    .class(CKO_SECRET_KEY)
                    .key_type(CKK_GENERIC_SECRET)
                    .token(false)
                    .bool(CKA_SENSITIVE, false)
                    .bool(CKA_EXTRACTABLE, true);
                let ours = session.derive(&mechanism, private, &template)?;
                ensure!(session.attribute(ours, CKA_VALUE)? == theirs, "{curve}: another secret");
            }
        }
        Ok(())
    });
}

#[test]
fn private_keys_go_to_openssl_and_back() {
    let name = "private_keys_go_to_openssl_and_back";
    with_session("PKCS #8", name, "legacy", |session| {
        let wrapping = session.create(
            &Template::new()
                .class(CKO_SECRET_KEY)
                .key_type(CKK_AES)
                .token(false)
                .bool(CKA_ENCRYPT, true)
                .bool(CKA_DECRYPT, true)
                .bool(CKA_WRAP, true)
                .bool(CKA_UNWRAP, true)
                .bytes(CKA_VALUE, [7; 32]),
        )?;
        let mechanism = Mechanism::new(CKM_AES_KEY_WRAP_KWP);
        for (curve, last, ..) in CURVES {
            let (public, private) = generate(session, *last)?;
            let info = session.attribute(public, CKA_PUBLIC_KEY_INFO)?;
            let wrapped = session.wrap(&mechanism, wrapping, private)?;
            write("private.der", session.decrypt(&mechanism, wrapping, &wrapped)?)?;
            let theirs = openssl("pkey -inform DER -in private.der -pubout -outform DER")?;
            ensure!(theirs.stdout == info, "{curve}: another key");
            openssl(&format!("ecparam -name {curve} -genkey -noout -out theirs.pem"))?;
            openssl("pkcs8 -topk8 -nocrypt -in theirs.pem -outform DER -out theirs.der")?;
            let wrapped = session.encrypt(&mechanism, wrapping, &fs::read(path("theirs.der")?)?)?;
            let template = Template::new()
                .class(CKO_PRIVATE_KEY)
                .key_type(CKK_EC)
                .token(false)
                .bool(CKA_SIGN, true);
            let unwrapped = session.unwrap(&mechanism, wrapping, &wrapped, &template)?;
            let theirs = openssl("pkey -in theirs.pem -pubout -outform DER")?.stdout;
            ensure!(session.attribute(unwrapped, CKA_PUBLIC_KEY_INFO)? == theirs, "{curve}");
        }
        Ok(())
    });
}

#[test]
fn weak_curves_only_verify_under_the_default_policy() {
    let name = "weak_curves_only_verify_under_the_default_policy";
    with_session("weak curves", name, "default", |session| {
        for (curve, last, bytes, strong) in CURVES {
            ensure!(generate(session, *last).is_ok() == *strong, "{curve}");
            openssl(&format!("ecparam -name {curve} -genkey -noout -out old.pem"))?;
            let public = openssl("pkey -in old.pem -pubout -outform DER")?.stdout;
            write("digest", [3; 20])?;
            let signature = openssl("pkeyutl -sign -inkey old.pem -in digest")?.stdout;
            let key = session.create(
                &Template::new()
                    .class(CKO_PUBLIC_KEY)
                    .key_type(CKK_EC)
                    .token(false)
                    .bool(CKA_VERIFY, true)
                    .bytes(CKA_EC_PARAMS, params(*last))
                    .bytes(CKA_EC_POINT, &public[public.len() - 1 - 2 * bytes..]),
            )?;
            let signature = halves(&signature).context("a strange signature")?;
            session.verify(&Mechanism::new(CKM_ECDSA), key, &[3; 20], &signature)?;
            let mut scalar = vec![0; *bytes - 1];
            scalar.push(9);
            let key = session.create(
                &Template::new()
                    .class(CKO_PRIVATE_KEY)
                    .key_type(CKK_EC)
                    .token(false)
                    .bool(CKA_SIGN, true)
                    .bytes(CKA_EC_PARAMS, params(*last))
                    .bytes(CKA_VALUE, scalar),
            )?;
            let signed = session.sign(&Mechanism::new(CKM_ECDSA), key, &[3; 20]);
            ensure!(signed.is_ok() == *strong, "{curve}: {signed:?}");
        }
        Ok(())
    });
}

/// OpenSSL's sequence of two numbers as the token wants it: beside each other, equally long.
fn halves(der: &[u8]) -> Option<Vec<u8>> {
    let mut rest = &der[if *der.get(1)? < 0x80 { 2 } else { 3 }..];
    let mut numbers = Vec::new();
    for _ in 0..2 {
        let length = usize::from(*rest.get(1)?);
        let number = rest.get(2..2 + length)?;
        numbers.push(number.iter().copied().skip_while(|byte| *byte == 0).collect::<Vec<u8>>());
        rest = &rest[2 + length..];
    }
    let length = numbers.iter().map(Vec::len).max()?;
    let padded = numbers.iter().flat_map(|number| {
        std::iter::repeat_n(0, length - number.len()).chain(number.iter().copied())
    });
    Some(padded.collect())
}
