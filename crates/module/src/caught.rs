// SPDX-License-Identifier: Apache-2.0
//! Where a panic ends, and becomes a code.

use metaslot_ck::{CK_RV, CKR_OK, Error, Result};

/// Answers what `call` says.
#[inline]
pub(crate) fn caught(call: impl FnOnce() -> Result<()>) -> CK_RV {
    metaslot_wiring::caught::caught(call).map_or_else(Error::rv, |()| CKR_OK)
}
