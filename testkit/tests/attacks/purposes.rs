// SPDX-License-Identifier: Apache-2.0
//! Ways from a key that has one purpose to its value, by another.

use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Result, Session, Template, Value};

use crate::field::Element;
use crate::{SECRET, aes, readable, secret, target, with_roles};

const KWP: Mechanism<'static> = Mechanism::new(CKM_AES_KEY_WRAP_KWP);
const HMAC: Mechanism<'static> = Mechanism::new(CKM_SHA256_HMAC);

const fn gcm() -> Mechanism<'static> {
    Mechanism::with(CKM_AES_GCM, Params::Gcm { iv: &[7; 12], aad: &[], tag_bits: 128 })
}

const fn oaep() -> Mechanism<'static> {
    let params = Params::Oaep { hash: CKM_SHA256, mgf: CKG_MGF1_SHA256, label: &[] };
    Mechanism::with(CKM_RSA_PKCS_OAEP, params)
}

pub(crate) const fn hkdf(
    extract: bool,
    expand: bool,
    salt_key: ObjectHandle,
) -> Mechanism<'static> {
    let salt_type = if salt_key.0 == 0 { CKF_HKDF_SALT_NULL } else { CKF_HKDF_SALT_KEY };
    let params = Params::Hkdf {
        extract,
        expand,
        prf: CKM_SHA256,
        salt_type,
        salt: &[],
        salt_key,
        info: b"attack",
    };
    Mechanism::with(CKM_HKDF_DERIVE, params)
}

/// The input of the first block that HKDF expands with `hkdf`'s context.
const BLOCK: &[u8] = b"attack\x01";
const NO_KEY: ObjectHandle = ObjectHandle(0);

fn known(session: &Session, value: &[u8], roles: &[CK_ATTRIBUTE_TYPE]) -> Result<ObjectHandle> {
    session.create(&with_roles(readable(), roles).bytes(CKA_VALUE, value))
}

fn rsa(session: &Session, usages: &[CK_ATTRIBUTE_TYPE]) -> Result<(ObjectHandle, ObjectHandle)> {
    let public = Template::new()
        .token(false)
        .bool(CKA_WRAP, usages.contains(&CKA_UNWRAP))
        .ulong(CKA_MODULUS_BITS, 2048)
        .bytes(CKA_PUBLIC_EXPONENT, [1, 0, 1]);
    let private = [CKA_SIGN, CKA_DECRYPT, CKA_UNWRAP]
        .into_iter()
        .fold(Template::new().token(false).bool(CKA_EXTRACTABLE, true), |template, usage| {
            template.bool(usage, usages.contains(&usage))
        });
    session.generate_key_pair(&Mechanism::new(CKM_RSA_PKCS_KEY_PAIR_GEN), &public, &private)
}

/// A derivation key of the token's own, which may also do what `roles` says.
fn base(session: &Session, roles: &[CK_ATTRIBUTE_TYPE]) -> Result<ObjectHandle> {
    let template = Template::new()
        .token(false)
        .ulong(CKA_VALUE_LEN, 32)
        .bool(CKA_SENSITIVE, true)
        .bool(CKA_EXTRACTABLE, false);
    let mechanism = Mechanism::new(CKM_GENERIC_SECRET_KEY_GEN);
    session.generate_key(&mechanism, &with_roles(template, roles))
}

fn derived(session: &Session, by: &Mechanism<'_>, base: ObjectHandle) -> Result<ObjectHandle> {
    let template = Template::new()
        .class(CKO_SECRET_KEY)
        .key_type(CKK_GENERIC_SECRET)
        .token(false)
        .bool(CKA_SENSITIVE, true)
        .ulong(CKA_VALUE_LEN, 32);
    session.derive(by, base, &with_roles(template, &[CKA_SIGN]))
}

/// Whether `value` is the value of `key`, which signs.
fn is_value(session: &Session, key: ObjectHandle, value: &[u8]) -> Result<bool> {
    let copy = known(session, value, &[CKA_SIGN])?;
    Ok(session.sign(&HMAC, key, b"message")? == session.sign(&HMAC, copy, b"message")?)
}

/// A known key and the target under one key and one IV: their difference gives the target.
pub(crate) fn one_iv_for_two(session: &Session) -> Result<bool> {
    let by = aes(session, &[CKA_WRAP])?;
    let one = session.wrap(&gcm(), by, known(session, &[0; 32], &[])?)?;
    let other = session.wrap(&gcm(), by, target(session)?)?;
    let difference = one.iter().zip(&other).take(32).map(|(one, other)| one ^ other);
    Ok(difference.eq(SECRET.iter().copied()))
}

