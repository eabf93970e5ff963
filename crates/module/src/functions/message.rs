// SPDX-License-Identifier: Apache-2.0
//! Message-based functions (chapters 5.9, 5.11, 5.14 and 5.16). None is served yet.

use crate::decode::Given;
use crate::enter::unserved;
use metaslot_ck::*;
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

/// `C_MessageSignInit` (PKCS#11 3.2 §5.14)
#[unsafe(no_mangle)]
pub extern "C" fn C_MessageSignInit(
    _session: CK_SESSION_HANDLE,
    _mechanism: Given<'_, CK_MECHANISM>,
    _key: CK_OBJECT_HANDLE,
) -> CK_RV {
    unserved(Function::MessageSignInit)
}

/// `C_SignMessage` (PKCS#11 3.2 §5.14)
#[unsafe(no_mangle)]
pub extern "C" fn C_SignMessage(
    _session: CK_SESSION_HANDLE,
    _parameter: Given<'_, c_void>,
    _parameter_length: CK_ULONG,
    _data: Given<'_, CK_BYTE>,
    _length: CK_ULONG,
    _out: Given<'_, CK_BYTE>,
    _out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    unserved(Function::SignMessage)
}

/// `C_SignMessageBegin` (PKCS#11 3.2 §5.14)
#[unsafe(no_mangle)]
pub extern "C" fn C_SignMessageBegin(
    _session: CK_SESSION_HANDLE,
    _parameter: Given<'_, c_void>,
    _parameter_length: CK_ULONG,
) -> CK_RV {
    unserved(Function::SignMessageBegin)
}

/// `C_SignMessageNext` (PKCS#11 3.2 §5.14)
#[unsafe(no_mangle)]
pub extern "C" fn C_SignMessageNext(
    _session: CK_SESSION_HANDLE,
    _parameter: Given<'_, c_void>,
    _parameter_length: CK_ULONG,
    _data: Given<'_, CK_BYTE>,
    _length: CK_ULONG,
    _out: Given<'_, CK_BYTE>,
    _out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    unserved(Function::SignMessageNext)
}

/// `C_MessageSignFinal` (PKCS#11 3.2 §5.14)
#[unsafe(no_mangle)]
pub extern "C" fn C_MessageSignFinal(_session: CK_SESSION_HANDLE) -> CK_RV {
    unserved(Function::MessageSignFinal)
}

/// `C_MessageVerifyInit` (PKCS#11 3.2 §5.16)
#[unsafe(no_mangle)]
pub extern "C" fn C_MessageVerifyInit(
    _session: CK_SESSION_HANDLE,
    _mechanism: Given<'_, CK_MECHANISM>,
    _key: CK_OBJECT_HANDLE,
) -> CK_RV {
    unserved(Function::MessageVerifyInit)
}

/// `C_VerifyMessage` (PKCS#11 3.2 §5.16)
#[unsafe(no_mangle)]
pub extern "C" fn C_VerifyMessage(
    _session: CK_SESSION_HANDLE,
    _parameter: Given<'_, c_void>,
    _parameter_length: CK_ULONG,
    _data: Given<'_, CK_BYTE>,
    _length: CK_ULONG,
    _signature: Given<'_, CK_BYTE>,
    _signature_length: CK_ULONG,
) -> CK_RV {
    unserved(Function::VerifyMessage)
}

/// `C_VerifyMessageBegin` (PKCS#11 3.2 §5.16)
#[unsafe(no_mangle)]
pub extern "C" fn C_VerifyMessageBegin(
    _session: CK_SESSION_HANDLE,
    _parameter: Given<'_, c_void>,
    _parameter_length: CK_ULONG,
) -> CK_RV {
    unserved(Function::VerifyMessageBegin)
}

/// `C_VerifyMessageNext` (PKCS#11 3.2 §5.16)
#[unsafe(no_mangle)]
pub extern "C" fn C_VerifyMessageNext(
    _session: CK_SESSION_HANDLE,
    _parameter: Given<'_, c_void>,
    _parameter_length: CK_ULONG,
    _data: Given<'_, CK_BYTE>,
    _length: CK_ULONG,
    _signature: Given<'_, CK_BYTE>,
    _signature_length: CK_ULONG,
) -> CK_RV {
    unserved(Function::VerifyMessageNext)
}

/// `C_MessageVerifyFinal` (PKCS#11 3.2 §5.16)
#[unsafe(no_mangle)]
pub extern "C" fn C_MessageVerifyFinal(_session: CK_SESSION_HANDLE) -> CK_RV {
    unserved(Function::MessageVerifyFinal)
}
