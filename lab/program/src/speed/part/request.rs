// SPDX-License-Identifier: Apache-2.0
//! What such a process is asked, and what it answers.

use super::job::Work;
use metaslot_ck::{CK_FLAGS, CK_MECHANISM_TYPE};
use serde::{Deserialize, Serialize};

/// What a process is asked.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) enum Request {
    /// Makes ready for work under a name.
    Prepare { name: String, work: Work, threads: usize },
    /// Does it for so many seconds.
    Run { name: String, seconds: f64 },
    /// Lists what the token can do.
    Mechanisms,
}

/// A mechanism of a token: its number, and what it is for.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Listed {
    pub(crate) mechanism: CK_MECHANISM_TYPE,
    pub(crate) flags: CK_FLAGS,
}
