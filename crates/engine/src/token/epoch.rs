// SPDX-License-Identifier: Apache-2.0
//! Who is logged in to a token, since when, and whether anything has died: one word, which each call
//! compares with what its session saw last.

pub(crate) use metaslot_rules::Login;
use std::sync::atomic::{AtomicU64, Ordering};

/// The time from one login, logout or initialisation of a token to the next. What was read or made in
/// one is known to be old in every other.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Epoch(u64);

/// An epoch, and how many objects were destroyed so far: while it is the same, nothing that anybody holds has died.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Moment(u64);

// Of the word: two bits say who is logged in, 32 count epochs, the rest deaths. Counts that come
// round find no session that remembers them: after each logout and destruction all sessions look.
const LOGIN: u64 = 3;
const NEXT: u64 = 4;
const EPOCH: u64 = DEATH - 1;
const DEATH: u64 = 1 << 34;

impl Epoch {
    pub(crate) const fn login(self) -> Login {
        match self.0 & LOGIN {
            0 => Login::Public,
            1 => Login::User,
            _ => Login::So,
        }
    }
}

impl Moment {
    pub(crate) const fn epoch(self) -> Epoch {
        Epoch(self.0 & EPOCH)
    }
}

/// The word of one token, rarely written. A cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Clock(AtomicU64);

impl Clock {
    #[inline]
    pub(crate) fn now(&self) -> Moment {
        Moment(self.0.load(Ordering::SeqCst))
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.now().epoch()
    }

    /// Ends the epoch; the next is `login`'s. The caller holds the token's login lock.
    pub(crate) fn begin(&self, login: Login) {
        let login = match login {
            Login::Public => 0,
            Login::User => 1,
            Login::So => 2,
        };
        self.0.update(Ordering::SeqCst, Ordering::SeqCst, |word| {
            let epoch = (word & EPOCH & !LOGIN).wrapping_add(NEXT) & EPOCH;
            word & !EPOCH | epoch | login
        });
    }

    /// Something died. Its life must have ended before: who sees this looks at it.
    pub(crate) fn count_death(&self) {
        self.0.fetch_add(DEATH, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_epochs_are_equal() {
        let clock = Clock::default();
        let mut seen = vec![clock.epoch()];
        for login in [Login::User, Login::Public, Login::User, Login::Public, Login::So] {
            clock.begin(login);
            assert_eq!(clock.epoch().login(), login);
            assert!(!seen.contains(&clock.epoch()));
            seen.push(clock.epoch());
        }
    }

    #[test]
    fn a_death_is_another_moment_of_the_same_epoch() {
        let clock = Clock::default();
        clock.begin(Login::User);
        let before = clock.now();
        clock.count_death();
        assert_ne!(clock.now(), before);
        assert_eq!(clock.epoch(), before.epoch());
        clock.begin(Login::Public);
        assert_ne!(clock.epoch(), before.epoch());
    }

    #[test]
    fn counts_that_come_round_leave_the_others_alone() {
        let clock = Clock(AtomicU64::new(!LOGIN | 1));
        clock.begin(Login::So);
        assert_eq!((clock.epoch(), clock.epoch().login()), (Epoch(2), Login::So));
        clock.count_death();
        assert_eq!(clock.now(), Moment(2));
    }
}
