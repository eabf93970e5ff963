// SPDX-License-Identifier: Apache-2.0
//! Signatures of DSA, by keys as the library reads them. They are verified by [`crate::field::Group`].

use crate::raw::not_null;
use crate::{Result, check};
use aws_lc_sys as sys;
use metaslot_memory::wipe_shallow_stack;
use std::ptr::{self, NonNull};

/// The longest signature, in bytes: two numbers of 256 bits, which is the longest order that the library has.
const LONGEST: usize = 2 + 2 * (2 + 33);

/// A private key, for one signature.
struct DsaKey(NonNull<sys::DSA>);

impl Drop for DsaKey {
    fn drop(&mut self) {
        // SAFETY: we own the key; the library zeroises what it frees.
        unsafe { sys::DSA_free(self.0.as_ptr()) }
    }
}

/// The signature of a digest, which is cut to the length of the order, as the DER of a SEQUENCE of two numbers. `key` is the DER of
/// another: 0, prime, order, base, public and private value.
///
/// # Errors
/// When it is none, or of sizes that the library does not have.
pub fn sign(key: &[u8], digest: &[u8]) -> Result<Vec<u8>> {
    let mut at = key.as_ptr();
    let length = i64::try_from(key.len()).map_err(|_| crate::Failed)?;
    // SAFETY: so many bytes are read, the pointer moves, and what is made is ours alone.
    let made = not_null(unsafe { sys::d2i_DSAPrivateKey(ptr::null_mut(), &raw mut at, length) })
        .map(DsaKey);
    let (mut der, mut length) = (vec![0; LONGEST], 0);
    let signed = made.and_then(|key| {
        let (out, key) = (der.as_mut_ptr(), key.0.as_ptr());
        // SAFETY: the key is alive until the end of this closure, and `out` is as long as any signature.
        check(unsafe { sys::DSA_sign(0, digest.as_ptr(), digest.len(), out, &raw mut length, key) })
    });
    wipe_shallow_stack();
    signed?;
    der.truncate(usize::try_from(length).unwrap_or(0));
    Ok(der)
}
