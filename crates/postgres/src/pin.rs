// SPDX-License-Identifier: Apache-2.0
//! PINs: counted before they are tried, in a transaction of its own, one at a time over all machines.
//!
//! Order of locks: who tries a PIN in this process, the turn on the connection for transactions, the token's advisory lock, its row.
//! While a key is derived neither the row is locked nor the turn taken: others write meanwhile.

use crate::link::{Open, lock};
use crate::open::{PostgresStore, Result, SNAPSHOT, announced};
use crate::rows::{Whole, signed};
use crate::schema;
use metaslot_counters as counters;
use metaslot_keystore::Error;
use metaslot_keystore::elsewhere::{self, Keys, PinRow};
use metaslot_spi::store::{Examined, Role};
use std::sync::MutexGuard;

/// Before the token's number: no other program's advisory locks ("MSLT").
const LOCKS: i32 = 0x4d53_4c54;

/// Who tries a PIN of this token. The server takes it back with the connection, and ends that where nothing is heard of it for
/// half a minute: a machine without power, or a process that is stopped, keeps no other one from trying.
pub(crate) struct Attempt<'a> {
    pub(crate) open: &'a Open<'a>,
    token: i32,
    /// None while a key is derived.
    turn: Option<MutexGuard<'a, ()>>,
    _trying: MutexGuard<'a, ()>,
}

impl<'a> Attempt<'a> {
    pub(crate) fn begin(open: &'a Open<'a>) -> Result<Self> {
        let trying = lock(&open.lines.trying);
        let token = Whole::read(open)?.number;
        let turn = lock(&open.lines.turn);
        let sql =
            "SELECT pg_advisory_lock($1, $2), set_config('idle_session_timeout', '30s', false)";
        open.write(sql, &[&LOCKS, &token])?;
        Ok(Self { open, token, turn: Some(turn), _trying: trying })
    }

    /// Derives a key, which takes long.
    pub(crate) fn derive<T>(&mut self, key: impl FnOnce() -> T) -> T {
        self.turn = None;
        let derived = key();
        self.turn = Some(lock(&self.open.lines.turn));
        derived
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        // A panic may have come in between.
        self.turn.get_or_insert_with(|| lock(&self.open.lines.turn));
        let sql =
            "SELECT pg_advisory_unlock($1, $2), set_config('idle_session_timeout', '0', false)";
        if self.open.write(sql, &[&LOCKS, &self.token]).is_err() {
            self.open.give_up();
        }
    }
}

/// `C_Login`
pub(crate) fn login(store: &PostgresStore, role: Role, pin: &[u8]) -> Result<()> {
    store.set_keys(Some(check(store, role, pin)?));
    Ok(())
}

/// Tries a PIN, and refuses a token that is not as it was last written. Gives its keys.
pub(crate) fn check(store: &PostgresStore, role: Role, pin: &[u8]) -> Result<Keys> {
    let open = store.link.open()?;
    let mut by = Attempt::begin(&open)?;
    let keys = attempt(store, &mut by, role, pin)?;
    confirm(store, &open, &keys)?;
    Ok(keys)
}

/// Only tries a PIN, whatever else is wrong with the token.
pub(crate) fn keys(store: &PostgresStore, open: &Open<'_>, role: Role, pin: &[u8]) -> Result<Keys> {
    attempt(store, &mut Attempt::begin(open)?, role, pin)
}

pub(crate) fn confirm(store: &PostgresStore, open: &Open<'_>, keys: &Keys) -> Result<()> {
    let floor = store.floor(keys);
    let head = store.around(open, SNAPSHOT, || {
        let whole = Whole::here(open)?.complete(open)?;
        let sql = "SELECT count(*) FROM metaslot.object WHERE token = $1 AND verified";
        let rows = open.write(sql, &[&whole.number])?;
        let there: i64 = rows.first().and_then(|row| row.try_get(0).ok()).unwrap_or(0);
        let there = u64::try_from(there).unwrap_or(0);
        elsewhere::confirm(keys, &whole.token, &whole.head, there)?;
        store.check_floor(keys, &whole.head, floor)?;
        Ok((whole.head, None))
    })?;
    store.follow(open, keys, &head)
}

