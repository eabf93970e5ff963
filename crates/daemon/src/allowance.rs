// SPDX-License-Identifier: Apache-2.0
//! What the processes of one user, or the peers of one name, may have here together: connections, and memory for what their requests take and leave; and how often they may try a name.

use metaslot_ck::{Error, Result};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// After so many wrong PINs with a name, of any identity or of none, a user's next try has to wait.
const FREE_FAILURES: u32 = 3;
/// For so long at first, and twice as long each time,
const PAUSE: Duration = Duration::from_millis(500);
/// so often.
const DOUBLINGS: u32 = 3;
/// So long after the last one, a user without connections begins anew.
const MEMORY: Duration = Duration::from_secs(60);

/// Of all users.
#[derive(Debug)]
pub struct Allowances {
    connections: AtomicUsize,
    memory: Arc<AtomicUsize>,
    owners: Mutex<HashMap<Owner, Arc<Owned>>>,
}

/// Whose connections are counted together.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Owner {
    User(u32),
    Name(String),
}

/// What the connections of one owner have together.
#[derive(Debug, Default)]
struct Owned {
    /// The bytes that are taken.
    taken: AtomicUsize,
    /// Held while one of them tries a name.
    tries: Mutex<Tries>,
}

/// Wrong PINs with names since the last right one.
#[derive(Debug, Default)]
struct Tries {
    failures: u32,
    last: Option<Instant>,
}

/// Of one connection, which counts while this lives.
#[derive(Debug)]
pub struct Allowance {
    memory: Arc<AtomicUsize>,
    owned: Arc<Owned>,
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
        // Who goes and comes again has the same pauses.
        owners.retain(|_, owned| Arc::strong_count(owned) > 1 || owned.is_remembered());
        let owned = owners.entry(owner).or_default();
        // One is the table's.
        let is_free = Arc::strong_count(owned) <= self.connections.load(Ordering::Relaxed);
        let memory = || Arc::clone(&self.memory);
        is_free.then(|| Allowance { memory: memory(), owned: Arc::clone(owned) })
    }
}

impl Owned {
    fn is_remembered(&self) -> bool {
        !self.tries.try_lock().is_ok_and(|tries| tries.rest(MEMORY).is_zero())
    }
}

impl Tries {
    /// For how long the next one has to wait.
    fn pause(&self) -> Duration {
        let more = self.failures.checked_sub(FREE_FAILURES);
        more.map_or(Duration::ZERO, |more| self.rest(PAUSE * (1 << more.min(DOUBLINGS))))
    }

    /// What is left of such a time after the last one.
    fn rest(&self, whole: Duration) -> Duration {
        self.last.map_or(Duration::ZERO, |last| whole.saturating_sub(last.elapsed()))
    }

    fn end_with<T>(&mut self, tried: &Result<T>) {
        match tried {
            Ok(_) => *self = Self::default(),
            Err(Error::PIN_INCORRECT) => {
                self.failures += 1;
                self.last = Some(Instant::now());
            }
            Err(_) => {}
        }
    }
}

impl Allowance {
    /// How much its user's connections take, and may take.
    pub(crate) fn levels(&self) -> [usize; 2] {
        [&self.owned.taken, &*self.memory].map(|level| level.load(Ordering::Relaxed))
    }

    /// Waits until a PIN may be tried that may be an identity's (`C_LoginUser` with a name, `C_SetPIN`, a login for one use). Each try costs the token
    /// and the others who log in to it time, also with a name that is not there: of one user's connections there is one at a time, and after wrong ones not before a pause. Both are the
    /// same for every name, of which they tell nothing.
    pub(crate) fn turn(&self) -> Turn<'_> {
        let tries = self.owned.tries.lock().unwrap_or_else(PoisonError::into_inner);
        thread::sleep(tries.pause());
        Turn(tries)
    }

    /// Room for so many bytes; none where there is not as much.
    pub(crate) fn room(&self, bytes: usize) -> Option<Room<'_>> {
        let memory = self.memory.load(Ordering::Relaxed);
        let more = |taken: usize| taken.checked_add(bytes).filter(|all| *all <= memory);
        self.owned.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Room { allowance: self, bytes })
    }

    /// For what is there already, whether there is as much or not: then there is no more for others. More than a user may have
    /// is counted as that, so that sums of what modules say of their objects do not run over.
    pub(crate) fn of_what_is(&self, bytes: usize) -> Room<'_> {
        let bytes = bytes.min(self.memory.load(Ordering::Relaxed));
        self.owned.taken.fetch_add(bytes, Ordering::Relaxed);
        Room { allowance: self, bytes }
    }
}

/// Of a user's connections the one that may try a PIN.
#[derive(Debug)]
pub(crate) struct Turn<'a>(MutexGuard<'a, Tries>);

impl Turn<'_> {
    /// The try.
    ///
    /// # Errors
    /// What it ended with.
    pub(crate) fn attempt<T>(mut self, attempt: impl FnOnce() -> Result<T>) -> Result<T> {
        let tried = attempt();
        self.0.end_with(&tried);
        tried
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
        self.allowance.owned.taken.fetch_sub(self.bytes, Ordering::Relaxed);
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
        self.allowance.owned.taken.fetch_sub(rest, Ordering::Relaxed);
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

    #[test]
    fn a_user_has_one_try_of_a_name_at_a_time_and_a_pause_after_wrong_ones() {
        let all = Allowances::new(2, 100);
        let wrong = |who: &Allowance| who.turn().attempt(|| Err::<(), _>(Error::PIN_INCORRECT));
        let pause = |who: &Allowance| who.owned.tries.lock().expect("no panic").pause();
        let [one, two] = [all.admit(7), all.admit(7)].map(|one| one.expect("it is free"));
        let other = all.admit(8).expect("it is another's");
        let tried = one.turn().attempt(|| {
            assert!(two.owned.tries.try_lock().is_err(), "two at a time");
            other.turn().attempt(|| Ok(()))
        });
        assert_eq!(tried, Ok(()));
        (0..2).for_each(|_| assert!(wrong(&one).is_err()));
        assert!(pause(&two).is_zero());
        assert!(wrong(&two).is_err());
        let begin = Instant::now();
        assert!(pause(&one) > PAUSE / 2 && pause(&other).is_zero());
        drop([one, two]);
        let again = all.admit(7).expect("it is free");
        assert!(all.admit(9).is_some() && wrong(&again).is_err());
        assert!(begin.elapsed() > PAUSE / 2 && pause(&again) > PAUSE);
        // Nor does who comes after the pause begin anew, before a minute has passed.
        let ago = |again: &Allowance, seconds| {
            let past = Instant::now().checked_sub(Duration::from_secs(seconds));
            again.owned.tries.lock().expect("no panic").last = past;
        };
        ago(&again, 2);
        drop(again);
        let again = all.admit(7).expect("it is free");
        assert!(wrong(&again).is_err() && pause(&again) > 3 * PAUSE);
        ago(&again, 61);
        drop(again);
        let again = all.admit(7).expect("it is free");
        assert!(wrong(&again).is_err() && pause(&again).is_zero());
        assert_eq!(again.turn().attempt(|| Ok(())), Ok(()));
    }
}
