// SPDX-License-Identifier: Apache-2.0
//! What PKCS #12 makes of a passphrase (RFC 7292, appendix B).

use crate::failure::Result;
use metaslot_ck::*;
use metaslot_client::Session;
use metaslot_memory::Secret;
use std::mem;

/// A hash function of PKCS #12: how long its results and its blocks are.
#[derive(Debug)]
pub(super) struct Hash {
    pub(super) identifier: &'static [u32],
    pub(super) mechanism: CK_MECHANISM_TYPE,
    pub(super) mac: CK_MECHANISM_TYPE,
    pub(super) result: usize,
    pub(super) block: usize,
}

pub(super) const SHA1: Hash = Hash {
    identifier: &[1, 3, 14, 3, 2, 26],
    mechanism: CKM_SHA_1,
    mac: CKM_SHA_1_HMAC,
    result: 20,
    block: 64,
};

/// What a derived value is for (RFC 7292, B.3).
pub(super) const ENCRYPTION: u8 = 1;
pub(super) const IV: u8 = 2;
pub(super) const AUTHENTICATION: u8 = 3;

/// What a value is derived from beside the passphrase.
#[derive(Debug)]
pub(super) struct Diversified<'a> {
    pub(super) id: u8,
    pub(super) salt: &'a [u8],
    pub(super) iterations: u64,
    pub(super) length: usize,
}

/// A passphrase as PKCS #12 has it: UTF-16 with an end.
pub(super) fn wide(passphrase: &Secret) -> Secret {
    // What is no UTF-8 was meant as Latin-1.
    let bytes = passphrase.expose();
    let mut wide = Secret::zeroed(2 * bytes.len() + 2);
    let mut at = 0;
    let mut put = |unit: u16| {
        wide.expose_mut()[at..at + 2].copy_from_slice(&unit.to_be_bytes());
        at += 2;
    };
    match str::from_utf8(bytes) {
        Ok(text) => text.encode_utf16().for_each(&mut put),
        Err(_) => bytes.iter().for_each(|byte| put(u16::from(*byte))),
    }
    put(0);
    wide.truncated(at)
}

/// The derivation of PKCS #12 (RFC 7292, B.2).
pub(super) fn diversified(
    session: &Session,
    hash: &Hash,
    passphrase: &Secret,
    input: &Diversified<'_>,
) -> Result<Secret> {
    let (block, salt) = (hash.block, input.salt);
    let room = |length: usize| length.next_multiple_of(block);
    let mut state = Secret::zeroed(room(salt.len()) + room(passphrase.len()));
    let (first, second) = state.expose_mut().split_at_mut(room(salt.len()));
    for (part, source) in [(first, salt), (second, passphrase.expose())] {
        part.iter_mut().zip(source.iter().cycle()).for_each(|(to, from)| *to = *from);
    }
    let mut made = Secret::zeroed(input.length.next_multiple_of(hash.result));
    let mut next = Secret::zeroed(hash.result);
    for at in (0..made.len()).step_by(hash.result) {
        session.digest_init(&hash.mechanism.into())?;
        session.digest_update(&vec![input.id; block])?;
        session.digest_update(state.expose())?;
        let mut digest = Secret::taken(session.digest_final()?);
        for _ in 1..input.iterations {
            session.digest_init(&hash.mechanism.into())?;
            session.digest_into(digest.expose(), next.expose_mut())?;
            mem::swap(&mut digest, &mut next);
        }
        made.expose_mut()[at..at + hash.result].copy_from_slice(digest.expose());
        for part in state.expose_mut().chunks_mut(block) {
            add_one_and(part, digest.expose());
        }
    }
    Ok(made.truncated(input.length))
}

/// Adds a number, repeated to the length of the other, and one.
fn add_one_and(number: &mut [u8], added: &[u8]) {
    let mut carry = 1;
    let length = number.len();
    for at in (0..length).rev() {
        carry += u16::from(number[at]) + u16::from(added[at % added.len()]);
        let [high, low] = carry.to_be_bytes();
        number[at] = low;
        carry = u16::from(high);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_added_with_their_carry() {
        let mut number = [0xff, 0xff, 0xff, 0xfe];
        add_one_and(&mut number, &[0, 0, 0, 1]);
        assert_eq!(number, [0, 0, 0, 0]);
        let mut number = [0, 0, 0, 5];
        add_one_and(&mut number, &[2, 3]);
        assert_eq!(number, [2, 3, 2, 9]);
    }

    #[test]
    fn a_passphrase_is_utf16_with_an_end() {
        assert_eq!(wide(&Secret::copy_of(b"a")).expose(), [0, b'a', 0, 0]);
        assert_eq!(wide(&Secret::copy_of("é€".as_bytes())).expose(), [0, 0xe9, 0x20, 0xac, 0, 0]);
        assert_eq!(wide(&Secret::copy_of(&[0xe9])).expose(), [0, 0xe9, 0, 0]);
    }
}
