// SPDX-License-Identifier: Apache-2.0
//! What the standard itself forbids, whatever the policy.

use anyhow::{Context, Result, ensure};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Session, Template, User, Value};
use metaslot_testkit::USER_PIN;

use crate::purposes::hkdf;
use crate::{aes, target, with_roles};

fn refused<T>(what: &str, result: &metaslot_client::Result<T>) -> Result<()> {
    ensure!(result.is_err(), "{what} was allowed");
    Ok(())
}

pub(crate) fn lowering(session: &Session) -> Result<()> {
    let key = target(session)?;
    let lower = session.set_attribute(key, CKA_SENSITIVE, Value::Bool(false));
    refused("SENSITIVE made false", &lower)?;
    refused("the value of a sensitive key", &session.attribute(key, CKA_VALUE))?;
    session.set_attribute(key, CKA_EXTRACTABLE, Value::Bool(false))?;
    let raise = session.set_attribute(key, CKA_EXTRACTABLE, Value::Bool(true));
    refused("EXTRACTABLE made true", &raise)?;
    let wrapping = aes(session, &[CKA_WRAP])?;
    let wrapped = session.wrap(&Mechanism::new(CKM_AES_KEY_WRAP), wrapping, key);
    refused("wrapping of a key that is not extractable", &wrapped)?;
    let fixed = session.create(
        &Template::new()
            .class(CKO_DATA)
            .token(false)
            .bool(CKA_MODIFIABLE, false)
            .bytes(CKA_VALUE, b"fixed"),
    )?;
    refused(
        "change of an unmodifiable object",
        &session.set_attributes(fixed, &Template::new().label("x")),
    )
}

pub(crate) fn copies(session: &Session) -> Result<()> {
    let key = target(session)?;
    session.set_attribute(key, CKA_EXTRACTABLE, Value::Bool(false))?;
    for (what, changes) in [
        ("a readable copy", Template::new().bool(CKA_SENSITIVE, false)),
        ("an extractable copy", Template::new().bool(CKA_EXTRACTABLE, true)),
    ] {
        refused(what, &session.copy(key, &changes))?;
    }
    // Both of these are used by programs, so they have to work.
    session.copy(key, &Template::new()).context("a copy without changes")?;
    session.copy(key, &Template::new().token(false)).context("a session copy")?;
    let single = session.create(
        &Template::new()
            .class(CKO_DATA)
            .token(false)
            .bool(CKA_COPYABLE, false)
            .bytes(CKA_VALUE, b"x"),
    )?;
    refused("a copy of what is not copyable", &session.copy(single, &Template::new()))
}

pub(crate) fn usages(session: &Session) -> Result<()> {
    let key = aes(session, &[CKA_ENCRYPT])?;
    let mechanism = Mechanism::with(CKM_AES_CBC_PAD, Params::Bytes(&[0; 16]));
    let sealed = session.encrypt(&mechanism, key, b"plain")?;
    refused("decryption without DECRYPT", &session.decrypt(&mechanism, key, &sealed))?;
    let cmac = session.sign(&Mechanism::new(CKM_AES_CMAC), key, b"message");
    refused("a signature without SIGN", &cmac)?;
    let allowed = Template::new()
        .token(false)
        .ulong(CKA_VALUE_LEN, 32)
        .bytes(CKA_ALLOWED_MECHANISMS, CKM_AES_CTR.to_ne_bytes());
    let limited = session
        .generate_key(&Mechanism::new(CKM_AES_KEY_GEN), &with_roles(allowed, &[CKA_ENCRYPT]))?;
    let other = session.encrypt(&mechanism, limited, b"plain");
    refused("a mechanism that is not among the allowed", &other)?;
    session.digest_init(&Mechanism::new(CKM_SHA256))?;
    refused("a digest that is not among the allowed", &session.digest_key(limited))?;
    let made = |value: u8| {
        let key = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET).token(false);
        key.bytes(CKA_VALUE, [value; 32])
    };
    let allowed = made(1).bytes(CKA_ALLOWED_MECHANISMS, CKM_SHA256_HMAC.to_ne_bytes());
    let (salt, base) =
        (session.create(&allowed)?, session.create(&made(2).bool(CKA_DERIVE, true))?);
    let template = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
    let template = template.token(false).ulong(CKA_VALUE_LEN, 32);
    let salted = |salt| session.derive(&hkdf(true, true, salt), base, &template);
    salted(session.create(&made(3))?)?;
    refused("a salt of a derivation that is not among the allowed", &salted(salt))
}

