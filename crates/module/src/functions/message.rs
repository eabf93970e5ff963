// SPDX-License-Identifier: Apache-2.0
//! Message-based functions (chapters 5.9, 5.11, 5.14 and 5.16).

use super::call::{begin, check, transform, update};
use crate::decode::Given;
use crate::enter::{enter_session, unserved};
use metaslot_ck::*;
use metaslot_engine::Engine;
use metaslot_engine::OperationKind::{self, MessageSign, MessageVerify};
use std::ffi::c_void;

/// `C_MessageEncryptInit` (PKCS#11 3.2 §5.9)
#[unsafe(no_mangle)]
pub extern "C" fn C_MessageEncryptInit(
    _session: CK_SESSION_HANDLE,
    _mechanism: Given<'_, CK_MECHANISM>,
    _key: CK_OBJECT_HANDLE,
) -> CK_RV {
    unserved(Function::MessageEncryptInit)
}

/// `C_EncryptMessage` (PKCS#11 3.2 §5.9)
#[unsafe(no_mangle)]
pub extern "C" fn C_EncryptMessage(
    _session: CK_SESSION_HANDLE,
    _parameter: Given<'_, c_void>,
    _parameter_length: CK_ULONG,
    _aad: Given<'_, CK_BYTE>,
    _aad_length: CK_ULONG,
    _data: Given<'_, CK_BYTE>,
    _length: CK_ULONG,
    _out: Given<'_, CK_BYTE>,
    _out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    unserved(Function::EncryptMessage)
}

/// `C_EncryptMessageBegin` (PKCS#11 3.2 §5.9)
#[unsafe(no_mangle)]
pub extern "C" fn C_EncryptMessageBegin(
    _session: CK_SESSION_HANDLE,
    _parameter: Given<'_, c_void>,
    _parameter_length: CK_ULONG,
    _aad: Given<'_, CK_BYTE>,
    _aad_length: CK_ULONG,
) -> CK_RV {
    unserved(Function::EncryptMessageBegin)
}

/// `C_EncryptMessageNext` (PKCS#11 3.2 §5.9)
#[unsafe(no_mangle)]
pub extern "C" fn C_EncryptMessageNext(
    _session: CK_SESSION_HANDLE,
    _parameter: Given<'_, c_void>,
    _parameter_length: CK_ULONG,
    _part: Given<'_, CK_BYTE>,
    _length: CK_ULONG,
    _out: Given<'_, CK_BYTE>,
    _out_length: Given<'_, CK_ULONG>,
    _flags: CK_FLAGS,
) -> CK_RV {
    unserved(Function::EncryptMessageNext)
}

/// `C_MessageEncryptFinal` (PKCS#11 3.2 §5.9)
#[unsafe(no_mangle)]
pub extern "C" fn C_MessageEncryptFinal(_session: CK_SESSION_HANDLE) -> CK_RV {
    unserved(Function::MessageEncryptFinal)
}

/// `C_MessageDecryptInit` (PKCS#11 3.2 §5.11)
#[unsafe(no_mangle)]
pub extern "C" fn C_MessageDecryptInit(
    _session: CK_SESSION_HANDLE,
    _mechanism: Given<'_, CK_MECHANISM>,
    _key: CK_OBJECT_HANDLE,
) -> CK_RV {
    unserved(Function::MessageDecryptInit)
}

/// `C_DecryptMessage` (PKCS#11 3.2 §5.11)
#[unsafe(no_mangle)]
pub extern "C" fn C_DecryptMessage(
    _session: CK_SESSION_HANDLE,
    _parameter: Given<'_, c_void>,
    _parameter_length: CK_ULONG,
    _aad: Given<'_, CK_BYTE>,
    _aad_length: CK_ULONG,
    _data: Given<'_, CK_BYTE>,
    _length: CK_ULONG,
    _out: Given<'_, CK_BYTE>,
    _out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    unserved(Function::DecryptMessage)
}

/// `C_DecryptMessageBegin` (PKCS#11 3.2 §5.11)
#[unsafe(no_mangle)]
pub extern "C" fn C_DecryptMessageBegin(
    _session: CK_SESSION_HANDLE,
    _parameter: Given<'_, c_void>,
    _parameter_length: CK_ULONG,
    _aad: Given<'_, CK_BYTE>,
    _aad_length: CK_ULONG,
) -> CK_RV {
    unserved(Function::DecryptMessageBegin)
}

/// `C_DecryptMessageNext` (PKCS#11 3.2 §5.11)
#[unsafe(no_mangle)]
pub extern "C" fn C_DecryptMessageNext(
    _session: CK_SESSION_HANDLE,
    _parameter: Given<'_, c_void>,
    _parameter_length: CK_ULONG,
    _part: Given<'_, CK_BYTE>,
    _length: CK_ULONG,
    _out: Given<'_, CK_BYTE>,
    _out_length: Given<'_, CK_ULONG>,
    _flags: CK_FLAGS,
) -> CK_RV {
    unserved(Function::DecryptMessageNext)
}

/// `C_MessageDecryptFinal` (PKCS#11 3.2 §5.11)
#[unsafe(no_mangle)]
pub extern "C" fn C_MessageDecryptFinal(_session: CK_SESSION_HANDLE) -> CK_RV {
    unserved(Function::MessageDecryptFinal)
}

/// `C_MessageSignInit` (PKCS#11 3.2 §5.14.1)
#[unsafe(no_mangle)]
pub extern "C" fn C_MessageSignInit(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    begin(Function::MessageSignInit, session, mechanism, key, Engine::message_sign_init)
}

