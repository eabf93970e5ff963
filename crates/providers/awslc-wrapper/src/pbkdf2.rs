// SPDX-License-Identifier: Apache-2.0
//! PBKDF2 (RFC 8018 §5.2) with HMAC.

use crate::digest::Hash;
use crate::{Result, check};
use metaslot_memory::wipe_shallow_stack;

/// Derives `out.len()` bytes.
///
/// # Errors
/// For zero iterations, or when memory ran out.
pub fn derive(
    hash: Hash,
    password: &[u8],
    salt: &[u8],
    iterations: u32,
    out: &mut [u8],
) -> Result<()> {
    // SAFETY: every pointer goes with its length; `md` is a static.
    let done = check(unsafe {
        aws_lc_sys::PKCS5_PBKDF2_HMAC(
            password.as_ptr().cast(),
            password.len(),
            salt.as_ptr(),
            salt.len(),
            iterations,
            hash.md(),
            out.len(),
            out.as_mut_ptr(),
        )
    });
    // The HMAC inside leaves its padded key on the stack.
    wipe_shallow_stack();
    done
}
