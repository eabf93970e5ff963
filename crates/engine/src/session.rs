// SPDX-License-Identifier: Apache-2.0
//! Sessions: a table that grows by chunks and is read without a lock, and one lock per session.
//!
//! A handle is `count << 20 | place`; counts go on over re-initialisation and fork, so that no
//! handle ever comes back.

use crate::object::Object;
use crate::object::recent::Recent;
use crate::object::session_objects::SessionObjects;
use crate::operation::{Operation, OperationKind, Operations};
use crate::output::Written;
use crate::search::Find;
use crate::token::epoch::{Epoch, Moment};
use metaslot_ck::*;
use metaslot_spi::buffer::make_room;
use metaslot_spi::store::Store;
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

/// One open session.
#[derive(Debug, Default)]
pub(crate) struct Session {
    pub(crate) slot: SlotId,
    pub(crate) write: bool,
    /// `CKF_ASYNC_SESSION`
    pub(crate) asynchronous: bool,
    pub(crate) operations: Operations,
    pub(crate) find: Option<Find>,
    /// Session objects to destroy when this session closes.
    pub(crate) owned: Vec<ObjectHandle>,
    pub(crate) recent: Recent,
    /// Up to when everything that is over has been let go of.
    seen: Moment,
    /// The store's generation at which the rows behind the active operations were there; `None` where
    /// no operation has such a key.
    rows_seen: Option<u64>,
    /// The kind of operation that began last with a key that wants a login for each use.
    pub(crate) locked_last: Option<OperationKind>,
}

impl Session {
    /// Notes a session object that goes with the session. When the list grows, it is as long as what is there.
    pub(crate) fn own(&mut self, handle: ObjectHandle, objects: &SessionObjects) -> Result<()> {
        let count = self.owned.len();
        if count == self.owned.capacity() && count >= LIST {
            self.owned.retain(|owned| objects.has(*owned));
            let count = self.owned.len();
            make_room(&mut self.owned, count)?;
        }
        self.owned.push(handle);
        Ok(())
    }

    /// Where anything has died since the last look: lets go of it.
    #[inline]
    pub(crate) fn catch_up(&mut self, now: Moment) {
        if self.seen != now {
            self.seen = now;
            self.drop_over(now.epoch());
        }
    }

    /// An operation begins with this key.
    pub(crate) fn uses(&mut self, key: &Object, kind: OperationKind, store: &dyn Store) {
        if key.facts().always_authenticate && kind != OperationKind::Derive {
            self.locked_last = Some(kind);
        }
        if key.on_token() && self.rows_seen.is_none() {
            // What is current after this was read was there at it; of anything else it is found out.
            self.rows_seen =
                store.generation().filter(|_| key.is_current_in(store)).or(Some(u64::MAX));
        }
    }

    /// Whether another process may have destroyed the key of an active operation.
    #[inline]
    pub(crate) fn may_miss_rows(&self, store: &dyn Store) -> bool {
        self.rows_seen.is_some() && self.rows_seen != store.generation()
    }

    /// Ends the operations whose keys are not in the store any more.
    #[cold]
    pub(crate) fn look_for_rows(&mut self, store: &dyn Store) {
        let now = store.generation();
        self.operations.cancel(&mut self.recent, |_, operation| {
            operation.object().is_some_and(|object| object.is_gone_from(store))
        });
        let any = self.operations.any(|_, one| one.object().is_some_and(|key| key.on_token()));
        self.rows_seen = any.then(|| now.unwrap_or(u64::MAX));
    }

    /// The operation that a context-specific login is for: of those that wait for one, the one that began last.
    pub(crate) fn locked(&mut self) -> Option<&mut dyn Operation> {
        let locked = |kind: &OperationKind| self.operations.of(*kind).is_locked();
        let kind = self.locked_last.into_iter().chain(OperationKind::ALL).find(locked)?;
        Some(self.operations.of(kind))
    }

    /// Lets go of every object that was destroyed or logged out of, ending its operations.
    #[cold]
    fn drop_over(&mut self, now: Epoch) {
        self.operations.cancel(&mut self.recent, |_, operation| {
            operation.object().is_some_and(|object| object.is_over(now))
        });
        self.recent.drop_over(now);
    }

