// SPDX-License-Identifier: Apache-2.0
//! Sessions: a table that grows by chunks and is read without a lock, and one lock per session.
//!
//! A handle is `count << 20 | place`; counts go on over re-initialisation and fork, so that no
//! handle ever comes back.

use crate::find::Find;
use crate::object::Object;
use crate::operation::Active;
use crate::operation::cipher::CipherState;
use crate::operation::digest::DigestState;
use crate::operation::recover::RecoverState;
use crate::operation::signature::SignatureState;
use metaslot_ck::*;
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// One open session: an operation of each kind, independently.
#[derive(Debug, Default)]
pub(crate) struct Session {
    pub(crate) slot: SlotId,
    pub(crate) write: bool,
    /// `CKF_ASYNC_SESSION`
    pub(crate) asynchronous: bool,
    pub(crate) digest: DigestState,
    pub(crate) encrypt: CipherState,
    pub(crate) decrypt: CipherState,
    pub(crate) sign: SignatureState,
    pub(crate) sign_recover: SignatureState,
    pub(crate) verify: SignatureState,
    pub(crate) verify_recover: RecoverState,
    pub(crate) find: Option<Find>,
    /// Session objects to destroy when this session closes.
    pub(crate) owned: Vec<ObjectHandle>,
    /// The keys used last: found again without touching a shared reference count.
    recent: [Option<Arc<Object>>; 2],
}

impl Session {
    /// Gives a key back after its operation.
    pub(crate) fn keep(&mut self, object: Arc<Object>) {
        if !object.is_stale() {
            self.recent.swap(0, 1);
            self.recent[0] = Some(object);
        }
    }

    /// A key used a moment ago.
    pub(crate) fn take_recent(&mut self, handle: ObjectHandle) -> Option<Arc<Object>> {
        let place = self
            .recent
            .iter_mut()
            .find(|kept| kept.as_ref().is_some_and(|o| o.handle == handle))?;
        place.take().filter(|object| !object.is_stale())
    }

    /// Lets go of every object that was destroyed or logged out of, ending its operations.
    pub(crate) fn drop_stale(&mut self) {
        for kept in &mut self.recent {
            if kept.as_ref().is_some_and(|object| object.is_stale()) {
                *kept = None;
            }
        }
        for state in [&mut self.encrypt, &mut self.decrypt] {
            if state.chosen().is_ok_and(|op| op.object.is_stale()) {
                state.end();
            }
        }
        for state in [&mut self.sign, &mut self.sign_recover, &mut self.verify] {
            if state.chosen().is_ok_and(|op| op.object.is_stale()) {
                state.end();
            }
        }
        if self.verify_recover.chosen().is_ok_and(|op| op.object.is_stale()) {
            self.verify_recover.end();
        }
    }

    /// Lets go of everything, in place: a session is large, and moving it costs more than all else
    /// that closing does. Gives back the session objects that must go too.
    fn empty(&mut self) -> Vec<ObjectHandle> {
        self.digest.end();
        self.encrypt.end();
        self.decrypt.end();
        self.sign.end();
        self.sign_recover.end();
        self.verify.end();
        self.verify_recover.end();
        self.find = None;
        self.recent = [None, None];
        std::mem::take(&mut self.owned)
    }

    pub(crate) fn has_locked_operation(&self) -> bool {
        [&self.encrypt, &self.decrypt].iter().any(|state| state.chosen().is_ok_and(|op| op.locked))
            || [&self.sign, &self.sign_recover, &self.verify]
                .iter()
                .any(|state| state.chosen().is_ok_and(|op| op.locked))
    }

    pub(crate) fn unlock_operations(&mut self) {
        for state in [&mut self.encrypt, &mut self.decrypt] {
            if let Active::Initialized(op) | Active::MultiPart(op, _) = state {
                op.locked = false;
            }
        }
        for state in [&mut self.sign, &mut self.sign_recover, &mut self.verify] {
            if let Active::Initialized(op) | Active::MultiPart(op, _) = state {
                op.locked = false;
            }
        }
    }
}

/// What everybody may know of a session without its lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Info {
    pub(crate) slot: SlotId,
    pub(crate) write: bool,
    pub(crate) asynchronous: bool,
}

/// One place of the table, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Place {
    /// 0 when free.
    handle: AtomicU64,
    /// `slot << 2 | asynchronous << 1 | write`
    info: AtomicU32,
    session: Mutex<Session>,
}

const PLACE_BITS: u32 = 20;
const FIRST_CHUNK: usize = 16;
const CHUNKS: usize = 17;
const SHARDS: usize = 16;
/// Places that a list of free ones has room for at first: some cache lines.
const LIST: usize = 64;

/// How many sessions can be open at once.
pub(crate) const MOST: usize = 1 << PLACE_BITS;

/// Counts of handles, one per shard so that threads do not meet.
static COUNTS: [Counter; SHARDS] = [const { Counter(AtomicU64::new(1)) }; SHARDS];

#[repr(align(128))]
struct Counter(AtomicU64);

