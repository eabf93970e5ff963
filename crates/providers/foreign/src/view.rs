// SPDX-License-Identifier: Apache-2.0
//! A token, and beside its own objects those of other modules' tokens and of pools: each stays where it is, and is used there.

use crate::pool::PoolStore;
use crate::store::ForeignStore;
use metaslot_ck::{Error, Result};
use metaslot_memory::Secret;
use metaslot_spi::store::{
    Change, Examination, Examined, Found, Home, Name, ObjectRow, Remark, Role, Row, Scope, Store,
    Term, TokenRow,
};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a guest that failed is not asked what it has.
const PAUSE: Duration = Duration::from_secs(1);
/// Codes that say that a guest does not work.
const ITS_OWN: [Error; 4] =
    [Error::DEVICE_ERROR, Error::DEVICE_MEMORY, Error::DEVICE_REMOVED, Error::TOKEN_NOT_RECOGNIZED];

/// A view of several tokens. PINs, and what is made, are its own token's.
#[derive(Debug)]
pub struct View {
    own: Box<dyn Store>,
    guests: Vec<Guest>,
}

/// A token of another module, or a pool of such, that a view shows. Its slot closes it.
#[derive(Debug)]
pub struct Guest {
    store: Shown,
    curtain: Arc<Curtain>,
    rests_until: Mutex<Option<Instant>>,
}

/// Hides a guest for as long as that is wanted.
#[derive(Debug, Default)]
pub struct Curtain {
    /// How often it was moved: it is down after an odd number of times.
    moves: AtomicU64,
}

impl Curtain {
    /// What is hidden is not found, and handles of it mean nothing any more; operations that have begun go on.
    pub fn hide(&self, hide: bool) {
        let moved = |moves: u64| (moves % 2 == u64::from(!hide)).then_some(moves + 1);
        self.moves.fetch_update(Ordering::AcqRel, Ordering::Acquire, moved).ok();
    }

    fn is_down(&self) -> bool {
        self.moves.load(Ordering::Acquire) % 2 == 1
    }
}

/// What is shown.
#[derive(Debug)]
enum Shown {
    Token(ManuallyDrop<ForeignStore>),
    Pool(ManuallyDrop<PoolStore>),
}

impl Shown {
    /// None of a token that went to a pool, where it is shown.
    fn store(&self) -> Option<&dyn Store> {
        match self {
            Self::Token(store) => Some(&**store as _).filter(|_| !store.token().is_pooled()),
            Self::Pool(store) => Some(&**store as _),
        }
    }

    fn home(&self) -> &'static dyn Home {
        match self {
            Self::Token(store) => store.token(),
            Self::Pool(store) => store.pool(),
        }
    }

    fn generation(&self) -> u64 {
        match self {
            Self::Token(store) => store.token().generation(),
            Self::Pool(store) => store.pool().generation(),
        }
    }

    /// The view has a login.
    fn join(&self) {
        match self {
            Self::Token(store) => store.token().join_view(),
            Self::Pool(store) => store.pool().join_view(),
        }
    }

    /// It has none any more.
    fn leave(&self) {
        match self {
            Self::Token(store) => store.token().leave_view(),
            Self::Pool(store) => store.pool().leave_view(),
        }
    }
}

impl View {
    /// `own`, with those guests.
    #[must_use]
    pub fn new(own: Box<dyn Store>, guests: Vec<Guest>) -> Self {
        Self { own, guests }
    }