/// Counts, tries, and takes the count back after a right PIN.
pub(crate) fn attempt(
    store: &PostgresStore,
    by: &mut Attempt<'_>,
    role: Role,
    pin: &[u8],
) -> Result<Keys> {
    let open = by.open;
    let whole = store.transact(open, |whole| {
        let row = pin_row(&whole, role);
        store.pins().can_try(row)?;
        elsewhere::may_try(row, whole.now)?;
        let counted = PinRow { failures: row.failures + 1, failed_at: whole.now, wrap: None };
        write_count(open, whole.number, role, &counted)?;
        Ok((whole, false))
    })?;
    let before = pin_row(&whole, role);
    match by.derive(|| store.pins().open(&whole.token, role, pin)) {
        Ok(Some(keys)) => {
            let none = PinRow { failures: 0, failed_at: 0, wrap: None };
            write_count(open, whole.number, role, &none)?;
            Ok(keys)
        }
        Ok(None) => {
            counters::event(counters::Event::LoginFailure);
            Err(elsewhere::refused(before))
        }
        // No PIN was tried: memory was short, say.
        Err(error) => {
            write_count(open, whole.number, role, before).unwrap_or_default();
            Err(error)
        }
    }
}

const fn pin_row(whole: &Whole, role: Role) -> &PinRow {
    match role {
        Role::So => &whole.token.so,
        Role::User => &whole.token.user,
    }
}

fn write_count(open: &Open<'_>, token: i32, role: Role, row: &PinRow) -> Result<()> {
    let sql = match role {
        Role::So => "UPDATE metaslot.token SET so_failures = $2, so_failed_at = $3 WHERE id = $1",
        Role::User => {
            "UPDATE metaslot.token SET user_failures = $2, user_failed_at = $3 WHERE id = $1"
        }
    };
    let failures = i32::try_from(row.failures).unwrap_or(i32::MAX);
    open.write(sql, &[&token, &failures, &signed(row.failed_at)]).map(drop)
}

/// `C_SetPIN`
pub(crate) fn change(store: &PostgresStore, role: Role, old: &[u8], new: &[u8]) -> Result<()> {
    let open = store.link.open()?;
    let mut by = Attempt::begin(&open)?;
    let keys = attempt(store, &mut by, role, old)?;
    set(store, &mut by, &keys, role, new)
}

/// `C_InitPIN`
pub(crate) fn init_user(store: &PostgresStore, pin: &[u8]) -> Result<()> {
    let keys = store.keys().filter(|keys| keys.role() == Role::So).ok_or(Error::NotLoggedIn)?;
    let open = store.link.open()?;
    set(store, &mut Attempt::begin(&open)?, &keys, Role::User, pin)
}

/// A new PIN: its wrap, and no failures.
fn set(
    store: &PostgresStore,
    by: &mut Attempt<'_>,
    keys: &Keys,
    role: Role,
    pin: &[u8],
) -> Result<()> {
    let (open, wrap) = (by.open, by.derive(|| store.pins().wrap(keys, role, pin))?);
    let head = store.transact(open, |whole| {
        let mut whole = whole.complete(open)?;
        store.advance_anchor(keys, &whole.head)?;
        let (token, head) = (&whole.token, &whole.head);
        let state = elsewhere::with_pin(keys, token, head, (role, &wrap))?;
        store.check_floor(keys, head, store.floor(keys))?;
        let sql = match role {
            Role::So => {
                "UPDATE metaslot.token SET row_set = $2, so_wrap = $3, so_failures = 0,
                        so_failed_at = 0 WHERE id = $1"
            }
            Role::User => {
                "UPDATE metaslot.token SET row_set = $2, user_wrap = $3, user_failures = 0,
                        user_failed_at = 0 WHERE id = $1"
            }
        };
        open.write(sql, &[&whole.number, &state, &wrap])?;
        whole.head.state = state;
        Ok((whole.head, true))
    })?;
    store.follow(open, keys, &head)
}

/// `C_InitToken`
pub(crate) fn initialize(store: &PostgresStore, so_pin: &[u8], label: &str) -> Result<()> {
    store.set_keys(None);
    let open = store.link.open()?;
    let turn = lock(&open.lines.turn);
    match Whole::read(&open) {
        Ok(_) => {
            drop(turn);
            empty(store, &open, so_pin, label)
        }
        Err(Error::Uninitialized { .. }) => create(store, &open, so_pin, label),
        Err(error) => Err(error),
    }
}

