// SPDX-License-Identifier: Apache-2.0
//! Message digesting functions.

use crate::enter::enter;
use metaslot_ck::*;

/// `C_DigestInit` (PKCS#11 3.2 §5.12)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_DigestInit(
    session: CK_SESSION_HANDLE,
    mechanism: *mut CK_MECHANISM,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::DigestInit, |engine, caller| {
            let (mechanism, params) = caller.mechanism(mechanism)?;
            engine.digest_init(SessionHandle(session), mechanism, params)
        })
    }
}

/// `C_Digest` (PKCS#11 3.2 §5.12)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_Digest(
    session: CK_SESSION_HANDLE,
    data: *mut CK_BYTE,
    length: CK_ULONG,
    out: *mut CK_BYTE,
    out_length: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::Digest, |engine, caller| {
            let output = caller.output(out, out_length)?;
            let input = caller.input(data, length, &output)?;
            output.fill(|out| engine.digest(SessionHandle(session), &input, out))
        })
    }
}

/// `C_DigestUpdate` (PKCS#11 3.2 §5.12)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_DigestUpdate(
    session: CK_SESSION_HANDLE,
    part: *mut CK_BYTE,
    length: CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::DigestUpdate, |engine, caller| {
            let part = caller.bytes(part, length)?;
            engine.digest_update(SessionHandle(session), part)
        })
    }
}

/// `C_DigestKey` (PKCS#11 3.2 §5.12)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_DigestKey(session: CK_SESSION_HANDLE, key: CK_OBJECT_HANDLE) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::DigestKey, |engine, _| {
            engine.digest_key(SessionHandle(session), ObjectHandle(key))
        })
    }
}

/// `C_DigestFinal` (PKCS#11 3.2 §5.12)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_DigestFinal(
    session: CK_SESSION_HANDLE,
    out: *mut CK_BYTE,
    out_length: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::DigestFinal, |engine, caller| {
            let output = caller.output(out, out_length)?;
            output.fill(|out| engine.digest_final(SessionHandle(session), out))
        })
    }
}