pub(crate) fn origin(session: &Session) -> Result<()> {
    let template = || {
        Template::new()
            .class(CKO_SECRET_KEY)
            .key_type(CKK_GENERIC_SECRET)
            .token(false)
            .bytes(CKA_VALUE, [1; 32])
    };
    for attribute in [CKA_LOCAL, CKA_ALWAYS_SENSITIVE, CKA_NEVER_EXTRACTABLE] {
        let forged = session.create(&template().bool(attribute, true));
        refused("an origin given by the caller", &forged)?;
    }
    let key = session.create(&template())?;
    for attribute in [CKA_LOCAL, CKA_ALWAYS_SENSITIVE, CKA_NEVER_EXTRACTABLE] {
        ensure!(!session.attribute_bool(key, attribute)?, "an imported key claims an origin");
        refused("a forged origin", &session.set_attribute(key, attribute, Value::Bool(true)))?;
    }
    let generated = aes(session, &[CKA_ENCRYPT])?;
    ensure!(session.attribute_bool(generated, CKA_LOCAL)?, "a generated key is not local");
    ensure!(session.attribute_bool(generated, CKA_ALWAYS_SENSITIVE)?, "not always sensitive");
    Ok(())
}

pub(crate) fn logout(session: &Session) -> Result<()> {
    let label = Template::new().bytes(CKA_LABEL, b"hidden");
    let generate = |token| {
        let template = Template::new()
            .token(token)
            .bool(CKA_PRIVATE, true)
            .ulong(CKA_VALUE_LEN, 32)
            .bytes(CKA_LABEL, b"hidden");
        let template = with_roles(template, &[CKA_ENCRYPT]);
        session.generate_key(&Mechanism::new(CKM_AES_KEY_GEN), &template)
    };
    let key = generate(false)?;
    generate(true)?;
    session.logout()?;
    let mechanism = Mechanism::with(CKM_AES_CBC_PAD, Params::Bytes(&[0; 16]));
    refused("a handle from before the logout", &session.encrypt(&mechanism, key, b"plain"))?;
    ensure!(session.find(&label)?.is_empty(), "a private object is found after logout");
    let made = session.create(
        &Template::new().class(CKO_DATA).token(true).bool(CKA_PRIVATE, true).bytes(CKA_VALUE, b"x"),
    );
    refused("a private object made without a login", &made)
}

/// A wrong padding gives a message like a right one, the same one each time, so that neither the
/// code nor the answer tells the attacker anything.
pub(crate) fn implicit_rejection(session: &Session) -> Result<()> {
    let (public, private) = session.generate_key_pair(
        &Mechanism::new(CKM_RSA_PKCS_KEY_PAIR_GEN),
        &Template::new()
            .token(false)
            .bool(CKA_ENCRYPT, true)
            .ulong(CKA_MODULUS_BITS, 2048)
            .bytes(CKA_PUBLIC_EXPONENT, [1, 0, 1]),
        &Template::new().token(false).bool(CKA_DECRYPT, true).bool(CKA_SENSITIVE, true),
    )?;
    let mechanism = Mechanism::new(CKM_RSA_PKCS);
    let sealed = session.encrypt(&mechanism, public, b"secret")?;
    ensure!(session.decrypt(&mechanism, private, &sealed)? == b"secret", "decryption");
    for change in 1..=20 {
        let mut wrong = sealed.clone();
        wrong[100] ^= change;
        let first = session.decrypt(&mechanism, private, &wrong).context("a wrong padding")?;
        let second = session.decrypt(&mechanism, private, &wrong).context("a wrong padding")?;
        ensure!(first == second, "the message of a wrong padding changes");
        ensure!(first != b"secret", "a changed ciphertext was decrypted");
    }
    Ok(())
}

