// SPDX-License-Identifier: Apache-2.0
//! Dual-function cryptographic functions.

use crate::enter::enter;
use metaslot_ck::*;

/// `C_DigestEncryptUpdate` (PKCS#11 3.2 §5.17)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_DigestEncryptUpdate(
    session: CK_SESSION_HANDLE,
    part: *mut CK_BYTE,
    length: CK_ULONG,
    out: *mut CK_BYTE,
    out_length: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::DigestEncryptUpdate, |engine, caller| {
            let output = caller.output(out, out_length)?;
            let input = caller.input(part, length, &output)?;
            output.fill(|out| engine.digest_encrypt_update(SessionHandle(session), &input, out))
        })
    }
}

/// `C_DecryptDigestUpdate` (PKCS#11 3.2 §5.17)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_DecryptDigestUpdate(
    session: CK_SESSION_HANDLE,
    part: *mut CK_BYTE,
    length: CK_ULONG,
    out: *mut CK_BYTE,
    out_length: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::DecryptDigestUpdate, |engine, caller| {
            let output = caller.output(out, out_length)?;
            let input = caller.input(part, length, &output)?;
            output.fill(|out| engine.decrypt_digest_update(SessionHandle(session), &input, out))
        })
    }
}

/// `C_SignEncryptUpdate` (PKCS#11 3.2 §5.17)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_SignEncryptUpdate(
    session: CK_SESSION_HANDLE,
    part: *mut CK_BYTE,
    length: CK_ULONG,
    out: *mut CK_BYTE,
    out_length: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::SignEncryptUpdate, |engine, caller| {
            let output = caller.output(out, out_length)?;
            let input = caller.input(part, length, &output)?;
            output.fill(|out| engine.sign_encrypt_update(SessionHandle(session), &input, out))
        })
    }
}

/// `C_DecryptVerifyUpdate` (PKCS#11 3.2 §5.17)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_DecryptVerifyUpdate(
    session: CK_SESSION_HANDLE,
    part: *mut CK_BYTE,
    length: CK_ULONG,
    out: *mut CK_BYTE,
    out_length: *mut CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::DecryptVerifyUpdate, |engine, caller| {
            let output = caller.output(out, out_length)?;
            let input = caller.input(part, length, &output)?;
            output.fill(|out| engine.decrypt_verify_update(SessionHandle(session), &input, out))
        })
    }
}
