// SPDX-License-Identifier: Apache-2.0
//! What the combiner stands on: atomic words, a lock, sleeping and waking. The model checker has its
//! own implementation; this one is the kernel's futex, in a page that a forked child finds zero.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use metaslot_memory::{WIPED_WORDS, wiped_on_fork};

/// An atomic word; everything acquires and releases.
pub(super) trait Word<T> {
    fn load(&self) -> T;
    fn swap(&self, to: T) -> T;
    /// Adds, wrapping, and gives what was there before.
    fn add(&self, what: T) -> T;
    /// Whether `from` was there and is `to` now.
    fn exchange(&self, from: T, to: T) -> bool;
}

/// The primitives.
pub(super) trait Platform {
    /// A word on which a thread sleeps.
    type Signal: Word<u32>;
    type State: Word<u64>;

    fn signal(value: u32) -> Self::Signal;
    fn state(&self) -> &Self::State;
    fn counts(&self) -> &Counts;
    /// Changes in a forked child, between its first use of the lock and what the parent had.
    fn epoch(&self) -> u32;
    /// Runs `work` with the lock held. `work` must not panic.
    fn locked<R>(&self, work: impl FnOnce() -> R) -> R;
    /// Sleeps until woken if `word` is still `expected`; may return early.
    fn sleep(&self, word: &Self::Signal, expected: u32);
    /// Wakes a thread that sleeps on `word`, which is not touched: it may be gone.
    fn wake(&self, word: *const Self::Signal);
    /// How many cores there are for this process.
    fn cores(&self) -> usize;
    /// How many threads may come that sleep until another process wants something.
    fn company(&self) -> usize;
    /// Lets threads go first that can run and have no core.
    fn step_aside(&self);
}

/// What happened so far.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Counts {
    pub(super) singles: AtomicU64,
    pub(super) batches: AtomicU64,
    pub(super) batched: AtomicU64,
    pub(super) hand_overs: AtomicU64,
    pub(super) waits: AtomicU64,
    pub(super) asides: AtomicU64,
}

/// All that changes, in one cache line.
#[repr(C)]
struct Page {
    state: AtomicU64,
    lock: AtomicU32,
    epoch: AtomicU32,
    counts: Counts,
}

const _: () = assert!(size_of::<Page>() <= WIPED_WORDS * size_of::<AtomicU64>());
const _: () = assert!(align_of::<Page>() <= align_of::<AtomicU64>());

/// Linux.
#[derive(Debug)]
pub(super) struct Native {
    page: AtomicPtr<Page>,
}

impl Native {
    pub(super) const fn new() -> Self {
        Self { page: AtomicPtr::new(ptr::null_mut()) }
    }

    /// In a forked child, for kernels that cannot wipe: forgets what the parent had.
    pub(super) fn forget(&self) {
        let page = self.page();
        page.state.store(0, Ordering::SeqCst);
        page.epoch.store(0, Ordering::SeqCst);
        page.lock.store(FREE, Ordering::SeqCst);
    }

    fn page(&self) -> &'static Page {
        let page = NonNull::new(self.page.load(Ordering::Acquire)).unwrap_or_else(|| self.map());
        // SAFETY: `map` stored it: it is a page that is never given back and only has atomics.
        unsafe { page.as_ref() }
    }

    #[cold]
    fn map(&self) -> NonNull<Page> {
        let new = match wiped_on_fork() {
            Ok(words) => NonNull::from(words).cast(),
            Err(_) => NonNull::from(Box::leak(Box::new(Page {
                state: AtomicU64::new(0),
                lock: AtomicU32::new(FREE),
                epoch: AtomicU32::new(0),
                counts: Counts::default(),
            }))),
        };
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        // Two threads can come here at once; one page stays unused then.
        match self.page.compare_exchange(ptr::null_mut(), new.as_ptr(), success, failure) {
            Ok(_) => new,
            Err(other) => NonNull::new(other).unwrap_or(new),
        }
    }
}

impl Platform for Native {
    type Signal = AtomicU32;
    type State = AtomicU64;

