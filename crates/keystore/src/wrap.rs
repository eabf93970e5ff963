// SPDX-License-Identifier: Apache-2.0
//! The master key, sealed under a key made from a PIN.

use crate::crypto::{self, KEY, OVERHEAD, Serial};
use crate::error::{Error, Result};
use crate::kdf::{ENCODED, Kdf, SALT};
use metaslot_memory::Secret;
use metaslot_spi::store::Role;

/// Length of a wrap, in bytes.
const LENGTH: usize = ENCODED + SALT + KEY + OVERHEAD;

/// How a role stands in stored values.
pub(crate) const fn role_byte(role: Role) -> u8 {
    match role {
        Role::So => 0,
        Role::User => 1,
    }
}

/// Stands with the function's number where the PIN was mixed with the machine's pepper.
const PEPPERED: u8 = 0x80;

/// How the key of a wrap is derived. What it asks of a login is known before an attempt is counted.
pub(crate) fn kdf(wrap: &[u8]) -> Result<Kdf> {
    let head = wrap.first_chunk::<ENCODED>().filter(|_| wrap.len() == LENGTH);
    let mut head = *head.ok_or_else(|| Error::not_token("a wrapped key is damaged"))?;
    head[0] &= !PEPPERED;
    Kdf::decode(&head)
}

/// Whether a wrap cannot be opened without the pepper.
pub(crate) fn needs_pepper(wrap: &[u8]) -> bool {
    wrap.first().is_some_and(|kind| kind & PEPPERED != 0)
}

/// The same for a role's PIN: whom a wrap belongs to.
pub(crate) const fn owner(role: Role) -> [u8; 1] {
    [role_byte(role)]
}

/// Makes one that no PIN opens of one that a PIN does, with the same cost.
pub(crate) fn spoil(wrap: &mut [u8]) -> Result<()> {
    let random = crypto::random::<{ LENGTH - ENCODED }>()?;
    let sealed = wrap.get_mut(ENCODED..).filter(|sealed| sealed.len() == random.len());
    sealed.ok_or_else(|| Error::not_token("a wrapped key is damaged"))?.copy_from_slice(&random);
    Ok(())
}

/// Function and parameters, salt, nonce, ciphertext and tag.
pub(crate) fn seal(
    kdf: Kdf,
    serial: &Serial,
    owner: &[u8],
    pin: &[u8],
    pepper: Option<&Secret>,
    master: &Secret,
) -> Result<Vec<u8>> {
    let salt = crypto::random::<SALT>()?;
    let key = kdf.derive(pin, &salt, pepper)?;
    let mut out = Vec::with_capacity(LENGTH);
    out.extend_from_slice(&kdf.encode());
    if pepper.is_some() {
        out[0] |= PEPPERED;
    }
    out.extend_from_slice(&salt);
    let sealed = crypto::seal(&key, &aad(serial, owner, &out), master.expose())?;
    out.extend(sealed);
    Ok(out)
}

/// The master key in `wrap`; `None` when the PIN is another.
pub(crate) fn open(
    wrap: &[u8],
    serial: &Serial,
    owner: &[u8],
    pin: &[u8],
    pepper: Option<&Secret>,
) -> Result<Option<Secret>> {
    let kdf = kdf(wrap)?;
    let (head, sealed) = wrap.split_at(ENCODED + SALT);
    let mut salt = [0; SALT];
    salt.copy_from_slice(&head[ENCODED..]);
    let pepper = pepper.filter(|_| needs_pepper(head));
    let key = kdf.derive(pin, &salt, pepper)?;
    crypto::open_secret(&key, &aad(serial, owner, head), sealed)
}

fn aad(serial: &Serial, owner: &[u8], head: &[u8]) -> Vec<u8> {
    let mut aad = b"metaslot 1 wrap".to_vec();
    aad.extend_from_slice(serial);
    aad.extend_from_slice(owner);
    aad.extend_from_slice(head);
    aad
}
