// SPDX-License-Identifier: Apache-2.0
//! Counting what is executed, not what is written: the processor stops after each instruction (its trap flag), and a signal handler
//! looks at the next one. Exact and independent of counters that virtual machines hide; a thousand times slower than running.

use super::Port;
use super::decode::Wide;
use std::arch::asm;
use std::ffi::{c_int, c_void};
use std::io;
use std::mem::zeroed;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// What the handler has seen, in the order of [`Port::ALL`].
static SEEN: [AtomicU64; Port::ALL.len()] = [const { AtomicU64::new(0) }; Port::ALL.len()];

/// One count at a time: a signal handler belongs to the process.
static ALONE: Mutex<()> = Mutex::new(());

/// How many instructions of each of the kinds this thread executes in `run`. Loads are not counted.
///
/// # Errors
/// The system does not let the process have the handler.
pub fn count(kinds: &[Port], run: impl FnOnce()) -> io::Result<Vec<u64>> {
    // Held until what was seen is read: the next count begins with zeros.
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let stepping = Stepping::begin()?;
    run();
    drop(stepping);
    let seen = |kind: &Port| SEEN[*kind as usize].load(Relaxed);
    Ok(kinds.iter().map(seen).collect())
}

/// The time in which the processor stops after each instruction.
struct Stepping {
    before: libc::sigaction,
}

impl Stepping {
    fn begin() -> io::Result<Self> {
        SEEN.iter().for_each(|seen| seen.store(0, Relaxed));
        // SAFETY: all zero is a value of this structure.
        let mut action: libc::sigaction = unsafe { zeroed() };
        action.sa_sigaction = look as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        let before = set(&action)?;
        let stepping = Self { before };
        // SAFETY: sets the trap flag and puts the stack back; from here on the handler runs after each instruction of this thread.
        unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
        Ok(stepping)
    }
}

impl Drop for Stepping {
    fn drop(&mut self) {
        // SAFETY: clears the trap flag and puts the stack back.
        unsafe { asm!("pushfq", "and qword ptr [rsp], ~0x100", "popfq") };
        // What was there before was accepted before.
        set(&self.before).ok();
    }
}

/// Makes `action` the process's for traps; gives the one before.
fn set(action: &libc::sigaction) -> io::Result<libc::sigaction> {
    // SAFETY: all zero is a value of this structure.
    let mut before = unsafe { zeroed() };
    // SAFETY: reads one structure and writes the other.
    match unsafe { libc::sigaction(libc::SIGTRAP, ptr::from_ref(action), &raw mut before) } {
        0 => Ok(before),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Looks at the instruction that comes next.
extern "C" fn look(_signal: c_int, _info: *mut libc::siginfo_t, context: *mut c_void) {
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: the system gives the handler the state of the interrupted thread.
    let next = unsafe { (*context).uc_mcontext.gregs[libc::REG_RIP as usize] };
    let Ok(next) = usize::try_from(next.cast_unsigned()) else { return };
    let next = ptr::with_exposed_provenance::<u8>(next);
    // SAFETY: the processor is about to execute it, so it can be read.
    let Some(length) = Wide::length(unsafe { next.read() }) else { return };
    let mut bytes = [0; Wide::LENGTH];
    // SAFETY: an instruction with such a prefix has so many bytes at least, and no more are written than there are.
    unsafe { ptr::copy_nonoverlapping(next, bytes.as_mut_ptr(), length) };
    let Some(wide) = Wide::from_bytes(bytes) else { return };
    for port in Port::ALL.into_iter().filter(|port| wide.is(*port)) {
        SEEN[port as usize].fetch_add(1, Relaxed);
    }
}
