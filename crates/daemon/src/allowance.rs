// SPDX-License-Identifier: Apache-2.0
//! What the processes of one user may have here together: connections, and memory for what stays between their calls.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Of all users.
#[derive(Debug)]
pub struct Allowances {
    connections: usize,
    memory: usize,
    users: Mutex<HashMap<u32, Arc<AtomicUsize>>>,
}

/// Of one connection, which counts while this lives.
#[derive(Debug)]
pub struct Allowance {
    memory: usize,
    /// The bytes that are taken; its user's connections share it.
    taken: Arc<AtomicUsize>,
}

impl Allowances {
    /// `connections` and bytes of `memory` for each user.
    #[must_use]
    pub fn new(connections: usize, memory: usize) -> Self {
        Self { connections, memory, users: Mutex::default() }
    }

    /// Another connection of a user; none where there are enough.
    pub fn admit(&self, user: u32) -> Option<Allowance> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|_, taken| Arc::strong_count(taken) > 1);
        let taken = users.entry(user).or_default();
        // One is the table's.
        let is_free = Arc::strong_count(taken) <= self.connections;
        is_free.then(|| Allowance { memory: self.memory, taken: Arc::clone(taken) })
    }
}

impl Allowance {
    /// Whether there is more.
    pub(crate) fn has_room(&self) -> bool {
        self.taken.load(Ordering::Relaxed) < self.memory
    }

    /// So many bytes are kept from now on.
    pub(crate) fn take(&self, bytes: usize) {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So many are not any more.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
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
        one.take(100);
        assert!(!two.has_room() && other.has_room());
        one.give_back(1);
        assert!(two.has_room());
        drop(one);
        all.admit(7).expect("one has gone");
    }
}
