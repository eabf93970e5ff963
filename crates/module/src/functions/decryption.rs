// SPDX-License-Identifier: Apache-2.0
//! Decryption functions.

use super::call::{begin, finish, transform};
use crate::decode::Given;
use metaslot_ck::*;
use metaslot_spi::provider::Direction;

/// `C_DecryptInit` (PKCS#11 3.2 §5.10.1)
#[unsafe(no_mangle)]
pub extern "C" fn C_DecryptInit(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    begin(
        Function::DecryptInit,
        session,
        mechanism,
        key,
        |engine, session, mechanism, params, key| {
            engine.cipher_init(Direction::Backward, session, mechanism, params, key)
        },
    )
}

/// `C_Decrypt` (PKCS#11 3.2 §5.10.2)
#[unsafe(no_mangle)]
pub extern "C" fn C_Decrypt(
    session: CK_SESSION_HANDLE,
    data: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    transform(
        Function::Decrypt,
        session,
        (data, length),
        (out, out_length),
        |engine, session, data, out| engine.cipher(Direction::Backward, session, data, out),
    )
}

/// `C_DecryptUpdate` (PKCS#11 3.2 §5.10.3)
#[unsafe(no_mangle)]
pub extern "C" fn C_DecryptUpdate(
    session: CK_SESSION_HANDLE,
    part: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    transform(
        Function::DecryptUpdate,
        session,
        (part, length),
        (out, out_length),
        |engine, session, part, out| engine.cipher_update(Direction::Backward, session, part, out),
    )
}

/// `C_DecryptFinal` (PKCS#11 3.2 §5.10.4)
#[unsafe(no_mangle)]
pub extern "C" fn C_DecryptFinal(
    session: CK_SESSION_HANDLE,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    finish(Function::DecryptFinal, session, (out, out_length), |engine, session, out| {
        engine.cipher_final(Direction::Backward, session, out)
    })
}
