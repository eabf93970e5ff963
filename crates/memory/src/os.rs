// SPDX-License-Identifier: Apache-2.0
//! The system calls that map memory, each behind one function.

use std::io;
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};

/// Reading and writing.
pub(crate) const ACCESS: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// Address space of `length` bytes without access; costs no memory.
pub(crate) fn reserve(length: usize) -> io::Result<NonNull<u8>> {
    map_anonymous(length, libc::PROT_NONE, libc::MAP_NORESERVE)
}

/// Zeroed memory of `length` bytes that is paid for when touched.
pub(crate) fn map_zeroed(length: usize) -> io::Result<NonNull<u8>> {
    map_anonymous(length, ACCESS, libc::MAP_NORESERVE)
}

/// Zeroed memory without a file.
pub(crate) fn map_anonymous(length: usize, protection: i32, flags: i32) -> io::Result<NonNull<u8>> {
    map(length, protection, flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
}

/// The beginning of a file, or memory.
pub(crate) fn map(
    length: usize,
    protection: i32,
    flags: i32,
    file: RawFd,
) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let start = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, file, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
}

/// Gives a mapping back.
///
/// # Safety
/// `start` and `length` are a whole mapping made here, and nothing refers to it any more.
pub(crate) unsafe fn unmap(start: NonNull<u8>, length: usize) {
    // SAFETY: the caller's promise. It cannot fail for a whole mapping.
    unsafe { libc::munmap(start.as_ptr().cast(), length) };
}

/// Makes a part of reserved space readable and writable and keeps it out of core dumps. Says
/// whether it will be wiped in forked children.
///
/// # Safety
/// The range is page-aligned and lies in space reserved here.
pub(crate) unsafe fn commit(start: *mut u8, length: usize) -> io::Result<bool> {
    // SAFETY: the caller's promise.
    if unsafe { libc::mprotect(start.cast(), length, ACCESS) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the caller's promise; the advice changes no content here.
    unsafe { libc::madvise(start.cast(), length, libc::MADV_DONTDUMP) };
    // SAFETY: as above; the content changes in forked children only.
    Ok(unsafe { libc::madvise(start.cast(), length, libc::MADV_WIPEONFORK) } == 0)
}

/// Locks pages into memory: the first `at_once` bytes now, which costs less than a fault for each, all others as they are
/// touched. Says whether that worked.
///
/// # Safety
/// The range is page-aligned and mapped.
pub(crate) unsafe fn lock(start: *mut u8, length: usize, at_once: usize) -> bool {
    let parts =
        [(start, at_once, 0), (start.wrapping_add(at_once), length - at_once, libc::MLOCK_ONFAULT)];
    let locked = parts.iter().all(|(start, length, flags)| {
        // SAFETY: the caller's promise; contents do not change.
        unsafe { libc::mlock2(start.cast(), *length, *flags) == 0 }
    });
    if locked {
        return true;
    }
    // SAFETY: as above; for kernels without the flag.
    unsafe { libc::mlock(start.cast(), length) == 0 }
}

/// Gives the memory behind a range back; it reads as zeros afterwards. Locked memory stays.
///
/// # Safety
/// The range is page-aligned, mapped, and holds nothing that is needed.
pub(crate) unsafe fn discard(start: *mut u8, length: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::madvise(start.cast(), length, libc::MADV_DONTNEED) };
}

/// How much this process may lock, in bytes.
pub(crate) fn lock_limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes the structure.
    if unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) } != 0 {
        return 0;
    }
    usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
}

/// Overwrites memory with zeros in a way that the compiler keeps.
///
/// # Safety
/// `length` bytes at `start` are writable.
pub(crate) unsafe fn wipe(start: *mut u8, length: usize) {
    // SAFETY: the caller's promise.
    unsafe { start.write_bytes(0, length) };
    // SAFETY: does nothing, but might read the memory as far as the compiler knows, which is why
    // the zeros must be written.
    unsafe { std::arch::asm!("/* {0} */", in(reg) start, options(nostack, preserves_flags)) };
}

/// Waits until `word` is no longer `value`, or for no reason.
pub(crate) fn futex_wait(word: &std::sync::atomic::AtomicU32, value: u32) {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let no_timeout = ptr::null::<libc::timespec>();
    // SAFETY: reads the word, which outlives the call; without a timeout.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, no_timeout) };
}

/// Wakes one thread that waits on `word`.
pub(crate) fn futex_wake(word: &std::sync::atomic::AtomicU32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: uses the address only.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 1) };
}