/// A raw signature is a decryption.
pub(crate) fn wrap_opened_by_signature(session: &Session) -> Result<bool> {
    let (public, private) = rsa(session, &[CKA_UNWRAP, CKA_SIGN])?;
    let wrapped = session.wrap(&oaep(), public, target(session)?)?;
    let encoded = session.sign(&Mechanism::new(CKM_RSA_X_509), private, &wrapped)?;
    // What is left is EME-OAEP, which has no secret (RFC 8017 §7.1.2).
    Ok(encoded.len() == 256 && encoded[0] == 0)
}

/// Two tags of GMAC under one IV give the hash key; with it the attacker chooses IVs whose tags are
/// the key stream of a wrap (A. Joux, "Authentication Failures in NIST version of GCM", 2006).
pub(crate) fn wrapping_key_signs(session: &Session) -> Result<bool> {
    let by = aes(session, &[CKA_WRAP, CKA_SIGN])?;
    let wrapped = session.wrap(&gcm(), by, target(session)?)?;
    let tag = |iv: &[u8], data: &[u8]| {
        let params = Params::Gcm { iv, aad: &[], tag_bits: 128 };
        session.sign(&Mechanism::with(CKM_AES_GMAC, params), by, data)
    };
    let (one, zero) = (tag(&[9; 12], &Element::ONE.bytes())?, tag(&[9; 12], &[0; 16])?);
    let square = Element::of(&one).plus(Element::of(&zero));
    let hash_key = square.root();
    // The counter block of an IV of 16 bytes is iv · H² + length · H.
    let length = Element::of(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128]);
    let mut opened = Vec::new();
    for (count, block) in (2..).zip(wrapped[..32].chunks(16)) {
        let mut counter = [7; 16];
        counter[12..].copy_from_slice(&u32::to_be_bytes(count));
        let wanted = Element::of(&counter).plus(length.times(hash_key));
        let iv = wanted.times(square.inverse());
        // The tag of no data is the key stream, for the sum over no data is 0.
        let stream = tag(&iv.bytes(), &[])?;
        opened.extend(block.iter().zip(stream).map(|(byte, stream)| byte ^ stream));
    }
    Ok(opened == SECRET)
}

/// A key is unwrapped as keys of growing length, by a form that does not say how long it is: a MAC at each gives one byte more.
pub(crate) fn growing_pieces(session: &Session) -> Result<bool> {
    let by = aes(session, &[CKA_WRAP, CKA_UNWRAP])?;
    let key = protected(session, CKA_SIGN)?;
    let ecb = Mechanism::new(CKM_AES_ECB);
    let wrapped = session.wrap(&ecb, by, key)?;
    let mut found = Vec::new();
    for length in 1..=32 {
        let template = secret(true).bool(CKA_SIGN, true).ulong(CKA_VALUE_LEN, length);
        let piece = session.unwrap(&ecb, by, &wrapped, &template)?;
        let mac = session.sign(&HMAC, piece, b"message")?;
        for guess in 0..=u8::MAX {
            found.push(guess);
            let copy = known(session, &found, &[CKA_SIGN])?;
            let same = session.sign(&HMAC, copy, b"message")? == mac;
            session.destroy(copy)?;
            if same {
                break;
            }
            found.pop();
        }
    }
    let copy = known(session, &found, &[CKA_SIGN])?;
    Ok(session.sign(&HMAC, copy, b"message")? == session.sign(&HMAC, key, b"message")?)
}

/// A secret key that may leave, wrapped, and has one use.
fn protected(session: &Session, usage: CK_ATTRIBUTE_TYPE) -> Result<ObjectHandle> {
    let template = Template::new()
        .token(false)
        .ulong(CKA_VALUE_LEN, 32)
        .bool(CKA_SENSITIVE, true)
        .bool(CKA_EXTRACTABLE, true);
    let generate = Mechanism::new(CKM_GENERIC_SECRET_KEY_GEN);
    session.generate_key(&generate, &with_roles(template, &[usage]))
}

/// Out and in again: a key that may only verify comes back as one that signs.
pub(crate) fn usages_by_rewrapping(session: &Session) -> Result<bool> {
    let by = aes(session, &[CKA_WRAP, CKA_UNWRAP])?;
    let key = protected(session, CKA_VERIFY)?;
    let wrapped = session.wrap(&KWP, by, key)?;
    let back = session.unwrap(&KWP, by, &wrapped, &secret(true).bool(CKA_SIGN, true))?;
    let forged = session.sign(&HMAC, back, b"message")?;
    session.verify(&HMAC, key, b"message", &forged)?;
    Ok(true)
}

