// SPDX-License-Identifier: Apache-2.0
//! Jobs of OpenSSL's (ASYNC_start_job(3), ASYNC_WAIT_CTX_new(3)), by the functions of the libcrypto that the program sees. Where it shows none, as
//! one that is linked statically, nothing pauses.

use super::caught;
use std::ffi::{CStr, c_int, c_void};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::{Arc, OnceLock};

/// A job, a wait context, or data of ours.
type Pointer = *mut c_void;
type Cleanup = unsafe extern "C" fn(Pointer, *const c_void, c_int, Pointer);

/// Functions of libcrypto; all or none.
#[derive(Clone, Copy, Debug)]
struct Functions {
    current: unsafe extern "C" fn() -> Pointer,
    context: unsafe extern "C" fn(Pointer) -> Pointer,
    pause: unsafe extern "C" fn() -> c_int,
    set: unsafe extern "C" fn(Pointer, *const c_void, c_int, Pointer, Option<Cleanup>) -> c_int,
    get: unsafe extern "C" fn(Pointer, *const c_void, *mut c_int, *mut Pointer) -> c_int,
    clear: unsafe extern "C" fn(Pointer, *const c_void) -> c_int,
    changed: unsafe extern "C" fn(Pointer, *mut c_int, *mut usize, *mut c_int, *mut usize) -> c_int,
}

/// What belongs to a wait context as long as that lives.
pub(crate) trait Waits: Send + Sync + 'static {
    /// The wait context is gone: what still waits with it never comes back.
    fn gone(self: Arc<Self>);
}

/// The job that this is called in.
#[derive(Debug)]
pub(crate) struct Job {
    functions: Functions,
    job: NonNull<c_void>,
}

/// Our name among the descriptors of a wait context: its address.
static KEY: u8 = 0;

/// The function of this name, as the pointer type that the caller names.
fn find<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*const ()>()) };
    // SAFETY: a name that ends with a zero, looked for in what the program has loaded for all.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: the manual page of the function says which type it has, and each caller names that one.
    Some(unsafe { std::mem::transmute_copy(&found) })
}

fn functions() -> Option<Functions> {
    static FUNCTIONS: OnceLock<Option<Functions>> = OnceLock::new();
    let found = || {
        Some(Functions {
            current: find(c"ASYNC_get_current_job")?,
            context: find(c"ASYNC_get_wait_ctx")?,
            pause: find(c"ASYNC_pause_job")?,
            set: find(c"ASYNC_WAIT_CTX_set_wait_fd")?,
            get: find(c"ASYNC_WAIT_CTX_get_fd")?,
            clear: find(c"ASYNC_WAIT_CTX_clear_fd")?,
            changed: find(c"ASYNC_WAIT_CTX_get_changed_fds")?,
        })
    };
    *FUNCTIONS.get_or_init(found)
}

/// Whether this is called inside a job, or could be: a libcrypto that is linked statically shows none of its jobs.
pub(super) fn may_be_inside() -> bool {
    functions().is_none() || Job::current().is_some()
}

impl Job {
    pub(crate) fn current() -> Option<Self> {
        let functions = functions()?;
        // SAFETY: it has no arguments and may be called anywhere.
        let job = NonNull::new(unsafe { (functions.current)() })?;
        Some(Self { functions, job })
    }

    fn context(&self) -> Pointer {
        // SAFETY: the job that this runs in.
        unsafe { (self.functions.context)(self.job.as_ptr()) }
    }

    /// What belongs to its wait context, which has a descriptor then that is readable for ever; whether that is new. `T` is always the same type.
    /// `None` where no descriptor can be made.
    pub(crate) fn waits<T: Waits>(&self, new: impl FnOnce() -> T) -> Option<(Arc<T>, bool)> {
        let (context, key) = (self.context(), (&raw const KEY).cast());
        if context.is_null() {
            return None;
        }
        if let Some((_, data)) = self.registered() {
            // SAFETY: what `set` was given below; the share is the wait context's, and stays so.
            let its = ManuallyDrop::new(unsafe { Arc::from_raw(data.cast::<T>()) });
            return Some((Arc::clone(&its), false));
        }
        let descriptor = readable()?;
        let waits = Arc::new(new());
        let data = Arc::into_raw(Arc::clone(&waits)).cast_mut();
        let number = descriptor.as_raw_fd();
        // SAFETY: the job's wait context, which is told whom to call when it ends.
        let set =
            unsafe { (self.functions.set)(context, key, number, data.cast(), Some(ended::<T>)) };
        if set == 0 {
            // SAFETY: the share that the wait context did not take.
            drop(unsafe { Arc::from_raw(data) });
            return None;
        }
        // `ended` closes it, and nothing else: the program polls it until then.
        std::mem::forget(descriptor);
        Some((waits, true))
    }

    fn registered(&self) -> Option<(RawFd, Pointer)> {
        let (mut number, mut data) = (-1, ptr::null_mut());
        let key = (&raw const KEY).cast();
        // SAFETY: the job's wait context, and places for a number and a pointer.
        let found =
            unsafe { (self.functions.get)(self.context(), key, &raw mut number, &raw mut data) };
        (found != 0 && !data.is_null()).then_some((number, data))
    }

    /// Until the program resumes it. `false` where it cannot pause; a descriptor that is `new` is taken back then, for the program does not learn of it.
    pub(crate) fn pause<T: Waits>(&self, new: bool) -> bool {
        // A loop that is told by edges was told of the pause before, and of this one it would not be.
        if let Some((number, _)) = self.registered().filter(|_| !new) {
            // SAFETY: the descriptor that was registered, which is ours.
            unsafe { libc::eventfd_write(number, 1) };
        }
        // SAFETY: it has no arguments; the caller is on the job's own stack, and holds no lock.
        let paused = unsafe { (self.functions.pause)() } != 0;
        if !new {
            return paused;
        }
        let (mut added, mut deleted) = (0, 0);
        let none = ptr::null_mut();
        // SAFETY: the job's wait context, and places for two numbers.
        unsafe {
            (self.functions.changed)(self.context(), none, &raw mut added, none, &raw mut deleted)
        };
        // A pause sets it to zero. Some programs forbid pauses for a while, and then none took place.
        if added == 0 {
            return paused;
        }
        if let Some((number, data)) = self.registered() {
            let key = (&raw const KEY).cast();
            // SAFETY: the job's wait context, which forgets a descriptor that it has not shown yet.
            unsafe { (self.functions.clear)(self.context(), key) };
            // SAFETY: what `set` was given, which is called no more.
            unsafe { ended::<T>(ptr::null_mut(), key, number, data) };
        }
        false
    }
}

/// A descriptor that is readable for ever.
fn readable() -> Option<OwnedFd> {
    // SAFETY: two numbers.
    let number = unsafe { libc::eventfd(1, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    // SAFETY: a descriptor of our own.
    (number >= 0).then(|| unsafe { OwnedFd::from_raw_fd(number) })
}

/// The wait context ends.
unsafe extern "C" fn ended<T: Waits>(_: Pointer, _: *const c_void, number: c_int, data: Pointer) {
    // SAFETY: the descriptor that was registered, which is ours.
    drop(unsafe { OwnedFd::from_raw_fd(number) });
    // SAFETY: the share of the wait context.
    let waits = unsafe { Arc::from_raw(data.cast_const().cast::<T>()) };
    caught((), || waits.gone());
}
