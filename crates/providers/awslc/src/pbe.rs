// SPDX-License-Identifier: Apache-2.0
//! Keys from passwords of old: PKCS #5's first way (PBKDF1, RFC 8018 §5.1) and PKCS #12's (RFC 7292 appendix B.2; PKCS#11 Historical
//! Mechanisms 3.0). The password is taken byte by byte: who wants PKCS #12's form of it brings that.

use crate::failure::device_error;
use crate::generate::secret_key;
use crate::old_hashes::{Hash as _, Md2};
use crate::pbkdf2::MOST_WORK;
use metaslot_awslc_wrapper::digest::{Hash, Stream};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Generate};
use metaslot_spi::{Attributes, Bytes, NewObject, Params};

/// One row per kind of key.
pub(crate) const ROWS: [Algorithm; 9] = [
    row(CKM_PBE_MD2_DES_CBC, (8, 8), &Pbe { way: Way::Pkcs5(None), length: 8 }),
    row(CKM_PBE_MD5_DES_CBC, (8, 8), &Pbe { way: Way::Pkcs5(Some(Hash::Md5)), length: 8 }),
    row(CKM_PBE_SHA1_RC4_128, (128, 128), &Pbe { length: 16, ..PKCS12 }),
    row(CKM_PBE_SHA1_RC4_40, (40, 40), &Pbe { length: 5, ..PKCS12 }),
    row(CKM_PBE_SHA1_DES3_EDE_CBC, (24, 24), &Pbe { length: 24, ..PKCS12 }),
    row(CKM_PBE_SHA1_DES2_EDE_CBC, (16, 16), &Pbe { length: 16, ..PKCS12 }),
    row(CKM_PBE_SHA1_RC2_128_CBC, (128, 128), &Pbe { length: 16, ..PKCS12 }),
    row(CKM_PBE_SHA1_RC2_40_CBC, (40, 40), &Pbe { length: 5, ..PKCS12 }),
    row(CKM_PBA_SHA1_WITH_SHA1_HMAC, (20, 20), &Pbe { way: Way::Pkcs12(MAC), length: 20 }),
];

const PKCS12: Pbe = Pbe { way: Way::Pkcs12(KEY), length: 0 };

const fn row(mechanism: CK_MECHANISM_TYPE, key_sizes: (u64, u64), pbe: &'static Pbe) -> Algorithm {
    Algorithm { mechanism, key_sizes, generate: Some(pbe), ..Algorithm::NONE }
}

/// What is made, as PKCS #12 numbers it: a key to encrypt with, an IV, a key of a MAC.
const KEY: u8 = 1;
const IV: u8 = 2;
const MAC: u8 = 3;

/// Bytes of an IV.
const IV_LENGTH: usize = 8;
/// Of SHA-1, in bytes: a digest, and what is hashed at once.
const DIGEST: usize = 20;
const BLOCK: usize = 64;

#[derive(Debug)]
struct Pbe {
    way: Way,
    /// Of the key, in bytes.
    length: usize,
}

#[derive(Debug)]
enum Way {
    /// With this function, or MD2.
    Pkcs5(Option<Hash>),
    /// For this.
    Pkcs12(u8),
}

/// The digest of several parts.
fn hashed(hash: Option<Hash>, parts: &[&[u8]], out: &mut [u8]) -> Result<()> {
    let Some(hash) = hash else {
        let mut stream = Md2::default();
        parts.iter().for_each(|part| stream.update(part));
        stream.finish(out);
        return Ok(());
    };
    let mut stream = Stream::new(hash).map_err(device_error)?;
    parts.iter().try_for_each(|part| stream.update(part)).map_err(device_error)?;
    stream.finish(out).map_err(device_error)
}

/// The digest of password and salt, and its digest, and so on: the key and the IV.
fn pkcs5(hash: Option<Hash>, password: &[u8], salt: &[u8], iterations: u64) -> Result<Secret> {
    let mut all = Secret::zeroed(2 * IV_LENGTH);
    hashed(hash, &[password, salt], all.expose_mut())?;
    for _ in 1..iterations {
        let last = Secret::copy_of(all.expose());
        hashed(hash, &[last.expose()], all.expose_mut())?;
    }
    Ok(all)
}

