// SPDX-License-Identifier: Apache-2.0
//! Ciphers and key wrap.

use anyhow::{Context, Result, bail, ensure};
use metaslot_ck::*;
use metaslot_client::{Mechanism, MessageParams, Params, Session, Template, Way};

use crate::file::{Vector, Verdict};

/// A session key with `value`, which may do everything the ciphers need.
pub(crate) fn key(
    session: &Session,
    key_type: CK_KEY_TYPE,
    value: &[u8],
) -> metaslot_client::Result<ObjectHandle> {
    session.create(
        &Template::new()
            .class(CKO_SECRET_KEY)
            .key_type(key_type)
            .token(false)
            .bool(CKA_ENCRYPT, true)
            .bool(CKA_DECRYPT, true)
            .bool(CKA_WRAP, true)
            .bool(CKA_UNWRAP, true)
            .bool(CKA_SENSITIVE, false)
            .bool(CKA_EXTRACTABLE, true)
            .bytes(CKA_VALUE, value),
    )
}

/// The multi-part form of an encryption, cut in two at a third.
fn encrypt_in_parts(
    session: &Session,
    mechanism: &Mechanism<'_>,
    key: ObjectHandle,
    data: &[u8],
) -> metaslot_client::Result<Vec<u8>> {
    let (first, second) = data.split_at(data.len() / 3);
    session.encrypt_init(mechanism, key)?;
    let mut sealed = session.encrypt_update(first)?;
    sealed.extend(session.encrypt_update(second)?);
    sealed.extend(session.encrypt_final()?);
    Ok(sealed)
}

/// The multi-part form of a decryption, cut in two at a third.
fn decrypt_in_parts(
    session: &Session,
    mechanism: &Mechanism<'_>,
    key: ObjectHandle,
    data: &[u8],
) -> metaslot_client::Result<Vec<u8>> {
    let (first, second) = data.split_at(data.len() / 3);
    session.decrypt_init(mechanism, key)?;
    let mut opened = session.decrypt_update(first)?;
    opened.extend(session.decrypt_update(second)?);
    opened.extend(session.decrypt_final()?);
    Ok(opened)
}

/// Opens; and where that is right, seals to the same bytes, in one part and in several.
pub(crate) fn both_ways(
    session: &Session,
    mechanism: &Mechanism<'_>,
    key: ObjectHandle,
    plain: &[u8],
    sealed: &[u8],
) -> Verdict {
    let opened = Verdict::of(session.decrypt(mechanism, key, sealed), plain);
    let in_parts = Verdict::of(decrypt_in_parts(session, mechanism, key, sealed), plain);
    if opened.is_accepted() != in_parts.is_accepted() {
        return Verdict::Refused(format!("one part {opened:?}, several {in_parts:?}"));
    }
    if !opened.is_accepted() {
        return opened;
    }
    let one = Verdict::of(session.encrypt(mechanism, key, plain), sealed);
    if !one.is_accepted() {
        return one;
    }
    Verdict::of(encrypt_in_parts(session, mechanism, key, plain), sealed)
}

/// AES-GCM, AES-CCM, ChaCha20-Poly1305.
pub(crate) fn aead(session: &Session, vector: &Vector<'_>) -> Result<Verdict> {
    let (iv, aad) = (vector.bytes("iv")?, vector.bytes("aad")?);
    let plain = vector.bytes("msg")?;
    let (body, tag_bytes) = (vector.bytes("ct")?, vector.bytes("tag")?);
    let sealed = [&body[..], &tag_bytes].concat();
    let tag = vector.size("tagSize");
    let chacha = ["CHACHA20-POLY1305", "XCHACHA20-POLY1305"];
    let (mechanism, key_type) = if chacha.iter().any(|name| vector.is_file_of(name)) {
        let params = Params::ChaCha20Poly1305 { nonce: &iv, aad: &aad };
        (Mechanism::with(CKM_CHACHA20_POLY1305, params), CKK_CHACHA20)
    } else if vector.is_file_of("AES-GCM") {
        let params = Params::Gcm { iv: &iv, aad: &aad, tag_bits: tag as CK_ULONG * 8 };
        (Mechanism::with(CKM_AES_GCM, params), CKK_AES)
    } else {
        let params = Params::Ccm {
            data_length: plain.len() as CK_ULONG,
            nonce: &iv,
            aad: &aad,
            mac_length: tag as CK_ULONG,
        };
        (Mechanism::with(CKM_AES_CCM, params), CKK_AES)
    };
    let key = match key(session, key_type, &vector.bytes("key")?) {
        Ok(key) => key,
        Err(error) => return Ok(Verdict::Refused(error.to_string())),
    };
    let one = both_ways(session, &mechanism, key, &plain, &sealed);
    let bare = crate::bare(mechanism.number);
    let begun = [Way::Encrypt, Way::Decrypt].map(|way| session.message_init(way, &bare, key));
    let several = match begun {
        [Ok(()), Ok(())] => {
            let (number, iv, aad) = (mechanism.number, iv.clone(), aad.clone());
            Parts { number, iv, aad, plain, sealed: body, tag: tag_bytes }.judge(session)
        }
        begun => Verdict::Refused(format!("{begun:?}")),
    };
    session.destroy(key)?;
    Ok(alike(one, &several))
}

