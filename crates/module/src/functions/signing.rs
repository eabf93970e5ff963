// SPDX-License-Identifier: Apache-2.0
//! Signing and MACing functions.

use super::call::{begin, finish, transform, update};
use crate::decode::Given;
use metaslot_ck::*;
use metaslot_engine::Engine;

/// `C_SignInit` (PKCS#11 3.2 §5.13.1)
#[unsafe(no_mangle)]
pub extern "C" fn C_SignInit(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    begin(Function::SignInit, session, mechanism, key, Engine::sign_init)
}

/// `C_Sign` (PKCS#11 3.2 §5.13.2)
#[unsafe(no_mangle)]
pub extern "C" fn C_Sign(
    session: CK_SESSION_HANDLE,
    data: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    transform(Function::Sign, session, (data, length), (out, out_length), Engine::sign)
}

/// `C_SignUpdate` (PKCS#11 3.2 §5.13.3)
#[unsafe(no_mangle)]
pub extern "C" fn C_SignUpdate(
    session: CK_SESSION_HANDLE,
    part: Given<'_, CK_BYTE>,
    length: CK_ULONG,
) -> CK_RV {
    update(Function::SignUpdate, session, (part, length), Engine::sign_update)
}

/// `C_SignFinal` (PKCS#11 3.2 §5.13.4)
#[unsafe(no_mangle)]
pub extern "C" fn C_SignFinal(
    session: CK_SESSION_HANDLE,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    finish(Function::SignFinal, session, (out, out_length), Engine::sign_final)
}

/// `C_SignRecoverInit` (PKCS#11 3.2 §5.13.5)
#[unsafe(no_mangle)]
pub extern "C" fn C_SignRecoverInit(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    begin(Function::SignRecoverInit, session, mechanism, key, Engine::sign_recover_init)
}

/// `C_SignRecover` (PKCS#11 3.2 §5.13.6)
#[unsafe(no_mangle)]
pub extern "C" fn C_SignRecover(
    session: CK_SESSION_HANDLE,
    data: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    transform(
        Function::SignRecover,
        session,
        (data, length),
        (out, out_length),
        Engine::sign_recover,
    )
}
