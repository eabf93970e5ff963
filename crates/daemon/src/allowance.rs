// SPDX-License-Identifier: Apache-2.0
//! What the processes of one user, or the peers of one name, may have here together: connections, and memory for what their requests take and leave.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Of all users.
#[derive(Debug)]
pub struct Allowances {
    connections: AtomicUsize,
    memory: Arc<AtomicUsize>,
    owners: Mutex<HashMap<Owner, Arc<AtomicUsize>>>,
}

/// Whose connections are counted together.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Owner {
    User(u32),
    Name(String),
}

/// Of one connection, which counts while this lives.
#[derive(Debug)]
pub struct Allowance {
    memory: Arc<AtomicUsize>,
    /// The bytes that are taken; its user's connections share it.
    taken: Arc<AtomicUsize>,
}

impl Allowances {
    /// `connections` and bytes of `memory` for each user.
    #[must_use]
    pub fn new(connections: usize, memory: usize) -> Self {
        let (connections, memory) = (connections.into(), Arc::new(memory.into()));
        Self { connections, memory, owners: Mutex::default() }
    }

    /// So many, and so much, from now on. What is there stays.
    pub(crate) fn change(&self, connections: usize, memory: usize) {
        self.connections.store(connections, Ordering::Relaxed);
        self.memory.store(memory, Ordering::Relaxed);
    }

    /// Another connection of a user; none where there are enough.
    pub fn admit(&self, user: u32) -> Option<Allowance> {
        self.admit_owner(Owner::User(user))
    }

    /// The same of a name that peers of other machines have.
    pub(crate) fn admit_named(&self, name: &str) -> Option<Allowance> {
        self.admit_owner(Owner::Name(name.to_ascii_lowercase()))
    }

    fn admit_owner(&self, owner: Owner) -> Option<Allowance> {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|_, taken| Arc::strong_count(taken) > 1);
        let taken = owners.entry(owner).or_default();
        // One is the table's.
        let is_free = Arc::strong_count(taken) <= self.connections.load(Ordering::Relaxed);
        let memory = || Arc::clone(&self.memory);
        is_free.then(|| Allowance { memory: memory(), taken: Arc::clone(taken) })
    }
}

impl Allowance {
    /// How much its user's connections take, and may take.
    pub(crate) fn levels(&self) -> [usize; 2] {
        [&self.taken, &self.memory].map(|level| level.load(Ordering::Relaxed))
    }

    /// Room for so many bytes; none where there is not as much.
    pub(crate) fn room(&self, bytes: usize) -> Option<Room<'_>> {
        let memory = self.memory.load(Ordering::Relaxed);
        let more = |taken: usize| taken.checked_add(bytes).filter(|all| *all <= memory);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Room { allowance: self, bytes })
    }

    /// For what is there already, whether there is as much or not: then there is no more for others. More than a user may have
    /// is counted as that, so that sums of what modules say of their objects do not run over.
    pub(crate) fn of_what_is(&self, bytes: usize) -> Room<'_> {
        let bytes = bytes.min(self.memory.load(Ordering::Relaxed));
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        Room { allowance: self, bytes }
    }
}

/// Bytes that are taken, until it goes.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    allowance: &'a Allowance,
    bytes: usize,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.allowance.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Room<'_> {
    /// How many.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// With others of the same allowance.
    pub(crate) fn join(&mut self, other: Self) {
        self.bytes += other.bytes;
        std::mem::forget(other);
    }

    /// No more than so many stay.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let rest = self.bytes.saturating_sub(bytes);
        self.bytes -= rest;
        self.allowance.taken.fetch_sub(rest, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_as_many_connections_and_as_much_memory_as_is_said() {
        let all = Allowances::new(2, 100);
        let [one, two] = [all.admit(7), all.admit(7)].map(|one| one.expect("it is free"));
        assert!(all.admit(7).is_none());
        let other = all.admit(8).expect("it is another's");
        let named = all.admit_named("7").expect("it is no user's");
        assert!(all.admit_named("7").is_some() && named.room(100).is_some());
        let mut room = one.room(99).expect("there is room");
        assert!(two.room(2).is_none() && two.room(usize::MAX).is_none());
        assert!(other.room(100).is_some());
        room.join(two.room(1).expect("there is as much"));
        assert!(two.room(1).is_none());
        room.shrink(98);
        assert_eq!((room.bytes(), two.room(2).is_some(), two.room(3).is_none()), (98, true, true));
        let more = two.of_what_is(50);
        drop(room);
        assert!(one.room(51).is_none() && one.room(50).is_some());
        drop(more);
        assert!(one.room(100).is_some(), "all was given back");
        let claims = [one.of_what_is(usize::MAX), one.of_what_is(usize::MAX)];
        assert!(two.room(1).is_none());
        drop(claims);
        assert!(two.room(100).is_some(), "all was given back");
        drop(one);
        all.admit(7).expect("one has gone");
        all.change(3, 50);
        let more = [all.admit(7), all.admit(7)].map(|one| one.expect("there may be more"));
        assert!(more[0].room(51).is_none() && two.room(51).is_none() && two.room(50).is_some());
    }
}
