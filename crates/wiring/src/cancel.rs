// SPDX-License-Identifier: Apache-2.0
//! Threads that the host cancels (`pthread_cancel`).
//!
//! A cancelled thread unwinds from the next system call that waits, and such an unwinding must not
//! come through our frames: a store would be left half-way, and the C library ends a process whose
//! frames catch it. So wherever such calls are made cancellation waits. Doing that at every call
//! would double the edge's cost; cryptography makes no such system call.

use metaslot_ck::Result;
use metaslot_memory::Secret;
use metaslot_spi::store::{
    Change, Examination, Examined, Found, Home, Name, ObjectRow, Remark, Role, Scope, Store, Term,
    TokenRow,
};
use std::ffi::c_int;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// `PTHREAD_CANCEL_DISABLE`, which is the same number on every Linux.
const DISABLE: c_int = 1;

/// The calling thread cannot be cancelled while this lives.
#[derive(Debug)]
#[must_use]
pub struct Uncancelled(c_int);

impl Uncancelled {
    /// Until it is dropped.
    pub fn begin() -> Self {
        let mut before = 0;
        // SAFETY: the place is ours.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
        Self(before)
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        let mut ours = 0;
        // SAFETY: the place is ours, and the state is one that the C library gave.
        unsafe { pthread_setcancelstate(self.0, &raw mut ours) };
    }
}

/// A store in which threads are not cancelled.
#[derive(Debug)]
pub struct UncancelledStore<S>(pub(crate) S);

impl<S: Store> Store for UncancelledStore<S> {
    fn token(&self) -> Result<TokenRow> {
        let _uncancelled = Uncancelled::begin();
        self.0.token()
    }

    fn initialize(&self, so_pin: &[u8], label: &str) -> Result<()> {
        let _uncancelled = Uncancelled::begin();
        self.0.initialize(so_pin, label)
    }

    fn login(&self, role: Role, pin: &[u8]) -> Result<()> {
        let _uncancelled = Uncancelled::begin();
        self.0.login(role, pin)
    }

    fn check_pin(&self, role: Role, pin: &[u8]) -> Result<()> {
        let _uncancelled = Uncancelled::begin();
        self.0.check_pin(role, pin)
    }

    fn login_as(&self, name: Name, pin: &[u8]) -> Result<()> {
        let _uncancelled = Uncancelled::begin();
        self.0.login_as(name, pin)
    }

    fn check_pin_as(&self, name: Name, pin: &[u8]) -> Result<()> {
        let _uncancelled = Uncancelled::begin();
        self.0.check_pin_as(name, pin)
    }

    fn set_pin_as(&self, name: Name, old: &[u8], new: &[u8]) -> Result<()> {
        let _uncancelled = Uncancelled::begin();
        self.0.set_pin_as(name, old, new)
    }

    fn incarnation(&self, name: Name) -> Result<Option<u64>> {
        let _uncancelled = Uncancelled::begin();
        self.0.incarnation(name)
    }

    fn retry_at(&self, name: Option<Name>) -> Result<u64> {
        let _uncancelled = Uncancelled::begin();
        self.0.retry_at(name)
    }

    fn share_login(&self) -> Result<()> {
        let _uncancelled = Uncancelled::begin();
        self.0.share_login()
    }

    fn logout(&self) {
        let _uncancelled = Uncancelled::begin();
        self.0.logout()
    }

    fn keeps_login(&self) -> bool {
        let _uncancelled = Uncancelled::begin();
        self.0.keeps_login()
    }

    fn init_pin(&self, pin: &[u8]) -> Result<()> {
        let _uncancelled = Uncancelled::begin();
        self.0.init_pin(pin)
    }

    fn set_pin(&self, role: Role, old: &[u8], new: &[u8]) -> Result<()> {
        let _uncancelled = Uncancelled::begin();
        self.0.set_pin(role, old, new)
    }

    fn write(&self, changes: Vec<Change>) -> Result<Vec<u64>> {
        let _uncancelled = Uncancelled::begin();
        self.0.write(changes)
    }

    fn write_as(&self, identity: (Name, u64), changes: Vec<Change>) -> Result<Vec<u64>> {
        let _uncancelled = Uncancelled::begin();
        self.0.write_as(identity, changes)
    }

    fn read(&self, id: u64) -> Result<Option<ObjectRow>> {
        let _uncancelled = Uncancelled::begin();
        self.0.read(id)
    }

    fn secrets(&self, id: u64, version: u64) -> Result<Secret> {
        let _uncancelled = Uncancelled::begin();
        self.0.secrets(id, version)
    }

    fn search(&self, query: &[Term], scope: Scope, after: u64, limit: usize) -> Result<Vec<Found>> {
        let _uncancelled = Uncancelled::begin();
        self.0.search(query, scope, after, limit)
    }

    fn examine(
        &self,
        role: Role,
        pin: &[u8],
        what: Examination<'_>,
        remark: &mut dyn FnMut(Remark<'_>) -> bool,
    ) -> Result<Examined> {
        let _uncancelled = Uncancelled::begin();
        self.0.examine(role, pin, what, remark)
    }

    fn restored(&self) -> Result<u64> {
        let _uncancelled = Uncancelled::begin();
        self.0.restored()
    }

    fn generation(&self) -> Option<u64> {
        // Called at every use of a key, and makes no call at which threads are cancelled.
        self.0.generation()
    }

    fn generation_of(&self, row: u64) -> Option<u64> {
        self.0.generation_of(row)
    }

    fn home(&self) -> Option<&'static dyn Home> {
        self.0.home()
    }

    fn guests(&self) -> Vec<&'static dyn Home> {
        self.0.guests()
    }
}
