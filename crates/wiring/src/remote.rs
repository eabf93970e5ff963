// SPDX-License-Identifier: Apache-2.0
//! Tokens in databases that several machines share: `metaslotd` opens them. The library in a program does not: it would bring
//! connections and a thread into whatever process loads it.

use crate::config::PinSource;
use metaslot_keystore::Cost;
use metaslot_spi::store::Store;
use std::path::PathBuf;
use std::time::Duration;

/// What opens such a store.
pub type Open = fn(Remote) -> Result<Box<dyn Store>, String>;

/// What a configuration says of one.
#[derive(Debug)]
pub struct Remote {
    /// Where the database is, and which token. No password is in it.
    pub url: String,
    /// Where the password of the database's role is, if it has one.
    pub password: Option<PinSource>,
    /// For how long what was read goes on being used while the database is away.
    pub away: Option<Duration>,
    /// What makes guessing PINs expensive.
    pub kdf: Cost,
    /// The shortest PIN that may be set.
    pub shortest_pin: usize,
    /// A file of this machine that every PIN is mixed with.
    pub pepper: Option<PathBuf>,
    /// A file of this machine that remembers the token's last change.
    pub anchor: Option<PathBuf>,
}

impl Remote {
    pub(crate) fn open(self, open: Option<Open>) -> Result<Box<dyn Store>, String> {
        match open {
            Some(open) => open(self),
            None => Err(format!(
                "the token in {} is in a database, which metaslotd opens: a program has it through a [[foreign]] section \
                 with the daemon's socket",
                self.url
            )),
        }
    }
}
