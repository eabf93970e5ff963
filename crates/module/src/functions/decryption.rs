// SPDX-License-Identifier: Apache-2.0
//! Decryption functions.

use crate::enter::enter;
use metaslot_ck::*;
use metaslot_engine::provider::Direction;

/// `C_DecryptInit` (PKCS#11 3.2 §5.10)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_DecryptInit(
    session: CK_SESSION_HANDLE,
    mechanism: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::DecryptInit, |engine, caller| {
            let (mechanism, params) = caller.mechanism(mechanism)?;
            engine.cipher_init(
                Direction::Backward,
                SessionHandle(session),
                mechanism,
                params,
                ObjectHandle(key),
            )
        })
    }
}

/// `C_Decrypt` (PKCS#11 3.2 §5.10)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_Decrypt(
    session: CK_SESSION_HANDLE,
    data: *mut CK_BYTE,
    length: CK_ULONG,
    out: *mut CK_BYTE,
    out_length: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::Decrypt, |engine, caller| {
            let output = caller.output(out, out_length)?;
            let input = caller.input(data, length, &output)?;
            output
                .fill(|out| engine.cipher(Direction::Backward, SessionHandle(session), &input, out))
        })
    }
}

/// `C_DecryptUpdate` (PKCS#11 3.2 §5.10)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_DecryptUpdate(
    session: CK_SESSION_HANDLE,
    data: *mut CK_BYTE,
    length: CK_ULONG,
    out: *mut CK_BYTE,
    out_length: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::DecryptUpdate, |engine, caller| {
            let output = caller.output(out, out_length)?;
            let input = caller.input(data, length, &output)?;
            output.fill(|out| {
                engine.cipher_update(Direction::Backward, SessionHandle(session), &input, out)
            })
        })
    }
}

/// `C_DecryptFinal` (PKCS#11 3.2 §5.10)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_DecryptFinal(
    session: CK_SESSION_HANDLE,
    out: *mut CK_BYTE,
    out_length: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::DecryptFinal, |engine, caller| {
            let output = caller.output(out, out_length)?;
            output.fill(|out| engine.cipher_final(Direction::Backward, SessionHandle(session), out))
        })
    }
}
