// SPDX-License-Identifier: Apache-2.0
//! Where a panic ends.

use metaslot_ck::{Error, Result};
use metaslot_memory::Exhausted;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `call` says. A panic is `CKR_GENERAL_ERROR`, or `CKR_HOST_MEMORY` where no protected memory was left.
pub(crate) fn caught<T>(call: impl FnOnce() -> Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result,
        Err(payload) if payload.is::<Exhausted>() => Err(Error::HOST_MEMORY),
        Err(payload) => {
            // Its destructor could panic in turn.
            std::mem::forget(payload);
            Err(Error::GENERAL_ERROR)
        }
    }
}
