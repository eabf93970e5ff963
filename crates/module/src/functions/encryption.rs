// SPDX-License-Identifier: Apache-2.0
//! Encryption functions.

use crate::enter::enter;
use metaslot_ck::*;
use metaslot_engine::provider::Direction;

/// `C_EncryptInit` (PKCS#11 3.2 §5.8)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_EncryptInit(
    session: CK_SESSION_HANDLE,
    mechanism: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::EncryptInit, |engine, caller| {
            let (mechanism, params) = caller.mechanism(mechanism)?;
            engine.cipher_init(
                Direction::Forward,
                SessionHandle(session),
                mechanism,
                params,
                ObjectHandle(key),
            )
        })
    }
}

/// `C_Encrypt` (PKCS#11 3.2 §5.8)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_Encrypt(
    session: CK_SESSION_HANDLE,
    data: *mut CK_BYTE,
    length: CK_ULONG,
    out: *mut CK_BYTE,
    out_length: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::Encrypt, |engine, caller| {
            let output = caller.output(out, out_length)?;
            let input = caller.input(data, length, &output)?;
            output
                .fill(|out| engine.cipher(Direction::Forward, SessionHandle(session), &input, out))
        })
    }
}

/// `C_EncryptUpdate` (PKCS#11 3.2 §5.8)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_EncryptUpdate(
    session: CK_SESSION_HANDLE,
    data: *mut CK_BYTE,
    length: CK_ULONG,
    out: *mut CK_BYTE,
    out_length: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::EncryptUpdate, |engine, caller| {
            let output = caller.output(out, out_length)?;
            let input = caller.input(data, length, &output)?;
            output.fill(|out| {
                engine.cipher_update(Direction::Forward, SessionHandle(session), &input, out)
            })
        })
    }
}

/// `C_EncryptFinal` (PKCS#11 3.2 §5.8)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_EncryptFinal(
    session: CK_SESSION_HANDLE,
    out: *mut CK_BYTE,
    out_length: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::EncryptFinal, |engine, caller| {
            let output = caller.output(out, out_length)?;
            output.fill(|out| engine.cipher_final(Direction::Forward, SessionHandle(session), out))
        })
    }
}
