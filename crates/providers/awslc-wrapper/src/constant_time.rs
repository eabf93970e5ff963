// SPDX-License-Identifier: Apache-2.0
//! Comparison that takes the same time wherever the difference is.

/// Whether two byte strings are equal. Their lengths are not secret.
#[must_use]
pub fn equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    // SAFETY: both are readable for the common length.
    unsafe { aws_lc_sys::CRYPTO_memcmp(a.as_ptr().cast(), b.as_ptr().cast(), a.len()) == 0 }
}
