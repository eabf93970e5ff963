// SPDX-License-Identifier: Apache-2.0
//! PINs: counted before they are tried, one at a time over all processes.
//!
//! Order of locks: login file, writers' queue, the writing connection, the reading one. Neither
//! connection is held while a key is derived.

use crate::crypto::{self, Keys, Serial};
use crate::error::{Error, Result};
use crate::fast;
use crate::files;
use crate::format::{APPLICATION, FORMAT, IDENTITIES};
use crate::gate::Database;
use crate::kdf::Kdf;
use crate::limit::{MAX_FAILURES, may_try, retry_at};
use crate::open::{Announce, Owed, SqliteStore};
use crate::pepper;
use crate::schema::{CREATE, CREATE_TREE, CREATE_UNVERIFIED, PinRow, Token, now, signed};
use crate::state::{self, State};
use crate::uncounted;
use crate::wrap;
use metaslot_counters as counters;
use metaslot_memory::Secret;
use metaslot_spi::store::{PinState, Role};
use std::sync::atomic::Ordering;

/// What may be told about a counter.
pub(crate) fn state(row: &PinRow, now: u64) -> PinState {
    let left = MAX_FAILURES.saturating_sub(row.failures);
    let kdf = row.wrap.as_deref().and_then(|wrap| wrap::kdf(wrap).ok());
    let cost = kdf.map(Kdf::cost).unwrap_or_default();
    let retry_at = retry_at(row.failures, row.failed_at, now);
    PinState { failures: row.failures, left, retry_at, cost }
}

/// `C_Login`
pub(crate) fn login(store: &SqliteStore, role: Role, pin: &[u8]) -> Result<()> {
    admit(store, keys(store, role, pin)?, || keys(store, role, pin))
}

/// [`metaslot_spi::store::Store::retry_at`] of the user.
pub(crate) fn user_retry_at(store: &SqliteStore) -> Result<u64> {
    let is_to_come = |token: Token| token.user.failed_at > now();
    let read = |database: &Database| {
        let token = Token::read(&database.connection)?.filter(|_| database.writable);
        Ok(token.is_some_and(is_to_come))
    };
    // Where the disk is full its end would never come: a try says why.
    if store.gate.read(read)? && in_place(store, |database| set_back(database, Role::User)).is_err()
    {
        return Ok(0);
    }
    Ok(store.token_row()?.user.retry_at)
}

/// Logs in with keys that the PIN has opened. What seems to be changed may be a token that another process has made
/// anew since: then the PIN opens others.
pub(crate) fn admit(
    store: &SqliteStore,
    first: Keys,
    once_more: impl FnOnce() -> Result<Keys>,
) -> Result<()> {
    let id = first.id;
    let refused = match store.admit(first) {
        Err(refused @ Error::Tampered { .. }) => refused,
        done => return done,
    };
    let again = once_more()?;
    if again.id == id { Err(refused) } else { store.admit(again) }
}

/// The keys that a PIN opens, whatever else is wrong with the token.
pub(crate) fn keys(store: &SqliteStore, role: Role, pin: &[u8]) -> Result<Keys> {
    let opened = attempt(store, role, pin, Settle::Login)?;
    Keys::new(opened.master, opened.serial, role)
}

/// Checks a PIN, and that it is the one that was last set, and forgets what it opens.
pub(crate) fn check(store: &SqliteStore, role: Role, pin: &[u8]) -> Result<()> {
    store.confirm(&keys(store, role, pin)?)
}

/// `C_SetPIN`
pub(crate) fn change(store: &SqliteStore, role: Role, old: &[u8], new: &[u8]) -> Result<()> {
    attempt(store, role, old, Settle::Change(new)).map(drop)
}

/// `C_InitPIN`
pub(crate) fn init_user(store: &SqliteStore, pin: &[u8]) -> Result<()> {
    let keys = store.keys().filter(|keys| keys.role == Role::So).ok_or(Error::NotLoggedIn)?;
    let locks = store.gate.locks()?;
    let _attempt = locks.login.hold()?;
    let pepper = pepper(store)?;
    let wrap = wrap::seal(
        store.config.kdf.kdf()?,
        &keys.serial,
        &wrap::owner(Role::User),
        pin,
        pepper.as_ref(),
        &keys.master,
    )?;
    store.transact_sealed(&keys, |database| {
        let head = crate::schema::Head::read(&database.connection)?;
        crate::apply::current(Some(&keys), &head)?;
        write_wrap(database, &keys, Role::User, &wrap)
    })
}

