// SPDX-License-Identifier: Apache-2.0
//! The interface "Vendor Metaslot": why the last call of this thread failed, in words.

use crate::length;
use crate::module::named_interface;
use metaslot_ck::*;
use std::ptr;

/// Longest explanation that is fetched, in bytes.
const LONGEST: usize = 4096;

/// The function list behind the name. Later versions only append.
#[repr(C)]
#[derive(Clone, Copy)]
struct FunctionList {
    version: CK_VERSION,
    detail: Option<unsafe extern "C" fn(*mut CK_UTF8CHAR, *mut CK_ULONG) -> CK_RV>,
}

/// A module's vendor functions.
pub(crate) struct Vendor(FunctionList);

impl Vendor {
    /// The vendor functions, where the module has them.
    pub(crate) fn of(
        function: unsafe extern "C" fn(
            *mut CK_UTF8CHAR,
            *mut CK_VERSION,
            *mut *mut CK_INTERFACE,
            CK_FLAGS,
        ) -> CK_RV,
    ) -> Option<Self> {
        let list = named_interface(function, c"Vendor Metaslot", None)?;
        // SAFETY: only Metaslot has an interface of this name, and its list begins like this.
        let list = unsafe { list.cast::<FunctionList>().read() };
        (list.version.major == 1).then_some(Self(list))
    }

    /// The explanation of this thread's last failure; `None` when there is none.
    pub(crate) fn detail(&self) -> Option<String> {
        let function = self.0.detail?;
        let mut used: CK_ULONG = 0;
        // SAFETY: NULL asks for the length.
        let rv = unsafe { function(ptr::null_mut(), &raw mut used) };
        let room = length(used).min(LONGEST);
        if rv != CKR_OK || room == 0 {
            return None;
        }
        let mut text = vec![0; room];
        // SAFETY: `text` has room for `used` bytes.
        let rv = unsafe { function(text.as_mut_ptr(), &raw mut used) };
        text.truncate(length(used));
        (rv == CKR_OK).then(|| String::from_utf8_lossy(&text).into_owned())
    }
}
