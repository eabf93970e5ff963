// SPDX-License-Identifier: Apache-2.0
//! What is said of a module when it is opened.

use crate::isolated::Isolation;
use metaslot_ck::CK_MECHANISM_TYPE;
use std::path::PathBuf;

/// Runs what it is given: where a thread must not be cancelled, say. Every call of a module goes
/// through it.
pub type Around = fn(&mut dyn FnMut());

/// One module.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Config {
    /// Short and lower case: its name in counters and explanations.
    pub name: String,
    /// The library's file.
    pub module: PathBuf,
    /// A file with the user's PIN, for logins without one.
    pub pin_source: Option<PathBuf>,
    /// Whether it may know keys that others use, too.
    pub trusted: bool,
    /// How it is kept in a process of its own, where it is.
    pub isolation: Option<Isolation>,
    /// What `C_Initialize` is given in `pReserved` (NSS).
    pub parameters: Option<String>,
    /// Mechanisms that it is not asked for.
    pub without: Vec<CK_MECHANISM_TYPE>,
    /// What it does for every caller.
    pub serves: Serves,
}

/// What a module does without a key, whatever token a caller's session is of.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Serves {
    /// Digests.
    pub digest: bool,
    /// Random numbers.
    pub random: bool,
}
