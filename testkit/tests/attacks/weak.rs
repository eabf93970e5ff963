// SPDX-License-Identifier: Apache-2.0
//! New things made with broken cryptography.

use anyhow::ensure;
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

pub(crate) fn national(session: &Session) -> Result<bool> {
    let mechanism = Mechanism::with(CKM_CAMELLIA_CBC, Params::Bytes(&[0; 16]));
    let key = old_key(session, CKK_CAMELLIA, 32)?;
    Ok(session.encrypt(&mechanism, key, &[0; 16])?.len() == 16)
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

fn pss(hash: CK_MECHANISM_TYPE, salt_length: u64) -> Mechanism<'static> {
    Mechanism::with(CKM_RSA_PKCS_PSS, Params::Pss { hash, mgf: CKG_MGF1_SHA256, salt_length })
}

pub(crate) fn md5_pss(session: &Session) -> Result<bool> {
    let (_, private) = rsa(session, 2048, &[1, 0, 1])?;
    Ok(session.sign(&pss(CKM_MD5, 16), private, &[0; 16])?.len() == 256)
}

/// Under `fips`, what parameters name is a mechanism, too.
pub(crate) fn parameters_name_what_is_not_approved(session: &Session) -> anyhow::Result<()> {
    let (public, private) = rsa(session, 2048, &[1, 0, 1])?;
    let base = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET).token(false);
    let base = session.create(&base.bool(CKA_DERIVE, true).bytes(CKA_VALUE, [1; 32]))?;
    for (hash, length) in [(CKM_SHA256, 32_u8), (CKM_SHA_1, 20), (CKM_MD5, 16)] {
        let data = vec![0; usize::from(length)];
        let signed = session.sign(&pss(hash, length.into()), private, &data);
        ensure!(signed.is_ok() == (hash == CKM_SHA256), "PSS over {hash:#x}");
        let params = Params::Oaep { hash, mgf: CKG_MGF1_SHA256, label: b"" };
        let sealed = session.encrypt(&Mechanism::with(CKM_RSA_PKCS_OAEP, params), public, b"data");
        let (extract, expand, salt_type) = (true, true, CKF_HKDF_SALT_NULL);
        let (salt_key, info, prf) = (ObjectHandle(0), &b"info"[..], hash);
        let params = Params::Hkdf { extract, expand, prf, salt_type, salt: &[], salt_key, info };
        let key = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET).token(false);
        let key = key.ulong(CKA_VALUE_LEN, 32);
        let derived = session.derive(&Mechanism::with(CKM_HKDF_DERIVE, params), base, &key);
        let approved = hash != CKM_MD5;
        ensure!(sealed.is_ok() == approved && derived.is_ok() == approved, "{hash:#x}");
    }
    Ok(())
}
