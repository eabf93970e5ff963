// SPDX-License-Identifier: Apache-2.0
//! Another stack for calls inside a job of OpenSSL's: such a job has 32 KiB without a guard page, some of which the program has used already, and a
//! module may need 128. Nothing pauses while it is on a stack from here.

use super::job;
use metaslot_memory::{PerProcess, is_own_stack};
use std::ffi::{c_uint, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// In bytes; memory is taken for what is used of it.
const SIZE: usize = 256 * 1024;

/// Below it, what may not be touched.
const GUARD: usize = 64 * 1024;

/// Stacks that are kept for the next call.
const KEPT: usize = 8;

/// Those that are kept.
static IDLE: PerProcess<Mutex<Vec<Stack>>> = PerProcess::new(|_| Mutex::new(Vec::new()));

/// A mapping of `GUARD + SIZE` bytes.
#[derive(Debug)]
struct Stack(NonNull<c_void>);

// SAFETY: memory that one call at a time uses, whichever thread makes it.
unsafe impl Send for Stack {}

/// What runs on another stack, and how it ended.
struct Call<'a> {
    call: &'a mut dyn FnMut(),
    ended: Option<thread::Result<()>>,
}

/// What `call` answers: on a large stack where this is a job.
pub(crate) fn deep<T>(call: impl FnOnce() -> T) -> T {
    let (mut call, mut answer) = (Some(call), None);
    let ended = run(&mut || answer = call.take().map(|call| call()));
    // Where there was no stack, what the call holds stays: its end would need one, too.
    std::mem::forget(call);
    match (answer, ended) {
        (Some(answer), _) => answer,
        (None, Err(payload)) => resume_unwind(payload),
        (None, Ok(())) => unreachable!("it has run, and not unwound"),
    }
}

/// The same for all, so that it is there once.
fn run(call: &mut dyn FnMut()) -> thread::Result<()> {
    // Jobs have stacks of their own. Which one this is takes less time to find out than whether it is a job.
    if is_own_stack() || !job::may_be_inside() {
        call();
        return Ok(());
    }
    let idle = idle().pop();
    // On the job's own stack the call would write over what lies below, and the end of what it holds as well: better none. Nothing is printed of it.
    let Some(stack) = idle.or_else(Stack::new) else {
        return Err(Box::new("no memory for a stack"));
    };
    let ended = stack.run(call);
    let mut idle = self::idle();
    if idle.len() < KEPT {
        idle.push(stack);
    }
    ended
}

impl Stack {
    fn new() -> Option<Self> {
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        // SAFETY: a new mapping, wherever there is room.
        let start =
            unsafe { libc::mmap(ptr::null_mut(), GUARD + SIZE, libc::PROT_NONE, kind, -1, 0) };
        let stack = Self(NonNull::new(start).filter(|start| start.as_ptr() != libc::MAP_FAILED)?);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a part of the mapping.
        let opened = unsafe { libc::mprotect(stack.bottom(), SIZE, access) };
        (opened == 0).then_some(stack)
    }

    fn bottom(&self) -> *mut c_void {
        self.0.as_ptr().wrapping_byte_add(GUARD)
    }

    fn run(&self, call: &mut dyn FnMut()) -> thread::Result<()> {
        let mut call = Call { call, ended: None };
        let mut here = MaybeUninit::<libc::ucontext_t>::uninit();
        let mut there = MaybeUninit::<libc::ucontext_t>::zeroed();
        // SAFETY: a place for a context.
        let mut done = unsafe { libc::getcontext(there.as_mut_ptr()) };
        // SAFETY: a structure of numbers and addresses, all zero before it was filled.
        let context = unsafe { there.assume_init_mut() };
        context.uc_stack.ss_sp = self.bottom();
        context.uc_stack.ss_size = SIZE;
        context.uc_link = here.as_mut_ptr();
        let entry: extern "C" fn(c_uint, c_uint) = enter;
        // SAFETY: an address of a function; makecontext(3) calls it with the two numbers that are passed below.
        let entry =
            unsafe { std::mem::transmute::<extern "C" fn(c_uint, c_uint), extern "C" fn()>(entry) };
        let [low, high] = halves((&raw mut call).expose_provenance());
        if done == 0 {
            // SAFETY: a context that `getcontext` filled, with a stack that nothing else uses, and two numbers for `enter`.
            unsafe { libc::makecontext(context, entry, 2, low, high) };
            // SAFETY: `enter` returns once, to `here`, which is filled first; it does not unwind.
            done = unsafe { libc::swapcontext(here.as_mut_ptr(), context) };
        }
        call.ended.unwrap_or_else(|| Err(Box::new(done)))
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, which nothing uses any more.
        unsafe { libc::munmap(self.0.as_ptr(), GUARD + SIZE) };
    }
}

/// Where the other stack begins.
extern "C" fn enter(low: c_uint, high: c_uint) {
    let address = low as usize | (high as usize) << 32;
    let call = ptr::with_exposed_provenance_mut::<Call<'_>>(address);
    // SAFETY: `run` passes the address of its own, and looks at it when this has returned.
    let call = unsafe { &mut *call };
    call.ended = Some(catch_unwind(AssertUnwindSafe(&mut *call.call)));
}

/// makecontext(3) passes numbers of 32 bits.
fn halves(address: usize) -> [c_uint; 2] {
    let [a, b, c, d, e, f, g, h] = address.to_le_bytes();
    [[a, b, c, d], [e, f, g, h]].map(c_uint::from_le_bytes)
}

fn idle() -> MutexGuard<'static, Vec<Stack>> {
    IDLE.get().lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_runs_on_the_other_stack_and_its_answer_and_its_panic_come_back() {
        let stack = Stack::new().expect("memory");
        let (start, input) = (stack.bottom().addr(), vec![7_u8; 3]);
        let place = |call: &u8| ptr::from_ref(call).addr().wrapping_sub(start) < SIZE;
        let mut there = None;
        let ended = stack.run(&mut || {
            let large = std::hint::black_box([1_u8; 64 * 1024]);
            there = Some((place(&large[0]), input.len()));
        });
        assert!(ended.is_ok() && there == Some((true, 3)));
        assert!(!place(&0));
        assert!(stack.run(&mut || resume_unwind(Box::new(5))).is_err());
        let (other, mut inner) = (Stack::new().expect("memory"), 0);
        let ended = stack.run(&mut || other.run(&mut || inner = 1).expect("no panic"));
        assert!(ended.is_ok() && inner == 1);
    }

    #[test]
    fn the_other_stack_is_not_the_threads_own() {
        let (stack, mut there) = (Stack::new().expect("memory"), None);
        let ended = stack.run(&mut || there = Some(is_own_stack()));
        assert!(ended.is_ok() && there == Some(false) && is_own_stack());
    }
}
