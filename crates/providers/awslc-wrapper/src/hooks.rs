// SPDX-License-Identifier: Apache-2.0
//! AWS-LC's allocations, served from protected memory.
//!
//! AWS-LC refers to these functions weakly: anyone who defines them in a process gets its allocations.
//! They are defined here so that keys never sit in ordinary memory, and so that no host library can
//! take them over.
//!
//! A Rust function with a name for the linker is exported from a shared library, and these must not
//! be. So the names are labels in assembly, which can be hidden, that jump to the functions.

use metaslot_memory::{allocate, free, size_of_allocation};
use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};

/// A hidden name for a function of this file; the first argument is the processor's jump.
macro_rules! hidden {
    ($jump:literal: $($name:literal => $function:path),* $(,)?) => {
        $(std::arch::global_asm!(
            ".text",
            concat!(".globl ", $name),
            concat!(".hidden ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            concat!($jump, " {function}"),
            function = sym $function,
        );)*
    };
}

/// The names that AWS-LC refers to.
macro_rules! named {
    ($jump:literal) => {
        hidden!($jump:
            "OPENSSL_memory_alloc" => hooked_alloc,
            "OPENSSL_memory_free" => hooked_free,
            "OPENSSL_memory_get_size" => hooked_size,
            "OPENSSL_memory_realloc" => hooked_realloc,
            "sdallocx" => hooked_sdallocx,
        );
    };
}

#[cfg(target_arch = "x86_64")]
named!("jmp");
#[cfg(target_arch = "aarch64")]
named!("b");

/// Weak references do not make the linker take this file from a library; this does.
#[used]
static LINKED: extern "C" fn(usize) -> *mut c_void = hooked_alloc;

extern "C" fn hooked_alloc(size: usize) -> *mut c_void {
    allocate(size).map_or(ptr::null_mut(), |start| start.as_ptr().cast())
}

/// # Safety
/// `start` came from [`hooked_alloc`] or [`hooked_realloc`] and is not used any more.
unsafe extern "C" fn hooked_free(start: *mut c_void) {
    if let Some(start) = NonNull::new(start) {
        // SAFETY: the caller's promise.
        unsafe { free(start.cast()) };
    }
}

extern "C" fn hooked_size(start: *mut c_void) -> usize {
    NonNull::new(start).map_or(0, |start| size_of_allocation(start.cast()))
}

/// # Safety
/// As [`hooked_free`]; the result takes the place of `start`.
unsafe extern "C" fn hooked_realloc(start: *mut c_void, size: usize) -> *mut c_void {
    let Some(old) = NonNull::new(start) else { return hooked_alloc(size) };
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
/// As [`hooked_free`].
unsafe extern "C" fn hooked_sdallocx(start: *mut c_void, _size: usize, _flags: c_int) {
    // SAFETY: the caller's promise.
    unsafe { hooked_free(start) };
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
        let start = hooked_alloc(40).cast::<u8>();
        // SAFETY: 40 bytes were allocated.
        unsafe { start.write_bytes(9, 40) };
        // SAFETY: allocated above, replaced by the result.
        let grown = unsafe { hooked_realloc(start.cast(), 4000) }.cast::<u8>();
        // SAFETY: 4000 bytes were allocated.
        let content = unsafe { std::slice::from_raw_parts(grown, 4000) };
        assert_eq!(content[..40], [9; 40]);
        assert!(content[40..].iter().all(|byte| *byte == 0));
        assert_ne!(grown, start);
        // SAFETY: allocated above.
        unsafe { hooked_free(grown.cast()) };
        assert_eq!(hooked_size(ptr::null_mut()), 0);
    }
}