    /// Lets go of everything, in place: a session is large, and moving it costs more than all else
    /// that closing does. Gives back the session objects that must go too.
    #[inline]
    fn empty(&mut self) -> Vec<ObjectHandle> {
        self.let_go();
        std::mem::take(&mut self.owned)
    }

    #[inline]
    fn let_go(&mut self) {
        self.operations.cancel(&mut self.recent, |_, _| true);
        self.find = None;
        self.recent = Recent::default();
        self.rows_seen = None;
    }
}

/// What any thread may read of a session without its lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Info {
    pub(crate) slot: SlotId,
    pub(crate) write: bool,
    pub(crate) asynchronous: bool,
}

/// One place of the table, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct SessionPlace {
    /// 0 when free.
    handle: AtomicU64,
    /// `slot << 2 | asynchronous << 1 | write`
    info: AtomicU32,
    unlocked: Unlocked,
    session: Mutex<Session>,
}

/// What was completed last without the lock, until its next holder sees it: `handle << 1 | approved`, or 0.
#[derive(Debug, Default)]
pub(crate) struct Unlocked(AtomicU64);

impl Unlocked {
    /// Where an operation of this session is `done`. Threads that say the same write nothing.
    #[inline]
    pub(crate) fn completes(&self, by: SessionHandle, approved: bool, done: Result<Written>) {
        let completed = by.0 << 1 | u64::from(approved);
        if done == Ok(Written::Done) && self.0.load(Ordering::Relaxed) != completed {
            self.0.store(completed, Ordering::Relaxed);
        }
    }
}

impl SessionPlace {
    /// The session after a call that panicked.
    #[cold]
    fn go_on<'a>(&self, poisoned: PoisonError<MutexGuard<'a, Session>>) -> MutexGuard<'a, Session> {
        self.session.clear_poison();
        let mut session = poisoned.into_inner();
        session.let_go();
        session
    }
}

const PLACE_BITS: u32 = 20;
/// A place has two kilobytes, and a child of a server that forks has one session.
const FIRST_CHUNK: usize = 4;
const CHUNKS: usize = 19;
const SHARDS: usize = 16;
/// Places that a list of free ones has room for at first: some cache lines.
const LIST: usize = 64;

/// How many sessions can be open at once.
pub(crate) const MAX_SESSIONS: usize = 1 << PLACE_BITS;

/// Counts of handles, one per shard so that threads do not meet.
static COUNTS: [Counter; SHARDS] = [const { Counter(AtomicU64::new(1)) }; SHARDS];

#[repr(align(128))]
struct Counter(AtomicU64);

/// All sessions of all slots.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    chunks: [OnceLock<Box<[SessionPlace]>>; CHUNKS],
    /// Places that were used and are free, by thread.
    free: [Free; SHARDS],
    used: AtomicUsize,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Free(Mutex<Vec<u32>>);

/// The lock of one open session.
#[derive(Debug)]
pub(crate) struct SessionGuard<'a>(MutexGuard<'a, Session>);

impl Deref for SessionGuard<'_> {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}

impl DerefMut for SessionGuard<'_> {
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.0
    }
}

impl Sessions {
    fn place(&self, at: usize) -> Option<&SessionPlace> {
        // Chunk k holds FIRST_CHUNK << k places and begins at FIRST_CHUNK * (2^k - 1).
        let chunk = (at / FIRST_CHUNK + 1).ilog2() as usize;
        let first = FIRST_CHUNK * ((1 << chunk) - 1);
        self.chunks.get(chunk)?.get()?.get(at - first)
    }

    fn of(&self, handle: SessionHandle) -> Result<&SessionPlace> {
        let at = usize::try_from(handle.0).unwrap_or(usize::MAX) & (MAX_SESSIONS - 1);
        let place = self.place(at).ok_or(Error::SESSION_HANDLE_INVALID)?;
        if handle.0 != 0 && place.handle.load(Ordering::Acquire) == handle.0 {
            Ok(place)
        } else {
            Err(Error::SESSION_HANDLE_INVALID)
        }
    }

    /// Takes no lock.
    pub(crate) fn info(&self, handle: SessionHandle) -> Result<Info> {
        self.unlocked(handle).map(|(info, _)| info)
    }

