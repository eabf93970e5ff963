// SPDX-License-Identifier: Apache-2.0
//! Why the daemon does not run, and its exit status: a service manager starts again what may be better then.

use metaslot_ck::Error;
use std::fmt;

/// Any other reason.
const OTHER: u8 = 1;
/// A PIN is not right (`EX_NOPERM`): each further start would be a further try.
const PIN: u8 = 77;
/// The configuration is wrong (`EX_CONFIG`).
const CONFIGURATION: u8 = 78;

/// Why it does not run.
#[derive(Debug)]
pub struct Failure {
    reason: String,
    pub(crate) status: u8,
}

impl Failure {
    pub(crate) fn configuration(reason: String) -> Self {
        Self { reason, status: CONFIGURATION }
    }

    pub(crate) fn of_token(error: Error, reason: String) -> Self {
        let pin = [Error::PIN_INCORRECT, Error::PIN_LEN_RANGE, Error::PIN_LOCKED].contains(&error);
        Self { reason, status: if pin { PIN } else { OTHER } }
    }
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self { reason, status: OTHER }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}
