// SPDX-License-Identifier: Apache-2.0
//! A token, and beside its own objects those of other modules' tokens: each stays where it is, and is used there.

use crate::store::ForeignStore;
use crate::token::Token;
use metaslot_ck::{Error, Result};
use metaslot_memory::Secret;
use metaslot_spi::store::{
    Change, Examined, Found, Home, ObjectRow, Remark, Role, Row, Scope, Store, Term, TokenRow,
};
use std::mem::ManuallyDrop;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a guest that failed is not asked what it has.
const PAUSE: Duration = Duration::from_secs(1);

/// A view of several tokens. PINs, and what is made, are its own token's.
#[derive(Debug)]
pub struct View {
    own: Box<dyn Store>,
    guests: Vec<Guest>,
}

/// A token of another module that a view shows. Its slot closes it.
#[derive(Debug)]
pub struct Guest {
    store: ManuallyDrop<ForeignStore>,
    rests_until: Mutex<Option<Instant>>,
}

impl View {
    /// `own`, with those guests.
    #[must_use]
    pub fn new(own: Box<dyn Store>, guests: Vec<Guest>) -> Self {
        Self { own, guests }
    }

    /// Whose row it is.
    fn of(&self, row: Row) -> Result<&dyn Store> {
        match row.guest {
            None => Ok(&*self.own),
            Some(at) => {
                let guest = self.guests.get(at).filter(|guest| !guest.store.token().is_pooled());
                guest.map(|guest| &*guest.store as &dyn Store).ok_or(Error::OBJECT_HANDLE_INVALID)
            }
        }
    }

    fn tokens(&self) -> impl Iterator<Item = &'static Token> {
        self.guests.iter().map(|guest| guest.store.token())
    }
}

impl Guest {
    /// A token that has a slot of its own, besides.
    #[must_use]
    pub const fn new(token: &ForeignStore) -> Self {
        let store = ManuallyDrop::new(ForeignStore::new(token.token()));
        Self { store, rests_until: Mutex::new(None) }
    }

    /// What the configuration calls its module.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.store.token().name
    }

    /// What it has; nothing while it fails, which must not keep anyone from the others.
    fn search(&self, query: &[Term], scope: Scope, after: u64, limit: usize) -> Vec<Found> {
        let rests = self.rest().is_some_and(|until| Instant::now() < until);
        if rests || self.store.token().is_pooled() {
            return Vec::new();
        }
        let found = self.store.search(query, scope, after, limit);
        *self.rest() = found.is_err().then(|| Instant::now() + PAUSE);
        found.unwrap_or_default()
    }

    fn rest(&self) -> MutexGuard<'_, Option<Instant>> {
        self.rests_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.tokens().for_each(Token::leave_view);
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
            self.tokens().for_each(Token::join_view);
        }
        Ok(())
    }

    fn check_pin(&self, role: Role, pin: &[u8]) -> Result<()> {
        self.own.check_pin(role, pin)
    }

    fn logout(&self) {
        self.tokens().for_each(Token::leave_view);
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

    /// What belongs to the own token is one transaction; a guest makes each change by itself.
    fn write(&self, changes: Vec<Change>) -> Result<Vec<u64>> {
        let (own, others): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|change| row(change).guest.is_none());
        let made = if own.is_empty() { Vec::new() } else { self.own.write(own)? };
        for change in others {
            let row = row(&change);
            self.of(row)?.write(vec![renumbered(change, row.id)])?;
        }
        Ok(made)
    }

    fn read(&self, id: u64) -> Result<Option<ObjectRow>> {
        let row = Row::of(id);
        self.of(row)?.read(row.id)
    }

    fn secrets(&self, id: u64, version: u64) -> Result<Secret> {
        let row = Row::of(id);
        self.of(row)?.secrets(row.id, version)
    }

    fn search(&self, query: &[Term], scope: Scope, after: u64, limit: usize) -> Result<Vec<Found>> {
        let after = Row::of(after);
        let (mut found, first) = match after.guest {
            None => (self.own.search(query, scope, after.id, limit)?, 0),
            Some(guest) => (Vec::new(), guest),
        };
        for (at, guest) in self.guests.iter().enumerate().skip(first) {
            if found.len() == limit {
                break;
            }
            let after = if after.guest == Some(at) { after.id } else { 0 };
            let there = guest.search(query, scope, after, limit - found.len());
            let named = |found: Found| Row { guest: Some(at), id: found.id }.number();
            found.extend(there.into_iter().map(|found| Found { id: named(found), ..found }));
        }
        Ok(found)
    }

    fn examine(
        &self,
        role: Role,
        pin: &[u8],
        repair: bool,
        remark: &mut dyn FnMut(Remark<'_>) -> bool,
    ) -> Result<Examined> {
        self.own.examine(role, pin, repair, remark)
    }

    /// Odd where the own token's is: guests count in twos.
    fn generation(&self) -> Option<u64> {
        let own = self.own.generation()?;
        Some(self.tokens().fold(own, |sum, token| sum.wrapping_add(token.generation())))
    }

    fn home(&self) -> Option<&'static dyn Home> {
        self.own.home()
    }

    fn guests(&self) -> Vec<&'static dyn Home> {
        self.tokens().map(|token| token as &dyn Home).collect()
    }
}

/// Which row a change is of; what is new is the own token's.
fn row(change: &Change) -> Row {
    match change {
        Change::Insert(_) => Row { guest: None, id: 0 },
        Change::Update { id, .. } | Change::Delete { id, .. } => Row::of(*id),
    }
}

fn renumbered(change: Change, id: u64) -> Change {
    match change {
        Change::Update { version, record, .. } => Change::Update { id, version, record },
        Change::Delete { version, .. } => Change::Delete { id, version },
        insert @ Change::Insert(_) => insert,
    }
}
