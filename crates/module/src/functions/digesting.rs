// SPDX-License-Identifier: Apache-2.0
//! Message digesting functions.

use super::call::{finish, transform, update};
use crate::decode::Given;
use crate::enter::enter_session;
use metaslot_ck::*;
use metaslot_engine::{Engine, OperationKind};

/// `C_DigestInit` (PKCS#11 3.2 §5.12.1)
#[unsafe(no_mangle)]
pub extern "C" fn C_DigestInit(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
) -> CK_RV {
    enter_session(Function::DigestInit, session, |engine, caller, session| {
        if mechanism.is_null() {
            return engine.cancel_active(session, OperationKind::of(Function::DigestInit));
        }
        engine.digest_init(session, caller.mechanism_alone(mechanism)?)
    })
}

/// `C_Digest` (PKCS#11 3.2 §5.12.2)
#[unsafe(no_mangle)]
pub extern "C" fn C_Digest(
    session: CK_SESSION_HANDLE,
    data: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    transform(Function::Digest, session, (data, length), (out, out_length), Engine::digest)
}

/// `C_DigestUpdate` (PKCS#11 3.2 §5.12.3)
#[unsafe(no_mangle)]
pub extern "C" fn C_DigestUpdate(
    session: CK_SESSION_HANDLE,
    part: Given<'_, CK_BYTE>,
    length: CK_ULONG,
) -> CK_RV {
    update(Function::DigestUpdate, session, (part, length), Engine::digest_update)
}

/// `C_DigestKey` (PKCS#11 3.2 §5.12.4)
#[unsafe(no_mangle)]
pub extern "C" fn C_DigestKey(session: CK_SESSION_HANDLE, key: CK_OBJECT_HANDLE) -> CK_RV {
    enter_session(Function::DigestKey, session, |engine, _, session| {
        engine.digest_key(session, ObjectHandle(key))
    })
}

/// `C_DigestFinal` (PKCS#11 3.2 §5.12.5)
#[unsafe(no_mangle)]
pub extern "C" fn C_DigestFinal(
    session: CK_SESSION_HANDLE,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    finish(Function::DigestFinal, session, (out, out_length), Engine::digest_final)
}
