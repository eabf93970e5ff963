// SPDX-License-Identifier: Apache-2.0
//! AWS-LC's allocations, served from protected memory.
//!
//! AWS-LC refers to these functions weakly: whoever defines them in a process gets its allocations.
//! They are defined here so that keys never sit in ordinary memory, and so that no host library can
//! take them over. The module's version script keeps them from being exported.

use metaslot_memory::{allocate, free, size_of_allocation};
use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};

#[unsafe(no_mangle)]
extern "C" fn OPENSSL_memory_alloc(size: usize) -> *mut c_void {
    allocate(size).map_or(ptr::null_mut(), |start| start.as_ptr().cast())
}

/// # Safety
/// `start` came from [`OPENSSL_memory_alloc`] or [`OPENSSL_memory_realloc`] and is not used any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn OPENSSL_memory_free(start: *mut c_void) {
    if let Some(start) = NonNull::new(start) {
        // SAFETY: the caller's promise.
        unsafe { free(start.cast()) };
    }
}

#[unsafe(no_mangle)]
extern "C" fn OPENSSL_memory_get_size(start: *mut c_void) -> usize {
    NonNull::new(start).map_or(0, |start| size_of_allocation(start.cast()))
}

/// # Safety
/// As [`OPENSSL_memory_free`]; the result takes the place of `start`.
#[unsafe(no_mangle)]
unsafe extern "C" fn OPENSSL_memory_realloc(start: *mut c_void, size: usize) -> *mut c_void {
    let Some(old) = NonNull::new(start) else { return OPENSSL_memory_alloc(size) };
    let there = size_of_allocation(old.cast());
    if size <= there && size >= there / 2 {
        return start;
    }
    let Some(new) = allocate(size) else { return ptr::null_mut() };
    // SAFETY: both allocations have at least this length and do not overlap.
    unsafe { new.copy_from_nonoverlapping(old.cast(), there.min(size)) };
    // SAFETY: the caller's promise.
    unsafe { free(old.cast()) };
    new.as_ptr().cast()
}

/// Never called while the functions above exist; defined so that no host library is.
///
/// # Safety
/// As [`OPENSSL_memory_free`].
#[unsafe(no_mangle)]
unsafe extern "C" fn sdallocx(start: *mut c_void, _size: usize, _flags: c_int) {
    // SAFETY: the caller's promise.
    unsafe { OPENSSL_memory_free(start) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_library_allocates_is_protected() {
        // SAFETY: takes nothing; the context is freed below.
        let context = unsafe { aws_lc_sys::EVP_MD_CTX_new() };
        let start = NonNull::new(context.cast::<u8>()).unwrap();
        assert!(size_of_allocation(start) > 0, "from the arena");
        // SAFETY: just made.
        unsafe { aws_lc_sys::EVP_MD_CTX_free(context) };
    }

    #[test]
    fn growing_keeps_the_content_and_zeroises_the_old_place() {
        let start = OPENSSL_memory_alloc(40).cast::<u8>();
        // SAFETY: 40 bytes were allocated.
        unsafe { start.write_bytes(9, 40) };
        // SAFETY: allocated above, replaced by the result.
        let grown = unsafe { OPENSSL_memory_realloc(start.cast(), 4000) }.cast::<u8>();
        // SAFETY: 4000 bytes were allocated.
        let content = unsafe { std::slice::from_raw_parts(grown, 4000) };
        assert_eq!(content[..40], [9; 40]);
        assert!(content[40..].iter().all(|byte| *byte == 0));
        assert_ne!(grown, start);
        // SAFETY: allocated above.
        unsafe { OPENSSL_memory_free(grown.cast()) };
        assert_eq!(OPENSSL_memory_get_size(ptr::null_mut()), 0);
    }
}
