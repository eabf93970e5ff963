// SPDX-License-Identifier: Apache-2.0
//! What clients are told as a code alone, for the log: why a token cannot be used, such as a database that is away.

use crate::manager::say;
use metaslot_ck::{Error, rv_name};
use metaslot_spi::detail;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// So often one reason is said: clients ask again and again.
const AGAIN: Duration = Duration::from_secs(60);
/// How many reasons are said in that time.
const MOST: usize = 16;

/// Codes behind which something of the token's is broken, and not what was asked.
const BROKEN: [Error; 3] = [Error::DEVICE_ERROR, Error::GENERAL_ERROR, Error::TOKEN_NOT_RECOGNIZED];

/// What was said lately.
#[derive(Debug)]
struct Lately(Vec<(String, Instant)>);

static LATELY: Mutex<Lately> = Mutex::new(Lately(Vec::new()));

/// A client's call failed, on this thread.
#[cold]
pub(crate) fn failed(error: Error) {
    if !BROKEN.contains(&error) {
        return;
    }
    let reason = detail::with(str::to_owned);
    // One that panicked had changed nothing.
    let Ok(mut lately) = LATELY.lock() else { return };
    if !reason.is_empty() && lately.is_new(&reason, Instant::now()) {
        let code = rv_name(error.rv()).unwrap_or("an error");
        // What another module says could begin a line.
        let reason: String = reason.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        say(&format!("{code} for a client: {reason}"));
    }
}

impl Lately {
    fn is_new(&mut self, reason: &str, now: Instant) -> bool {
        self.0.retain(|(_, said)| now.duration_since(*said) < AGAIN);
        let is_new = self.0.len() < MOST && self.0.iter().all(|(said, _)| said != reason);
        if is_new {
            self.0.push((reason.to_owned(), now));
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_said_once_a_minute_and_so_many_are() {
        let (mut lately, start) = (Lately(Vec::new()), Instant::now());
        assert!(lately.is_new("away", start));
        assert!(!lately.is_new("away", start + AGAIN / 2));
        let others = (0..100).filter(|number| lately.is_new(&number.to_string(), start)).count();
        assert_eq!(others, MOST - 1);
        assert!(lately.is_new("away", start + AGAIN));
        assert!(!lately.is_new("away", start + AGAIN));
    }
}
