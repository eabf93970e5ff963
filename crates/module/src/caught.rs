// SPDX-License-Identifier: Apache-2.0
//! Where a panic ends.

use metaslot_ck::{CK_RV, CKR_GENERAL_ERROR, CKR_OK, Result};
use metaslot_counters as counters;
use metaslot_spi::detail;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Answers what `call` says; a panic is `CKR_GENERAL_ERROR`, is counted, and prints nothing.
pub(crate) fn caught(call: impl FnOnce() -> Result<()>) -> CK_RV {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => CKR_OK,
        Ok(Err(error)) => {
            detail::failed();
            error.rv()
        }
        Err(payload) => {
            // Its destructor could panic in turn.
            std::mem::forget(payload);
            counters::event(counters::Event::Panic);
            CKR_GENERAL_ERROR
        }
    }
}