    fn signal(value: u32) -> AtomicU32 {
        AtomicU32::new(value)
    }

    #[inline]
    fn state(&self) -> &AtomicU64 {
        &self.page().state
    }

    #[inline]
    fn counts(&self) -> &Counts {
        &self.page().counts
    }

    fn epoch(&self) -> u32 {
        self.page().epoch.load(Ordering::Acquire)
    }

    fn locked<R>(&self, work: impl FnOnce() -> R) -> R {
        let page = self.page();
        lock(&page.lock, |expected| sleep(&page.lock, expected));
        if page.epoch.load(Ordering::Relaxed) == 0 {
            page.epoch.store(EPOCHS.fetch_add(1, Ordering::Relaxed), Ordering::Release);
        }
        let result = work();
        unlock(&page.lock, || wake(&raw const page.lock));
        result
    }

    fn sleep(&self, word: &AtomicU32, expected: u32) {
        sleep(word, expected);
    }

    fn wake(&self, word: *const AtomicU32) {
        wake(word);
    }

    #[inline]
    fn cores(&self) -> usize {
        match CORES.load(Ordering::Relaxed) {
            0 => count_cores(),
            cores => cores,
        }
    }

    #[inline]
    fn company(&self) -> usize {
        COMPANY.load(Ordering::Relaxed)
    }

    fn step_aside(&self) {
        thread::yield_now();
    }
}

/// Threads that serve other processes.
pub(super) static COMPANY: AtomicUsize = AtomicUsize::new(0);

/// Goes on counting in a child, so that no two generations have the same epoch.
static EPOCHS: AtomicU32 = AtomicU32::new(1);

static CORES: AtomicUsize = AtomicUsize::new(0);

#[cold]
fn count_cores() -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    CORES.store(cores, Ordering::Relaxed);
    cores
}

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and a thread may sleep on it.
const WANTED: u32 = 2;

/// The lock of Drepper, "Futexes Are Tricky", section 5 ("mutex2"). The standard library's would be
/// inherited held by a child that is forked meanwhile; this one is in memory that the fork wipes.
pub(super) fn lock(word: &impl Word<u32>, sleep: impl Fn(u32)) {
    if word.exchange(FREE, HELD) {
        return;
    }
    while word.swap(WANTED) != FREE {
        sleep(WANTED);
    }
}

pub(super) fn unlock(word: &impl Word<u32>, wake: impl FnOnce()) {
    if word.swap(FREE) == WANTED {
        wake();
    }
}

fn sleep(word: &AtomicU32, expected: u32) {
    let (word, wait) = (word.as_ptr(), libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG);
    let forever = ptr::null::<libc::timespec>();
    // SAFETY: the word lives during the call; the kernel only compares it. Made this way the call is no
    // cancellation point (`pthreads(7)`).
    unsafe { libc::syscall(libc::SYS_futex, word, wait, expected, forever) };
}

fn wake(word: *const AtomicU32) {
    let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: waking touches no memory; the address only says who is meant. Who sleeps on other
    // memory that has the address by now is woken early, which every user of futexes expects.
    unsafe { libc::syscall(libc::SYS_futex, word, wake, 1) };
}

impl Word<u32> for AtomicU32 {
    fn load(&self) -> u32 {
        self.load(Ordering::Acquire)
    }

    fn swap(&self, to: u32) -> u32 {
        self.swap(to, Ordering::AcqRel)
    }

    fn add(&self, what: u32) -> u32 {
        self.fetch_add(what, Ordering::AcqRel)
    }

    fn exchange(&self, from: u32, to: u32) -> bool {
        self.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl Word<u64> for AtomicU64 {
    fn load(&self) -> u64 {
        self.load(Ordering::Acquire)
    }

    fn swap(&self, to: u64) -> u64 {
        self.swap(to, Ordering::AcqRel)
    }

    #[inline]
    fn add(&self, what: u64) -> u64 {
        self.fetch_add(what, Ordering::AcqRel)
    }

    fn exchange(&self, from: u64, to: u64) -> bool {
        self.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
