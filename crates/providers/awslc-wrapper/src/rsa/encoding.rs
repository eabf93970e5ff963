// SPDX-License-Identifier: Apache-2.0
//! The blocks that the private key is applied to (RFC 8017 §9): what the library does inside its
//! signatures, for anyone who applies the key himself.

use super::{Pss, Rsa};
use crate::digest::{Hash, MAX_LENGTH};
use crate::{Failed, Result, check};
use aws_lc_sys as sys;

/// Padding of a PKCS #1 v1.5 block, in bytes.
pub const PKCS1_OVERHEAD: usize = 11;

/// The longest `DigestInfo`, in bytes.
pub const MAX_INFO: usize = MAX_PREFIX + MAX_LENGTH;

/// The block of PKCS #1 v1.5, type 1, for `message` (usually a `DigestInfo`); `block` is as long as the modulus.
///
/// # Errors
/// For a message that does not fit.
pub fn encode_pkcs1(message: &[u8], block: &mut [u8]) -> Result<()> {
    let padding = block.len().checked_sub(message.len()).filter(|length| *length >= PKCS1_OVERHEAD);
    let (head, tail) = block.split_at_mut(padding.ok_or(Failed)?);
    head.fill(0xff);
    head[..2].copy_from_slice(&[0, 1]);
    if let Some(last) = head.last_mut() {
        *last = 0;
    }
    tail.copy_from_slice(message);
    Ok(())
}

impl Rsa {
    /// The block of PSS for a digest, with a fresh salt; `block` is [`Self::size`] long.
    ///
    /// # Errors
    /// When the salt does not fit or the digest has another length than the hash.
    pub fn encode_pss(&self, pss: Pss, digest: &[u8], block: &mut [u8]) -> Result<()> {
        if block.len() != self.size() || digest.len() != pss.hash.length() {
            return Err(Failed);
        }
        // SAFETY: the block is as long as the modulus and the digest as the hash says; the digests
        // are static; the key is only read.
        check(unsafe {
            sys::RSA_padding_add_PKCS1_PSS_mgf1(
                self.as_ptr(),
                block.as_mut_ptr(),
                digest.as_ptr(),
                pss.hash.md(),
                pss.mgf.md(),
                pss.salt_length(),
            )
        })
    }
}

/// How long the `DigestInfo` of a hash is.
#[must_use]
pub fn digest_info_length(hash: Hash) -> usize {
    prefix(hash).1 + hash.length()
}

/// The longest `DigestInfo` up to its digest, in bytes.
const MAX_PREFIX: usize = 19;

/// The DER of a `DigestInfo` up to its digest (RFC 8017 §9.2, note 1), and its length.
fn prefix(hash: Hash) -> ([u8; MAX_PREFIX], usize) {
    let nist: [u8; 9] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, last_arc(hash)];
    let oid: &[u8] = match hash {
        Hash::Md5 => &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x05],
        Hash::Sha1 => &[0x2b, 0x0e, 0x03, 0x02, 0x1a],
        _ => &nist,
    };
    let (arcs, digest) = (short(oid.len()), short(hash.length()));
    let mut bytes = [0; MAX_PREFIX];
    bytes[..6].copy_from_slice(&[0x30, arcs + digest + 8, 0x30, arcs + 4, 0x06, arcs]);
    let end = 6 + oid.len();
    bytes[6..end].copy_from_slice(oid);
    bytes[end..end + 4].copy_from_slice(&[0x05, 0x00, 0x04, digest]);
    (bytes, end + 4)
}

/// The last arc of the object identifiers under 2.16.840.1.101.3.4.2.
const fn last_arc(hash: Hash) -> u8 {
    match hash {
        Hash::Md5 | Hash::Sha1 => 0,
        Hash::Sha256 => 1,
        Hash::Sha384 => 2,
        Hash::Sha512 => 3,
        Hash::Sha224 => 4,
        Hash::Sha512_224 => 5,
        Hash::Sha512_256 => 6,
        Hash::Sha3_224 => 7,
        Hash::Sha3_256 => 8,
        Hash::Sha3_384 => 9,
        Hash::Sha3_512 => 10,
    }
}

/// A length that is known to be below 128.
const fn short(length: usize) -> u8 {
    length.to_le_bytes()[0]
}

/// The DER of the `DigestInfo` of a digest, and its length.
#[must_use]
pub fn digest_info(hash: Hash, digest: &[u8]) -> ([u8; MAX_INFO], usize) {
    let (head, length) = prefix(hash);
    let mut info = [0; MAX_INFO];
    info[..length].copy_from_slice(&head[..length]);
    let end = length + digest.len();
    info[length..end].copy_from_slice(digest);
    (info, end)
}
