// SPDX-License-Identifier: Apache-2.0
//! One datum, every way: in one call, and in parts with cuts that differ from vector to vector.
#![allow(dead_code, reason = "each test binary uses its part")]

use super::common::algorithm;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Cipher, Direction, Keys};
use metaslot_spi::{Attributes, Key, Material, Params, Secrets, Value};
use std::sync::Arc;

/// A secret key.
pub(crate) fn secret_key(key_type: u64, value: &[u8]) -> Arc<Key> {
    let attributes: Attributes = [
        (CKA_CLASS, Value::Ulong(CKO_SECRET_KEY)),
        (CKA_KEY_TYPE, Value::Ulong(key_type)),
        (CKA_VALUE_LEN, Value::Ulong(value.len() as u64)),
    ]
    .into_iter()
    .collect();
    let mut secrets = Secrets::new();
    secrets.set(CKA_VALUE, Secret::copy_of(value));
    Arc::new(Key::new(Arc::new(attributes), Arc::new(Material::new(secrets))))
}

/// Cuts `data` into parts of lengths that depend on it, some empty.
pub(crate) fn parts(data: &[u8]) -> Vec<&[u8]> {
    let mut state = data.iter().fold(data.len() as u64 + 1, |state, byte| {
        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(u64::from(*byte) + 1)
    });
    let (mut rest, mut parts) = (data, Vec::new());
    while !rest.is_empty() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let wanted = usize::try_from(state >> 33).unwrap() % 40;
        let (part, others) = rest.split_at(wanted.min(rest.len()));
        parts.push(part);
        rest = others;
    }
    parts
}

fn whole(
    cipher: &dyn Cipher,
    direction: Direction,
    key: &Key,
    params: &Params,
    input: &[u8],
) -> Result<Vec<u8>> {
    let mut out = vec![0xee; cipher.length(direction, key, params, input.len())?];
    let length = cipher.run(direction, key, params, input, &mut out)?;
    out.truncate(length);
    Ok(out)
}

fn in_parts(
    cipher: &dyn Cipher,
    direction: Direction,
    key: &Arc<Key>,
    params: &Params,
    input: &[u8],
) -> Result<Vec<u8>> {
    let mut stream = cipher.start(direction, key, params)?;
    let mut out = Vec::new();
    for part in parts(input) {
        let mut place = vec![0xee; stream.update_length(part.len())];
        stream.update(part, &mut place)?;
        out.extend_from_slice(&place);
    }
    let mut place = vec![0xee; stream.finish_length()];
    let length = stream.finish(&mut place)?;
    out.extend_from_slice(&place[..length]);
    Ok(out)
}

/// Encrypts or decrypts in one call and, where the mechanism can, in parts; both must say the same.
pub(crate) fn cipher(
    mechanism: CK_MECHANISM_TYPE,
    direction: Direction,
    key: &Arc<Key>,
    params: &Params,
    input: &[u8],
) -> Result<Vec<u8>> {
    let row = algorithm(mechanism);
    let cipher = match direction {
        Direction::Forward => row.encrypt.unwrap(),
        Direction::Backward => row.decrypt.unwrap(),
    };
    cipher.check(direction, key, params)?;
    let result = whole(cipher, direction, key, params, input);
    match in_parts(cipher, direction, key, params, input) {
        Err(Error::FUNCTION_NOT_SUPPORTED) => {}
        parts => assert_eq!(parts.ok(), result.clone().ok()),
    }
    result
}

/// Both directions of a vector that must hold.
pub(crate) fn both_ways(
    mechanism: CK_MECHANISM_TYPE,
    key: &Arc<Key>,
    params: &Params,
    plain: &[u8],
    sealed: &[u8],
) {
    let forward = cipher(mechanism, Direction::Forward, key, params, plain);
    assert_eq!(forward.as_deref(), Ok(sealed));
    let backward = cipher(mechanism, Direction::Backward, key, params, sealed);
    assert_eq!(backward.as_deref(), Ok(plain));
}

/// Wraps and unwraps, where the row can.
pub(crate) fn unwrapped(
    mechanism: CK_MECHANISM_TYPE,
    key: &Arc<Key>,
    params: &Params,
    wrapped: &[u8],
) -> Result<Vec<u8>> {
    let unwrap = algorithm(mechanism).unwrap.unwrap();
    unwrap.check(Direction::Backward, key, params)?;
    let plain = unwrap.unwrap(key, params, wrapped)?;
    let wrap = algorithm(mechanism).wrap.unwrap();
    let mut again = vec![0; wrap.length(key, params, plain.len())?];
    let length = wrap.wrap(key, params, plain.expose(), &mut again)?;
    assert_eq!(&again[..length], wrapped);
    Ok(plain.expose().to_vec())
}

/// Signs in one call and in parts; both must say the same.
pub(crate) fn mac(
    mechanism: CK_MECHANISM_TYPE,
    key: &Arc<Key>,
    params: &Params,
    data: &[u8],
) -> Result<Vec<u8>> {
    let sign = algorithm(mechanism).sign.unwrap();
    sign.check(Direction::Forward, key, params)?;
    let mut one = vec![0; sign.length(key, params)];
    let length = sign.sign(key, params, data, &mut one)?;
    let mut two = vec![0; length];
    let mut stream = sign.start(Direction::Forward, key, params)?;
    for part in parts(data) {
        stream.update(part)?;
    }
    stream.sign(&mut two)?;
    assert_eq!(one, two);
    Ok(one)
}

/// Verifies in one call and in parts; both must say the same.
pub(crate) fn verify(
    mechanism: CK_MECHANISM_TYPE,
    key: &Arc<Key>,
    params: &Params,
    data: &[u8],
    signature: &[u8],
) -> Result<()> {
    let verify = algorithm(mechanism).verify.unwrap();
    verify.check(Direction::Backward, key, params)?;
    let result = verify.verify(key, params, data, signature);
    let mut stream = verify.start(Direction::Backward, key, params)?;
    for part in parts(data) {
        stream.update(part)?;
    }
    assert_eq!(stream.verify(signature), result);
    result
}

/// A session without other keys.
#[derive(Debug)]
pub(crate) struct NoKeys;

impl Keys for NoKeys {
    fn key(&self, _: ObjectHandle) -> Result<Arc<Key>> {
        Err(Error::KEY_HANDLE_INVALID)
    }
}

/// One derived value of this length.
pub(crate) fn derived(
    mechanism: CK_MECHANISM_TYPE,
    key: &Key,
    params: &Params,
    length: usize,
) -> Result<Vec<u8>> {
    let derive = algorithm(mechanism).derive.unwrap();
    derive.check(key, params)?;
    let values = derive.derive(key, params, &[length], &NoKeys)?;
    assert_eq!(values.len(), 1);
    Ok(values[0].expose().to_vec())
}
