// SPDX-License-Identifier: Apache-2.0
//! The Rust `cryptoki` crate. It works inside the process, so each check runs this test's own binary
//! again, with the token's environment.

use anyhow::{Context, Result, ensure};
use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::mechanism::Mechanism;
use cryptoki::mechanism::aead::GcmParams;
use cryptoki::object::{Attribute, AttributeType, ObjectClass};
use cryptoki::session::{Session, UserType};
use cryptoki::types::AuthPin;
use metaslot_testkit::{USER_PIN, check, inside, is_inside};

use crate::recipe;

const CLIENT: &str = "Rust cryptoki crate";
/// DER of the object identifier of P-256.
const P256: &[u8] = &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];

/// Runs `work` in a process of its own; `name` is the test function's.
fn with_session(what: &str, name: &str, work: impl FnOnce(&Session) -> Result<()>) {
    if is_inside() {
        let done = session().and_then(|session| work(&session));
        return done.unwrap_or_else(|error| panic!("{error:#}"));
    }
    check(CLIENT, what, &["pkcs11-tool"], |token| {
        token.spy()?;
        let spy = token.module().to_owned();
        token.set("METASLOT_MODULE", spy);
        inside(token, &format!("rust_cryptoki::{name}"))?;
        let summary = what.to_lowercase().replace(' ', "-");
        token.asked(&format!("cryptoki-{summary}")).map(drop)
    });
}

fn session() -> Result<Session> {
    let (path, pin) = (std::env::var_os("METASLOT_MODULE").context("no module")?, USER_PIN);
    let module = Pkcs11::new(path)?;
    module.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK))?;
    let slot = *module.get_slots_with_initialized_token()?.first().context("no token")?;
    let session = module.open_rw_session(slot)?;
    session.login(UserType::User, Some(&AuthPin::new(pin.into())))?;
    Ok(session)
}

#[test]
fn key_of_the_page_is_found_and_signs() {
    with_session("the page", "key_of_the_page_is_found_and_signs", |session| {
        // Without the blanks that set them apart.
        let plain = |text: &str| text.split_whitespace().collect::<String>();
        let here = plain(include_str!("rust_cryptoki.rs"));
        for line in recipe::written("Rust (cryptoki)", 0)?.lines() {
            let line = line.replace(&format!("{:?}", recipe::MODULE[1]), "path");
            ensure!(here.contains(&plain(&line)), "not here: {line}");
        }
        let template = [Attribute::Token(true), Attribute::Label("site".into())];
        let public = [&template[..], &[Attribute::EcParams(P256.to_vec())]].concat();
        session.generate_key_pair(&Mechanism::EccKeyPairGen, &public, &template)?;
        let digest = [7; 32];
        let named = [Attribute::Class(ObjectClass::PRIVATE_KEY), Attribute::Label("site".into())];
        let key = *session.find_objects(&named)?.first().context("no key")?;
        let signature = session.sign(&Mechanism::Ecdsa, key, &digest)?;
        ensure!(signature.len() == 64, "{} bytes", signature.len());
        Ok(())
    });
}

#[test]
fn rsa_key_pair_signs_and_decrypts() {
    with_session("RSA", "rsa_key_pair_signs_and_decrypts", |session| {
        let (public, private) = session.generate_key_pair(
            &Mechanism::RsaPkcsKeyPairGen,
            &[
                Attribute::Token(false),
                Attribute::ModulusBits(2048.into()),
                Attribute::PublicExponent(vec![1, 0, 1]),
                Attribute::Verify(true),
                Attribute::Encrypt(true),
            ],
            &[Attribute::Token(false), Attribute::Sign(true), Attribute::Decrypt(true)],
        )?;
        let signature = session.sign(&Mechanism::Sha256RsaPkcs, private, b"message")?;
        session.verify(&Mechanism::Sha256RsaPkcs, public, b"message", &signature)?;
        let refused = session.verify(&Mechanism::Sha256RsaPkcs, public, b"other", &signature);
        ensure!(refused.is_err(), "a wrong message was verified");
        let sealed = session.encrypt(&Mechanism::RsaPkcs, public, b"secret")?;
        ensure!(session.decrypt(&Mechanism::RsaPkcs, private, &sealed)? == b"secret", "decryption");
        Ok(())
    });
}

#[test]
fn ec_key_pair_signs() {
    with_session("ECDSA", "ec_key_pair_signs", |session| {
        let (public, private) = session.generate_key_pair(
            &Mechanism::EccKeyPairGen,
            &[Attribute::Token(false), Attribute::EcParams(P256.to_vec()), Attribute::Verify(true)],
            &[Attribute::Token(false), Attribute::Sign(true)],
        )?;
        let digest = [7; 32];
        let signature = session.sign(&Mechanism::Ecdsa, private, &digest)?;
        ensure!(signature.len() == 64, "{} bytes", signature.len());
        Ok(session.verify(&Mechanism::Ecdsa, public, &digest, &signature)?)
    });
}

#[test]
fn secret_key_seals_and_opens() {
    with_session("AES-GCM", "secret_key_seals_and_opens", |session| {
        let key = session.generate_key(
            &Mechanism::AesKeyGen,
            &[
                Attribute::Token(false),
                Attribute::ValueLen(32.into()),
                Attribute::Sensitive(true),
                Attribute::Encrypt(true),
                Attribute::Decrypt(true),
            ],
        )?;
        let mut iv = [1; 12];
        let gcm = Mechanism::AesGcm(GcmParams::new(&mut iv, b"header", 128.into())?);
        let sealed = session.encrypt(&gcm, key, b"plain")?;
        ensure!(sealed.len() == 21, "{} bytes", sealed.len());
        ensure!(session.decrypt(&gcm, key, &sealed)? == b"plain", "decryption");
        let values = session.get_attributes(key, &[AttributeType::Value])?;
        ensure!(values.is_empty(), "the value of a sensitive key was given out");
        Ok(())
    });
}

#[test]
fn token_objects_are_found_by_label() {
    with_session("token objects", "token_objects_are_found_by_label", |session| {
        for label in ["one", "two"] {
            session.create_object(&[
                Attribute::Class(ObjectClass::DATA),
                Attribute::Token(true),
                Attribute::Label(label.into()),
                Attribute::Value(label.into()),
            ])?;
        }
        let found = session.find_objects(&[Attribute::Label("two".into())])?;
        ensure!(found.len() == 1, "{} found", found.len());
        let values = session.get_attributes(found[0], &[AttributeType::Value])?;
        ensure!(values == [Attribute::Value(b"two".to_vec())], "{values:?}");
        session.destroy_object(found[0])?;
        ensure!(session.find_objects(&[Attribute::Label("two".into())])?.is_empty(), "still there");
        Ok(())
    });
}
