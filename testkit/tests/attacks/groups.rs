// SPDX-License-Identifier: Apache-2.0
//! Groups that anybody may have made, signatures of DSA, and what the keys of TLS give away.

use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Result, Session, Template};

use crate::classics::is_known;
use crate::{readable, target};

/// A prime of 512 bits, the order of a subgroup, and its base: logarithms there are found in a day.
const PRIME: &str = "fca682ce8e12caba26efccf7110e526db078b05edecbcd1eb4a208f3ae1617ae01f35b91a47e6df63413c5e12ed0899bcd132acd50d99151bdc43ee737592e17";
const ORDER: &str = "962eddcc369cba8ebb260ee6b6a126d9346e38c5";
const BASE: &str = "678471b27a9cf44ee91a49c5147db1a9aaf244f05a434d6486931d2d14271b9e35030b71fd73da179069b32e2935630e1c2062354d0da20a6c416e50be794ca4";

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok();
    digits.filter_map(byte).collect()
}

fn private(key_type: CK_KEY_TYPE) -> Template {
    Template::new()
        .class(CKO_PRIVATE_KEY)
        .key_type(key_type)
        .token(false)
        .bytes(CKA_PRIME, bytes(PRIME))
        .bytes(CKA_BASE, bytes(BASE))
        .bytes(CKA_VALUE, [5; 18])
}

/// A secret is agreed on in a small group.
pub(crate) fn small_group(session: &Session) -> Result<bool> {
    let key = session.create(&private(CKK_DH).bool(CKA_DERIVE, true))?;
    let public = bytes(BASE);
    let agree = Mechanism::with(CKM_DH_PKCS_DERIVE, Params::Bytes(&public));
    let secret = session.derive(&agree, key, &readable())?;
    Ok(session.attribute(secret, CKA_VALUE)?.len() == 64)
}

/// A new pair is made in a small group.
pub(crate) fn new_pair_in_a_small_group(session: &Session) -> Result<bool> {
    let public = Template::new().token(false).bytes(CKA_PRIME, bytes(PRIME));
    let public = public.bytes(CKA_BASE, bytes(BASE)).bytes(CKA_SUBPRIME, bytes(ORDER));
    let private = Template::new().token(false);
    session.generate_key_pair(&CKM_X9_42_DH_KEY_PAIR_GEN.into(), &public, &private).map(|_| true)
}

/// Something new is signed by DSA.
pub(crate) fn dsa(session: &Session) -> Result<bool> {
    let key = private(CKK_DSA).bytes(CKA_SUBPRIME, bytes(ORDER)).bool(CKA_SIGN, true);
    let signature = session.sign(&CKM_DSA_SHA256.into(), session.create(&key)?, b"new")?;
    Ok(signature.len() == 40)
}

fn pointer(of: &mut [u8]) -> u64 {
    of.as_mut_ptr().expose_provenance() as u64
}

/// `CKM_TLS12_KEY_AND_MAC_DERIVE` with keys and IVs of so many bytes: the server's key, and the client's IV.
fn connection(
    session: &Session,
    base: ObjectHandle,
    key: u64,
    iv: u64,
) -> Result<(ObjectHandle, [u8; 32])> {
    let (mut random, mut client, mut server) = ([7; 32], [0; 32], [0; 32]);
    let mut out = [0; 48];
    out[32..40].copy_from_slice(&pointer(&mut client).to_ne_bytes());
    out[40..].copy_from_slice(&pointer(&mut server).to_ne_bytes());
    let at = pointer(&mut random);
    let words = [0, 8 * key, 8 * iv, 0, at, 32, at, 32, pointer(&mut out), CKM_SHA256];
    let params: Vec<u8> = words.into_iter().flat_map(u64::to_ne_bytes).collect();
    let mechanism = Mechanism::with(CKM_TLS12_KEY_AND_MAC_DERIVE, Params::Bytes(&params));
    let template = Template::new().key_type(CKK_GENERIC_SECRET).token(false).bool(CKA_SIGN, true);
    session.derive(&mechanism, base, &template)?;
    let mut handle = [0; 8];
    handle.copy_from_slice(&out[24..32]);
    Ok((ObjectHandle(u64::from_ne_bytes(handle)), client))
}

/// The bytes that are a key of one connection are an IV of another.
pub(crate) fn keys_as_ivs(session: &Session) -> Result<bool> {
    let base = target(session)?;
    let (_, iv) = connection(session, base, 1, 32)?;
    let (key, _) = connection(session, base, 17, 0)?;
    // Of the bytes of both, the IV has 2 to 34, and the server's key is 17 to 34.
    is_known(session, key, &iv[15..])
}

/// A connection of TLS 1.0 gets its secret.
pub(crate) fn old_tls(session: &Session) -> Result<bool> {
    let mut random = [7; 32];
    let at = pointer(&mut random);
    let params: Vec<u8> = [at, 32, at, 32, 0].into_iter().flat_map(u64::to_ne_bytes).collect();
    let mechanism = Mechanism::with(CKM_TLS_MASTER_KEY_DERIVE_DH, Params::Bytes(&params));
    let base = readable().bool(CKA_DERIVE, true).bytes(CKA_VALUE, [3; 48]);
    let made = session.derive(&mechanism, session.create(&base)?, &readable())?;
    Ok(session.attribute(made, CKA_VALUE)?.len() == 48)
}
