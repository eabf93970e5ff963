// SPDX-License-Identifier: Apache-2.0
//! Logins of identities to a store in SQLite, and what its officer does with them.
//!
//! A wrong PIN, a locked one and an unknown name cannot be told apart: each attempt is counted in some row, derives a key at the
//! cost of some identity's PIN, and has the same answer.
//!
//! Locks are taken in the order of [`crate::pin`]. An attempt is counted in the store or not made: neither fast logins nor
//! counts in memory are for identities.

use crate::crypto::Keys;
use crate::elsewhere::{Pins, pin_state};
use crate::error::{Error, Result};
use crate::format::IDENTITIES;
use crate::gate::Database;
use crate::identity::Identity;
use crate::open::SqliteStore;
use crate::pin::{self, in_place};
use crate::schema::{CREATE_IDENTITY, Token, now, signed};
use crate::state;
use metaslot_counters as counters;
use metaslot_spi::store::{Examined, Identities as Asked, Name, NewPin, Remark, Role};
use rusqlite::Connection;

/// [`metaslot_spi::store::Store::login_as`]
pub(crate) fn login(store: &SqliteStore, name: Name, pin: &[u8]) -> Result<()> {
    pin::admit(store, keys(store, name, pin)?, || keys(store, name, pin))
}

/// [`metaslot_spi::store::Store::check_pin_as`]
pub(crate) fn check(store: &SqliteStore, name: Name, pin: &[u8]) -> Result<()> {
    store.confirm(&keys(store, name, pin)?)
}

/// [`metaslot_spi::store::Store::set_pin_as`]
pub(crate) fn change(store: &SqliteStore, name: Name, old: &[u8], new: &[u8]) -> Result<()> {
    let keys = keys(store, name, old)?;
    set_pin(store, &keys, name, new)
}

fn pins(store: &SqliteStore) -> Pins<'_> {
    Pins { cost: store.config.kdf, pepper: store.config.pepper.as_deref() }
}

/// Counts, tries, and takes the count back after a right PIN.
fn keys(store: &SqliteStore, name: Name, pin: &[u8]) -> Result<Keys> {
    let locks = store.gate.locks()?;
    let _attempt = locks.login.hold()?;
    let target = in_place(store, |database| {
        let token = Token::read(&database.connection)?;
        let token = token.ok_or_else(|| Error::not_token("its own row is missing"))?;
        let target = pins(store).target(&token, name, now())?;
        let counted = target.counted.as_ref();
        let failures = counted.map_or(0, |identity| identity.pin.failures + 1);
        write_count(database, counted, failures, now())?;
        if counted.is_none() {
            set_back(database)?;
        }
        Ok(target)
    })?;
    let clear = |failures, failed_at| {
        in_place(store, |database| {
            write_count(database, target.counted.as_ref(), failures, failed_at)
        })
    };
    match pins(store).try_at(&target, pin) {
        Ok(Some(keys)) => {
            // The PIN was right; on a disk that has become full the count stays until the next right one.
            clear(0, 0).unwrap_or_default();
            Ok(keys)
        }
        Ok(None) => {
            counters::event(counters::Event::LoginFailure);
            Err(Error::IdentityRefused)
        }
        // No PIN was tried: memory was short, say.
        Err(error) => {
            if let Some(identity) = &target.counted {
                clear(identity.pin.failures, identity.pin.failed_at).unwrap_or_default();
            }
            Err(error)
        }
    }
}

/// In the row of an identity, or in the one without a name, so that both cost the same.
fn write_count(
    database: &Database,
    counted: Option<&Identity>,
    failures: u32,
    failed_at: u64,
) -> Result<()> {
    if database.pragma::<i64>("user_version")? < IDENTITIES {
        return Ok(());
    }
    let name = counted.map_or("", |identity| identity.name.as_str());
    let statement = "UPDATE identity SET failures = ?2, failed_at = ?3 WHERE name = ?1";
    let statement = database.connection.prepare_cached(statement);
    statement?.execute((name, failures, signed(failed_at)))?;
    Ok(())
}

/// As for other PINs: a failure that is yet to come is one of now.
fn set_back(database: &Database) -> Result<()> {
    if database.pragma::<i64>("user_version")? < IDENTITIES {
        return Ok(());
    }
    let statement = "UPDATE identity SET failed_at = ?1 WHERE failed_at > ?1";
    database.connection.prepare_cached(statement)?.execute([signed(now())])?;
    Ok(())
}