/// A token where none is, with the tables where these are not there.
fn create(store: &PostgresStore, open: &Open<'_>, so_pin: &[u8], label: &str) -> Result<()> {
    let serial = elsewhere::new_serial()?;
    let anchor = store.config.anchor.as_deref();
    let check = |anchor| elsewhere::check_anchor(anchor, open.place(), &serial).map(drop);
    anchor.map_or(Ok(()), check)?;
    let (token, head, keys) = store.pins().new_token(serial, so_pin, label, (1, 0))?;
    store.around(open, "BEGIN", || {
        schema::migrate(open, open.place())?;
        let sql =
            "INSERT INTO metaslot.token(name, serial, label, key_id, so_wrap, next_id, row_set)
                   VALUES($1, $2, $3, $4, $5, $6, $7)";
        let (serial, key) = (serial.as_slice(), head.key_id.as_slice());
        let next = signed(head.next_id);
        open.write(
            sql,
            &[&open.name(), &serial, &label, &key, &token.so.wrap, &next, &head.state],
        )?;
        Ok(((), Some(announced(open)?)))
    })?;
    store.follow(open, &keys, &head)
}

/// The same token with a new master key and nothing in it. Ids and the count of changes go on where they were.
fn empty(store: &PostgresStore, open: &Open<'_>, so_pin: &[u8], label: &str) -> Result<()> {
    let mut by = Attempt::begin(open)?;
    let old = attempt(store, &mut by, Role::So, so_pin)?;
    let (keys, head) = store.transact(open, |whole| {
        let serial = whole.token.serial;
        let anchor = store.config.anchor.as_deref();
        let seen = |anchor| elsewhere::check_anchor(anchor, open.place(), &serial);
        let seen = anchor.map_or(Ok(0), seen)?;
        let commits = elsewhere::commits(&old, &whole.head).max(seen) + 1;
        let next = (whole.head.next_id, commits);
        let (token, head, keys) = store.pins().new_token(serial, so_pin, label, next)?;
        for table in ["object", "lookup", "tree"] {
            let sql = format!("DELETE FROM metaslot.{table} WHERE token = $1");
            open.write(&sql, &[&whole.number])?;
        }
        if whole.version >= schema::IDENTITIES {
            let sql = "DELETE FROM metaslot.identity WHERE token = $1 AND name <> ''";
            open.write(sql, &[&whole.number])?;
        }
        let sql =
            "UPDATE metaslot.token SET label = $2, key_id = $3, so_wrap = $4, so_failures = 0,
                          so_failed_at = 0, user_wrap = NULL, user_failures = 0, user_failed_at = 0,
                          row_set = $5 WHERE id = $1";
        let key = head.key_id.as_slice();
        open.write(sql, &[&whole.number, &label, &key, &token.so.wrap, &head.state])?;
        Ok(((keys, head), true))
    })?;
    store.follow(open, &keys, &head)
}

/// Does something that needs a PIN each time.
fn examined(
    store: &PostgresStore,
    (role, pin): (Role, &[u8]),
    work: impl FnOnce(&Open<'_>, Keys) -> Result<()>,
) -> Result<Examined> {
    let open = store.link.open()?;
    let keys = keys(store, &open, role, pin)?;
    let _turn = lock(&open.lines.turn);
    work(&open, keys).map(|()| Examined::default())
}

/// Another label.
pub(crate) fn rename(store: &PostgresStore, who: (Role, &[u8]), label: &str) -> Result<Examined> {
    examined(store, who, |open, keys| {
        let head = store.transact(open, |whole| {
            let mut whole = whole.complete(open)?;
            store.advance_anchor(&keys, &whole.head)?;
            let state = elsewhere::with_label(&keys, &whole.token, &whole.head, label)?;
            store.check_floor(&keys, &whole.head, store.floor(&keys))?;
            let sql = "UPDATE metaslot.token SET row_set = $2, label = $3 WHERE id = $1";
            open.write(sql, &[&whole.number, &state, &label])?;
            whole.head.state = state;
            Ok((whole.head, true))
        })?;
        store.follow(open, &keys, &head)
    })
}

/// No token any more, by the officer's PIN.
pub(crate) fn remove(store: &PostgresStore, who: (Role, &[u8]), label: &str) -> Result<Examined> {
    examined(store, who, |open, _| {
        store.transact(open, |whole| {
            if whole.token.label != label {
                return Err(Error::not_token("it has another label by now"));
            }
            announced(open)?;
            open.write("DELETE FROM metaslot.token WHERE id = $1", &[&whole.number])?;
            Ok(((), false))
        })?;
        store.set_keys(None);
        Ok(())
    })
}
