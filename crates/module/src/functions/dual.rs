// SPDX-License-Identifier: Apache-2.0
//! Dual-function cryptographic functions.

use super::call::transform;
use crate::decode::Given;
use metaslot_ck::*;
use metaslot_engine::Engine;

/// `C_DigestEncryptUpdate` (PKCS#11 3.2 §5.17.1)
#[unsafe(no_mangle)]
pub extern "C" fn C_DigestEncryptUpdate(
    session: CK_SESSION_HANDLE,
    part: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    transform(
        Function::DigestEncryptUpdate,
        session,
        (part, length),
        (out, out_length),
        Engine::digest_encrypt_update,
    )
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
    transform(
        Function::DecryptDigestUpdate,
        session,
        (part, length),
        (out, out_length),
        Engine::decrypt_digest_update,
    )
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
    transform(
        Function::SignEncryptUpdate,
        session,
        (part, length),
        (out, out_length),
        Engine::sign_encrypt_update,
    )
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
    transform(
        Function::DecryptVerifyUpdate,
        session,
        (part, length),
        (out, out_length),
        Engine::decrypt_verify_update,
    )
}
