// SPDX-License-Identifier: Apache-2.0
//! Handles of token objects: arithmetic instead of a table.
//!
//! A handle is `(base + row id) << 14 | slot << 2 | kind`. Bases come from a process-wide high-water
//! mark, so a handle from before a logout, a `C_Finalize` or a fork lies below every base in use: it
//! is known to be stale, without any memory per object, and no handle ever comes back.
//!
//! Private objects have handles in a user's epoch only. Their base moves on before such an epoch
//! begins, and a name is given only if the epoch did not end while it was made: then the next base
//! lies above it. (The mark is raised before the epoch is looked at, and the epoch ends before the
//! mark is read: one of the two sees the other.)

use super::epoch::{Clock, Epoch, Login};
use metaslot_ck::{CK_OBJECT_CLASS, ObjectHandle, SlotId};
use std::sync::atomic::{AtomicU64, Ordering};

/// Above every number that was ever named.
static HIGH: AtomicU64 = AtomicU64::new(0);

const PUBLIC: u64 = 1;
const PRIVATE: u64 = 2;
/// Finds nothing, but what is fixed.
const DEAD: u64 = 3;

const SLOT_BITS: u32 = 12;
const NUMBER_BITS: u32 = u64::BITS - SLOT_BITS - 2;
/// In the number of an object that is in no store; no other is so high.
const FIXED: u64 = 1 << (NUMBER_BITS - 1);
const SAID_BITS: u32 = 32;

/// How many slots a handle can tell apart.
pub const MAX_SLOTS: usize = 1 << SLOT_BITS;

/// The handles of one token.
#[derive(Debug)]
pub(crate) struct Handles {
    slot: u64,
    public: AtomicU64,
    private: AtomicU64,
}

impl Handles {
    pub(crate) fn new(slot: SlotId) -> Self {
        let base = HIGH.load(Ordering::SeqCst);
        Self { slot: slot.0, public: AtomicU64::new(base), private: AtomicU64::new(base) }
    }