/// `C_SignMessage` (PKCS#11 3.2 §5.14.2)
#[unsafe(no_mangle)]
pub extern "C" fn C_SignMessage(
    session: CK_SESSION_HANDLE,
    _parameter: Given<'_, c_void>,
    parameter_length: CK_ULONG,
    data: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    let (data, out) = ((data, length), (out, out_length));
    transform(Function::SignMessage, session, data, out, |engine, session, data, out| {
        no_parameter(engine, session, MessageSign, parameter_length)?;
        engine.sign_message(session, data, out)
    })
}

/// `C_SignMessageBegin` (PKCS#11 3.2 §5.14.3)
#[unsafe(no_mangle)]
pub extern "C" fn C_SignMessageBegin(
    session: CK_SESSION_HANDLE,
    _parameter: Given<'_, c_void>,
    parameter_length: CK_ULONG,
) -> CK_RV {
    enter_session(Function::SignMessageBegin, session, |engine, _, session| {
        no_parameter(engine, session, MessageSign, parameter_length)?;
        engine.signature_message_begin(session, MessageSign)
    })
}

/// `C_SignMessageNext` (PKCS#11 3.2 §5.14.4)
#[unsafe(no_mangle)]
pub extern "C" fn C_SignMessageNext(
    session: CK_SESSION_HANDLE,
    _parameter: Given<'_, c_void>,
    parameter_length: CK_ULONG,
    data: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    const FUNCTION: Function = Function::SignMessageNext;
    let data = (data, length);
    if out_length.is_null() {
        return update(FUNCTION, session, data, |engine, session, data| {
            no_parameter(engine, session, MessageSign, parameter_length)?;
            engine.sign_message_next(session, data, None)
        });
    }
    transform(FUNCTION, session, data, (out, out_length), |engine, session, data, out| {
        no_parameter(engine, session, MessageSign, parameter_length)?;
        engine.sign_message_next(session, data, Some(out))
    })
}

/// `C_MessageSignFinal` (PKCS#11 3.2 §5.14.5)
#[unsafe(no_mangle)]
pub extern "C" fn C_MessageSignFinal(session: CK_SESSION_HANDLE) -> CK_RV {
    finish(Function::MessageSignFinal, session, MessageSign)
}

/// `C_MessageVerifyInit` (PKCS#11 3.2 §5.16.1)
#[unsafe(no_mangle)]
pub extern "C" fn C_MessageVerifyInit(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    begin(Function::MessageVerifyInit, session, mechanism, key, Engine::message_verify_init)
}

/// `C_VerifyMessage` (PKCS#11 3.2 §5.16.2)
#[unsafe(no_mangle)]
pub extern "C" fn C_VerifyMessage(
    session: CK_SESSION_HANDLE,
    _parameter: Given<'_, c_void>,
    parameter_length: CK_ULONG,
    data: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    signature: Given<'_, CK_BYTE>,
    signature_length: CK_ULONG,
) -> CK_RV {
    let (data, signature) = ((data, length), (signature, signature_length));
    check(Function::VerifyMessage, session, data, signature, |engine, session, data, signature| {
        no_parameter(engine, session, MessageVerify, parameter_length)?;
        engine.verify_message(session, data, signature)
    })
}

/// `C_VerifyMessageBegin` (PKCS#11 3.2 §5.16.3)
#[unsafe(no_mangle)]
pub extern "C" fn C_VerifyMessageBegin(
    session: CK_SESSION_HANDLE,
    _parameter: Given<'_, c_void>,
    parameter_length: CK_ULONG,
) -> CK_RV {
    enter_session(Function::VerifyMessageBegin, session, |engine, _, session| {
        no_parameter(engine, session, MessageVerify, parameter_length)?;
        engine.signature_message_begin(session, MessageVerify)
    })
}

/// `C_VerifyMessageNext` (PKCS#11 3.2 §5.16.4)
#[unsafe(no_mangle)]
pub extern "C" fn C_VerifyMessageNext(
    session: CK_SESSION_HANDLE,
    _parameter: Given<'_, c_void>,
    parameter_length: CK_ULONG,
    data: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    signature: Given<'_, CK_BYTE>,
    signature_length: CK_ULONG,
) -> CK_RV {
    let (data, last) = ((data, length), !signature.is_null());
    // Without a signature more data is to follow, whatever its length is said to be.
    let signature = (signature, if last { signature_length } else { 0 });
    let function = Function::VerifyMessageNext;
    check(function, session, data, signature, |engine, session, data, signature| {
        no_parameter(engine, session, MessageVerify, parameter_length)?;
        engine.verify_message_next(session, data, last.then_some(signature))
    })
}

/// `C_MessageVerifyFinal` (PKCS#11 3.2 §5.16.5)
#[unsafe(no_mangle)]
pub extern "C" fn C_MessageVerifyFinal(session: CK_SESSION_HANDLE) -> CK_RV {
    finish(Function::MessageVerifyFinal, session, MessageVerify)
}

/// A message that is signed has no parameter of its own: `C_MessageSignInit` takes its mechanism's.
fn no_parameter(
    engine: &Engine,
    session: SessionHandle,
    kind: OperationKind,
    length: CK_ULONG,
) -> Result<()> {
    if length == 0 {
        return Ok(());
    }
    engine.fail_active(session, &[kind]);
    Err(Error::MECHANISM_PARAM_INVALID)
}

fn finish(function: Function, session: CK_SESSION_HANDLE, kind: OperationKind) -> CK_RV {
    enter_session(function, session, |engine, _, session| engine.message_final(session, kind))
}
