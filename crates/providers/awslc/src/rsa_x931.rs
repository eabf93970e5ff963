// SPDX-License-Identifier: Apache-2.0
//! Signatures of RSA with the padding of ANSI X9.31, which was withdrawn (PKCS#11 3.2 §6.1): of what the caller brings with its
//! trailer, and of a SHA-1.

use crate::hashes::{self, DigestScheme};
use crate::rsa_key::{MAX_BLOCK, SIZES, prepared};
use crate::rsa_raw;
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::rsa::{Rsa, RsaNumber, RsaPadding};
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Direction, Signature, SignatureStream};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum X931 {
    Bare,
    Sha1,
}

/// Behind a SHA-1 (ISO/IEC 10118).
const TRAILER: [u8; 2] = [0x33, 0xcc];

pub(crate) const ROWS: [Algorithm; 2] =
    [row(CKM_RSA_X9_31, &X931::Bare), row(CKM_SHA1_RSA_X9_31, &X931::Sha1)];

const fn row(mechanism: CK_MECHANISM_TYPE, x931: &'static X931) -> Algorithm {
    Algorithm::signature(mechanism, SIZES, x931)
}

/// The block of a message.
fn block(message: &[u8], size: usize) -> Result<[u8; MAX_BLOCK]> {
    // Which of two roots was signed with is seen by that.
    if message.last().is_some_and(|last| last & 15 != 12) {
        return Err(Error::DATA_INVALID);
    }
    let mut block = [0xbb; MAX_BLOCK];
    let start = size.checked_sub(message.len()).filter(|start| *start >= 2);
    let start = start.filter(|_| !message.is_empty()).ok_or(Error::DATA_LEN_RANGE)?;
    block[0] = 0x6b;
    block[start - 1] = 0xba;
    block[start..size].copy_from_slice(message);
    Ok(block)
}

/// The modulus less a number of its length that is below it.
fn complement(rsa: &Rsa, number: &mut [u8]) -> Result<()> {
    let mut modulus = [0; MAX_BLOCK];
    let modulus = &mut modulus[..number.len()];
    rsa.write_number(RsaNumber::Modulus, modulus).map_err(|_| Error::DEVICE_ERROR)?;
    let mut borrow = false;
    for (byte, of) in number.iter_mut().zip(modulus.iter()).rev() {
        let (less, under) = of.overflowing_sub(*byte);
        let (less, again) = less.overflowing_sub(u8::from(borrow));
        (*byte, borrow) = (less, under || again);
    }
    Ok(())
}

fn sign(key: &Key, message: &[u8], out: &mut [u8]) -> Result<usize> {
    let rsa = prepared(key)?;
    let size = rsa.size();
    let block = block(message, size)?;
    rsa_raw::X509.sign(key, &Params::None, &block[..size], out)?;
    let mut other = [0; MAX_BLOCK];
    let other = &mut other[..size];
    other.copy_from_slice(&out[..size]);
    complement(rsa, other)?;
    if *other < out[..size] {
        out[..size].copy_from_slice(other);
    }
    Ok(size)
}

fn verify(key: &Key, message: &[u8], signature: &[u8]) -> Result<()> {
    let rsa = prepared(key)?;
    let size = rsa.size();
    let block = block(message, size)?;
    if signature.len() != size {
        return Err(Error::SIGNATURE_LEN_RANGE);
    }
    let mut opened = [0; MAX_BLOCK];
    let opened = &mut opened[..size];
    rsa.verify_raw(RsaPadding::None, signature, opened).map_err(|_| Error::SIGNATURE_INVALID)?;
    // Of two roots the smaller was signed with; every block ends with 12.
    if opened[size - 1] & 15 != 12 {
        complement(rsa, opened)?;
    }
    if *opened == block[..size] { Ok(()) } else { Err(Error::SIGNATURE_INVALID) }
}

/// A digest with its trailer.
fn trailed(digest: &[u8]) -> Vec<u8> {
    [digest, &TRAILER].concat()
}

impl Signature for X931 {
    fn check(&self, direction: Direction, key: &Key, _: &Params) -> Result<()> {
        key.check_class(direction.signature_class())?;
        prepared(key).map(drop)
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        prepared(key).map_or(0, Rsa::size)
    }

    fn sign(&self, key: &Key, _: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        if *self == Self::Bare { sign(key, data, out) } else { hashes::sign(self, key, data, out) }
    }

    fn verify(&self, key: &Key, _: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        match self {
            Self::Bare => verify(key, data, signature),
            Self::Sha1 => hashes::verify(self, key, data, signature),
        }
    }

    fn start(&self, _: Direction, key: &Arc<Key>, _: &Params) -> Result<Box<dyn SignatureStream>> {
        if *self == Self::Bare {
            return Err(Error::FUNCTION_NOT_SUPPORTED);
        }
        hashes::start(*self, key)
    }
}

impl DigestScheme for X931 {
    fn hash(&self) -> Option<Hash> {
        Some(Hash::Sha1)
    }

    fn sign_digest(&self, key: &Key, digest: &[u8], out: &mut [u8]) -> Result<usize> {
        sign(key, &trailed(digest), out)
    }

    fn verify_digest(&self, key: &Key, digest: &[u8], signature: &[u8]) -> Result<()> {
        verify(key, &trailed(digest), signature)
    }
}
