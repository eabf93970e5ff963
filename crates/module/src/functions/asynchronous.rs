// SPDX-License-Identifier: Apache-2.0
//! Asynchronous function management functions. None is served yet: no session is asynchronous.

use crate::enter::unserved;
use metaslot_ck::*;

/// `C_AsyncComplete` (PKCS#11 3.2)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_AsyncComplete(
    _session: CK_SESSION_HANDLE,
    _function: *mut CK_UTF8CHAR,
    _result: *mut CK_ASYNC_DATA,
) -> CK_RV {
    unserved(Function::AsyncComplete)
}

/// `C_AsyncGetID` (PKCS#11 3.2)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_AsyncGetID(
    _session: CK_SESSION_HANDLE,
    _function: *mut CK_UTF8CHAR,
    _id: *mut CK_ULONG,
) -> CK_RV {
    unserved(Function::AsyncGetID)
}

/// `C_AsyncJoin` (PKCS#11 3.2)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_AsyncJoin(
    _session: CK_SESSION_HANDLE,
    _function: *mut CK_UTF8CHAR,
    _id: CK_ULONG,
    _data: *mut CK_BYTE,
    _length: CK_ULONG,
) -> CK_RV {
    unserved(Function::AsyncJoin)
}