    /// What belongs to the own token is one transaction; a guest makes each change by itself.
    fn write_by(
        &self,
        changes: Vec<Change>,
        write: impl FnOnce(Vec<Change>) -> Result<Vec<u64>>,
    ) -> Result<Vec<u64>> {
        let (own, others): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|change| self.changed(change).guest.is_none());
        let own = own.into_iter().map(|change| {
            let id = self.changed(&change).id;
            renumbered(change, id)
        });
        let own: Vec<_> = own.collect();
        let made = if own.is_empty() { Vec::new() } else { write(own)? };
        for change in others {
            let row = self.changed(&change);
            self.of(row)?.write(vec![renumbered(change, row.id)])?;
        }
        let number = |id| Row { guest: None, id }.number(self.guests.len());
        Ok(made.into_iter().map(number).collect())
    }

    /// Whose row it is.
    fn of(&self, row: Row) -> Result<&dyn Store> {
        match row.guest {
            None => Ok(&*self.own),
            Some(at) => {
                let guest = self.guests.get(at).and_then(Guest::store);
                guest.ok_or(Error::OBJECT_HANDLE_INVALID)
            }
        }
    }

    /// Which row a number is.
    fn row(&self, number: u64) -> Row {
        Row::of(number, self.guests.len())
    }

    /// Which row a change is of; what is new is the own token's.
    fn changed(&self, change: &Change) -> Row {
        match change {
            Change::Insert(_) => Row { guest: None, id: 0 },
            Change::Update { id, .. } | Change::Delete { id, .. } => self.row(*id),
        }
    }

    fn shown(&self) -> impl Iterator<Item = &Shown> {
        self.guests.iter().map(|guest| &guest.store)
    }
}

impl Guest {
    /// A token that has a slot of its own, besides.
    #[must_use]
    pub fn token(token: &ForeignStore) -> Self {
        let store = ManuallyDrop::new(ForeignStore::new(token.token()));
        Self::of(Shown::Token(store))
    }

    /// A pool that has a slot of its own, besides.
    #[must_use]
    pub fn pool(pool: &PoolStore) -> Self {
        let store = ManuallyDrop::new(PoolStore::of(pool.pool()));
        Self::of(Shown::Pool(store))
    }

    fn of(store: Shown) -> Self {
        Self { store, curtain: Arc::default(), rests_until: Mutex::new(None) }
    }

    /// What hides it.
    #[must_use]
    pub fn curtain(&self) -> Arc<Curtain> {
        Arc::clone(&self.curtain)
    }

    /// Its store, where it is to be seen.
    fn store(&self) -> Option<&dyn Store> {
        self.store.store().filter(|_| !self.curtain.is_down())
    }

    /// What was read counts until this number is another.
    fn generation(&self) -> u64 {
        let moves = self.curtain.moves.load(Ordering::Acquire);
        self.store.generation().wrapping_add(2 * moves)
    }

    /// What the configuration calls it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.store.home().name()
    }

    /// What it has; nothing while it fails, which must not keep anyone from the others.
    fn search(&self, query: &[Term], scope: Scope, after: u64, limit: usize) -> Vec<Found> {
        let rests = self.rest().is_some_and(|until| Instant::now() < until);
        let Some(store) = self.store().filter(|_| !rests) else { return Vec::new() };
        let begin = Instant::now();
        let found = store.search(query, scope, after, limit);
        // What does not like one search says nothing about the next one's.
        let fails = found.as_ref().is_err_and(|error| ITS_OWN.contains(error));
        // One that answers late keeps the others waiting half of the time at most.
        *self.rest() = fails.then(|| Instant::now() + begin.elapsed().max(PAUSE));
        found.unwrap_or_default()
    }

    /// The view has a login, by which it may do what failed without one.
    fn join(&self) {
        *self.rest() = None;
        self.store.join();
    }

    fn rest(&self) -> MutexGuard<'_, Option<Instant>> {
        self.rests_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.shown().for_each(Shown::leave);
    }
}

impl Store for View {
    fn token(&self) -> Result<TokenRow> {
        self.own.token()
    }

    fn initialize(&self, so_pin: &[u8], label: &str) -> Result<()> {
        self.own.initialize(so_pin, label)
    }

    /// Guests that have a configured PIN are logged in when they are next asked.
    fn login(&self, role: Role, pin: &[u8]) -> Result<()> {
        self.own.login(role, pin)?;
        if role == Role::User {
            self.guests.iter().for_each(Guest::join);
        }
        Ok(())
    }

    fn check_pin(&self, role: Role, pin: &[u8]) -> Result<()> {
        self.own.check_pin(role, pin)
    }

    fn login_as(&self, name: Name, pin: &[u8]) -> Result<()> {
        self.own.login_as(name, pin)?;
        self.guests.iter().for_each(Guest::join);
        Ok(())
    }

