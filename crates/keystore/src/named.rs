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
use std::thread;
use std::time::Duration;

/// So often the log is cut, until no process reads what is to be gone from it: most reads take less than a millisecond.
const CUTS: u32 = 100;
/// In between.
const PAUSE: Duration = Duration::from_millis(20);

/// [`metaslot_spi::store::Store::login_as`]
pub(crate) fn login(store: &SqliteStore, name: Name, pin: &[u8]) -> Result<()> {
    let keys = || attempt(store, name, pin).map(|(keys, _)| keys);
    pin::admit(store, keys()?, keys)
}

/// [`metaslot_spi::store::Store::check_pin_as`]
pub(crate) fn check(store: &SqliteStore, name: Name, pin: &[u8]) -> Result<()> {
    store.confirm(&attempt(store, name, pin)?.0)
}

/// [`metaslot_spi::store::Store::set_pin_as`]
pub(crate) fn change(store: &SqliteStore, name: Name, old: &[u8], new: &[u8]) -> Result<()> {
    let (keys, identity) = attempt(store, name, old)?;
    set_pin(store, &keys, &identity, new)
}

fn pins(store: &SqliteStore) -> Pins<'_> {
    Pins { cost: store.config.kdf, pepper: store.config.pepper.as_deref() }
}

/// Counts, tries, and takes the count back after a right PIN. Gives the keys, and whose PIN it was, as it was then.
fn attempt(store: &SqliteStore, name: Name, pin: &[u8]) -> Result<(Keys, Identity)> {
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
            target.counted.map(|identity| (keys, identity)).ok_or(Error::IdentityRefused)
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

/// [`metaslot_spi::store::Store::retry_at`]
pub(crate) fn retry_at(store: &SqliteStore, name: Name) -> Result<u64> {
    let token = store.gate.read(|database| database.snapshot(|read| Ok(Token::read(read)?)))?;
    let found = token.as_ref().and_then(|token| token.identities.find(name));
    let Some(mut pin) = found.map(|identity| identity.pin.clone()) else { return Ok(0) };
    let now = now();
    if pin.failed_at > now {
        // Where that cannot be written its end would never come: a try says why.
        if in_place(store, set_back).is_err() {
            return Ok(0);
        }
        pin.failed_at = now;
    }
    Ok(pin_state(&pin, now).retry_at)
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
        Asked::SetPin(name, NewPin(pin)) => {
            let token = read(store, &keys)?;
            set_pin(store, &keys, token.identities.existing(name)?, pin)?;
        }
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

/// By itself, as it was when its PIN was tried, or by the officer. The wrap is bound to its incarnation. What the officer has set
/// since an identity's own PIN was tried stays.
fn set_pin(store: &SqliteStore, keys: &Keys, identity: &Identity, pin: &[u8]) -> Result<()> {
    let wrap = pins(store).wrap_of(keys, identity, pin)?;
    change_set(store, keys, |connection, token| {
        token.identities.check_still(keys, identity)?;
        token.identities.set_wrap(identity.name, wrap.clone())?;
        connection.execute(
            "UPDATE identity SET wrap = ?2, failures = 0, failed_at = 0 WHERE name = ?1",
            (identity.name.as_str(), &wrap),
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
    for _ in 0..CUTS {
        let cut = store.gate.write_in_turn(|database| {
            let is_cut = database.end_log()?;
            database.files.reserve_log();
            Ok(is_cut)
        });
        if cut.unwrap_or(true) {
            break;
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kdf::{Cost, Kdf};
    use crate::open::Config;
    use crate::wrap;
    use metaslot_spi::store::{Change, Record, Store as _};
    use std::path::{Path, PathBuf};

    const SO: &[u8] = b"so-pin-1";

    fn place(name: &str) -> PathBuf {
        let name = format!("metaslot-keystore-{}-{name}", std::process::id());
        std::env::temp_dir().join(name)
    }

    fn store(place: &Path, passes: u32) -> SqliteStore {
        let kdf = Cost::Fixed(Kdf::Argon2id { memory_kib: 64, passes, lanes: 1 });
        SqliteStore::new(Config { kdf, ..Config::new(place.join("db")) })
    }

    fn name(name: &str) -> Name {
        Name::new(name.as_bytes()).expect("it is one")
    }

    fn officer(store: &SqliteStore, asked: Asked<'_>) {
        administer(store, (Role::So, SO), asked, &mut |_| true).expect("the officer may");
    }

    #[test]
    fn a_pin_that_the_officer_has_replaced_meanwhile_sets_no_other() {
        let place = place("replaced-meanwhile");
        let (mine, web) = (store(&place, 1), name("web"));
        mine.initialize(SO, "token").expect("it is made");
        officer(&mine, Asked::Add(web, NewPin(b"first")));
        let (keys, identity) = attempt(&mine, web, b"first").expect("the PIN is right");
        officer(&store(&place, 1), Asked::SetPin(web, NewPin(b"second")));
        let set = set_pin(&mine, &keys, &identity, b"third");
        assert!(matches!(set, Err(Error::IdentityRefused)), "{set:?}");
        attempt(&mine, web, b"second").expect("it is what the officer has set");
        std::fs::remove_dir_all(&place).expect("it goes");
    }

    #[test]
    fn what_waits_while_its_identity_is_revoked_is_not_written() {
        let place = place("waits-meanwhile");
        let (mine, web) = (store(&place, 1), name("web"));
        mine.initialize(SO, "token").expect("it is made");
        for is_shared in [false, true] {
            officer(&mine, Asked::Add(web, NewPin(b"a pin")));
            mine.login_as(web, b"a pin").expect("the PIN is right");
            let incarnation = mine.incarnation(web).expect("it is known").expect("it is there");
            if is_shared {
                mine.share_login().expect("there is memory");
            }
            let by = (mine.keys(), is_shared.then_some((web, incarnation)));
            let record = Record { private: true, attributes: vec![], secrets: None, terms: vec![] };
            let written = mine.queue.submit(vec![Change::Insert(record)], by, |take| {
                officer(&store(&place, 1), Asked::Revoke(web));
                mine.commit_group(take);
            });
            assert!(matches!(written, Err(Error::NotLoggedIn)), "{is_shared}: {written:?}");
            mine.logout();
        }
        std::fs::remove_dir_all(&place).expect("it goes");
    }

    #[test]
    fn an_attempt_costs_the_same_when_its_name_is_locked() {
        let place = place("costs");
        let mine = store(&place, 1);
        mine.initialize(SO, "token").expect("it is made");
        let all: Vec<_> = (1..=6).map(|passes| (passes, name(&format!("web-{passes}")))).collect();
        for (passes, name) in &all {
            officer(&store(&place, *passes), Asked::Add(*name, NewPin(b"a pin")));
        }
        let cost = |failures: u32, name: Name| {
            let lock = "UPDATE identity SET failures = ?1";
            in_place(&mine, |database| Ok(database.connection.execute(lock, [failures])?))
                .expect("it can be written");
            let token = mine.gate.read(|database| Ok(Token::read(&database.connection)?));
            let token = token.expect("it is there").expect("it is there");
            let target = pins(&mine).target(&token, name, now()).expect("it can be tried");
            assert_eq!(target.counted.is_none(), failures > 0);
            wrap::kdf(&target.wrap).expect("it says what it costs")
        };
        for (passes, name) in all {
            let own = Kdf::Argon2id { memory_kib: 64, passes, lanes: 1 };
            assert_eq!([cost(0, name), cost(10, name)], [own, own], "{name:?}");
        }
        std::fs::remove_dir_all(&place).expect("it goes");
    }
}