/// Whole blocks of `bytes` again and again.
fn repeated(bytes: &[u8]) -> impl Iterator<Item = u8> {
    let length = bytes.len().next_multiple_of(BLOCK);
    bytes.iter().copied().cycle().take(length)
}

/// RFC 7292 appendix B.2, with SHA-1.
fn pkcs12(
    what: u8,
    password: &[u8],
    salt: &[u8],
    iterations: u64,
    length: usize,
) -> Result<Secret> {
    let input = salt.len().next_multiple_of(BLOCK) + password.len().next_multiple_of(BLOCK);
    let mut input = Secret::try_zeroed(input).ok_or(Error::DEVICE_MEMORY)?;
    let bytes = repeated(salt).chain(repeated(password));
    input.expose_mut().iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
    let (mut out, mut digest) = (Secret::zeroed(length), Secret::zeroed(DIGEST));
    for part in out.expose_mut().chunks_mut(DIGEST) {
        hashed(Some(Hash::Sha1), &[&[what; BLOCK], input.expose()], digest.expose_mut())?;
        for _ in 1..iterations {
            let last = Secret::copy_of(digest.expose());
            hashed(Some(Hash::Sha1), &[last.expose()], digest.expose_mut())?;
        }
        part.copy_from_slice(&digest.expose()[..part.len()]);
        // Each block of the input becomes itself, the digest again and again, and one, added.
        for block in input.expose_mut().chunks_exact_mut(BLOCK) {
            let mut carry = 1;
            for (at, byte) in block.iter_mut().enumerate().rev() {
                let sum = u16::from(*byte) + u16::from(digest.expose()[at % DIGEST]) + carry;
                [_, *byte] = sum.to_be_bytes();
                carry = sum >> 8;
            }
        }
    }
    Ok(out)
}

impl Generate for Pbe {
    fn generate(&self, params: &Params, template: &Attributes) -> Result<NewObject> {
        let Params::Pbe { password, salt, iterations, beside } = params else {
            return Err(Error::MECHANISM_PARAM_INVALID);
        };
        if !(1..=MOST_WORK / 4).contains(iterations) {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        if template.ulong(CKA_VALUE_LEN).is_some_and(|length| length != self.length as u64) {
            return Err(Error::KEY_SIZE_RANGE);
        }
        let (password, salt, iterations) = (password.expose(), &salt[..], *iterations);
        let (key, first) = match self.way {
            Way::Pkcs5(hash) => {
                let all = pkcs5(hash, password, salt, iterations)?;
                let first = Secret::copy_of(&all.expose()[self.length..]);
                (all.truncated(self.length), first)
            }
            Way::Pkcs12(what) => {
                let made = |what, length| pkcs12(what, password, salt, iterations, length);
                (made(what, self.length)?, made(IV, IV_LENGTH)?)
            }
        };
        if beside.length > 0 {
            let told = beside.told.set(Bytes::from_slice(first.expose()));
            told.map_err(|_| Error::DEVICE_ERROR)?;
        }
        Ok(secret_key(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the vectors that came with PKCS #12's first programs: the password "smeg", as PKCS #12 writes it.
    #[test]
    fn keys_and_ivs_of_pkcs_12_are_those_of_others() {
        let password = [0, 0x73, 0, 0x6d, 0, 0x65, 0, 0x67, 0, 0];
        let salt = [0x0a, 0x58, 0xcf, 0x64, 0x53, 0x0d, 0x82, 0x3f];
        let made = |what, length| pkcs12(what, &password, &salt, 1, length).unwrap();
        assert_eq!(made(KEY, 24).expose()[..8], [0x8a, 0xaa, 0xe6, 0x29, 0x7b, 0x6c, 0xb0, 0x46]);
        assert_eq!(made(IV, 8).expose(), [0x79, 0x99, 0x3d, 0xfe, 0x04, 0x8d, 0x3b, 0x76]);
    }
}