/// `C_InitToken`
pub(crate) fn initialize(store: &SqliteStore, so_pin: &[u8], label: &str) -> Result<()> {
    store.set_keys(None);
    store.gate.follow_replacement();
    let exists = match store.gate.read(|database| Ok(Token::read(&database.connection)?)) {
        Ok(token) => token.is_some(),
        Err(Error::Uninitialized { .. }) => false,
        Err(error) => return Err(error),
    };
    if exists {
        return attempt(store, Role::So, so_pin, Settle::Initialize(label)).map(drop);
    }
    // Before anything is made: a token that its anchor cannot follow is of no use.
    let serial = crypto::random::<8>()?;
    store.check_anchor(&serial)?;
    store.files.create_directory(store.config.group.as_deref())?;
    let files = store.files.resolve()?;
    files.check_directory()?;
    let mode = files.mode(store.config.group.is_some());
    drop(files::open_own(&files.database, mode)?);
    let locks = store.gate.locks()?;
    let _attempt = locks.login.hold()?;
    let _turn = locks.queue.hold()?;
    files.begin()?;
    drop(files.open_generation()?);
    let new = NewToken::new(store, serial, so_pin)?;
    let created = store.gate.apart(|| create(files.clone(), &new, label));
    created.map_err(|error| error.at(&store.config.path))?;
    // A connection for nothing could fail now, and the token would be one that nobody was told of.
    let anchored =
        store.config.anchor.as_ref().map_or(Ok(()), |_| {
            store.gate.write(|database| store.advance_held(database, &new.keys))
        });
    if anchored.is_err() {
        crate::fork::close();
        files.remove_remains()?;
        // What was written of it would stand in the way of the next one.
        store.forget_anchor(&serial);
    }
    anchored
}

/// No other process makes the database meanwhile: both locks are held, and readers see no token before the
/// commit.
fn create(files: files::Files, new: &NewToken, label: &str) -> Result<()> {
    let database = Database::connect(files)?;
    if database.pragma::<i64>("user_version")? != 0 {
        // Another process was faster; its SO has another PIN than ours, or the same.
        return Err(Error::WriteProtected {
            path: database.files.database,
            reason: "another process has just made a token here".to_owned(),
        });
    }
    let filled = fill(&database, new, label);
    if filled.is_err() {
        // A full disk, for example: a database without a token, or with one that nobody was told of, is in the way of the next.
        let files = database.files.clone();
        drop(database);
        files.remove_remains()?;
    }
    filled
}

fn fill(database: &Database, new: &NewToken, label: &str) -> Result<()> {
    let connection = &database.connection;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    for tables in [CREATE, CREATE_TREE, CREATE_UNVERIFIED] {
        connection.execute_batch(tables)?;
    }
    connection.execute(
        "INSERT INTO token VALUES(1, ?1, ?2, ?3, ?4, 0, 0, NULL, 0, 0, 1, ?5)",
        (new.serial, label, new.key_id, &new.so_wrap, new.state(1, label, 0)?),
    )?;
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", FORMAT)?;
    connection.execute_batch("COMMIT")?;
    // The format version shall stand in the main file, where `file` and later releases look.
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    database.files.reserve_log();
    database.files.sync_directory()
}

/// A fresh master key, and what of it goes into the token's row.
struct NewToken {
    serial: Serial,
    key_id: crypto::KeyId,
    so_wrap: Vec<u8>,
    keys: Keys,
}

impl NewToken {
    fn new(store: &SqliteStore, serial: Serial, so_pin: &[u8]) -> Result<Self> {
        let master = crypto::random_key()?;
        let pepper = pepper(store)?;
        let so_wrap = wrap::seal(
            store.config.kdf.kdf()?,
            &serial,
            &wrap::owner(Role::So),
            so_pin,
            pepper.as_ref(),
            &master,
        )?;
        let key_id = crypto::key_id(&master, &serial)?;
        Ok(Self { serial, key_id, so_wrap, keys: Keys::new(master, serial, Role::So)? })
    }

    /// The state of a token without rows, after so many changes.
    fn state(&self, next_id: u64, label: &str, commits: u64) -> Result<Vec<u8>> {
        let state = State::new(next_id, label, &self.so_wrap);
        State { commits, ..state }.seal(&self.keys)
    }
}