/// A MAC with the base key computes what is derived from it.
pub(crate) fn base_key_signs(session: &Session) -> Result<bool> {
    let base = base(session, &[CKA_DERIVE, CKA_SIGN])?;
    let key = derived(session, &hkdf(false, true, NO_KEY), base)?;
    let value = session.sign(&HMAC, base, BLOCK)?;
    is_value(session, key, &value)
}

/// So does the extract step with the base key as salt.
pub(crate) fn base_key_is_salt(session: &Session) -> Result<bool> {
    let base = base(session, &[CKA_DERIVE])?;
    let key = derived(session, &hkdf(false, true, NO_KEY), base)?;
    let input = known(session, BLOCK, &[CKA_DERIVE])?;
    let template = readable().ulong(CKA_VALUE_LEN, 32);
    let copy = session.derive(&hkdf(true, false, base), input, &template)?;
    let value = session.attribute(copy, CKA_VALUE)?;
    is_value(session, key, &value)
}

/// What is extracted and expanded in one step is computed from what is extracted alone.
pub(crate) fn extracted_key_signs(session: &Session) -> Result<bool> {
    let base = base(session, &[CKA_DERIVE])?;
    let key = derived(session, &hkdf(true, true, NO_KEY), base)?;
    let extracted = derived(session, &hkdf(true, false, NO_KEY), base)?;
    let value = session.sign(&HMAC, extracted, BLOCK)?;
    is_value(session, key, &value)
}

/// The inner hash of the extract step, over a base key of whole blocks, by digesting the key.
pub(crate) fn base_key_is_digested(session: &Session) -> Result<bool> {
    let base = base(session, &[CKA_DERIVE])?;
    session.digest_init(&Mechanism::new(CKM_SHA256))?;
    session.digest_update(&[0x36; 64])?;
    session.digest_key(base)?;
    let inner = session.digest_final()?;
    let outer = [&[0x5c; 64][..], &inner].concat();
    let extracted = session.digest(&Mechanism::new(CKM_SHA256), &outer)?;
    let key = derived(session, &hkdf(true, true, NO_KEY), base)?;
    let copy = known(session, &extracted, &[CKA_SIGN])?;
    let value = session.sign(&HMAC, copy, BLOCK)?;
    is_value(session, key, &value)
}

/// SHA-3 adds what it takes to its state, and an HMAC adds its pads to the key: a state that holds a
/// pad makes the digest of a key that may only verify a MAC (FIPS 202 §4, RFC 2104 §2).
pub(crate) fn forged_state_signs(session: &Session) -> Result<bool> {
    /// Of SHA3-256, in bytes.
    const BLOCK: usize = 136;
    let key = session.create(&with_roles(secret(true), &[CKA_VERIFY]).bytes(CKA_VALUE, SECRET))?;
    session.digest_init(&Mechanism::new(CKM_SHA3_256))?;
    let state = session.operation_state()?;
    session.digest_final()?;
    let begins = state.len() - 201;
    let keyed = |pad: u8, data: &[u8]| {
        let mut state = state.clone();
        state[begins..begins + BLOCK].fill(pad);
        session.set_operation_state(&state, NO_KEY, NO_KEY)?;
        session.digest_key(key)?;
        session.digest_update(&[0; BLOCK - SECRET.len()])?;
        session.digest_update(data)?;
        session.digest_final()
    };
    let forged = keyed(0x5c, &keyed(0x36, b"message")?)?;
    session.verify(&Mechanism::new(CKM_SHA3_256_HMAC), key, b"message", &forged)?;
    Ok(true)
}

/// A derived key is long and no harder to guess than its short base.
pub(crate) fn wrapped_by_a_derivative(session: &Session) -> Result<bool> {
    let imposed = Template::new().bool(CKA_WRAP, true).bool(CKA_SENSITIVE, true);
    let base = with_roles(Template::new().token(false).ulong(CKA_VALUE_LEN, 16), &[CKA_DERIVE])
        .with(CKA_DERIVE_TEMPLATE, Value::Template(imposed.bool(CKA_EXTRACTABLE, false)));
    let base = session.generate_key(&Mechanism::new(CKM_GENERIC_SECRET_KEY_GEN), &base)?;
    let by = Template::new().key_type(CKK_AES).token(false).ulong(CKA_VALUE_LEN, 32);
    let by = session.derive(&hkdf(false, true, NO_KEY), base, &by)?;
    let long = session.create(&secret(true).bytes(CKA_VALUE, SECRET))?;
    session.wrap(&KWP, by, long).map(|_| true)
}
