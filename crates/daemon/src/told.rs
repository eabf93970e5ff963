// SPDX-License-Identifier: Apache-2.0
//! What clients are told as a code alone, for the log: why a token cannot be used, such as a database that is away.

use crate::manager::say;
use metaslot_ck::{Error, rv_name};
use metaslot_spi::detail;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So often one reason is said: clients ask again and again.
const AGAIN: Duration = Duration::from_secs(60);
/// How many reasons are said in that time.
const MOST: usize = 16;

/// Codes behind which something of the token's is broken, and not what was asked.
const BROKEN: [Error; 3] = [Error::DEVICE_ERROR, Error::GENERAL_ERROR, Error::TOKEN_NOT_RECOGNIZED];

/// What was said lately.
#[derive(Debug)]
struct Lately {
    reasons: Vec<(String, Instant)>,
    /// When it was said that there are more reasons than these.
    others: Option<Instant>,
}

static LATELY: Mutex<Lately> = Mutex::new(Lately::new());

/// What is to be said of one more failure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Say {
    Reason,
    /// That there are other reasons, which are not said for a while.
    Others,
    Nothing,
}

/// A client's call failed, on this thread.
#[cold]
pub(crate) fn failed(error: Error) {
    if !BROKEN.contains(&error) {
        return;
    }
    let reason = detail::with(str::to_owned);
    if reason.is_empty() {
        return;
    }
    // The lock is held for the decision alone: a log that takes no more would stop every client that fails.
    let decided =
        LATELY.lock().unwrap_or_else(PoisonError::into_inner).add(&reason, Instant::now());
    match decided {
        Say::Reason => {
            let code = rv_name(error.rv()).unwrap_or("an error");
            // What another module says could begin a line.
            let reason: String =
                reason.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            say(&format!("{code} for a client: {reason}"));
        }
        Say::Others => say(&format!(
            "clients fail for other reasons, too, which are not said: {MOST} were in {} seconds",
            AGAIN.as_secs()
        )),
        Say::Nothing => {}
    }
}

impl Lately {
    const fn new() -> Self {
        Self { reasons: Vec::new(), others: None }
    }

    fn add(&mut self, reason: &str, now: Instant) -> Say {
        let is_recent = |said: Instant| now.duration_since(said) < AGAIN;
        self.reasons.retain(|(_, said)| is_recent(*said));
        self.others = self.others.filter(|said| is_recent(*said));
        if self.reasons.iter().any(|(said, _)| said == reason) {
            return Say::Nothing;
        }
        if self.reasons.len() < MOST {
            self.reasons.push((reason.to_owned(), now));
            return Say::Reason;
        }
        match self.others.replace(self.others.unwrap_or(now)) {
            None => Say::Others,
            Some(_) => Say::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_said_once_a_minute_and_so_many_are() {
        let (mut lately, start) = (Lately::new(), Instant::now());
        assert_eq!(lately.add("away", start), Say::Reason);
        assert_eq!(lately.add("away", start + AGAIN / 2), Say::Nothing);
        let said: Vec<_> = (0..100).map(|number| lately.add(&number.to_string(), start)).collect();
        assert!(said[..MOST - 1].iter().all(|said| *said == Say::Reason));
        assert_eq!(said[MOST - 1], Say::Others, "it does not end without a word");
        assert!(said[MOST..].iter().all(|said| *said == Say::Nothing));
        assert_eq!(lately.add("away", start), Say::Nothing);
        assert_eq!(lately.add("away", start + AGAIN), Say::Reason);
        assert_eq!(lately.add("away", start + AGAIN), Say::Nothing);
        let again = (0..100).map(|number| lately.add(&number.to_string(), start + AGAIN));
        assert_eq!(again.filter(|said| *said == Say::Others).count(), 1, "it is said again");
    }

    #[test]
    fn a_thread_that_panicked_ends_the_saying_for_no_other() {
        let poison = || {
            let _held = LATELY.lock();
            panic!("while it holds the lock");
        };
        assert!(std::thread::spawn(poison).join().is_err());
        detail::set(format_args!("a reason of this test"));
        failed(Error::DEVICE_ERROR);
        let lately = LATELY.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(lately.reasons.iter().any(|(said, _)| said == "a reason of this test"));
    }
}
