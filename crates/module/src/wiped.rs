// SPDX-License-Identifier: Apache-2.0
//! A page that a forked child finds zero, also when the C library did not see the fork.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

/// How many words are used of it.
pub(crate) const WORDS: usize = 3;

/// The words; they are never given back.
pub(crate) type Words = [AtomicU64; WORDS];

/// A new page of its own.
///
/// # Errors
/// What `mmap` or `madvise` says; Linux before 4.14 cannot do this.
pub(crate) fn page() -> io::Result<&'static Words> {
    const LENGTH: usize = size_of::<Words>();
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let start = unsafe { libc::mmap(ptr::null_mut(), LENGTH, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping was made above and no other code knows its address.
    if unsafe { libc::madvise(start, LENGTH, libc::MADV_WIPEONFORK) } != 0 {
        let error = io::Error::last_os_error();
        // SAFETY: as above.
        unsafe { libc::munmap(start, LENGTH) };
        return Err(error);
    }
    let words = NonNull::new(start.cast::<Words>()).ok_or(io::ErrorKind::OutOfMemory)?;
    // SAFETY: the mapping is larger than the array, aligned to a page, zero, and stays for ever.
    Ok(unsafe { words.as_ref() })
}