    /// The same, with the place for what is completed without the lock.
    pub(crate) fn unlocked(&self, handle: SessionHandle) -> Result<(Info, &Unlocked)> {
        let place = self.of(handle)?;
        let info = place.info.load(Ordering::Acquire);
        // The place may have been given to another session between the two loads.
        if place.handle.load(Ordering::Acquire) != handle.0 {
            return Err(Error::SESSION_HANDLE_INVALID);
        }
        let slot = SlotId(u64::from(info >> 2));
        let info = Info { slot, write: info & 1 != 0, asynchronous: info & 2 != 0 };
        Ok((info, &place.unlocked))
    }

    /// Waits for a call of another thread on the same session.
    ///
    /// What a call that panicked was doing is over; the session goes on.
    #[inline(always)]
    pub(crate) fn lock(&self, handle: SessionHandle) -> Result<SessionGuard<'_>> {
        let place = self.of(handle)?;
        let mut session = place.session.lock().unwrap_or_else(|poisoned| place.go_on(poisoned));
        if place.handle.load(Ordering::Acquire) != handle.0 {
            return Err(Error::SESSION_HANDLE_INVALID);
        }
        if place.unlocked.0.load(Ordering::Relaxed) != 0
            && let completed = place.unlocked.0.swap(0, Ordering::Relaxed)
            && completed >> 1 == handle.0
        {
            session.recent.completes(completed & 1 != 0);
        }
        Ok(SessionGuard(session))
    }

    /// Opens a session, if `may` allows it then ([`Self::settle`]).
    pub(crate) fn open(
        &self,
        info: Info,
        may: impl FnOnce() -> Result<()>,
    ) -> Result<SessionHandle> {
        let Info { slot, write, asynchronous } = info;
        let shard = thread_shard();
        let at = match lock(&self.free[shard].0).pop() {
            Some(at) => at as usize,
            None => self.fresh()?,
        };
        let place = self.place(at).ok_or(Error::SESSION_COUNT)?;
        let mut session = place.session.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(refused) = may() {
            drop(session);
            return Err(self.not_opened(at, refused));
        }
        session.slot = slot;
        session.write = write;
        session.asynchronous = asynchronous;
        let count = COUNTS[shard].0.fetch_add(1, Ordering::Relaxed) * SHARDS as u64 + shard as u64;
        let handle = count << PLACE_BITS | at as u64;
        let info = u32::try_from(slot.0).unwrap_or(0) << 2
            | u32::from(asynchronous) << 1
            | u32::from(write);
        place.info.store(info, Ordering::Release);
        place.handle.store(handle, Ordering::Release);
        Ok(SessionHandle(handle))
    }

    /// A place that was never used; takes one of another thread's when the table is full.
    fn fresh(&self) -> Result<usize> {
        self.make_chunk(self.used.load(Ordering::Acquire))?;
        let at = self.used.fetch_add(1, Ordering::AcqRel);
        if at >= MAX_SESSIONS {
            self.used.fetch_sub(1, Ordering::Relaxed);
            let given = self.free.iter().find_map(|free| lock(&free.0).pop());
            return given.map(|at| at as usize).ok_or(Error::SESSION_COUNT);
        }
        // Others may have been faster.
        self.make_chunk(at).map(|()| at)
    }

    /// The chunk of a place; it is long.
    fn make_chunk(&self, at: usize) -> Result<()> {
        let chunk = (at / FIRST_CHUNK + 1).ilog2() as usize;
        if let Some(place) = self.chunks.get(chunk).filter(|place| place.get().is_none()) {
            let mut made = Vec::new();
            made.try_reserve_exact(FIRST_CHUNK << chunk).map_err(|_| Error::HOST_MEMORY)?;
            made.resize_with(FIRST_CHUNK << chunk, SessionPlace::default);
            drop(place.set(made.into_boxed_slice()));
        }
        Ok(())
    }

    /// Closes the session, if `may` allows it then, by its slot: gives that slot and the session
    /// objects that must go too. `None` when it may not be closed.
    pub(crate) fn close(
        &self,
        handle: SessionHandle,
        may: impl FnOnce(SlotId) -> bool,
    ) -> Result<Option<(SlotId, Vec<ObjectHandle>)>> {
        let place = self.of(handle)?;
        let mut session = match place.session.lock() {
            Ok(session) => session,
            Err(poisoned) => {
                place.session.clear_poison();
                poisoned.into_inner()
            }
        };
        // Handles come and go under the lock only.
        if place.handle.load(Ordering::Acquire) != handle.0 {
            return Err(Error::SESSION_HANDLE_INVALID);
        }
        if !may(session.slot) {
            return Ok(None);
        }
        place.handle.store(0, Ordering::Release);
        let (slot, owned) = (session.slot, session.empty());
        drop(session);
        self.give_back(usize::try_from(handle.0).unwrap_or(0) & (MAX_SESSIONS - 1));
        Ok(Some((slot, owned)))
    }

    #[cold]
    fn not_opened(&self, at: usize, refused: Error) -> Error {
        self.give_back(at);
        refused
    }

    #[inline(always)]
    fn give_back(&self, at: usize) {
        let mut free = lock(&self.free[thread_shard()].0);
        // Small lists of two threads could lie in one cache line, which both then fight for.
        let room = if free.capacity() == 0 { LIST } else { 1 };
        // A place that cannot be noted is not used again.
        if make_room(&mut free, room).is_ok() {
            free.push(u32::try_from(at).unwrap_or(0));
        }
    }

    fn places(&self) -> impl Iterator<Item = &SessionPlace> {
        self.chunks.iter().filter_map(OnceLock::get).flat_map(|chunk| chunk.iter())
    }

    /// Every open session with its info.
    pub(crate) fn open_ones(&self) -> impl Iterator<Item = (SessionHandle, Info)> {
        self.places().filter_map(|place| {
            let handle = SessionHandle(place.handle.load(Ordering::Acquire));
            self.info(handle).ok().map(|info| (handle, info))
        })
    }

    pub(crate) fn any(&self, wanted: impl Fn(Info) -> bool) -> bool {
        self.open_ones().any(|(_, info)| wanted(info))
    }

    /// Visits every open session of a slot under its lock.
    pub(crate) fn each(&self, slot: SlotId, visit: impl Fn(&mut Session)) {
        for place in self.places() {
            let there = place.handle.load(Ordering::Acquire) != 0;
            if there && u64::from(place.info.load(Ordering::Acquire) >> 2) == slot.0 {
                let mut session = place.session.lock().unwrap_or_else(PoisonError::into_inner);
                if session.slot == slot {
                    visit(&mut session);
                }
            }
        }
    }

    /// Does something while the session is open and cannot be closed; says whether it was open. Who
    /// comes to close it after this sees what was done. `None` when a call in the session would have
    /// to be waited for, unless `patient`.
    pub(crate) fn while_open(
        &self,
        handle: SessionHandle,
        patient: bool,
        work: impl FnOnce(),
    ) -> Option<bool> {
        let Ok(place) = self.of(handle) else { return Some(false) };
        let _session = match place.session.try_lock() {
            Ok(session) => session,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if patient => lock(&place.session),
            Err(TryLockError::WouldBlock) => return None,
        };
        let is_open = place.handle.load(Ordering::Acquire) == handle.0;
        if is_open {
            work();
        }
        Some(is_open)
    }

    /// Waits for those who are opening a session: afterwards each of them has one that is seen, or
    /// their `may` sees what this thread stored before.
    pub(crate) fn settle(&self) {
        let used = self.used.fetch_add(0, Ordering::AcqRel).min(MAX_SESSIONS);
        for at in 0..used {
            let place = loop {
                // The chunk of a place that was just taken may still be on its way.
                match self.place(at) {
                    Some(place) => break place,
                    None => std::thread::yield_now(),
                }
            };
            if place.handle.load(Ordering::Acquire) == 0 {
                drop(place.session.lock());
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number below `SHARDS` for this thread.
fn thread_shard() -> usize {
    thread_local!(static SHARD: Cell<usize> = const { Cell::new(usize::MAX) });
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let shard = SHARD.get();
    if shard < SHARDS {
        return shard;
    }
    let shard = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
    SHARD.set(shard);
    shard
}
