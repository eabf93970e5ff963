// SPDX-License-Identifier: Apache-2.0
//! What the mechanisms of one step, and the keys that travel with others, give away.

use anyhow::ensure;
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Result, Session, Template, Value};

use crate::{SECRET, readable, secret, target, with_roles};

const HMAC: Mechanism<'static> = Mechanism::new(CKM_SHA256_HMAC);

/// `CK_KEY_DERIVATION_STRING_DATA`
fn string(data: &[u8]) -> [u8; 16] {
    let mut words = [0; 16];
    words[..8].copy_from_slice(&data.as_ptr().expose_provenance().to_ne_bytes());
    words[8..].copy_from_slice(&data.len().to_ne_bytes());
    words
}

/// `CK_RSA_PKCS_OAEP_PARAMS` with SHA-256.
fn oaep() -> [u64; 5] {
    [CKM_SHA256, CKG_MGF1_SHA256, CKZ_DATA_SPECIFIED, 0, 0]
}

/// `CK_RSA_AES_KEY_WRAP_PARAMS` with AES-256.
fn rsa_aes(oaep: &[u64; 5]) -> [u8; 16] {
    let mut words = [0; 16];
    words[..8].copy_from_slice(&256_u64.to_ne_bytes());
    words[8..].copy_from_slice(&oaep.as_ptr().expose_provenance().to_ne_bytes());
    words
}

/// A sensitive AES key.
fn aes() -> Template {
    Template::new()
        .class(CKO_SECRET_KEY)
        .key_type(CKK_AES)
        .token(false)
        .bool(CKA_SENSITIVE, true)
        .bool(CKA_EXTRACTABLE, true)
}

fn pair(session: &Session, private: Template) -> Result<(ObjectHandle, ObjectHandle)> {
    let public = Template::new()
        .token(false)
        .bool(CKA_WRAP, true)
        .ulong(CKA_MODULUS_BITS, 2048)
        .bytes(CKA_PUBLIC_EXPONENT, [1, 0, 1]);
    let private = private.token(false).bool(CKA_UNWRAP, true);
    session.generate_key_pair(&CKM_RSA_PKCS_KEY_PAIR_GEN.into(), &public, &private)
}

/// The AES key that goes along comes back by OAEP alone, as one that decrypts.
pub(crate) fn transport_key_is_opened(session: &Session) -> Result<bool> {
    let (public, private) = pair(session, Template::new())?;
    let hash = oaep();
    let params = rsa_aes(&hash);
    let wrap = Mechanism::with(CKM_RSA_AES_KEY_WRAP, Params::Bytes(&params));
    // Without restrictions, so that only the mechanism can be the reason for a refusal.
    let plain = session.create(&secret(true).bytes(CKA_VALUE, SECRET))?;
    let wrapped = session.wrap(&wrap, public, plain)?;
    let (head, sealed) = wrapped.split_at(256);
    let params = Params::Oaep { hash: CKM_SHA256, mgf: CKG_MGF1_SHA256, label: &[] };
    let template = with_roles(aes(), &[CKA_DECRYPT]);
    let opening = Mechanism::with(CKM_RSA_PKCS_OAEP, params);
    let transport = session.unwrap(&opening, private, head, &template)?;
    Ok(session.decrypt(&CKM_AES_KEY_WRAP_KWP.into(), transport, sealed)? == SECRET)
}

/// One byte after the other becomes a key that is guessed.
pub(crate) fn extracted_byte(session: &Session) -> Result<bool> {
    let mechanism = Mechanism::with(CKM_EXTRACT_KEY_FROM_KEY, Params::Ulong(8));
    let template = secret(true).bool(CKA_SIGN, true).ulong(CKA_VALUE_LEN, 1);
    let derived = session.derive(&mechanism, target(session)?, &template)?;
    is_known(session, derived, &SECRET[1..2])
}

/// A key under another mask, or beside known bytes, is related to itself.
pub(crate) fn masked_key(session: &Session) -> Result<bool> {
    let zeros = [0; 32];
    let params = string(&zeros);
    let mechanism = Mechanism::with(CKM_XOR_BASE_AND_DATA, Params::Bytes(&params));
    let template = secret(true).bool(CKA_SIGN, true);
    let derived = session.derive(&mechanism, target(session)?, &template)?;
    is_known(session, derived, SECRET)
}

