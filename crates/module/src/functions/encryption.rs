// SPDX-License-Identifier: Apache-2.0
//! Encryption functions.

use super::call::{begin, finish, transform};
use crate::decode::Given;
use metaslot_ck::*;
use metaslot_spi::provider::Direction;

/// `C_EncryptInit` (PKCS#11 3.2 §5.8.1)
#[unsafe(no_mangle)]
pub extern "C" fn C_EncryptInit(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    begin(
        Function::EncryptInit,
        session,
        mechanism,
        key,
        |engine, session, mechanism, params, key| {
            engine.cipher_init(Direction::Forward, session, mechanism, params, key)
        },
    )
}

/// `C_Encrypt` (PKCS#11 3.2 §5.8.2)
#[unsafe(no_mangle)]
pub extern "C" fn C_Encrypt(
    session: CK_SESSION_HANDLE,
    data: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    transform(
        Function::Encrypt,
        session,
        (data, length),
        (out, out_length),
        |engine, session, data, out| engine.cipher(Direction::Forward, session, data, out),
    )
}

/// `C_EncryptUpdate` (PKCS#11 3.2 §5.8.3)
#[unsafe(no_mangle)]
pub extern "C" fn C_EncryptUpdate(
    session: CK_SESSION_HANDLE,
    part: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    transform(
        Function::EncryptUpdate,
        session,
        (part, length),
        (out, out_length),
        |engine, session, part, out| engine.cipher_update(Direction::Forward, session, part, out),
    )
}

/// `C_EncryptFinal` (PKCS#11 3.2 §5.8.4)
#[unsafe(no_mangle)]
pub extern "C" fn C_EncryptFinal(
    session: CK_SESSION_HANDLE,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    finish(Function::EncryptFinal, session, (out, out_length), |engine, session, out| {
        engine.cipher_final(Direction::Forward, session, out)
    })
}
