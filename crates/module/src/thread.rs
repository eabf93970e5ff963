// SPDX-License-Identifier: Apache-2.0
//! Which threads are inside a call.
//!
//! Each thread that calls has a record, found by a thread-local pointer that needs no destructor.
//! Going in is a plain store: the side that must know (`C_Finalize`, a fork) makes the other processors
//! catch up with `membarrier` and then reads the records (the asymmetric form of Dekker's
//! algorithm). Where the kernel has no `membarrier`, each call pays for a fence of its own.

use metaslot_counters as counters;
use std::cell::Cell;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering, compiler_fence, fence};
use std::time::{Duration, Instant};

/// One thread's, on a cache line of its own. Records are used again and never given back.
#[repr(align(128))]
pub(crate) struct Record {
    /// How many calls the thread is in, in [`DEPTH`] (more than one only when a signal handler calls too), and above
    /// that how many there were.
    depth: AtomicU32,
    taken: AtomicBool,
    next: AtomicPtr<Self>,
}

/// The bits of a record that are a depth,
const DEPTH: u32 = CALL - 1;
/// and one call.
const CALL: u32 = 0x100;

impl Record {
    fn depth(&self) -> u32 {
        self.depth.load(Ordering::Acquire) & DEPTH
    }
}

thread_local! {
    static OWN: Cell<Option<&'static Record>> = const { Cell::new(None) };
}

static ALL: AtomicPtr<Record> = AtomicPtr::new(ptr::null_mut());

/// Whether every call needs a fence because the kernel has no `membarrier`.
static FENCED: AtomicBool = AtomicBool::new(false);

/// Ends the presence of a thread in a call.
pub(crate) struct Presence(&'static Record);

/// The calling thread is inside a call until the value is dropped.
#[inline]
pub(crate) fn enter() -> Presence {
    let record = OWN.get().unwrap_or_else(take_record);
    let depth = record.depth.load(Ordering::Relaxed).wrapping_add(CALL + 1);
    record.depth.store(depth, Ordering::Relaxed);
    if FENCED.load(Ordering::Relaxed) {
        fence(Ordering::SeqCst);
    } else {
        // The processor's part of the fence is `membarrier`, done by the other side.
        compiler_fence(Ordering::SeqCst);
    }
    Presence(record)
}

impl Presence {
    /// Whether this call is to look at what rarely changes: one in 16 of the thread's is, none within another.
    #[inline]
    pub(crate) fn is_to_look(&self) -> bool {
        self.0.depth.load(Ordering::Relaxed) % (16 * CALL) == 1
    }

    /// Whether the thread was inside already: a signal handler calls, or a module that we called.
    #[inline]
    pub(crate) fn is_nested(&self) -> bool {
        self.0.depth() > 1
    }
}

impl Drop for Presence {
    #[inline]
    fn drop(&mut self) {
        let depth = self.0.depth.load(Ordering::Relaxed);
        self.0.depth.store(depth.wrapping_sub(1), Ordering::Release);
    }
}

/// Whether the calling thread is inside a call.
pub(crate) fn is_inside() -> bool {
    OWN.get().is_some_and(|record| record.depth() > 0)
}

fn records() -> impl Iterator<Item = &'static Record> {
    let mut next = &ALL;
    std::iter::from_fn(move || {
        let record = next.load(Ordering::Acquire);
        // SAFETY: the list holds leaked boxes only, complete before they were put there.
        let record: &'static Record = unsafe { record.as_ref() }?;
        next = &record.next;
        Some(record)
    })
}

#[cold]
fn take_record() -> &'static Record {
    let free = records().find(|record| {
        record.taken.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    });
    let record = free.unwrap_or_else(new_record);
    OWN.set(Some(record));
    give_back_when_the_thread_ends();
    record
}

fn new_record() -> &'static Record {
    let record: &'static mut Record = Box::leak(Box::new(Record {
        depth: AtomicU32::new(0),
        taken: AtomicBool::new(true),
        next: AtomicPtr::new(ptr::null_mut()),
    }));
    let pointer = ptr::from_mut(record);
    let mut head = ALL.load(Ordering::Acquire);
    loop {
        // SAFETY: the record is a leaked box.
        let record: &'static Record = unsafe { &*pointer };
        record.next.store(head, Ordering::Relaxed);
        match ALL.compare_exchange_weak(head, pointer, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return record,
            Err(now) => head = now,
        }
    }
}

/// A key of the thread library rather than a thread-local with a destructor: it costs nothing at
/// each call, and a call that comes after it ran just takes a record again.
fn give_back_when_the_thread_ends() {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is ours, and the module is never unloaded (`-z nodelete`).
        let made = unsafe { libc::pthread_key_create(&raw mut key, Some(give_back)) };
        (made == 0).then_some(key)
    });
    if let Some(key) = key {
        // SAFETY: the key exists; the value only has to be something else than NULL.
        unsafe { libc::pthread_setspecific(*key, ptr::from_ref(&ALL).cast()) };
    }
}

unsafe extern "C" fn give_back(_: *mut libc::c_void) {
    counters::leave_thread();
    if let Some(record) = OWN.take() {
        // A thread that was cancelled inside a call is not inside any more.
        record.depth.store(0, Ordering::Release);
        record.taken.store(false, Ordering::Release);
    }
}

/// In a forked child: the threads of the parent are not here.
pub(crate) fn forget_others() {
    let own = OWN.get();
    for record in records() {
        if !own.is_some_and(|own| ptr::eq(own, record)) {
            record.depth.store(0, Ordering::Release);
            record.taken.store(false, Ordering::Release);
        }
    }
}

/// In a child whose forking the C library did not see: which record is whose is not known, so they
/// stay taken.
pub(crate) fn no_thread_is_inside() {
    for record in records() {
        record.depth.store(0, Ordering::Release);
    }
}

/// Decides how threads and their observers meet; called before anybody can be inside.
pub(crate) fn prepare() {
    let expedited =
        membarrier(libc::MEMBARRIER_CMD_QUERY) & i64::from(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    FENCED.store(expedited <= 0, Ordering::SeqCst);
}

fn membarrier(command: libc::c_int) -> i64 {
    // SAFETY: the call reads and writes no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}

/// Waits until no other thread is inside a call, at most so long; says whether that is so. New
/// calls must have been kept out before.
pub(crate) fn wait_for_others(most: Duration) -> bool {
    let own = OWN.get();
    let others = || records().filter(move |record| !own.is_some_and(|own| ptr::eq(own, *record)));
    if others().next().is_none() {
        return true;
    }
    fence(Ordering::SeqCst);
    if !FENCED.load(Ordering::Relaxed) {
        // Registered only now: it can take milliseconds in a process with threads, and most
        // processes never come here.
        membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
        membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    }
    let start = Instant::now();
    let mut pause = Duration::from_micros(1);
    while others().any(|record| record.depth() > 0) {
        if start.elapsed() > most {
            return false;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(1));
    }
    true
}