    /// Makes every private handle stale. No user is logged in.
    pub(crate) fn renew_private(&self) {
        self.private.store(HIGH.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Makes every handle stale. No session is open that could name an object meanwhile.
    pub(crate) fn renew(&self) {
        self.public.store(HIGH.load(Ordering::SeqCst), Ordering::SeqCst);
        self.renew_private();
    }

    /// The handle of row `id` in `epoch`; `None` for a private one when no user is logged in, or when
    /// the epoch is over.
    pub(crate) fn name(
        &self,
        id: u64,
        private: bool,
        epoch: Epoch,
        clock: &Clock,
    ) -> Option<ObjectHandle> {
        if private && epoch.login() != Login::User {
            return None;
        }
        let (base, kind) = if private { (&self.private, PRIVATE) } else { (&self.public, PUBLIC) };
        let number = base.load(Ordering::SeqCst).checked_add(id)?;
        if number >= FIXED {
            return None;
        }
        if HIGH.load(Ordering::SeqCst) <= number {
            HIGH.fetch_max(number + 1, Ordering::SeqCst);
        }
        (!private || clock.epoch() == epoch).then(|| self.handle(number, kind))
    }

    /// A handle of nothing, now and for ever: of an object that cannot be named any more.
    pub(crate) fn dead(&self) -> ObjectHandle {
        self.handle(HIGH.fetch_add(1, Ordering::SeqCst), DEAD)
    }

    /// The handle of what a token says of itself: a class, and what is said.
    pub(crate) const fn of_fixed(&self, class: CK_OBJECT_CLASS, said: u64) -> ObjectHandle {
        self.handle(FIXED | class << SAID_BITS | said, DEAD)
    }

    /// Class and what is said, where the handle is of such an object.
    pub(crate) const fn fixed(handle: ObjectHandle) -> Option<(CK_OBJECT_CLASS, u64)> {
        let number = handle.0 >> (SLOT_BITS + 2);
        if handle.0 & 3 != DEAD || number & FIXED == 0 {
            return None;
        }
        Some(((number & !FIXED) >> SAID_BITS, number & ((1 << SAID_BITS) - 1)))
    }

    const fn handle(&self, number: u64, kind: u64) -> ObjectHandle {
        ObjectHandle(number << (SLOT_BITS + 2) | self.slot << 2 | kind)
    }

    /// The slot in a handle of a token object; `None` for a session object.
    pub(crate) const fn slot(handle: ObjectHandle) -> Option<SlotId> {
        let slot = handle.0 >> 2 & (MAX_SLOTS as u64 - 1);
        if handle.0 & 3 == 0 { None } else { Some(SlotId(slot)) }
    }

    /// The row of a handle and whether it is private; `None` when it is stale in `epoch`. It holds if
    /// the epoch is still the same afterwards.
    pub(crate) fn row(&self, handle: ObjectHandle, epoch: Epoch) -> Option<(u64, bool)> {
        let (base, private) = match handle.0 & 3 {
            PUBLIC => (&self.public, false),
            PRIVATE if epoch.login() == Login::User => (&self.private, true),
            _ => return None,
        };
        let id = (handle.0 >> (SLOT_BITS + 2)).checked_sub(base.load(Ordering::SeqCst))?;
        (id > 0).then_some((id, private))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> Clock {
        let clock = Clock::default();
        clock.begin(Login::User);
        clock
    }

    #[test]
    fn a_handle_finds_its_row_until_renewed() {
        let (handles, clock) = (Handles::new(SlotId(3)), user());
        let name = |private| handles.name(7, private, clock.epoch(), &clock).expect("it is named");
        let (public, private) = (name(false), name(true));
        assert_eq!(Handles::slot(public), Some(SlotId(3)));
        assert_eq!(handles.row(public, clock.epoch()), Some((7, false)));
        assert_eq!(handles.row(private, clock.epoch()), Some((7, true)));
        handles.renew_private();
        assert_eq!(handles.row(public, clock.epoch()), Some((7, false)));
        assert_eq!(handles.row(private, clock.epoch()), None);
        assert_ne!(name(true), private);
        handles.renew();
        assert_eq!(handles.row(public, clock.epoch()), None);
    }

    #[test]
    fn every_slot_has_handles_of_its_own() {
        let clock = user();
        for slot in [0, 63, 64, 65, MAX_SLOTS as u64 - 1] {
            let handles = Handles::new(SlotId(slot));
            for private in [false, true] {
                let handle = handles.name(9, private, clock.epoch(), &clock).expect("it is named");
                assert_eq!(Handles::slot(handle), Some(SlotId(slot)));
                assert_eq!(handles.row(handle, clock.epoch()), Some((9, private)));
            }
        }
    }

    #[test]
    fn what_no_user_sees_has_no_handle() {
        let (handles, clock) = (Handles::new(SlotId(0)), user());
        let before = clock.epoch();
        let private = handles.name(1, true, before, &clock).expect("it is named");
        clock.begin(Login::Public);
        assert_eq!(handles.name(1, true, before, &clock), None, "the epoch is over");
        assert_eq!(handles.name(1, true, clock.epoch(), &clock), None);
        assert_eq!(handles.row(private, clock.epoch()), None);
        assert!(handles.name(1, false, before, &clock).is_some());
        let dead = handles.dead();
        assert_eq!(Handles::slot(dead), Some(SlotId(0)));
        assert_eq!(handles.row(dead, before), None, "in every login");
        assert_eq!(handles.name(1 << NUMBER_BITS, false, before, &clock), None);
    }

    /// Threads name rows with ever greater numbers while others log out and in.
    #[test]
    fn a_name_given_during_a_logout_is_never_alive_afterwards() {
        let (handles, clock) = (&Handles::new(SlotId(0)), &user());
        std::thread::scope(|scope| {
            for thread in 1..=2 {
                scope.spawn(move || {
                    for round in 1..200_000 {
                        let epoch = clock.epoch();
                        let id = round * thread * 16;
                        let Some(handle) = handles.name(id, true, epoch, clock) else { continue };
                        let now = clock.epoch();
                        let row = handles.row(handle, now);
                        if clock.epoch() == now {
                            let expected = (now == epoch).then_some((id, true));
                            assert_eq!(row, expected, "{epoch:?} {now:?}");
                        }
                    }
                });
            }
            for _ in 0..50_000 {
                clock.begin(Login::Public);
                handles.renew_private();
                clock.begin(Login::User);
            }
        });
    }
}
