// SPDX-License-Identifier: Apache-2.0
//! OpenSSL's allocations: what can hold keys is served from protected memory, and what the library needs as long as the
//! process lives from the C library.
//!
//! Protected memory is wiped in a forked child. A child starts without keys, so it does without what held
//! them; it cannot do without the tables of algorithms, the locks and the threads' error queues. OpenSSL names the source
//! file of each allocation, and which files hold keys is known.

use crate::raw::CRYPTO_set_mem_functions;
use crate::{Result, check};
use metaslot_memory::{allocate, free, size_of_allocation};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{self, NonNull};

/// Files, by the beginnings of their names, whose allocations may hold keys or what is computed with them. None of them
/// allocates anything that outlives an operation or a key. (The library's random generator does, and is not used.)
const SECRET: &[&[u8]] = &[
    b"providers/implementations/asymciphers/",
    b"providers/implementations/ciphers/",
    b"providers/implementations/digests/",
    b"providers/implementations/exchange/",
    b"providers/implementations/keymgmt/",
    b"providers/implementations/macs/",
    b"providers/implementations/signature/",
    b"crypto/bn/",
    b"crypto/buffer/",
    b"crypto/cmac/",
    b"crypto/ec/",
    b"crypto/hmac/",
    b"crypto/param",
    b"crypto/rsa/",
];

/// To be called before anything is allocated.
pub(crate) fn serve() -> Result<()> {
    // SAFETY: the functions keep what `malloc`, `realloc` and `free` promise.
    check(unsafe { CRYPTO_set_mem_functions(hooked_malloc, hooked_realloc, hooked_free) })
}

fn is_secret(file: &[u8]) -> bool {
    SECRET.iter().any(|start| file.starts_with(start))
}

/// # Safety
/// `file` is NULL or a string.
unsafe extern "C" fn hooked_malloc(size: usize, file: *const c_char, _: c_int) -> *mut c_void {
    let file = match file.is_null() {
        true => c"",
        // SAFETY: the caller's promise.
        false => unsafe { CStr::from_ptr(file) },
    };
    if is_secret(file.to_bytes()) {
        return allocate(size).map_or(ptr::null_mut(), |start| start.as_ptr().cast());
    }
    // SAFETY: any size may be asked for.
    unsafe { libc::malloc(size) }
}

/// # Safety
/// `start` is NULL or came from these functions and is not used any more; `file` as in [`hooked_malloc`].
unsafe extern "C" fn hooked_realloc(
    start: *mut c_void,
    size: usize,
    file: *const c_char,
    line: c_int,
) -> *mut c_void {
    let Some(old) = NonNull::new(start) else {
        // SAFETY: the caller's promise.
        return unsafe { hooked_malloc(size, file, line) };
    };
    let there = size_of_allocation(old.cast());
    if there == 0 {
        // SAFETY: it is not the arena's, so it came from `malloc`.
        return unsafe { libc::realloc(start, size) };
    }
    let new = if size == 0 { None } else { allocate(size) };
    if let Some(new) = new {
        // SAFETY: both allocations have at least this length and do not overlap.
        unsafe { new.copy_from_nonoverlapping(old.cast(), there.min(size)) };
    }
    if new.is_some() || size == 0 {
        // SAFETY: the caller's promise; what was in it has been copied.
        unsafe { free(old.cast()) };
    }
    new.map_or(ptr::null_mut(), |new| new.as_ptr().cast())
}

/// # Safety
/// As [`hooked_realloc`].
unsafe extern "C" fn hooked_free(start: *mut c_void, _: *const c_char, _: c_int) {
    let Some(place) = NonNull::new(start) else { return };
    if size_of_allocation(place.cast()) == 0 {
        // SAFETY: it is not the arena's, so it came from `malloc`.
        unsafe { libc::free(start) };
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { free(place.cast()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_keys_is_protected_and_what_stays_over_a_fork_is_not() {
        for (file, secret) in [
            (c"providers/implementations/macs/hmac_prov.c", true),
            (c"crypto/bn/bn_lib.c", true),
            (c"crypto/params_dup.c", true),
            (c"providers/implementations/rands/drbg.c", false),
            (c"crypto/err/err.c", false),
            (c"crypto/evp/digest.c", false),
            (c"providers/defltprov.c", false),
        ] {
            // SAFETY: a string; the allocation is freed below.
            let start = unsafe { hooked_malloc(100, file.as_ptr(), 0) };
            // SAFETY: allocated above, replaced by the result.
            let start = unsafe { hooked_realloc(start, 5000, file.as_ptr(), 0) };
            let size = size_of_allocation(NonNull::new(start.cast()).unwrap());
            assert_eq!(size > 0, secret, "{file:?}");
            // SAFETY: allocated above.
            unsafe { hooked_free(start, file.as_ptr(), 0) };
        }
    }
}