pub(crate) fn invalid_points(session: &Session) -> Result<()> {
    const P256: &[u8] = &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
    let (_, private) = session.generate_key_pair(
        &Mechanism::new(CKM_EC_KEY_PAIR_GEN),
        &Template::new().token(false).bytes(CKA_EC_PARAMS, P256),
        &Template::new().token(false).bool(CKA_DERIVE, true),
    )?;
    let mut point = vec![4];
    point.extend([1; 64]);
    for public in [point.as_slice(), &[0], &[4], &[]] {
        let params = Params::Ecdh1 { kdf: CKD_NULL, shared: &[], public };
        let template = Template::new()
            .class(CKO_SECRET_KEY)
            .key_type(CKK_GENERIC_SECRET)
            .token(false)
            .ulong(CKA_VALUE_LEN, 32);
        let made = session.derive(&Mechanism::with(CKM_ECDH1_DERIVE, params), private, &template);
        refused("a point that is not on the curve", &made)?;
    }
    Ok(())
}

/// The officer's word, given by the user: at birth, later, and inside a template of a key.
pub(crate) fn trust(session: &Session) -> Result<()> {
    let key = aes(session, &[CKA_WRAP])?;
    let set = session.set_attribute(key, CKA_TRUSTED, Value::Bool(true));
    refused("CKA_TRUSTED set by the user", &set)?;
    let make = |template: Template| {
        let template = template.token(false).ulong(CKA_VALUE_LEN, 32);
        session.generate_key(&Mechanism::new(CKM_AES_KEY_GEN), &template)
    };
    refused("CKA_TRUSTED of a new key", &make(Template::new().bool(CKA_TRUSTED, true)))?;
    for attribute in [CKA_UNWRAP_TEMPLATE, CKA_DERIVE_TEMPLATE] {
        let nested = Template::new()
            .with(attribute, Value::Template(Template::new().bool(CKA_TRUSTED, true)));
        refused("CKA_TRUSTED inside a template", &make(nested))?;
    }
    Ok(())
}

/// The state of a digest that a key went into.
pub(crate) fn saved_digest(session: &Session) -> Result<()> {
    let key = target(session)?;
    for mechanism in [CKM_SHA256, CKM_SHA512, CKM_SHA3_256] {
        session.digest_init(&Mechanism::new(mechanism))?;
        session.digest_key(key)?;
        refused("the state of a digested key", &session.operation_state())?;
        session.digest_final()?;
    }
    Ok(())
}

/// A buffer too short keeps the operation: if it told something of the plaintext, one PIN would do for many.
pub(crate) fn one_pin(session: &Session) -> Result<()> {
    let public = Template::new().token(false).ulong(CKA_MODULUS_BITS, 2048);
    let private = Template::new().token(false).bool(CKA_ALWAYS_AUTHENTICATE, true);
    let pair = Mechanism::new(CKM_RSA_PKCS_KEY_PAIR_GEN);
    let (public, private) = session.generate_key_pair(&pair, &public, &private)?;
    let by = Mechanism::new(CKM_RSA_PKCS);
    let (short, long) =
        (session.encrypt(&by, public, &[1; 16])?, session.encrypt(&by, public, &[2; 64])?);
    session.decrypt_init(&by, private)?;
    session.login(User::ContextSpecific, USER_PIN.as_bytes())?;
    let mut room = [0; 256];
    refused("a plaintext for a buffer too short", &session.decrypt_into(&long, &mut room[..32]))?;
    refused("the length of another", &session.decrypt_into(&short, &mut room[..32]))?;
    ensure!(session.decrypt_into(&short, &mut room)? == 16, "the operation has ended");
    refused("a second plaintext", &session.decrypt_into(&long, &mut room))
}