/// All sessions of all slots.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    chunks: [OnceLock<Box<[Place]>>; CHUNKS],
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
    fn place(&self, at: usize) -> Option<&Place> {
        // Chunk k holds FIRST_CHUNK << k places and begins at FIRST_CHUNK * (2^k - 1).
        let chunk = (at / FIRST_CHUNK + 1).ilog2() as usize;
        let first = FIRST_CHUNK * ((1 << chunk) - 1);
        self.chunks.get(chunk)?.get()?.get(at - first)
    }

    fn of(&self, handle: SessionHandle) -> Result<&Place> {
        let at = usize::try_from(handle.0).unwrap_or(usize::MAX) & (MOST - 1);
        let place = self.place(at).ok_or(Error::SESSION_HANDLE_INVALID)?;
        if handle.0 != 0 && place.handle.load(Ordering::Acquire) == handle.0 {
            Ok(place)
        } else {
            Err(Error::SESSION_HANDLE_INVALID)
        }
    }

    /// Takes no lock.
    pub(crate) fn info(&self, handle: SessionHandle) -> Result<Info> {
        let place = self.of(handle)?;
        let info = place.info.load(Ordering::Acquire);
        // The place may have been given to another session between the two loads.
        if place.handle.load(Ordering::Acquire) != handle.0 {
            return Err(Error::SESSION_HANDLE_INVALID);
        }
        let slot = SlotId(u64::from(info >> 2));
        Ok(Info { slot, write: info & 1 != 0, asynchronous: info & 2 != 0 })
    }

    /// Waits for a call of another thread on the same session.
    ///
    /// A session whose call panicked stays unusable until it is closed.
    pub(crate) fn lock(&self, handle: SessionHandle) -> Result<SessionGuard<'_>> {
        let place = self.of(handle)?;
        let session = place.session.lock().map_err(|_| Error::GENERAL_ERROR)?;
        if place.handle.load(Ordering::Acquire) != handle.0 {
            return Err(Error::SESSION_HANDLE_INVALID);
        }
        Ok(SessionGuard(session))
    }

    pub(crate) fn open(&self, info: Info) -> Result<SessionHandle> {
        let Info { slot, write, asynchronous } = info;
        let shard = thread_shard();
        let at = match lock(&self.free[shard].0).pop() {
            Some(at) => at as usize,
            None => self.fresh()?,
        };
        let place = self.place(at).ok_or(Error::SESSION_COUNT)?;
        let mut session = place.session.lock().unwrap_or_else(PoisonError::into_inner);
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
        let at = self.used.fetch_add(1, Ordering::Relaxed);
        if at >= MOST {
            self.used.fetch_sub(1, Ordering::Relaxed);
            let given = self.free.iter().find_map(|free| lock(&free.0).pop());
            return given.map(|at| at as usize).ok_or(Error::SESSION_COUNT);
        }
        let chunk = (at / FIRST_CHUNK + 1).ilog2() as usize;
        self.chunks[chunk]
            .get_or_init(|| (0..FIRST_CHUNK << chunk).map(|_| Place::default()).collect());
        Ok(at)
    }

    /// Closes the session: its slot, and the session objects that must go with it.
    pub(crate) fn close(&self, handle: SessionHandle) -> Result<(SlotId, Vec<ObjectHandle>)> {
        let place = self.of(handle)?;
        let mut session = match place.session.lock() {
            Ok(session) => session,
            Err(poisoned) => {
                place.session.clear_poison();
                poisoned.into_inner()
            }
        };
        let closed = place.handle.compare_exchange(handle.0, 0, Ordering::SeqCst, Ordering::SeqCst);
        closed.map_err(|_| Error::SESSION_HANDLE_INVALID)?;
        let (slot, owned) = (session.slot, session.empty());
        drop(session);
        let at = u32::try_from(handle.0 & (MOST as u64 - 1)).unwrap_or(0);
        let mut free = lock(&self.free[thread_shard()].0);
        if free.capacity() == 0 {
            // Small lists of two threads could lie in one cache line, which both then fight for.
            free.reserve(LIST);
        }
        free.push(at);
        drop(free);
        Ok((slot, owned))
    }

    fn places(&self) -> impl Iterator<Item = &Place> {
        self.chunks.iter().filter_map(OnceLock::get).flat_map(|chunk| chunk.iter())
    }

    /// Every open session with its info.
    pub(crate) fn open_ones(&self) -> impl Iterator<Item = (SessionHandle, Info)> {
        self.places().filter_map(|place| {
            let handle = SessionHandle(place.handle.load(Ordering::SeqCst));
            self.info(handle).ok().map(|info| (handle, info))
        })
    }

    pub(crate) fn any(&self, wanted: impl Fn(Info) -> bool) -> bool {
        self.open_ones().any(|(_, info)| wanted(info))
    }

    pub(crate) fn first(&self, wanted: impl Fn(Info) -> bool) -> Option<SessionHandle> {
        self.open_ones().find(|(_, info)| wanted(*info)).map(|(handle, _)| handle)
    }

    /// Visits every open session under its lock.
    pub(crate) fn each(&self, visit: impl Fn(&mut Session)) {
        for place in self.places() {
            if place.handle.load(Ordering::Acquire) != 0 {
                visit(&mut place.session.lock().unwrap_or_else(PoisonError::into_inner));
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
