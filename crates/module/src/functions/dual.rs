// SPDX-License-Identifier: Apache-2.0
//! Dual-function cryptographic functions.

use super::call::{Bytes, Room, transform};
use crate::decode::Given;
use metaslot_ck::*;

/// `C_DigestEncryptUpdate` (PKCS#11 3.2 §5.17.1)
#[unsafe(no_mangle)]
pub extern "C" fn C_DigestEncryptUpdate(
    session: CK_SESSION_HANDLE,
    part: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    both(Function::DigestEncryptUpdate, session, (part, length), (out, out_length))
}

/// `C_DecryptDigestUpdate` (PKCS#11 3.2 §5.17.2)
#[unsafe(no_mangle)]
pub extern "C" fn C_DecryptDigestUpdate(
    session: CK_SESSION_HANDLE,
    part: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    both(Function::DecryptDigestUpdate, session, (part, length), (out, out_length))
}

/// `C_SignEncryptUpdate` (PKCS#11 3.2 §5.17.3)
#[unsafe(no_mangle)]
pub extern "C" fn C_SignEncryptUpdate(
    session: CK_SESSION_HANDLE,
    part: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    both(Function::SignEncryptUpdate, session, (part, length), (out, out_length))
}

/// `C_DecryptVerifyUpdate` (PKCS#11 3.2 §5.17.4)
#[unsafe(no_mangle)]
pub extern "C" fn C_DecryptVerifyUpdate(
    session: CK_SESSION_HANDLE,
    part: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    both(Function::DecryptVerifyUpdate, session, (part, length), (out, out_length))
}

fn both(function: Function, session: CK_SESSION_HANDLE, part: Bytes<'_>, out: Room<'_>) -> CK_RV {
    transform(function, session, part, out, |engine, session, part, out| {
        engine.update_both(function, session, part, out)
    })
}
