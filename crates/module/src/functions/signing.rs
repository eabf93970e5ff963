// SPDX-License-Identifier: Apache-2.0
//! Signing and MACing functions.

use crate::enter::enter;
use metaslot_ck::*;

/// `C_SignInit` (PKCS#11 3.2 §5.13)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_SignInit(
    session: CK_SESSION_HANDLE,
    mechanism: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::SignInit, |engine, caller| {
            let (mechanism, params) = caller.mechanism(mechanism)?;
            engine.sign_init(SessionHandle(session), mechanism, params, ObjectHandle(key))
        })
    }
}

/// `C_Sign` (PKCS#11 3.2 §5.13)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_Sign(
    session: CK_SESSION_HANDLE,
    data: *mut CK_BYTE,
    length: CK_ULONG,
    out: *mut CK_BYTE,
    out_length: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::Sign, |engine, caller| {
            let output = caller.output(out, out_length)?;
            let input = caller.input(data, length, &output)?;
            output.fill(|out| engine.sign(SessionHandle(session), &input, out))
        })
    }
}

/// `C_SignUpdate` (PKCS#11 3.2 §5.13)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_SignUpdate(
    session: CK_SESSION_HANDLE,
    part: *mut CK_BYTE,
    length: CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::SignUpdate, |engine, caller| {
            let part = caller.bytes(part, length)?;
            engine.sign_update(SessionHandle(session), part)
        })
    }
}

/// `C_SignFinal` (PKCS#11 3.2 §5.13)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_SignFinal(
    session: CK_SESSION_HANDLE,
    out: *mut CK_BYTE,
    out_length: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::SignFinal, |engine, caller| {
            let output = caller.output(out, out_length)?;
            output.fill(|out| engine.sign_final(SessionHandle(session), out))
        })
    }
}

/// `C_SignRecoverInit` (PKCS#11 3.2 §5.13)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_SignRecoverInit(
    session: CK_SESSION_HANDLE,
    mechanism: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::SignRecoverInit, |engine, caller| {
            let (mechanism, params) = caller.mechanism(mechanism)?;
            engine.sign_recover_init(SessionHandle(session), mechanism, params, ObjectHandle(key))
        })
    }
}

/// `C_SignRecover` (PKCS#11 3.2 §5.13)
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
        enter(Function::SignRecover, |engine, caller| {
            let output = caller.output(out, out_length)?;
            let input = caller.input(data, length, &output)?;
            output.fill(|out| engine.sign_recover(SessionHandle(session), &input, out))
        })
    }
}
