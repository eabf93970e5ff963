// SPDX-License-Identifier: Apache-2.0
//! Ways from a sensitive key to its value.

use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Result, Session, Template};

use crate::{SECRET, aes, aes_of, readable, secret, target, with_roles};

const IV: [u8; 16] = [7; 16];

/// CBC with padding: what wraps is undone by plain decryption.
const fn cbc_pad() -> Mechanism<'static> {
    Mechanism::with(CKM_AES_CBC_PAD, Params::Bytes(&IV))
}

pub(crate) fn wrap_decrypt(session: &Session) -> Result<bool> {
    let both = aes(session, &[CKA_WRAP, CKA_DECRYPT])?;
    let wrapped = session.wrap(&cbc_pad(), both, target(session)?)?;
    Ok(session.decrypt(&cbc_pad(), both, &wrapped)? == SECRET)
}

pub(crate) fn role_flip(session: &Session) -> Result<bool> {
    let key = aes(session, &[CKA_WRAP])?;
    let wrapped = session.wrap(&cbc_pad(), key, target(session)?)?;
    session.set_attributes(key, &Template::new().bool(CKA_WRAP, false).bool(CKA_DECRYPT, true))?;
    Ok(session.decrypt(&cbc_pad(), key, &wrapped)? == SECRET)
}

/// The attacker encrypts a key that he knows and lets the token unwrap it as one of its own.
pub(crate) fn encrypt_unwrap(session: &Session) -> Result<bool> {
    let both = aes(session, &[CKA_ENCRYPT, CKA_UNWRAP])?;
    let wrapped = session.encrypt(&cbc_pad(), both, SECRET)?;
    let template = secret(true).bool(CKA_SIGN, true);
    let planted = session.unwrap(&cbc_pad(), both, &wrapped, &template)?;
    let mac = session.sign(&Mechanism::new(CKM_SHA256_HMAC), planted, b"message")?;
    let known = session.create(&readable().bool(CKA_SIGN, true).bytes(CKA_VALUE, SECRET))?;
    Ok(session.sign(&Mechanism::new(CKM_SHA256_HMAC), known, b"message")? == mac)
}

pub(crate) fn unwrap_readable(session: &Session) -> Result<bool> {
    let both = aes(session, &[CKA_WRAP, CKA_UNWRAP])?;
    let mechanism = Mechanism::new(CKM_AES_KEY_WRAP);
    let wrapped = session.wrap(&mechanism, both, target(session)?)?;
    let opened = session.unwrap(&mechanism, both, &wrapped, &readable())?;
    Ok(session.attribute(opened, CKA_VALUE)? == SECRET)
}

pub(crate) fn wrap_under_known(session: &Session) -> Result<bool> {
    let template = Template::new()
        .class(CKO_SECRET_KEY)
        .key_type(CKK_AES)
        .token(false)
        .bytes(CKA_VALUE, [1; 32]);
    let known = session.create(&with_roles(template.clone(), &[CKA_WRAP]))?;
    let wrapped = session.wrap(&Mechanism::new(CKM_AES_KEY_WRAP), known, target(session)?)?;
    let outside = session.create(&with_roles(template, &[CKA_UNWRAP]))?;
    let opened =
        session.unwrap(&Mechanism::new(CKM_AES_KEY_WRAP), outside, &wrapped, &readable())?;
    Ok(session.attribute(opened, CKA_VALUE)? == SECRET)
}

pub(crate) fn weak_wrapping(session: &Session) -> Result<bool> {
    let short = aes_of(session, 16, &[CKA_WRAP])?;
    // Without restrictions, so that only the lengths can be the reason for a refusal.
    let long = secret(true).bytes(CKA_VALUE, SECRET);
    let long = session.create(&long)?;
    session.wrap(&Mechanism::new(CKM_AES_KEY_WRAP), short, long).map(|_| true)
}

/// Changes one byte of a wrapped key: the answer says whether the padding is still right.
pub(crate) fn padding_oracle(session: &Session) -> Result<bool> {
    let sealer = Template::new()
        .class(CKO_SECRET_KEY)
        .key_type(CKK_AES)
        .token(false)
        .bool(CKA_SENSITIVE, true)
        .bool(CKA_EXTRACTABLE, false)
        .bytes(CKA_VALUE, [1; 32]);
    let encrypting = session.create(&with_roles(sealer.clone(), &[CKA_ENCRYPT]))?;
    let unwrapping = session.create(&with_roles(sealer, &[CKA_UNWRAP]))?;
    let mut wrapped = session.encrypt(&cbc_pad(), encrypting, SECRET)?;
    let template = secret(true);
    let opened = session.unwrap(&cbc_pad(), unwrapping, &wrapped, &template)?;
    session.destroy(opened)?;
    let last = wrapped.len() - 1;
    wrapped[last] ^= 0x55;
    Ok(session.unwrap(&cbc_pad(), unwrapping, &wrapped, &template).is_err())
}

const fn hkdf() -> Mechanism<'static> {
    Mechanism::with(
        CKM_HKDF_DERIVE,
        Params::Hkdf {
            extract: false,
            expand: true,
            prf: CKM_SHA256,
            salt_type: CKF_HKDF_SALT_NULL,
            salt: &[],
            salt_key: ObjectHandle(0),
            info: b"attack",
        },
    )
}

pub(crate) fn derive_readable(session: &Session) -> Result<bool> {
    let derived =
        session.derive(&hkdf(), target(session)?, &readable().ulong(CKA_VALUE_LEN, 32))?;
    Ok(session.attribute(derived, CKA_VALUE)?.len() == 32)
}

pub(crate) fn derive_short(session: &Session) -> Result<bool> {
    let template = secret(true).bool(CKA_SIGN, true).ulong(CKA_VALUE_LEN, 1);
    let derived = session.derive(&hkdf(), target(session)?, &template)?;
    let mac = session.sign(&Mechanism::new(CKM_SHA256_HMAC), derived, b"message")?;
    for guess in 0..=u8::MAX {
        let template = readable().bool(CKA_SIGN, true).bytes(CKA_VALUE, [guess]);
        let guessed = session.create(&template)?;
        let found = session.sign(&Mechanism::new(CKM_SHA256_HMAC), guessed, b"message")? == mac;
        session.destroy(guessed)?;
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}