/// The same vector as a message of several, whole and in parts.
#[derive(Clone)]
struct Parts {
    number: CK_MECHANISM_TYPE,
    iv: Vec<u8>,
    aad: Vec<u8>,
    plain: Vec<u8>,
    sealed: Vec<u8>,
    tag: Vec<u8>,
}

impl Parts {
    /// Its parameter, once for each call.
    fn with<T>(&mut self, work: impl FnOnce(&mut MessageParams<'_>) -> T) -> T {
        let (iv, tag, generator) = (&mut self.iv, &mut self.tag, CKG_NO_GENERATE);
        let mut sixteen = [0; 16];
        if self.number != CKM_CHACHA20_POLY1305 {
            return work(&mut match self.number {
                CKM_AES_GCM => MessageParams::Gcm { iv, fixed_bits: 0, generator, tag },
                _ => {
                    let data_length = self.plain.len() as CK_ULONG;
                    MessageParams::Ccm {
                        data_length,
                        nonce: iv,
                        fixed_bits: 0,
                        generator,
                        mac: tag,
                    }
                }
            });
        }
        sixteen.copy_from_slice(tag);
        let done = work(&mut MessageParams::ChaCha20Poly1305 { nonce: iv, tag: &mut sixteen });
        tag.copy_from_slice(&sixteen);
        done
    }

    fn run(&mut self, session: &Session, way: Way) -> metaslot_client::Result<Vec<u8>> {
        let (aad, data) = (self.aad.clone(), self.input(way));
        self.with(|params| session.message(way, params, &aad, &data))
    }

    fn run_in_parts(&mut self, session: &Session, way: Way) -> metaslot_client::Result<Vec<u8>> {
        let (aad, data) = (self.aad.clone(), self.input(way));
        let (first, second) = data.split_at(data.len() / 3);
        self.with(|params| {
            session.message_begin(way, params, &aad)?;
            let mut out = session.message_next(way, params, first, 0)?;
            out.extend(session.message_next(way, params, second, CKF_END_OF_MESSAGE)?);
            Ok(out)
        })
    }

    fn input(&self, way: Way) -> Vec<u8> {
        if way == Way::Encrypt { self.plain.clone() } else { self.sealed.clone() }
    }

    /// Opens; and where that is right, seals to the same bytes and the same tag. What fails ends no more than itself, so
    /// all of it is done by one key that was chosen once.
    fn judge(mut self, session: &Session) -> Verdict {
        if self.number == CKM_CHACHA20_POLY1305 && self.tag.len() != 16 {
            return Verdict::Refused(String::from("its structure has no room for such a tag"));
        }
        let opened = Verdict::of(self.run(session, Way::Decrypt), &self.plain);
        let in_parts = Verdict::of(self.run_in_parts(session, Way::Decrypt), &self.plain);
        if opened.is_accepted() != in_parts.is_accepted() {
            return Verdict::Refused(format!("a message {opened:?}, one in parts {in_parts:?}"));
        }
        if !opened.is_accepted() {
            return opened;
        }
        let tag = std::mem::take(&mut self.tag);
        for run in [Self::run, Self::run_in_parts] {
            self.tag = vec![0; tag.len()];
            let sealed = Verdict::of(run(&mut self, session, Way::Encrypt), &self.sealed);
            if !sealed.is_accepted() || self.tag != tag {
                return Verdict::Refused(format!("a message {sealed:?}, its tag {:?}", self.tag));
            }
        }
        opened
    }
}

/// A vector's verdict, by the functions for one message and by those for several.
fn alike(one: Verdict, several: &Verdict) -> Verdict {
    match one.is_accepted() == several.is_accepted() {
        true => one,
        false => Verdict::Refused(format!("alone {one:?}, as one of several {several:?}")),
    }
}

/// Algorithm, mechanism and key type of CBC with padding.
const CHAINED: &[(&str, CK_MECHANISM_TYPE, CK_KEY_TYPE)] = &[
    ("AES-CBC-PKCS5", CKM_AES_CBC_PAD, CKK_AES),
    ("ARIA-CBC-PKCS5", CKM_ARIA_CBC_PAD, CKK_ARIA),
    ("CAMELLIA-CBC-PKCS5", CKM_CAMELLIA_CBC_PAD, CKK_CAMELLIA),
];

/// Unwraps a ciphertext as a key, and wraps that to the same: by what wraps as it encrypts.
pub(crate) fn wraps_alike(
    session: &Session,
    mechanism: &Mechanism<'_>,
    key: ObjectHandle,
    plain: &[u8],
    sealed: &[u8],
) -> Result<()> {
    let opened = session.unwrap(mechanism, key, sealed, &readable())?;
    ensure!(session.attribute(opened, CKA_VALUE)? == plain, "unwrapped otherwise");
    ensure!(session.wrap(mechanism, key, opened)? == sealed, "wrapped otherwise");
    Ok(session.destroy(opened)?)
}

/// A key whose value is to be seen.
fn readable() -> Template {
    Template::new()
        .class(CKO_SECRET_KEY)
        .key_type(CKK_GENERIC_SECRET)
        .token(false)
        .bool(CKA_SENSITIVE, false)
        .bool(CKA_EXTRACTABLE, true)
}

/// CBC with padding, and AES-XTS.
pub(crate) fn plain(session: &Session, vector: &Vector<'_>) -> Result<Verdict> {
    let mut iv = vector.bytes("iv")?;
    let (number, key_type) = if vector.is_file_of("AES-XTS") {
        if vector.size("keySize") == 48 {
            // Neither IEEE 1619 nor PKCS#11 has XTS with two keys of 192 bits.
            return Ok(Verdict::NotApplicable);
        }
        // The vectors give the number of the data unit in as few bytes as it needs.
        iv.resize(16, 0);
        (CKM_AES_XTS, CKK_AES_XTS)
    } else {
        let mut rows = CHAINED.iter().filter(|(name, ..)| vector.is_file_of(name));
        rows.next()
            .map(|(_, number, key_type)| (*number, *key_type))
            .context("an unknown cipher")?
    };
    let mechanism = Mechanism::with(number, Params::Bytes(&iv));
    let key = key(session, key_type, &vector.bytes("key")?)?;
    let (plain, sealed) = (vector.bytes("msg")?, vector.bytes("ct")?);
    let verdict = both_ways(session, &mechanism, key, &plain, &sealed);
    if number == CKM_AES_XTS && verdict.is_accepted() {
        wraps_alike(session, &mechanism, key, &plain, &sealed)?;
    }
    session.destroy(key)?;
    Ok(verdict)
}

/// AES key wrap, with and without padding.
pub(crate) fn key_wrap(session: &Session, vector: &Vector<'_>) -> Result<Verdict> {
    let number = match () {
        () if vector.is_file_of("AES-WRAP") => CKM_AES_KEY_WRAP,
        () if vector.is_file_of("AES-KWP") => CKM_AES_KEY_WRAP_KWP,
        () => bail!("an unknown wrap"),
    };
    let mechanism = crate::bare(number);
    let (plain, sealed) = (vector.bytes("msg")?, vector.bytes("ct")?);
    let wrapping = key(session, CKK_AES, &vector.bytes("key")?)?;
    let unwrapped = session.unwrap(&mechanism, wrapping, &sealed, &readable());
    let verdict = match unwrapped {
        Err(error) => Verdict::Refused(error.to_string()),
        Ok(opened) => {
            let value = Verdict::of(session.attribute(opened, CKA_VALUE), &plain);
            let again = Verdict::of(session.wrap(&mechanism, wrapping, opened), &sealed);
            session.destroy(opened)?;
            if value.is_accepted() { again } else { value }
        }
    };
    session.destroy(wrapping)?;
    Ok(verdict)
}