/// What the key encrypts becomes a key that is read: so the attacker encrypts by a key that is not for that.
pub(crate) fn encrypted_data_is_read(session: &Session) -> Result<bool> {
    let data = [9; 32];
    let params = string(&data);
    let mechanism = Mechanism::with(CKM_AES_ECB_ENCRYPT_DATA, Params::Bytes(&params));
    let base = with_roles(aes(), &[CKA_DERIVE]).bytes(CKA_VALUE, SECRET);
    let base = session.create(&base)?;
    let derived = session.derive(&mechanism, base, &readable())?;
    Ok(session.attribute(derived, CKA_VALUE)?.len() == 32)
}

/// The digest of a base key becomes a key that is read.
pub(crate) fn digested_key_is_read(session: &Session) -> Result<bool> {
    let mechanism = Mechanism::new(CKM_SHA256_KEY_DERIVATION);
    let derived = session.derive(&mechanism, target(session)?, &readable())?;
    Ok(session.attribute(derived, CKA_VALUE)?.len() == 32)
}

/// Of a key longer than 16 bytes an HMAC with MD2 uses the digest (RFC 2104 §2): it makes MACs for a key that only verifies.
pub(crate) fn digest_is_the_key_of_hmac_md2(session: &Session) -> Result<bool> {
    let key = session.create(&with_roles(secret(true), &[CKA_VERIFY]).bytes(CKA_VALUE, SECRET))?;
    session.digest_init(&Mechanism::new(CKM_MD2))?;
    session.digest_key(key)?;
    let digest = session.digest_final()?;
    let keyed = |pad: u8, data: &[u8]| {
        let padded: Vec<u8> = digest.iter().map(|byte| byte ^ pad).collect();
        session.digest(&Mechanism::new(CKM_MD2), &[&padded, data].concat())
    };
    let forged = keyed(0x5c, &keyed(0x36, b"message")?)?;
    session.verify(&Mechanism::new(CKM_MD2_HMAC), key, b"message", &forged)?;
    Ok(true)
}

/// A MAC of SSL 3.0 is the digest of the key, 0x5c and the digest of the key, 0x36 and the message (RFC 6101 §5.2.3.1).
pub(crate) fn digests_are_macs(session: &Session) -> Result<bool> {
    let key = session.create(&with_roles(secret(true), &[CKA_VERIFY]).bytes(CKA_VALUE, SECRET))?;
    for (hash, mac, pad) in [(CKM_MD5, CKM_SSL3_MD5_MAC, 48), (CKM_SHA_1, CKM_SSL3_SHA1_MAC, 40)] {
        let digest = |byte: u8, data: &[u8]| {
            session.digest_init(&Mechanism::new(hash))?;
            session.digest_key(key)?;
            session.digest_update(&vec![byte; pad])?;
            session.digest_update(data)?;
            session.digest_final()
        };
        let forged = digest(0x5c, &digest(0x36, b"message")?)?;
        let length = Params::Ulong(forged.len() as u64);
        session.verify(&Mechanism::with(mac, length), key, b"message", &forged)?;
    }
    Ok(true)
}

/// Two MACs by one key of Poly1305 give r, and then s.
pub(crate) fn two_macs_of_poly1305(session: &Session) -> Result<bool> {
    let template = with_roles(Template::new(), &[CKA_SIGN]).token(false).bool(CKA_SENSITIVE, true);
    let key = session.generate_key(&CKM_POLY1305_KEY_GEN.into(), &template)?;
    let mac = |message: &[u8]| session.sign(&CKM_POLY1305.into(), key, message);
    let number =
        |tag: Vec<u8>| tag.iter().rev().fold(0_u128, |all, byte| all << 8 | u128::from(*byte));
    // Of one block m the MAC is m · r + s: the MACs of two that differ by 1 differ by r.
    let (one, other) = (number(mac(&[1; 16])?), number(mac(&[&[2][..], &[1; 15]].concat())?));
    let difference = other.wrapping_sub(one);
    // Some bits of r are zero (RFC 8439 §2.5); 2¹³⁰ − 5 may have been taken off one of the two.
    let is_r = |number: u128| number & !0x0fff_fffc_0fff_fffc_0fff_fffc_0fff_ffff == 0;
    Ok(is_r(difference) || is_r(difference.wrapping_sub(5)))
}

