// SPDX-License-Identifier: Apache-2.0
//! Functions for verifying signatures and MACs.

use super::call::{begin, check, transform, update};
use crate::decode::Given;
use crate::enter::enter_session;
use metaslot_ck::*;
use metaslot_engine::{Engine, OperationKind};

/// `C_VerifyInit` (PKCS#11 3.2 §5.15.1)
#[unsafe(no_mangle)]
pub extern "C" fn C_VerifyInit(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    begin(Function::VerifyInit, session, mechanism, key, Engine::verify_init)
}

/// `C_Verify` (PKCS#11 3.2 §5.15.2)
#[unsafe(no_mangle)]
pub extern "C" fn C_Verify(
    session: CK_SESSION_HANDLE,
    data: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    signature: Given<'_, CK_BYTE>,
    signature_length: CK_ULONG,
) -> CK_RV {
    let signature = (signature, signature_length);
    check(Function::Verify, session, (data, length), signature, Engine::verify)
}

/// `C_VerifyUpdate` (PKCS#11 3.2 §5.15.3)
#[unsafe(no_mangle)]
pub extern "C" fn C_VerifyUpdate(
    session: CK_SESSION_HANDLE,
    part: Given<'_, CK_BYTE>,
    length: CK_ULONG,
) -> CK_RV {
    update(Function::VerifyUpdate, session, (part, length), Engine::verify_update)
}

/// `C_VerifyFinal` (PKCS#11 3.2 §5.15.4)
#[unsafe(no_mangle)]
pub extern "C" fn C_VerifyFinal(
    session: CK_SESSION_HANDLE,
    signature: Given<'_, CK_BYTE>,
    length: CK_ULONG,
) -> CK_RV {
    update(Function::VerifyFinal, session, (signature, length), Engine::verify_final)
}

/// `C_VerifyRecoverInit` (PKCS#11 3.2 §5.15.5)
#[unsafe(no_mangle)]
pub extern "C" fn C_VerifyRecoverInit(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    begin(Function::VerifyRecoverInit, session, mechanism, key, Engine::verify_recover_init)
}

/// `C_VerifyRecover` (PKCS#11 3.2 §5.15.6)
#[unsafe(no_mangle)]
pub extern "C" fn C_VerifyRecover(
    session: CK_SESSION_HANDLE,
    signature: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    let signature = (signature, length);
    transform(
        Function::VerifyRecover,
        session,
        signature,
        (out, out_length),
        Engine::verify_recover,
    )
}

/// `C_VerifySignatureInit` (PKCS#11 3.2 §5.15.7)
#[unsafe(no_mangle)]
pub extern "C" fn C_VerifySignatureInit(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    key: CK_OBJECT_HANDLE,
    signature: Given<'_, CK_BYTE>,
    signature_length: CK_ULONG,
) -> CK_RV {
    const FUNCTION: Function = Function::VerifySignatureInit;
    enter_session(FUNCTION, session, |engine, caller, session| {
        if mechanism.is_null() {
            return engine.cancel_active(session, OperationKind::of(FUNCTION));
        }
        let (mechanism, params) = caller.mechanism(mechanism)?;
        let signature = caller.bytes(signature, signature_length)?;
        engine.verify_signature_init(session, mechanism, params, ObjectHandle(key), signature)
    })
}

/// `C_VerifySignature` (PKCS#11 3.2 §5.15.8)
#[unsafe(no_mangle)]
pub extern "C" fn C_VerifySignature(
    session: CK_SESSION_HANDLE,
    data: Given<'_, CK_BYTE>,
    length: CK_ULONG,
) -> CK_RV {
    update(Function::VerifySignature, session, (data, length), Engine::verify_signature)
}

/// `C_VerifySignatureUpdate` (PKCS#11 3.2 §5.15.9)
#[unsafe(no_mangle)]
pub extern "C" fn C_VerifySignatureUpdate(
    session: CK_SESSION_HANDLE,
    part: Given<'_, CK_BYTE>,
    length: CK_ULONG,
) -> CK_RV {
    let part = (part, length);
    update(Function::VerifySignatureUpdate, session, part, Engine::verify_signature_update)
}

/// `C_VerifySignatureFinal` (PKCS#11 3.2 §5.15.10)
#[unsafe(no_mangle)]
pub extern "C" fn C_VerifySignatureFinal(session: CK_SESSION_HANDLE) -> CK_RV {
    enter_session(Function::VerifySignatureFinal, session, |engine, _, session| {
        engine.verify_signature_final(session)
    })
}
