// SPDX-License-Identifier: Apache-2.0
//! SQLite's log: when commits reach the disk, and when the log goes into the database.

use crate::error::Result;
use crate::gate::{BUSY, Database, Gate};
use crate::lock::Lock;
use rusqlite::Connection;
use std::time::Duration;

/// How many pages of log are worth a checkpoint when a store is closed. Reading a thousand costs
/// anyone who opens next a millisecond.
const LONG_LOG: i64 = 128;

/// Until it goes, commits are not synced; those that follow it are, and take these with them.
#[derive(Debug)]
pub(crate) struct Unsynced<'a>(&'a Connection);

impl Drop for Unsynced<'_> {
    fn drop(&mut self) {
        // Within a transaction it stays as it is: one is open where a call panicked, and is none that counts.
        let end = if self.0.is_autocommit() { "" } else { "ROLLBACK;" };
        self.0.execute_batch(&format!("{end} PRAGMA synchronous = FULL")).ok();
    }
}

impl Database {
    /// See [`Unsynced`].
    pub(crate) fn unsynced(&self) -> Result<Unsynced<'_>> {
        self.connection.execute_batch("PRAGMA synchronous = NORMAL")?;
        Ok(Unsynced(&self.connection))
    }

    /// Empties a long log, so that the next to open need not read it: before the last close, and at a fast login, whose process may
    /// end without one. Where another process is at work, or anything else is in the way, the log stays as it is: a writer that has
    /// another index, because this one's was taken away, would not be kept off by SQLite's locks.
    pub(crate) fn settle(&self, gate: &Gate) {
        if !self.writable || !self.checkpoint("NOOP").is_ok_and(|pages| pages > LONG_LOG) {
            return;
        }
        let queue = Lock::open(&self.files.queue, self.files.mode(false));
        let Ok(queue) = queue else { return };
        let Some(_turn) = queue.try_hold().filter(|_| !gate.is_replaced(self)) else { return };
        if self.end_log().is_ok() {
            // Anyone who has another index looks for pages in a log that is cut.
            gate.announce(self, || Ok(())).unwrap_or_default();
            let shared = self.shared.as_ref();
            let _unopened = shared.map(|shared| shared.opened());
            self.files.reserve_log();
        }
        if gate.is_replaced(self) {
            self.files.forget_index();
        }
    }

    /// Moves the log into the database, as far as no reader needs it: the next writer then begins it anew in its place. That needs
    /// no space but for new pages of the database.
    pub(crate) fn empty_log(&self) -> Result<()> {
        self.checkpoint("PASSIVE").map(drop)
    }

    /// Moves all of the log into the database, where no reader needs it, and cuts it. Whether it is cut.
    pub(crate) fn end_log(&self) -> Result<bool> {
        self.connection.busy_timeout(Duration::ZERO)?;
        let cut = "PRAGMA wal_checkpoint(TRUNCATE)";
        let is_busy = self.connection.query_row(cut, (), |row| row.get::<_, bool>(0));
        self.connection.busy_timeout(BUSY)?;
        Ok(!is_busy?)
    }

    /// How many pages the log has.
    fn checkpoint(&self, mode: &str) -> Result<i64> {
        let checkpoint = format!("PRAGMA wal_checkpoint({mode})");
        Ok(self.connection.query_row(&checkpoint, (), |row| row.get(1))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_synced_again_even_after_a_panic() {
        let connection = Connection::open_in_memory().unwrap();
        let level = || connection.query_row("PRAGMA synchronous", (), |row| row.get::<_, i64>(0));
        for begun in ["", "BEGIN IMMEDIATE"] {
            connection.execute_batch("PRAGMA synchronous = NORMAL").unwrap();
            let unsynced = Unsynced(&connection);
            connection.execute_batch(begun).unwrap();
            assert_eq!(level(), Ok(1));
            drop(unsynced);
            assert_eq!(level(), Ok(2), "FULL, after {begun:?}");
        }
    }
}
