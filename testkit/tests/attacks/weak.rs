// SPDX-License-Identifier: Apache-2.0
//! New things made with broken cryptography.

use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Result, Session, Template};

use crate::{aes, target};

/// A key for an old cipher, which may be brought under every policy.
fn old_key(session: &Session, key_type: CK_KEY_TYPE, length: usize) -> Result<ObjectHandle> {
    let template = Template::new().class(CKO_SECRET_KEY).key_type(key_type).token(false);
    let template = template.bool(CKA_ENCRYPT, true).bool(CKA_SENSITIVE, true);
    session.create(&template.bytes(CKA_VALUE, vec![0x01; length]))
}

pub(crate) fn triple_des(session: &Session) -> Result<bool> {
    let mechanism = Mechanism::with(CKM_DES3_CBC, Params::Bytes(&[0; 8]));
    let key = old_key(session, CKK_DES3, 24)?;
    Ok(session.encrypt(&mechanism, key, &[0; 8])?.len() == 8)
}

pub(crate) fn rc4(session: &Session) -> Result<bool> {
    let key = old_key(session, CKK_RC4, 16)?;
    Ok(session.encrypt(&Mechanism::new(CKM_RC4), key, b"plain")?.len() == 5)
}

pub(crate) fn short_tag(session: &Session) -> Result<bool> {
    let key = aes(session, &[CKA_ENCRYPT])?;
    let params = Params::Gcm { iv: &[1; 12], aad: &[], tag_bits: 32 };
    let sealed = session.encrypt(&Mechanism::with(CKM_AES_GCM, params), key, b"plain")?;
    Ok(sealed.len() == 5 + 4)
}

pub(crate) fn short_mac(session: &Session) -> Result<bool> {
    let mechanism = Mechanism::with(CKM_SHA256_HMAC_GENERAL, Params::Ulong(1));
    Ok(session.sign(&mechanism, target(session)?, b"message")?.len() == 1)
}

fn rsa(session: &Session, bits: u64, exponent: &[u8]) -> Result<(ObjectHandle, ObjectHandle)> {
    session.generate_key_pair(
        &Mechanism::new(CKM_RSA_PKCS_KEY_PAIR_GEN),
        &Template::new()
            .token(false)
            .bool(CKA_VERIFY, true)
            .ulong(CKA_MODULUS_BITS, bits)
            .bytes(CKA_PUBLIC_EXPONENT, exponent),
        &Template::new().token(false).bool(CKA_SIGN, true).bool(CKA_SENSITIVE, true),
    )
}

pub(crate) fn short_rsa(session: &Session) -> Result<bool> {
    rsa(session, 1024, &[1, 0, 1]).map(|_| true)
}

pub(crate) fn weak_curve(session: &Session) -> Result<bool> {
    let public = Template::new()
        .token(false)
        .bytes(CKA_EC_PARAMS, [6, 5, 0x2b, 0x81, 4, 0, 1])
        .bool(CKA_VERIFY, true);
    let private = Template::new().token(false).bool(CKA_SIGN, true).bool(CKA_SENSITIVE, true);
    let mechanism = Mechanism::new(CKM_EC_KEY_PAIR_GEN);
    session.generate_key_pair(&mechanism, &public, &private).map(|_| true)
}

pub(crate) fn small_exponent(session: &Session) -> Result<bool> {
    rsa(session, 2048, &[3]).map(|_| true)
}

pub(crate) fn md5_signature(session: &Session) -> Result<bool> {
    let (_, private) = rsa(session, 2048, &[1, 0, 1])?;
    let signature = session.sign(&Mechanism::new(CKM_MD5_RSA_PKCS), private, b"message")?;
    Ok(signature.len() == 256)
}
