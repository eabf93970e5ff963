// SPDX-License-Identifier: Apache-2.0
//! Whether a key that the token has is the one on its way. A label, an id and a type are no proof: two tokens have a key `site`
//! with the id 01. The public half is one, and for secret keys that both make the same of the same bytes.

use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Session};

/// Why a key does not come that may be here already.
pub(crate) const UNSEEN: &str =
    "a key of its name and id is here, and whether it is this one cannot be seen";

/// What a secret key may be asked to do, with the same result each time.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Encrypt,
    Decrypt,
    Sign,
}

const DEEDS: &[(CK_KEY_TYPE, Deed, CK_MECHANISM_TYPE, usize)] = &[
    (CKK_AES, Deed::Encrypt, CKM_AES_CBC, 16),
    (CKK_AES, Deed::Decrypt, CKM_AES_CBC, 16),
    (CKK_AES, Deed::Sign, CKM_AES_CMAC, 0),
    (CKK_DES3, Deed::Encrypt, CKM_DES3_CBC, 8),
    (CKK_DES3, Deed::Decrypt, CKM_DES3_CBC, 8),
    (CKK_DES, Deed::Decrypt, CKM_DES_CBC, 8),
    (CKK_RC4, Deed::Decrypt, CKM_RC4, 0),
    (CKK_GENERIC_SECRET, Deed::Sign, CKM_SHA256_HMAC, 0),
];

/// What is encrypted or signed: whole blocks of every cipher.
const BYTES: [u8; 32] = [0x5a; 32];

/// Whether a key is one of these, which are of its class and type; `None` where that cannot be seen.
pub(crate) fn among(session: &Session, key: ObjectHandle, others: &[ObjectHandle]) -> Option<bool> {
    let seen: Vec<Option<bool>> = others.iter().map(|other| same(session, key, *other)).collect();
    match seen.contains(&Some(true)) {
        true => Some(true),
        false => seen.iter().all(Option::is_some).then_some(false),
    }
}

fn same(session: &Session, one: ObjectHandle, other: ObjectHandle) -> Option<bool> {
    let number = |attribute| session.attribute_ulong(one, attribute).ok();
    if number(CKA_CLASS)? == CKO_PRIVATE_KEY {
        let public = |key| {
            let info = session.attribute(key, CKA_PUBLIC_KEY_INFO).ok();
            info.filter(|info| !info.is_empty())
        };
        return Some(public(one)? == public(other)?);
    }
    let key_type = number(CKA_KEY_TYPE)?;
    let deeds = DEEDS.iter().filter(|deed| deed.0 == key_type);
    let by_deed = deeds.into_iter().find_map(|(_, deed, number, iv)| {
        let iv = vec![0; *iv];
        let done = |key| done(session, *deed, *number, &iv, key);
        Some(done(one)? == done(other)?)
    });
    by_deed.or_else(|| Some(digest(session, one)? == digest(session, other)?))
}

/// Of a key whose value may be read: whatever it may be used for.
fn digest(session: &Session, key: ObjectHandle) -> Option<Vec<u8>> {
    session.digest_init(&Mechanism::new(CKM_SHA256)).ok()?;
    session.digest_key(key).ok()?;
    session.digest_final().ok()
}

fn done(
    session: &Session,
    deed: Deed,
    number: CK_MECHANISM_TYPE,
    iv: &[u8],
    key: ObjectHandle,
) -> Option<Vec<u8>> {
    let params = if iv.is_empty() { Params::None } else { Params::Bytes(iv) };
    let mechanism = Mechanism::with(number, params);
    let done = match deed {
        Deed::Encrypt => session.encrypt(&mechanism, key, &BYTES),
        Deed::Decrypt => session.decrypt(&mechanism, key, &BYTES),
        Deed::Sign => session.sign(&mechanism, key, &BYTES),
    };
    done.ok()
}
