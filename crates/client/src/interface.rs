// SPDX-License-Identifier: Apache-2.0
//! Function lists by the names of their interfaces (PKCS#11 3.2 §5.4.6).

use metaslot_ck::*;
use std::ffi::{CStr, c_void};
use std::ptr;

/// `C_GetInterface`
pub(crate) type GetInterface = unsafe extern "C" fn(
    *mut CK_UTF8CHAR,
    *mut CK_VERSION,
    *mut *mut CK_INTERFACE,
    CK_FLAGS,
) -> CK_RV;

/// The function list of the interface "PKCS 11" in one version.
pub(crate) fn by_interface(
    function: GetInterface,
    major: u8,
    minor: u8,
) -> Option<ptr::NonNull<c_void>> {
    named_interface(function, c"PKCS 11", Some(CK_VERSION { major, minor }))
}

/// The function list of a named interface.
pub(crate) fn named_interface(
    function: GetInterface,
    name: &CStr,
    version: Option<CK_VERSION>,
) -> Option<ptr::NonNull<c_void>> {
    let mut interface: *mut CK_INTERFACE = ptr::null_mut();
    let mut wanted = version;
    let wanted = wanted.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
    let name = name.as_ptr().cast_mut().cast();
    // SAFETY: a terminated name, NULL or a version, and a pointer to be written.
    let rv = unsafe { function(name, wanted, &raw mut interface, 0) };
    let interface = ptr::NonNull::new(interface).filter(|_| rv == CKR_OK)?;
    // SAFETY: the module returned an interface of its own, which stays while it is loaded.
    let interface = unsafe { interface.read() };
    ptr::NonNull::new(interface.pFunctionList)
}
