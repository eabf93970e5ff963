// SPDX-License-Identifier: Apache-2.0
//! Random bytes fit for keys: AWS-LC's CTR-DRBG, one a thread, reseeded after a fork.

use crate::{Result, check};

/// Fills `out`.
///
/// # Errors
/// When the source fails.
pub fn fill(out: &mut [u8]) -> Result<()> {
    // SAFETY: `out` is writable for its length.
    check(unsafe { aws_lc_sys::RAND_bytes(out.as_mut_ptr(), out.len()) })
}