/// What a right PIN leads to, besides clearing its counter.
#[derive(Clone, Copy, Debug)]
enum Settle<'a> {
    /// Nothing more, or a fast login for the next time.
    Login,
    /// A new PIN.
    Change(&'a [u8]),
    /// An empty token with this label.
    Initialize(&'a str),
}

/// What a right PIN opens.
struct Attempt {
    serial: Serial,
    master: Secret,
}

/// Counts, tries, settles.
fn attempt(store: &SqliteStore, role: Role, pin: &[u8], settle: Settle<'_>) -> Result<Attempt> {
    let pepper = pepper(store)?;
    let locks = store.gate.locks();
    let held = locks.as_ref().map_err(Clone::clone).and_then(|locks| locks.login.hold());
    let mut first = uncounted::First::NotMade;
    if held.is_ok() && matches!(settle, Settle::Login) {
        first = attempt_fast(store, role, pin);
        if let uncounted::First::Right(attempt) = first {
            return Ok(attempt);
        }
    }
    fast::remove_old_secrets(&store.config);
    let begun = held.and_then(|held| {
        let begun = in_place(store, |database| {
            Begun::count(store, database, (role, first.is_wrong()), pin, settle)
        })?;
        store.set_owed(role, None);
        // The store has them now.
        uncounted::forget(
            &store.config.volatile,
            &begun.token.serial,
            role,
            pin_row(&begun.token, role),
        );
        if begun.is_locked { Err(Error::PinLocked) } else { Ok((held, begun)) }
    });
    let (_held, begun) = match begun {
        // A right PIN opens a token whose store nobody can write.
        Err(error)
            if matches!(settle, Settle::Login)
                && uncounted::is_needed(&store.config.path, &error) =>
        {
            return attempt_uncounted(store, role, pin, pepper.as_ref(), first.is_wrong());
        }
        begun => begun.inspect_err(|error| {
            if matches!(error, Error::TooSoon { .. }) {
                in_place(store, |database| set_back(database, role)).unwrap_or_default();
            }
        })?,
    };
    let opened = begun.open(store, role, pin, pepper.as_ref()).inspect_err(|_| {
        // No PIN was tried: memory was short, say. Where the fast way was, one was, and stays counted.
        if begun.quick.is_none() && !first.is_wrong() {
            put_back(store, role, pin_row(&begun.token, role));
        }
    })?;
    let Some(opened) = opened else {
        let left = MAX_FAILURES.saturating_sub(pin_row(&begun.token, role).failures + 1);
        counters::event(counters::Event::LoginFailure);
        return Err(Error::PinIncorrect { left });
    };
    let serial = begun.token.serial;
    match begun.settle(store, role, pin, settle, pepper.as_ref(), &opened) {
        Ok(()) => {}
        Err(error) => {
            // The PIN was right, whatever becomes of what it was for.
            take_back(store, role, pin_row(&begun.token, role));
            let is_login = matches!(settle, Settle::Login);
            let is_known = matches!(
                error,
                Error::Full { .. }
                    | Error::WriteProtected { .. }
                    | Error::File { action: "lock", .. }
            );
            if !(is_login && is_known) {
                return Err(error);
            }
        }
    }
    Ok(Attempt { serial, master: opened.master })
}

/// Takes one attempt back, which was none: now, or before the next one. `row` is as it was before.
fn put_back(store: &SqliteStore, role: Role, row: &PinRow) {
    let restored =
        in_place(store, |database| write_count(database, role, row.failures, row.failed_at));
    if restored.is_err() {
        let wrap = state::name(row.wrap.as_deref());
        store.set_owed(role, Some(Owed { wrap, failures: 1 }));
    }
}

/// Clears the counter of a right PIN: now, or before the next one. `row` is as it was before.
fn take_back(store: &SqliteStore, role: Role, row: &PinRow) {
    if in_place(store, |database| clear(database, role)).is_err() {
        let wrap = state::name(row.wrap.as_deref());
        store.set_owed(role, Some(Owed { wrap, failures: row.failures + 1 }));
    }
}

/// A fast login that writes nothing: a server that forks for each connection would wait for the disk each time. Only after no
/// failure, and the login's lock is held; the attempt is counted where its secret is kept, in memory, before it is made. What
/// does not open is not wrong before it is tried in the long way, counted in the store.
fn attempt_fast(store: &SqliteStore, role: Role, pin: &[u8]) -> uncounted::First<Attempt> {
    let begun = store.gate.look(|database| match database.writable {
        true => {
            database.settle(&store.gate);
            Begun::read(store, database, role, pin, true).map(Some)
        }
        false => Ok(None),
    });
    let Ok(Some(begun)) = begun else { return uncounted::First::NotMade };
    let row = pin_row(&begun.token, role);
    if begun.quick.is_none() || row.failures > 0 || store.owed(role).is_some() {
        return uncounted::First::NotMade;
    }
    let serial = begun.token.serial;
    uncounted::first(&store.config.volatile, &serial, role, row, || {
        let master = begun.open_fast(store, pin)?;
        Ok(master.map(|master| Attempt { serial, master }))
    })
}

/// An attempt at a token whose store nobody can write. It is counted in memory already where the fast way was tried.
fn attempt_uncounted(
    store: &SqliteStore,
    role: Role,
    pin: &[u8],
    pepper: Option<&Secret>,
    is_counted: bool,
) -> Result<Attempt> {
    let begun = store.gate.read(|database| Begun::read(store, database, role, pin, true))?;
    let (serial, row) = (begun.token.serial, pin_row(&begun.token, role));
    let bases = &store.config.volatile;
    // An error in the long way takes no attempt back that was made in the fast one.
    let is_tried = is_counted || begun.quick.is_some();
    let opened = uncounted::attempt(bases, &serial, role, row, (is_counted, is_tried), || {
        let opened = begun.open(store, role, pin, pepper)?;
        if opened.is_none() {
            counters::event(counters::Event::LoginFailure);
        }
        Ok(opened)
    })?;
    if row.failures > 0 {
        // As far as that can be had.
        in_place(store, |database| clear(database, role)).unwrap_or_default();
    }
    Ok(Attempt { serial, master: opened.master })
}

/// An attempt that may be made: the token as it was before.
struct Begun {
    token: Token,
    fast: Option<fast::FastLogin>,
    quick: Option<fast::Wrap>,
    fast_wanted: bool,
    /// It may not be made after all.
    is_locked: bool,
}

/// What a right PIN opened, and whether the fast way.
struct Opened {
    master: Secret,
    fast: bool,
}

impl Begun {
    /// Counts the attempt in the store, and with it those that only memory has: of processes that were killed in a fast login, and
    /// from when nobody could write. This one `is_counted` there where it was tried in the fast way.
    fn count(
        store: &SqliteStore,
        database: &Database,
        (role, is_counted): (Role, bool),
        pin: &[u8],
        settle: Settle<'_>,
    ) -> Result<Self> {
        let mut begun = Self::read(store, database, role, pin, matches!(settle, Settle::Login))?;
        let row = match role {
            Role::So => &mut begun.token.so,
            Role::User => &mut begun.token.user,
        };
        // Those of another PIN are another's.
        let wrap = state::name(row.wrap.as_deref());
        if let Some(owed) = store.owed(role).filter(|owed| owed.wrap == wrap) {
            row.failures = row.failures.saturating_sub(owed.failures);
        }
        let bases = &store.config.volatile;
        let (failures, failed_at) = uncounted::everywhere(bases, &begun.token.serial, role, row);
        row.failed_elsewhere((failures.saturating_sub(u64::from(is_counted)), failed_at));
        match count(database, row, role) {
            // Memory forgets that with the next boot.
            Err(Error::PinLocked) if failures > 0 => {
                write_count(database, role, row.failures, row.failed_at)?;
                begun.is_locked = true;
            }
            counted => counted?,
        }
        fast::expire(database)?;
        Ok(begun)
    }

    /// Reads what an attempt needs.
    fn read(
        store: &SqliteStore,
        database: &Database,
        role: Role,
        pin: &[u8],
        is_login: bool,
    ) -> Result<Self> {
        let token = Token::read(&database.connection)?;
        let token = token.ok_or_else(|| Error::not_token("its own row is missing"))?;
        let wrapped = pin_row(&token, role).wrap.as_deref().ok_or(Error::PinNotInitialized)?;
        if store.config.pepper.is_none() && wrap::needs_pepper(wrapped) {
            return Err(Error::not_token(
                "its PINs are mixed with a file that its configuration does not name: set pepper",
            ));
        }
        wrap::kdf(wrapped)?;
        let fast_wanted = is_login && store.config.fast_login.is_some();
        let fast = fast::FastLogin::new(&store.config, &token, role, pin);
        let fast = fast.filter(|_| fast_wanted);
        let quick = fast.as_ref().map(|place| place.read(database)).transpose()?.flatten();
        Ok(Self { token, fast, quick, fast_wanted, is_locked: false })
    }

    /// Tries the PIN; `None` for a wrong one.
    fn open(
        &self,
        store: &SqliteStore,
        role: Role,
        pin: &[u8],
        pepper: Option<&Secret>,
    ) -> Result<Option<Opened>> {
        if let Some(master) = self.open_fast(store, pin)? {
            return Ok(Some(Opened { master, fast: true }));
        }
        if self.fast_wanted {
            store.counts.fast_misses.fetch_add(1, Ordering::Relaxed);
            counters::event(counters::Event::FastLoginMiss);
        }
        let wrapped = pin_row(&self.token, role).wrap.as_deref().ok_or(Error::PinNotInitialized)?;
        let opened = wrap::open(wrapped, &self.token.serial, &wrap::owner(role), pin, pepper);
        let opened = opened.map_err(|error| error.at(&store.config.path))?;
        Ok(opened.map(|master| Opened { master, fast: false }))
    }

    /// Tries the PIN in the fast way, where there is one.
    fn open_fast(&self, store: &SqliteStore, pin: &[u8]) -> Result<Option<Secret>> {
        let (Some(place), Some(quick)) = (&self.fast, &self.quick) else { return Ok(None) };
        let opened = place.open(quick, pin)?;
        if opened.is_some() {
            store.counts.fast_hits.fetch_add(1, Ordering::Relaxed);
            counters::event(counters::Event::FastLogin);
        }
        Ok(opened)
    }

    /// Does what a right PIN leads to, and clears its counter with it.
    fn settle(
        &self,
        store: &SqliteStore,
        role: Role,
        pin: &[u8],
        settle: Settle<'_>,
        pepper: Option<&Secret>,
        opened: &Opened,
    ) -> Result<()> {
        let (serial, master) = (self.token.serial, &opened.master);
        let keys = || Keys::new(Secret::copy_of(master.expose()), serial, role);
        match settle {
            Settle::Login => {
                let renewed = match self.fast.as_ref().filter(|_| !opened.fast) {
                    Some(place) => place.seal(pin, master)?,
                    None => None,
                };
                settle_login(store, role, (!opened.fast).then_some(renewed.as_ref()))
            }
            Settle::Change(new) => {
                let kdf = store.config.kdf.kdf()?;
                let wrap = wrap::seal(kdf, &serial, &wrap::owner(role), new, pepper, master)?;
                let keys = keys()?;
                store.upgrade(&keys)?;
                store.transact_sealed(&keys, |database| write_wrap(database, &keys, role, &wrap))
            }
            Settle::Initialize(label) => {
                let (new, old) = (NewToken::new(store, serial, pin)?, keys()?);
                let seen = store.check_anchor(&serial)?;
                store
                    .transact_sealed(&new.keys, |database| empty(database, &new, &old, label, seen))
            }
        }
    }
}

/// What becomes of the store after a login by a right PIN. `renewal` is none after a fast login, which leaves everything as it
/// is but the count.
fn settle_login(
    store: &SqliteStore,
    role: Role,
    renewal: Option<Option<&fast::Wrap>>,
) -> Result<()> {
    // Where a power cut brings the count back, the next right PIN takes it away. A sync costs more than all of a fast login.
    store.transact_unsynced(|database| {
        if let Some(renewed) = renewal {
            let is_possible = renewed.is_some() || store.config.fast_login.is_none();
            fast::tidy(database, role, is_possible)?;
            renewed.map_or(Ok(()), |renewed| renewed.write(database, role))?;
        }
        clear(database, role)
    })
}

/// A small change of a row that is there. On a full disk it is made once more after the log has gone into the database, whose
/// pages are there already: then it begins anew in the space that it has.
pub(crate) fn in_place<R>(store: &SqliteStore, work: impl Fn(&Database) -> Result<R>) -> Result<R> {
    match store.transact(Announce::No, &work) {
        Err(Error::Full { .. }) => {
            store.gate.write(Database::empty_log)?;
            store.transact(Announce::No, &work)
        }
        done => done,
    }
}

pub(crate) const fn pin_row(token: &Token, role: Role) -> &PinRow {
    match role {
        Role::So => &token.so,
        Role::User => &token.user,
    }
}

/// One more failure, until the contrary is shown.
fn count(database: &Database, row: &PinRow, role: Role) -> Result<()> {
    let now = now();
    may_try(row.failures, row.failed_at, now)?;
    write_count(database, role, row.failures + 1, now)
}

fn write_count(database: &Database, role: Role, failures: u32, failed_at: u64) -> Result<()> {
    let statement = match role {
        Role::So => "UPDATE token SET so_failures = ?1, so_failed_at = ?2",
        Role::User => "UPDATE token SET user_failures = ?1, user_failed_at = ?2",
    };
    let statement = database.connection.prepare_cached(statement);
    statement?.execute((failures, signed(failed_at)))?;
    Ok(())
}

/// A failure that is yet to come, by a clock that was set back since, is one of now: its pause would begin anew with each
/// attempt.
fn set_back(database: &Database, role: Role) -> Result<()> {
    let statement = match role {
        Role::So => "UPDATE token SET so_failed_at = ?1 WHERE so_failed_at > ?1",
        Role::User => "UPDATE token SET user_failed_at = ?1 WHERE user_failed_at > ?1",
    };
    database.connection.prepare_cached(statement)?.execute([signed(now())])?;
    Ok(())
}

/// No failures, after a right PIN.
fn clear(database: &Database, role: Role) -> Result<()> {
    write_count(database, role, 0, 0)
}

/// A new PIN: its wrap, no failures, no fast login.
fn write_wrap(database: &Database, keys: &Keys, role: Role, wrap: &[u8]) -> Result<()> {
    database.check_current()?;
    let mut state = state::of(&database.connection, keys)?;
    state.wrapped(role, wrap);
    state.write(&database.connection, keys)?;
    let statement = match role {
        Role::So => "UPDATE token SET so_wrap = ?1, so_failures = 0, so_failed_at = 0",
        Role::User => "UPDATE token SET user_wrap = ?1, user_failures = 0, user_failed_at = 0",
    };
    database.connection.execute(statement, [wrap])?;
    let forget = "DELETE FROM fast_login WHERE role = ?1";
    database.connection.execute(forget, [wrap::role_byte(role)])?;
    Ok(())
}

/// The same token with a new master key and nothing in it. Ids go on where they were.
/// The count of changes goes on from where it was, or where the anchor has `seen` it.
fn empty(database: &Database, new: &NewToken, old: &Keys, label: &str, seen: u64) -> Result<()> {
    let connection = &database.connection;
    let head = crate::schema::Head::read(connection)?;
    let commits = State::open(old, &head.state).map_or(0, |state| state.commits).max(seen);
    if database.pragma::<i64>("user_version")? < FORMAT {
        crate::v1::create(connection)?;
    }
    connection.execute_batch(
        "DELETE FROM object; DELETE FROM lookup; DELETE FROM tree; DELETE FROM fast_login;",
    )?;
    if database.pragma::<i64>("user_version")? >= IDENTITIES {
        connection.execute("DELETE FROM identity WHERE name != ''", ())?;
    }
    connection.execute(
        "UPDATE token SET label = ?1, key_id = ?2, so_wrap = ?3, so_failures = 0, so_failed_at = 0,
                          user_wrap = NULL, user_failures = 0, user_failed_at = 0, row_set = ?4",
        (label, new.key_id, &new.so_wrap, new.state(head.next_id, label, commits)?),
    )?;
    Ok(())
}

/// The machine's own secret, where one is configured.
fn pepper(store: &SqliteStore) -> Result<Option<Secret>> {
    store.config.pepper.as_deref().map(pepper::read).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kdf::Cost;
    use crate::open::Config;
    use metaslot_spi::store::Store;

    #[test]
    fn a_login_while_the_token_is_made_anew_is_one_to_the_new_token() {
        let name = format!("metaslot-keystore-{}-meanwhile", std::process::id());
        let place = std::env::temp_dir().join(name);
        let kdf = Cost::Fixed(Kdf::Argon2id { memory_kib: 64, passes: 1, lanes: 1 });
        let [mine, other] =
            [(); 2].map(|()| SqliteStore::new(Config { kdf, ..Config::new(place.join("db")) }));
        mine.initialize(b"so-pin-1", "first").expect("it is made");
        let old = keys(&mine, Role::So, b"so-pin-1").expect("the PIN is right");
        other.initialize(b"so-pin-1", "second").expect("it is made anew");
        admit(&mine, old, || keys(&mine, Role::So, b"so-pin-1")).expect("it was not changed");
        assert!(mine.keeps_login());
        std::fs::remove_dir_all(&place).expect("it goes");
    }
}
