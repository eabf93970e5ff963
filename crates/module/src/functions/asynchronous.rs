// SPDX-License-Identifier: Apache-2.0
//! Asynchronous function management functions.
//!
//! In a session that was opened with `CKF_ASYNC_SESSION`, `C_Sign`, `C_Verify`, `C_VerifySignature`,
//! `C_Encrypt`, `C_Decrypt`, `C_Digest` and `C_DeriveKey` may answer `CKR_PENDING`. Anyone who then calls `C_AsyncComplete` helps to
//! compute what is pending in all sessions.

use crate::decode::{Caller, Given};
use crate::enter::{enter_completion, enter_session};
use metaslot_ck::*;
use metaslot_engine::Room;
use std::ffi::CStr;

/// The functions that may be pending, by the name that the caller gives.
const NAMED: [(&CStr, Function); 7] = [
    (c"C_Sign", Function::Sign),
    (c"C_Verify", Function::Verify),
    (c"C_VerifySignature", Function::VerifySignature),
    (c"C_Encrypt", Function::Encrypt),
    (c"C_Decrypt", Function::Decrypt),
    (c"C_Digest", Function::Digest),
    (c"C_DeriveKey", Function::DeriveKey),
];

/// Which function is meant. Others are never pending.
fn named<'a>(caller: Caller<'a>, name: &Given<'a, CK_UTF8CHAR>) -> Result<Function> {
    if name.is_null() || caller.is_text(name, c"") {
        return Err(Error::ARGUMENTS_BAD);
    }
    let known = NAMED.iter().find(|(known, _)| caller.is_text(name, known));
    known.map(|(_, function)| *function).ok_or(Error::OPERATION_NOT_INITIALIZED)
}

/// `C_AsyncComplete` (PKCS#11 3.2)
#[unsafe(no_mangle)]
pub extern "C" fn C_AsyncComplete(
    session: CK_SESSION_HANDLE,
    function: Given<'_, CK_UTF8CHAR>,
    result: Given<'_, CK_ASYNC_DATA>,
) -> CK_RV {
    // There is no other place for a key, which is not made before there is one.
    let nowhere = result.is_null();
    let named = |caller: Caller<'_>| match named(caller, &function)? {
        Function::DeriveKey if nowhere => Err(Error::ARGUMENTS_BAD),
        named => Ok(named),
    };
    enter_completion(session, named, |engine, caller, session, function, note| {
        if function == Function::DeriveKey {
            let place = caller.place(result)?;
            let (mechanism, key) = engine.derived_key(session)?;
            note.mechanism(mechanism);
            note.object(engine, session, "object", key);
            place.set(data(Room::default(), key));
            return Ok(());
        }
        // Where there is nothing to say but the code, the caller may pass NULL.
        let place = if result.is_null() { None } else { Some(caller.place(result)?) };
        let mut given = None;
        let complete = engine.async_complete(session, function, |room| {
            given = Some(room);
            // SAFETY: the engine kept it when the operation began to be pending, forgets it now, and opens it once.
            unsafe { caller.room(room) }
        });
        if let (Some(place), Some(room)) = (place, complete.ok().or(given)) {
            let length = if complete.is_ok() { room.length } else { 0 };
            place.set(data(Room { length, ..room }, ObjectHandle(CK_INVALID_HANDLE)));
        }
        complete.map(drop)
    })
}

/// What came out: in the caller's room, or an object.
fn data(room: Room, object: ObjectHandle) -> CK_ASYNC_DATA {
    CK_ASYNC_DATA {
        ulVersion: 0,
        pValue: std::ptr::with_exposed_provenance_mut(room.address),
        ulValue: room.length as CK_ULONG,
        hObject: object.0,
        hAdditionalObject: CK_INVALID_HANDLE,
    }
}

/// `C_AsyncGetID` (PKCS#11 3.2): nothing outlives its session here.
#[unsafe(no_mangle)]
pub extern "C" fn C_AsyncGetID(
    session: CK_SESSION_HANDLE,
    function: Given<'_, CK_UTF8CHAR>,
    id: Given<'_, CK_ULONG>,
) -> CK_RV {
    enter_session(Function::AsyncGetID, session, |engine, caller, session| {
        caller.place(id)?;
        let pending = engine.is_pending(session, named(caller, &function)?)?;
        Err(if pending { Error::STATE_UNSAVEABLE } else { Error::OPERATION_NOT_INITIALIZED })
    })
}

/// `C_AsyncJoin` (PKCS#11 3.2): no identifier was ever given, so none is valid.
#[unsafe(no_mangle)]
pub extern "C" fn C_AsyncJoin(
    session: CK_SESSION_HANDLE,
    function: Given<'_, CK_UTF8CHAR>,
    _id: CK_ULONG,
    _data: Given<'_, CK_BYTE>,
    _length: CK_ULONG,
) -> CK_RV {
    enter_session(Function::AsyncJoin, session, |_, caller, _| {
        // Nor for a function that is never pending.
        let bad = named(caller, &function) == Err(Error::ARGUMENTS_BAD);
        Err(if bad { Error::ARGUMENTS_BAD } else { Error::SAVED_STATE_INVALID })
    })
}