    fn check_pin_as(&self, name: Name, pin: &[u8]) -> Result<()> {
        self.own.check_pin_as(name, pin)
    }

    fn set_pin_as(&self, name: Name, old: &[u8], new: &[u8]) -> Result<()> {
        self.own.set_pin_as(name, old, new)
    }

    fn incarnation(&self, name: Name) -> Result<Option<u64>> {
        self.own.incarnation(name)
    }

    fn retry_at(&self, name: Option<Name>) -> Result<u64> {
        self.own.retry_at(name)
    }

    fn share_login(&self) -> Result<()> {
        self.own.share_login()
    }

    fn logout(&self) {
        self.shown().for_each(Shown::leave);
        self.own.logout();
    }

    fn keeps_login(&self) -> bool {
        self.own.keeps_login()
    }

    fn init_pin(&self, pin: &[u8]) -> Result<()> {
        self.own.init_pin(pin)
    }

    fn set_pin(&self, role: Role, old: &[u8], new: &[u8]) -> Result<()> {
        self.own.set_pin(role, old, new)
    }

    fn write(&self, changes: Vec<Change>) -> Result<Vec<u64>> {
        self.write_by(changes, |own| self.own.write(own))
    }

    fn write_as(&self, identity: (Name, u64), changes: Vec<Change>) -> Result<Vec<u64>> {
        self.write_by(changes, |own| self.own.write_as(identity, own))
    }

    fn read(&self, id: u64) -> Result<Option<ObjectRow>> {
        let row = self.row(id);
        self.of(row)?.read(row.id)
    }

    fn secrets(&self, id: u64, version: u64) -> Result<Secret> {
        let row = self.row(id);
        self.of(row)?.secrets(row.id, version)
    }

    fn search(&self, query: &[Term], scope: Scope, after: u64, limit: usize) -> Result<Vec<Found>> {
        let after = self.row(after);
        let numbered = |guest, found: Found| {
            let id = Row { guest, id: found.id }.number(self.guests.len());
            Found { id, ..found }
        };
        let (mut found, first) = match after.guest {
            None => (self.own.search(query, scope, after.id, limit)?, 0),
            Some(guest) => (Vec::new(), guest),
        };
        found.iter_mut().for_each(|found| *found = numbered(None, *found));
        for (at, guest) in self.guests.iter().enumerate().skip(first) {
            if found.len() == limit {
                break;
            }
            let after = if after.guest == Some(at) { after.id } else { 0 };
            let there = guest.search(query, scope, after, limit - found.len());
            found.extend(there.into_iter().map(|found| numbered(Some(at), found)));
        }
        Ok(found)
    }

    fn examine(
        &self,
        role: Role,
        pin: &[u8],
        what: Examination<'_>,
        remark: &mut dyn FnMut(Remark<'_>) -> bool,
    ) -> Result<Examined> {
        self.own.examine(role, pin, what, remark)
    }

    fn restored(&self) -> Result<u64> {
        self.own.restored()
    }

    /// Odd where the own token's is: guests count in twos.
    fn generation(&self) -> Option<u64> {
        let own = self.own.generation()?;
        Some(self.guests.iter().fold(own, |sum, guest| sum.wrapping_add(guest.generation())))
    }

    /// A search has every guest looked at anew, which says nothing about the rows of the own token.
    fn generation_of(&self, row: u64) -> Option<u64> {
        match self.row(row).guest {
            None => self.own.generation(),
            Some(at) => self.guests.get(at).map(Guest::generation),
        }
    }

    fn home(&self) -> Option<&'static dyn Home> {
        self.own.home()
    }

    fn guests(&self) -> Vec<&'static dyn Home> {
        self.shown().map(Shown::home).collect()
    }
}

fn renumbered(change: Change, id: u64) -> Change {
    match change {
        Change::Update { version, record, .. } => Change::Update { id, version, record },
        Change::Delete { version, unique_id, .. } => Change::Delete { id, version, unique_id },
        insert @ Change::Insert(_) => insert,
    }
}
