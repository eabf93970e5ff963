// SPDX-License-Identifier: Apache-2.0
//! Signing and MACing functions.

use super::call::{begin, finish, transform, update};
use metaslot_ck::*;
use metaslot_engine::Engine;

/// `C_SignInit` (PKCS#11 3.2 §5.13.1)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_SignInit(
    session: CK_SESSION_HANDLE,
    mechanism: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe { begin(Function::SignInit, session, mechanism, key, Engine::sign_init) }
}

/// `C_Sign` (PKCS#11 3.2 §5.13.2)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_Sign(
    session: CK_SESSION_HANDLE,
    data: *mut CK_BYTE,
    length: CK_ULONG,
    out: *mut CK_BYTE,
    out_length: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe { transform(Function::Sign, session, (data, length), (out, out_length), Engine::sign) }
}

/// `C_SignUpdate` (PKCS#11 3.2 §5.13.3)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_SignUpdate(
    session: CK_SESSION_HANDLE,
    part: *mut CK_BYTE,
    length: CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe { update(Function::SignUpdate, session, (part, length), Engine::sign_update) }
}

/// `C_SignFinal` (PKCS#11 3.2 §5.13.4)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_SignFinal(
    session: CK_SESSION_HANDLE,
    out: *mut CK_BYTE,
    out_length: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe { finish(Function::SignFinal, session, (out, out_length), Engine::sign_final) }
}

/// `C_SignRecoverInit` (PKCS#11 3.2 §5.13.5)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_SignRecoverInit(
    session: CK_SESSION_HANDLE,
    mechanism: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe { begin(Function::SignRecoverInit, session, mechanism, key, Engine::sign_recover_init) }
}

/// `C_SignRecover` (PKCS#11 3.2 §5.13.6)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_SignRecover(
    session: CK_SESSION_HANDLE,
    data: *mut CK_BYTE,
    length: CK_ULONG,
    out: *mut CK_BYTE,
    out_length: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        transform(
            Function::SignRecover,
            session,
            (data, length),
            (out, out_length),
            Engine::sign_recover,
        )
    }
}
