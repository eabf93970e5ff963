// SPDX-License-Identifier: Apache-2.0
//! Functions for verifying signatures and MACs.

use crate::enter::{enter, unserved};
use metaslot_ck::*;

/// `C_VerifyInit` (PKCS#11 3.2 §5.15)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_VerifyInit(
    session: CK_SESSION_HANDLE,
    mechanism: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::VerifyInit, |engine, caller| {
            let (mechanism, params) = caller.mechanism(mechanism)?;
            engine.verify_init(SessionHandle(session), mechanism, params, ObjectHandle(key))
        })
    }
}

/// `C_Verify` (PKCS#11 3.2 §5.15)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_Verify(
    session: CK_SESSION_HANDLE,
    data: *mut CK_BYTE,
    length: CK_ULONG,
    signature: *mut CK_BYTE,
    signature_length: CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::Verify, |engine, caller| {
            let data = caller.bytes(data, length)?;
            let signature = caller.bytes(signature, signature_length)?;
            engine.verify(SessionHandle(session), data, signature)
        })
    }
}

/// `C_VerifyUpdate` (PKCS#11 3.2 §5.15)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_VerifyUpdate(
    session: CK_SESSION_HANDLE,
    part: *mut CK_BYTE,
    length: CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::VerifyUpdate, |engine, caller| {
            let part = caller.bytes(part, length)?;
            engine.verify_update(SessionHandle(session), part)
        })
    }
}

/// `C_VerifyFinal` (PKCS#11 3.2 §5.15)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_VerifyFinal(
    session: CK_SESSION_HANDLE,
    signature: *mut CK_BYTE,
    length: CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::VerifyFinal, |engine, caller| {
            let signature = caller.bytes(signature, length)?;
            engine.verify_final(SessionHandle(session), signature)
        })
    }
}

/// `C_VerifyRecoverInit` (PKCS#11 3.2 §5.15)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_VerifyRecoverInit(
    session: CK_SESSION_HANDLE,
    mechanism: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::VerifyRecoverInit, |engine, caller| {
            let (mechanism, params) = caller.mechanism(mechanism)?;
            engine.verify_recover_init(SessionHandle(session), mechanism, params, ObjectHandle(key))
        })
    }
}

/// `C_VerifyRecover` (PKCS#11 3.2 §5.15)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_VerifyRecover(
    session: CK_SESSION_HANDLE,
    signature: *mut CK_BYTE,
    length: CK_ULONG,
    out: *mut CK_BYTE,
    out_length: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::VerifyRecover, |engine, caller| {
            let output = caller.output(out, out_length)?;
            let input = caller.input(signature, length, &output)?;
            output.fill(|out| engine.verify_recover(SessionHandle(session), &input, out))
        })
    }
}

/// `C_VerifySignatureInit` (PKCS#11 3.2 §5.15)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_VerifySignatureInit(
    _session: CK_SESSION_HANDLE,
    _mechanism: *mut CK_MECHANISM,
    _key: CK_OBJECT_HANDLE,
    _signature: *mut CK_BYTE,
    _signature_length: CK_ULONG,
) -> CK_RV {
    unserved(Function::VerifySignatureInit)
}

/// `C_VerifySignature` (PKCS#11 3.2 §5.15)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_VerifySignature(
    _session: CK_SESSION_HANDLE,
    _data: *mut CK_BYTE,
    _length: CK_ULONG,
) -> CK_RV {
    unserved(Function::VerifySignature)
}

/// `C_VerifySignatureUpdate` (PKCS#11 3.2 §5.15)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_VerifySignatureUpdate(
    _session: CK_SESSION_HANDLE,
    _part: *mut CK_BYTE,
    _length: CK_ULONG,
) -> CK_RV {
    unserved(Function::VerifySignatureUpdate)
}

/// `C_VerifySignatureFinal` (PKCS#11 3.2 §5.15)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_VerifySignatureFinal(_session: CK_SESSION_HANDLE) -> CK_RV {
    unserved(Function::VerifySignatureFinal)
}