/// [`metaslot_spi::store::Examination::Identities`]
///
/// # Errors
/// [`Error::NotLoggedIn`] for another PIN than the officer's; [`Error::Identity`]
pub(crate) fn administer(
    store: &SqliteStore,
    (role, pin): (Role, &[u8]),
    asked: Asked<'_>,
    remark: &mut dyn FnMut(Remark<'_>) -> bool,
) -> Result<Examined> {
    let keys = pin::keys(store, role, pin)?;
    if role != Role::So {
        return Err(Error::NotLoggedIn);
    }
    store.confirm(&keys)?;
    match asked {
        Asked::List => {
            for identity in read(store, &keys)?.identities.iter() {
                remark(Remark::Identity(identity.name, pin_state(&identity.pin, now())));
            }
        }
        Asked::Add(name, NewPin(pin)) => add(store, &keys, name, pin)?,
        Asked::Revoke(name) => revoke(store, &keys, name)?,
        Asked::SetPin(name, NewPin(pin)) => set_pin(store, &keys, name, pin)?,
    }
    Ok(Examined::default())
}

/// The token as it was last written.
fn read(store: &SqliteStore, keys: &Keys) -> Result<Token> {
    store.gate.look(|database| {
        database.snapshot(|connection| {
            state::of(connection, keys)?;
            let token = Token::read(connection)?;
            token.ok_or_else(|| Error::not_token("its own row is missing"))
        })
    })
}

fn add(store: &SqliteStore, keys: &Keys, name: Name, pin: &[u8]) -> Result<()> {
    let made = pins(store).identity(keys, name, pin)?;
    change_set(store, keys, |connection, token| {
        token.identities.add(made.clone())?;
        if connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))?
            < IDENTITIES
        {
            create(connection)?;
        }
        insert(connection, &made)
    })
}

/// What comes with the first identity.
pub(crate) fn create(connection: &Connection) -> Result<()> {
    connection.execute_batch(CREATE_IDENTITY)?;
    connection.execute("INSERT INTO identity VALUES('', 0, x'', 0, 0)", ())?;
    Ok(connection.pragma_update(None, "user_version", IDENTITIES)?)
}

pub(crate) fn insert(connection: &Connection, identity: &Identity) -> Result<()> {
    let Identity { name, incarnation, pin } = identity;
    let failed_at = signed(pin.failed_at);
    connection.execute(
        "INSERT INTO identity VALUES(?1, ?2, ?3, ?4, ?5)",
        (name.as_str(), incarnation.cast_signed(), &pin.wrap, pin.failures, failed_at),
    )?;
    Ok(())
}

fn revoke(store: &SqliteStore, keys: &Keys, name: Name) -> Result<()> {
    change_set(store, keys, |connection, token| {
        token.identities.remove(name)?;
        connection.execute("DELETE FROM identity WHERE name = ?1", [name.as_str()])?;
        Ok(())
    })
}

/// By itself, whose incarnation is in the keys, or by the officer.
fn set_pin(store: &SqliteStore, keys: &Keys, name: Name, pin: &[u8]) -> Result<()> {
    let token = read(store, keys)?;
    let identity = token.identities.existing(name)?;
    let wrap = pins(store).wrap_of(keys, identity, pin)?;
    change_set(store, keys, |connection, token| {
        // The wrap is bound to it.
        if token.identities.existing(name)?.incarnation != identity.incarnation
            || keys.bound.is_some_and(|bound| bound != (name, identity.incarnation))
        {
            return Err(Error::NotLoggedIn);
        }
        token.identities.set_wrap(name, wrap.clone())?;
        connection.execute(
            "UPDATE identity SET wrap = ?2, failures = 0, failed_at = 0 WHERE name = ?1",
            (name.as_str(), &wrap),
        )?;
        Ok(())
    })
}

/// One transaction in which `change` is made of the set, as it is in the state, and of the rows. What was written over or taken
/// out is not left behind in the files.
fn change_set(
    store: &SqliteStore,
    keys: &Keys,
    change: impl FnOnce(&Connection, &mut Token) -> Result<()>,
) -> Result<()> {
    store.transact_sealed(keys, |database| {
        database.check_current()?;
        let connection = &database.connection;
        let mut state = state::of(connection, keys)?;
        let token = Token::read(connection)?;
        let mut token = token.ok_or_else(|| Error::not_token("its own row is missing"))?;
        connection.execute_batch("PRAGMA secure_delete = ON")?;
        let changed = change(connection, &mut token);
        connection.execute_batch("PRAGMA secure_delete = OFF")?;
        changed?;
        state.identities = state::identities(&token.identities);
        state.write(connection, keys)
    })?;
    // Another process may read the log: then what is in it goes with a later checkpoint.
    let emptied = store.gate.write_in_turn(|database| {
        database.end_log()?;
        database.files.reserve_log();
        Ok(())
    });
    emptied.unwrap_or_default();
    Ok(())
}
