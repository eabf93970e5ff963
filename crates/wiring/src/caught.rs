// SPDX-License-Identifier: Apache-2.0
//! Where a panic ends.

use metaslot_ck::{Error, Result};
use metaslot_counters as counters;
use metaslot_memory::Exhausted;
use metaslot_spi::detail;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What one call of a caller says.
///
/// # Errors
/// Those of `call`. A panic is `CKR_GENERAL_ERROR`, is counted, and prints nothing. Where little protected memory was wanted and
/// none was left, it is `CKR_HOST_MEMORY`.
#[inline]
pub fn caught<T>(call: impl FnOnce() -> Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => {
            detail::succeeded();
            Ok(value)
        }
        Ok(Err(error)) => {
            detail::failed();
            Err(error)
        }
        Err(payload) => Err(panicked(payload)),
    }
}

#[cold]
fn panicked(payload: Box<dyn Any + Send>) -> Error {
    if payload.is::<Exhausted>() {
        detail::set(format_args!("no protected memory is left"));
        detail::failed();
        return Error::HOST_MEMORY;
    }
    // Its destructor could panic in turn.
    std::mem::forget(payload);
    counters::event(counters::Event::Panic);
    detail::set(format_args!("a fault of the module's own: a panic"));
    detail::failed();
    Error::GENERAL_ERROR
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::resume_unwind;

    #[test]
    fn what_a_call_said_that_succeeded_explains_no_later_failure() {
        let said = || detail::with(str::to_owned);
        let fails = || caught(|| Err::<(), _>(Error::DEVICE_ERROR));
        assert_eq!(fails(), Err(Error::DEVICE_ERROR));
        let succeeds = caught(|| {
            detail::set(format_args!("the first of two is not there"));
            Ok(())
        });
        assert_eq!(succeeds, Ok(()));
        assert!(fails().is_err());
        assert_eq!(said(), "");
    }

    #[test]
    fn a_panic_says_that_it_is_one() {
        let panics = caught(|| -> Result<()> {
            detail::refuse(format_args!("refused"));
            resume_unwind(Box::new("without a word"))
        });
        assert_eq!(panics, Err(Error::GENERAL_ERROR));
        assert!(detail::with(|said| said.contains("panic")));
        let exhausted = caught(|| -> Result<()> { resume_unwind(Box::new(Exhausted)) });
        assert_eq!(exhausted, Err(Error::HOST_MEMORY));
        assert!(detail::with(|said| said.contains("memory")));
        assert_eq!(detail::refusal(), None);
    }
}
