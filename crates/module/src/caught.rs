// SPDX-License-Identifier: Apache-2.0
//! Where a panic ends, and becomes a code.

use metaslot_ck::{CK_RV, CKR_OK, Error, Result};
use metaslot_memory::wipe_registers;

/// Answers what `call` says. What it had in registers until the end is gone then.
#[inline]
pub(crate) fn caught(call: impl FnOnce() -> Result<()>) -> CK_RV {
    let rv = metaslot_wiring::caught::caught(call).map_or_else(Error::rv, |()| CKR_OK);
    wipe_registers();
    rv
}