/// Whether `value` is the value of `key`, which signs.
pub(crate) fn is_known(session: &Session, key: ObjectHandle, value: &[u8]) -> Result<bool> {
    let copy = session.create(&readable().bool(CKA_SIGN, true).bytes(CKA_VALUE, value))?;
    Ok(session.sign(&HMAC, key, b"message")? == session.sign(&HMAC, copy, b"message")?)
}

/// What holds a sensitive key, whole or in part, is as sensitive (PKCS#11 3.2 §6.43).
pub(crate) fn results_are_as_secret(session: &Session) -> anyhow::Result<()> {
    let data = [1; 32];
    let (text, open) = (string(&data), readable().bool(CKA_DERIVE, true).bytes(CKA_VALUE, [2; 32]));
    let (kept, open) = (target(session)?, session.create(&open)?);
    // CK_IKE1_EXTENDED_DERIVE_PARAMS with nothing to extend by: a part of the key is what comes out.
    let nothing: Vec<u8> =
        [CKM_SHA256_HMAC, 0, 0, 0, 0].into_iter().flat_map(u64::to_ne_bytes).collect();
    let (kept_word, open_word) = (kept.0.to_ne_bytes(), open.0.to_ne_bytes());
    for (number, params, base) in [
        (CKM_CONCATENATE_BASE_AND_KEY, Params::Bytes(&open_word), kept),
        (CKM_CONCATENATE_BASE_AND_KEY, Params::Bytes(&kept_word), open),
        (CKM_CONCATENATE_BASE_AND_DATA, Params::Bytes(&text), kept),
        (CKM_CONCATENATE_DATA_AND_BASE, Params::Bytes(&text), kept),
        (CKM_XOR_BASE_AND_DATA, Params::Bytes(&text), kept),
        (CKM_EXTRACT_KEY_FROM_KEY, Params::Ulong(3), kept),
        (CKM_IKE1_EXTENDED_DERIVE, Params::Bytes(&nothing), kept),
    ] {
        let mechanism = Mechanism::with(number, params);
        let length = readable().ulong(CKA_VALUE_LEN, 16);
        let refused = session.derive(&mechanism, base, &length);
        ensure!(refused.is_err(), "{number:#x}: a readable key came out");
        let silent = Template::new().class(CKO_SECRET_KEY).token(false).ulong(CKA_VALUE_LEN, 16);
        let derived = session.derive(&mechanism, base, &silent)?;
        let sensitive = session.attribute(derived, CKA_SENSITIVE)?;
        ensure!(sensitive == [1], "{number:#x}: not sensitive");
    }
    Ok(())
}

/// A protected key opens what comes under RSA and AES where OAEP does not open the AES key alone, and nothing leaves so
/// under a pair that was made here.
pub(crate) fn transport_under_default(session: &Session) -> anyhow::Result<()> {
    let hash = oaep();
    let params = rsa_aes(&hash);
    let wrap = Mechanism::with(CKM_RSA_AES_KEY_WRAP, Params::Bytes(&params));
    let open = session.create(&readable().bytes(CKA_VALUE, SECRET))?;
    let own = Template::new().bool(CKA_SENSITIVE, true).bool(CKA_EXTRACTABLE, false);
    let only =
        own.clone().with(CKA_ALLOWED_MECHANISMS, Value::Mechanisms(vec![CKM_RSA_AES_KEY_WRAP]));
    for (private, opens) in [(own, false), (only, true)] {
        let (public, private) = pair(session, private)?;
        let wrapped = session.wrap(&wrap, public, open)?;
        let template = secret(true).bool(CKA_SIGN, true);
        let opened = session.unwrap(&wrap, private, &wrapped, &template);
        ensure!(opened.is_ok() == opens, "{opened:?}");
        if let Ok(opened) = opened {
            ensure!(is_known(session, opened, SECRET)?, "another value");
        }
    }
    Ok(())
}
