// SPDX-License-Identifier: Apache-2.0
//! What this process has of the library: initialised or not, forked or not.
//!
//! The pointer to everything lives in a word that a forked child finds zero, so one load per call
//! answers both questions, and nothing of the parent's is ever touched in the child. There is no
//! destructor and no exit handler: a call that comes after `exit` began still finds everything.

use crate::caught::caught;
use crate::library::Library;
use crate::thread;
use crate::wiped::{self, WORDS as WORD_COUNT, Words};
use metaslot_ck::{CKR_OK, Error, Result};
use metaslot_keystore::fork as stores;
use metaslot_wiring::cancel::Uncancelled;
use metaslot_wiring::outside::is_outside;
use rustix::thread::Timespec;
use rustix::thread::futex::{self, Flags};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};

/// Address of the library; 0 when not initialised, [`CLOSED`] while a fork is under way.
const LIBRARY: usize = 0;
/// 1 while a thread initialises, finalises or forks.
const LOCK: usize = 1;
/// 1 since this process was initialised first; a forked child has yet to begin anew.
const BEGUN: usize = 2;

const CLOSED: u64 = 1;

static WORDS: OnceLock<&'static Words> = OnceLock::new();

/// For kernels that cannot wipe on fork: then only forks that the C library sees are noticed.
static PLAIN: Words = [const { AtomicU64::new(0) }; WORD_COUNT];

/// Whether this process or an ancestor of it is initialised. Unlike the words it survives a fork.
static INHERITED: AtomicBool = AtomicBool::new(false);

/// Whether this process or an ancestor of it ever was.
static EVER: AtomicBool = AtomicBool::new(false);

/// Goes up when the library is finalised: what `C_WaitForSlotEvent` waits for.
pub(crate) static EPOCH: AtomicU32 = AtomicU32::new(0);

/// How long a fork waits for calls of other threads.
const FORK_PATIENCE: Duration = Duration::from_millis(50);
/// How long `C_Finalize` waits for calls of other threads. A key pair can take that long.
const FINALIZE_PATIENCE: Duration = Duration::from_secs(60);

/// Whether the library looks initialised; no promise without [`thread::enter`].
pub(crate) fn is_initialized() -> bool {
    WORDS.get().is_some_and(|words| words[LIBRARY].load(Ordering::Relaxed) != 0)
}

/// The library, for a thread that is inside a call ([`thread::enter`]).
///
/// # Safety
/// The reference must not be used after the thread's presence ended.
pub(crate) unsafe fn library<'a>() -> State<'a> {
    let address = WORDS.get().map_or(0, |words| words[LIBRARY].load(Ordering::Acquire));
    match address {
        0 => State::NotInitialized,
        CLOSED => State::Closed,
        // SAFETY: the word holds the address of a live library, which is dropped only after
        // the word was zeroed and every thread that could have read it has left.
        address => State::Open(unsafe { &*pointer(address) }),
    }
}

/// What a call finds.
pub(crate) enum State<'a> {
    NotInitialized,
    /// A fork is under way: leave, and come back.
    Closed,
    Open(&'a Library),
}

/// `C_Initialize`.
pub(crate) fn initialize() -> Result<()> {
    if is_outside() {
        return Err(Error::FUNCTION_FAILED);
    }
    let _uncancelled = Uncancelled::begin();
    prepare();
    let words = words();
    let _lock = Lock::take(words, Duration::MAX);
    if words[LIBRARY].load(Ordering::Acquire) != 0 {
        return Err(Error::CRYPTOKI_ALREADY_INITIALIZED);
    }
    if EVER.swap(true, Ordering::AcqRel) && words[BEGUN].load(Ordering::Acquire) == 0 {
        begin_anew();
    }
    words[BEGUN].store(1, Ordering::Release);
    INHERITED.store(true, Ordering::Release);
    let library = Box::into_raw(Box::new(Library::new(EPOCH.load(Ordering::SeqCst))));
    words[LIBRARY].store(library.expose_provenance() as u64, Ordering::SeqCst);
    Ok(())
}

/// In a forked child, at its first call that matters. What the parent had is left as it is,
/// unreachable.
fn begin_anew() {
    thread::no_thread_is_inside();
    Library::forked();
}

/// `C_Finalize`.
pub(crate) fn finalize() -> Result<()> {
    if is_outside() {
        return Err(Error::FUNCTION_FAILED);
    }
    let _uncancelled = Uncancelled::begin();
    let words = words();
    let _lock = Lock::take(words, Duration::MAX);
    let address = words[LIBRARY].swap(0, Ordering::SeqCst);
    if address == 0 {
        // A forked child may say that it does not want what it inherited.
        if !INHERITED.swap(false, Ordering::AcqRel) {
            return Err(Error::CRYPTOKI_NOT_INITIALIZED);
        }
        begin_anew();
        return Ok(());
    }
    EPOCH.fetch_add(1, Ordering::SeqCst);
    wake_waiters();
    let alone = thread::wait_for_others(FINALIZE_PATIENCE);
    if alone && !thread::is_inside() {
        // SAFETY: the pointer came from a box, its word is zero now, and no thread is inside.
        drop(unsafe { Box::from_raw(pointer(address).cast_mut()) });
    }
    // Otherwise a thread never came back, or a signal handler finalises under a call of its own
    // thread: what they hold stays.
    INHERITED.store(false, Ordering::Release);
    Ok(())
}

