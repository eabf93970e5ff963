// SPDX-License-Identifier: Apache-2.0
//! What a token is called, and its end.

use crate::error::{Error, Result};
use crate::fork::{self, Process};
use crate::gate::Database;
use crate::open::SqliteStore;
use crate::pin;
use crate::schema::{Head, Token};
use crate::state;
use crate::uncounted;
use metaslot_spi::store::{Examined, Role};

/// Gives the token another label. It is authenticated, as everything in the token's row.
pub(crate) fn rename(store: &SqliteStore, role: Role, pin: &[u8], label: &str) -> Result<Examined> {
    let keys = pin::keys(store, role, pin)?;
    store.upgrade(&keys)?;
    store.transact_sealed(&keys, |database| {
        database.check_current()?;
        let mut state = state::of(&database.connection, &keys)?;
        state.label = state::name(Some(label.as_bytes()));
        state.write(&database.connection, &keys)?;
        database.connection.execute("UPDATE token SET label = ?1", [label])?;
        Ok(Examined::default())
    })
}

/// The id of the first object of a token.
const FIRST_ID: u64 = 1;

/// Takes the token's files away, by the officer's PIN.
///
/// # Errors
/// [`Error::File`] while another process has the token open, which would go on with a token that is no more.
pub(crate) fn remove(store: &SqliteStore, role: Role, pin: &[u8], label: &str) -> Result<Examined> {
    let keys = pin::keys(store, role, pin)?;
    if role != Role::So {
        return Err(Error::NotLoggedIn);
    }
    let files = store.files.resolve()?;
    files.check_directory()?;
    let locks = store.gate.locks()?;
    let _attempt = locks.login.hold()?;
    let _turn = locks.queue.hold()?;
    // Another process may have made the token anew since the PIN was tried, or renamed it.
    let now = store.gate.read(|database| {
        let token = Token::read(&database.connection)?;
        let head = Head::read(&database.connection)?;
        Ok((head.key_id, token, head.next_id))
    })?;
    let (key, token, next_id) = now;
    if key != keys.id {
        return Err(Error::NotLoggedIn);
    }
    let Some(token) = token.filter(|token| token.label == label) else {
        return Err(Error::file(&files.database, "remove", "it has another label"));
    };
    store.set_keys(None);
    // A kill after the first file leaves the log: an empty one, but where the disk is full.
    store.gate.write(Database::end_log).unwrap_or_default();
    let _closed = Closed::begin();
    if let Some(user) = files.user()? {
        return Err(Error::file(&files.database, "remove", format!("{user} has it open")));
    }
    // A process that was forked has the token closed, and its keys still: at its next use it looks.
    store.gate.announce_end(|| files.remove())?;
    for role in [Role::So, Role::User] {
        let row = pin::pin_row(&token, role);
        uncounted::remove(&store.config.volatile, &keys.serial, role, row);
    }
    // Otherwise it refuses older copies still. In this one nothing ever was.
    if next_id == FIRST_ID {
        store.forget_anchor(&keys.serial);
    }
    Ok(Examined::default())
}

/// No connection of this process is open, nor opened, while this lives.
struct Closed;

impl Closed {
    fn begin() -> Self {
        fork::before();
        Process::current().let_go();
        Self
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        fork::after();
    }
}
