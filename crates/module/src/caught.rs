// SPDX-License-Identifier: Apache-2.0
//! Where a panic ends.

use metaslot_ck::{CK_RV, CKR_GENERAL_ERROR, CKR_HOST_MEMORY, CKR_OK, Result};
use metaslot_counters as counters;
use metaslot_memory::Exhausted;
use metaslot_spi::detail;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Answers what `call` says; a panic is `CKR_GENERAL_ERROR`, is counted, and prints nothing. Where
/// little protected memory was wanted and none was left, it is `CKR_HOST_MEMORY`.
pub(crate) fn caught(call: impl FnOnce() -> Result<()>) -> CK_RV {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => {
            detail::succeeded();
            CKR_OK
        }
        Ok(Err(error)) => {
            detail::failed();
            error.rv()
        }
        Err(payload) => panicked(payload),
    }
}

#[cold]
fn panicked(payload: Box<dyn Any + Send>) -> CK_RV {
    if payload.is::<Exhausted>() {
        detail::set(format_args!("no protected memory is left"));
        detail::failed();
        return CKR_HOST_MEMORY;
    }
    // Its destructor could panic in turn.
    std::mem::forget(payload);
    counters::event(counters::Event::Panic);
    detail::set(format_args!("a fault of the module's own: a panic"));
    detail::failed();
    CKR_GENERAL_ERROR
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_ck::Error;
    use std::panic::resume_unwind;

    #[test]
    fn what_a_call_said_that_succeeded_explains_no_later_failure() {
        let said = || detail::with(str::to_owned);
        let fails = || caught(|| Err(Error::DEVICE_ERROR));
        fails();
        let succeeds = caught(|| {
            detail::set(format_args!("the first of two is not there"));
            Ok(())
        });
        assert_eq!(succeeds, CKR_OK);
        fails();
        assert_eq!(said(), "");
    }

    #[test]
    fn a_panic_says_that_it_is_one() {
        let panics = caught(|| {
            detail::refuse(format_args!("refused"));
            resume_unwind(Box::new("without a word"))
        });
        assert_eq!(panics, CKR_GENERAL_ERROR);
        assert!(detail::with(|said| said.contains("panic")));
        assert_eq!(caught(|| resume_unwind(Box::new(Exhausted))), CKR_HOST_MEMORY);
        assert!(detail::with(|said| said.contains("memory")));
        assert_eq!(detail::refusal(), None);
    }
}
