// SPDX-License-Identifier: Apache-2.0
//! HKDF (RFC 5869).

use crate::digest::Hash;
use crate::{Result, check};
use metaslot_memory::wipe_shallow_stack;

/// Extract and expand in one: fills `out`.
///
/// # Errors
/// When `out` is longer than 255 blocks of the hash.
pub fn derive(hash: Hash, secret: &[u8], salt: &[u8], info: &[u8], out: &mut [u8]) -> Result<()> {
    // SAFETY: every pointer goes with its length; `md` is a static.
    let done = check(unsafe {
        aws_lc_sys::HKDF(
            out.as_mut_ptr(),
            out.len(),
            hash.md(),
            secret.as_ptr(),
            secret.len(),
            salt.as_ptr(),
            salt.len(),
            info.as_ptr(),
            info.len(),
        )
    });
    // The HMACs inside leave their padded keys on the stack.
    wipe_shallow_stack();
    done
}

/// [`derive`] with SHA-256.
///
/// # Errors
/// As [`derive`].
pub fn sha256(secret: &[u8], salt: &[u8], info: &[u8], out: &mut [u8]) -> Result<()> {
    derive(Hash::Sha256, secret, salt, info, out)
}

/// The extract step: `out` takes [`Hash::length`] bytes.
///
/// # Errors
/// When the library fails.
///
/// # Panics
/// When `out` has another length.
pub fn extract(hash: Hash, secret: &[u8], salt: &[u8], out: &mut [u8]) -> Result<()> {
    assert_eq!(out.len(), hash.length());
    let mut length = 0;
    // SAFETY: `out` takes a whole digest; every other pointer goes with its length.
    let done = check(unsafe {
        aws_lc_sys::HKDF_extract(
            out.as_mut_ptr(),
            &raw mut length,
            hash.md(),
            secret.as_ptr(),
            secret.len(),
            salt.as_ptr(),
            salt.len(),
        )
    });
    // The HMACs inside leave their padded keys on the stack.
    wipe_shallow_stack();
    done
}

/// The expand step: fills `out`.
///
/// # Errors
/// When `out` is longer than 255 blocks of the hash.
pub fn expand(hash: Hash, key: &[u8], info: &[u8], out: &mut [u8]) -> Result<()> {
    // SAFETY: every pointer goes with its length; `md` is a static.
    let done = check(unsafe {
        aws_lc_sys::HKDF_expand(
            out.as_mut_ptr(),
            out.len(),
            hash.md(),
            key.as_ptr(),
            key.len(),
            info.as_ptr(),
            info.len(),
        )
    });
    // The HMACs inside leave their padded keys on the stack.
    wipe_shallow_stack();
    done
}
