// SPDX-License-Identifier: Apache-2.0
//! Jobs of OpenSSL's (ASYNC_start_job(3)), by the functions of the libcrypto that the program sees. Where it shows none there are no jobs.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::OnceLock;

type CurrentJob = unsafe extern "C" fn() -> *mut c_void;

/// Functions of libcrypto; all or none.
#[derive(Clone, Copy, Debug)]
struct Functions {
    current: CurrentJob,
}

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
    *FUNCTIONS.get_or_init(|| Some(Functions { current: find(c"ASYNC_get_current_job")? }))
}

/// Whether this is called inside a job.
pub(super) fn is_inside() -> bool {
    // SAFETY: it has no arguments and may be called anywhere.
    functions().is_some_and(|functions| unsafe { (functions.current)() } != ptr::null_mut())
}
