// SPDX-License-Identifier: Apache-2.0
//! Message-based functions (chapters 5.9, 5.11, 5.14 and 5.16).

use super::call::{begin, check, transform, update};
use super::message_cipher as cipher;
use crate::decode::Given;
use crate::enter::enter_session;
use metaslot_ck::*;
use metaslot_engine::Engine;
use metaslot_engine::OperationKind::{self, MessageSign, MessageVerify};
use metaslot_spi::provider::Direction::{Backward, Forward};
use std::ffi::c_void;

/// `C_MessageEncryptInit` (PKCS#11 3.2 §5.9.1)
#[unsafe(no_mangle)]
pub extern "C" fn C_MessageEncryptInit(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    cipher::init(Forward, Function::MessageEncryptInit, session, mechanism, key)
}

/// `C_EncryptMessage` (PKCS#11 3.2 §5.9.2)
#[unsafe(no_mangle)]
pub extern "C" fn C_EncryptMessage(
    session: CK_SESSION_HANDLE,
    parameter: Given<'_, c_void>,
    parameter_length: CK_ULONG,
    aad: Given<'_, CK_BYTE>,
    aad_length: CK_ULONG,
    data: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    let parameter = (parameter, parameter_length);
    let (aad, data, out) = ((aad, aad_length), (data, length), (out, out_length));
    cipher::whole(Forward, Function::EncryptMessage, session, parameter, aad, data, out)
}

/// `C_EncryptMessageBegin` (PKCS#11 3.2 §5.9.3)
#[unsafe(no_mangle)]
pub extern "C" fn C_EncryptMessageBegin(
    session: CK_SESSION_HANDLE,
    parameter: Given<'_, c_void>,
    parameter_length: CK_ULONG,
    aad: Given<'_, CK_BYTE>,
    aad_length: CK_ULONG,
) -> CK_RV {
    let (parameter, aad) = ((parameter, parameter_length), (aad, aad_length));
    cipher::begin(Forward, Function::EncryptMessageBegin, session, parameter, aad)
}

/// `C_EncryptMessageNext` (PKCS#11 3.2 §5.9.4)
#[unsafe(no_mangle)]
pub extern "C" fn C_EncryptMessageNext(
    session: CK_SESSION_HANDLE,
    parameter: Given<'_, c_void>,
    parameter_length: CK_ULONG,
    part: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
    flags: CK_FLAGS,
) -> CK_RV {
    let parameter = (flags & CKF_END_OF_MESSAGE != 0).then_some((parameter, parameter_length));
    let (part, out) = ((part, length), (out, out_length));
    cipher::next(Forward, Function::EncryptMessageNext, session, parameter, part, out)
}

/// `C_MessageEncryptFinal` (PKCS#11 3.2 §5.9.5)
#[unsafe(no_mangle)]
pub extern "C" fn C_MessageEncryptFinal(session: CK_SESSION_HANDLE) -> CK_RV {
    finish(Function::MessageEncryptFinal, session, OperationKind::MessageEncrypt)
}

/// `C_MessageDecryptInit` (PKCS#11 3.2 §5.11.1)
#[unsafe(no_mangle)]
pub extern "C" fn C_MessageDecryptInit(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    cipher::init(Backward, Function::MessageDecryptInit, session, mechanism, key)
}

/// `C_DecryptMessage` (PKCS#11 3.2 §5.11.2)
#[unsafe(no_mangle)]
pub extern "C" fn C_DecryptMessage(
    session: CK_SESSION_HANDLE,
    parameter: Given<'_, c_void>,
    parameter_length: CK_ULONG,
    aad: Given<'_, CK_BYTE>,
    aad_length: CK_ULONG,
    data: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    let parameter = (parameter, parameter_length);
    let (aad, data, out) = ((aad, aad_length), (data, length), (out, out_length));
    cipher::whole(Backward, Function::DecryptMessage, session, parameter, aad, data, out)
}

/// `C_DecryptMessageBegin` (PKCS#11 3.2 §5.11.3)
#[unsafe(no_mangle)]
pub extern "C" fn C_DecryptMessageBegin(
    session: CK_SESSION_HANDLE,
    parameter: Given<'_, c_void>,
    parameter_length: CK_ULONG,
    aad: Given<'_, CK_BYTE>,
    aad_length: CK_ULONG,
) -> CK_RV {
    let (parameter, aad) = ((parameter, parameter_length), (aad, aad_length));
    cipher::begin(Backward, Function::DecryptMessageBegin, session, parameter, aad)
}

/// `C_DecryptMessageNext` (PKCS#11 3.2 §5.11.4)
#[unsafe(no_mangle)]
pub extern "C" fn C_DecryptMessageNext(
    session: CK_SESSION_HANDLE,
    parameter: Given<'_, c_void>,
    parameter_length: CK_ULONG,
    part: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
    flags: CK_FLAGS,
) -> CK_RV {
    let parameter = (flags & CKF_END_OF_MESSAGE != 0).then_some((parameter, parameter_length));
    let (part, out) = ((part, length), (out, out_length));
    cipher::next(Backward, Function::DecryptMessageNext, session, parameter, part, out)
}

/// `C_MessageDecryptFinal` (PKCS#11 3.2 §5.11.5)
#[unsafe(no_mangle)]
pub extern "C" fn C_MessageDecryptFinal(session: CK_SESSION_HANDLE) -> CK_RV {
    finish(Function::MessageDecryptFinal, session, OperationKind::MessageDecrypt)
}

/// `C_MessageSignInit` (PKCS#11 3.2 §5.14.1)
#[unsafe(no_mangle)]
pub extern "C" fn C_MessageSignInit(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    let begins = |engine: &Engine, session, mechanism, params, key| {
        let with = (mechanism, params);
        engine.signature_init(MessageSign, session, with, key)
    };
    begin(Function::MessageSignInit, session, mechanism, key, begins)
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
    let begins = |engine: &Engine, session, mechanism, params, key| {
        let with = (mechanism, params);
        engine.signature_init(MessageVerify, session, with, key)
    };
    begin(Function::MessageVerifyInit, session, mechanism, key, begins)
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