/// Waits until the library is finalised, for so long at most; says whether it is. Not inside a call: a fork does not
/// wait for it.
pub(crate) fn wait_for_end(epoch: u32, patience: Option<Duration>) -> bool {
    let time = patience.and_then(|patience| Timespec::try_from(patience).ok());
    let ended = || EPOCH.load(Ordering::SeqCst) != epoch || !is_initialized();
    while !ended() {
        // Whatever ends the wait, the words say what there is.
        futex::wait(&EPOCH, Flags::PRIVATE, epoch, time.as_ref()).ok();
        if patience.is_some() {
            return ended();
        }
    }
    true
}

fn wake_waiters() {
    futex::wake(&EPOCH, Flags::PRIVATE, u32::MAX >> 1).ok();
}

fn pointer(address: u64) -> *const Library {
    ptr::with_exposed_provenance(usize::try_from(address).unwrap_or(0))
}

fn words() -> &'static Words {
    WORDS.get_or_init(|| wiped::page().unwrap_or(&PLAIN))
}

fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // The standard library is part of this module, so this is the hook of our code alone: the
        // host's own panics, if it is a Rust program, still print.
        std::panic::set_hook(Box::new(|_| {}));
        thread::prepare();
        let (before, parent, child) = (before_fork, after_fork_in_parent, after_fork_in_child);
        // SAFETY: the handlers are functions of this module, which is never unloaded. Without
        // room for them forks are still noticed by the wiped words.
        unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) };
    });
}

/// Held while the process changes between its states. It is a word that a forked child finds
/// zero, so it cannot be inherited locked.
struct Lock(&'static AtomicU64);

impl Lock {
    fn take(words: &'static Words, patience: Duration) -> Option<Self> {
        let word = &words[LOCK];
        let start = Instant::now();
        while word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            if start.elapsed() > patience {
                return None;
            }
            std::thread::sleep(Duration::from_micros(20));
        }
        Some(Self(word))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

/// What the parent takes back after the fork; written by anyone who holds the lock.
static FORKING: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Whether this thread took the lock for a fork: several threads can fork at once.
    static HOLDS_LOCK: Cell<bool> = const { Cell::new(false) };
    /// Whether it closed the stores.
    static CLOSED_STORES: Cell<bool> = const { Cell::new(false) };
}

extern "C" fn before_fork() {
    let _uncancelled = Uncancelled::begin();
    let words = words();
    let lock = Lock::take(words, FORK_PATIENCE);
    HOLDS_LOCK.set(lock.is_some());
    if lock.is_some() {
        std::mem::forget(lock);
        let address = words[LIBRARY].load(Ordering::Acquire);
        FORKING.store(address, Ordering::Relaxed);
        if address > CLOSED {
            // New calls stay out. A thread that does not come out (a key pair takes long) keeps the
            // engine's locks in the child too, where no thread takes them: the child makes
            // everything anew.
            words[LIBRARY].store(CLOSED, Ordering::SeqCst);
            thread::wait_for_others(FORK_PATIENCE);
        }
    }
    // The stores are closed all the same, no matter who holds the lock and for how long: what SQLite knows
    // of open files is the process's. Only a signal handler that forks under a call of its own thread
    // would wait for itself; its child uses no store.
    if !thread::is_inside() {
        let closed = caught(|| {
            stores::before();
            Ok(())
        });
        CLOSED_STORES.set(closed == CKR_OK);
    }
    Library::before_fork();
}

extern "C" fn after_fork_in_parent() {
    let _uncancelled = Uncancelled::begin();
    Library::after_fork();
    if CLOSED_STORES.take() {
        caught(|| {
            stores::after();
            Ok(())
        });
    }
    if !HOLDS_LOCK.take() {
        return;
    }
    let words = words();
    let address = FORKING.load(Ordering::Relaxed);
    words[LIBRARY].store(address, Ordering::SeqCst);
    words[LOCK].store(0, Ordering::Release);
}

extern "C" fn after_fork_in_child() {
    Library::after_fork();
    HOLDS_LOCK.set(false);
    CLOSED_STORES.set(false);
    let words = words();
    if ptr::eq(words, &raw const PLAIN) {
        words[LIBRARY].store(0, Ordering::SeqCst);
        words[LOCK].store(0, Ordering::Release);
        words[BEGUN].store(0, Ordering::Release);
    }
    thread::forget_others();
}
