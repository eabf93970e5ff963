// SPDX-License-Identifier: Apache-2.0
//! Session management functions.

use crate::decode::{Caller, Given};
use crate::enter::{enter, enter_audited, enter_session};
use metaslot_ck::*;
use metaslot_engine::Engine;
use metaslot_spi::store::Name;
use std::ffi::c_void;

/// `C_OpenSession` (PKCS#11 3.2 §5.6)
#[unsafe(no_mangle)]
pub extern "C" fn C_OpenSession(
    slot: CK_SLOT_ID,
    flags: CK_FLAGS,
    application: Given<'_, c_void>,
    notify: CK_NOTIFY,
    session: Given<'_, CK_SESSION_HANDLE>,
) -> CK_RV {
    enter(Function::OpenSession, |engine, caller| {
        // No function here ever calls back, so these are not kept.
        let _ = (application, notify);
        let place = caller.place(session)?;
        place.set(engine.open_session(SlotId(slot), flags)?.0);
        Ok(())
    })
}

/// `C_CloseSession` (PKCS#11 3.2 §5.6)
#[unsafe(no_mangle)]
pub extern "C" fn C_CloseSession(session: CK_SESSION_HANDLE) -> CK_RV {
    enter_session(Function::CloseSession, session, |engine, _, session| {
        engine.close_session(session)
    })
}

/// `C_CloseAllSessions` (PKCS#11 3.2 §5.6)
#[unsafe(no_mangle)]
pub extern "C" fn C_CloseAllSessions(slot: CK_SLOT_ID) -> CK_RV {
    enter(Function::CloseAllSessions, |engine, _| engine.close_all_sessions(SlotId(slot)))
}

/// `C_GetSessionInfo` (PKCS#11 3.2 §5.6)
#[unsafe(no_mangle)]
pub extern "C" fn C_GetSessionInfo(
    session: CK_SESSION_HANDLE,
    info: Given<'_, CK_SESSION_INFO>,
) -> CK_RV {
    enter_session(Function::GetSessionInfo, session, |engine, caller, session| {
        let place = caller.place(info)?;
        let session = engine.session_info(session)?;
        place.set(CK_SESSION_INFO {
            slotID: session.slot.0,
            state: session.state,
            flags: session.flags,
            ulDeviceError: 0,
        });
        Ok(())
    })
}

/// `C_SessionCancel` (PKCS#11 3.2 §5.6)
#[unsafe(no_mangle)]
pub extern "C" fn C_SessionCancel(session: CK_SESSION_HANDLE, flags: CK_FLAGS) -> CK_RV {
    enter_session(Function::SessionCancel, session, |engine, _, session| {
        engine.session_cancel(session, flags)
    })
}

/// `C_GetOperationState` (PKCS#11 3.2 §5.6)
#[unsafe(no_mangle)]
pub extern "C" fn C_GetOperationState(
    session: CK_SESSION_HANDLE,
    state: Given<'_, CK_BYTE>,
    length: Given<'_, CK_ULONG>,
) -> CK_RV {
    enter_session(Function::GetOperationState, session, |engine, caller, session| {
        if length.is_null() {
            return Err(Error::ARGUMENTS_BAD);
        }
        let saved = engine.operation_state(session)?;
        caller.list(saved.expose(), state, length)
    })
}

/// `C_SetOperationState` (PKCS#11 3.2 §5.6)
#[unsafe(no_mangle)]
pub extern "C" fn C_SetOperationState(
    session: CK_SESSION_HANDLE,
    state: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    encryption_key: CK_OBJECT_HANDLE,
    authentication_key: CK_OBJECT_HANDLE,
) -> CK_RV {
    enter_session(Function::SetOperationState, session, |engine, caller, session| {
        if state.is_null() {
            return Err(Error::ARGUMENTS_BAD);
        }
        let state = caller.bytes(state, length)?;
        engine.set_operation_state(
            session,
            state,
            ObjectHandle(encryption_key),
            ObjectHandle(authentication_key),
        )
    })
}

/// `C_Login` (PKCS#11 3.2 §5.6)
#[unsafe(no_mangle)]
pub extern "C" fn C_Login(
    session: CK_SESSION_HANDLE,
    user: CK_USER_TYPE,
    pin: Given<'_, CK_UTF8CHAR>,
    pin_length: CK_ULONG,
) -> CK_RV {
    enter_audited(Function::Login, session, |engine, caller, session, note| {
        note.user(user);
        login(engine, caller, session, user, (pin, pin_length))
    })
}

fn login<'a>(
    engine: &Engine,
    caller: Caller<'a>,
    session: SessionHandle,
    user: CK_USER_TYPE,
    (pin, pin_length): (Given<'a, CK_UTF8CHAR>, CK_ULONG),
) -> Result<()> {
    if pin.is_null() {
        return engine.login_without_pin(session, user);
    }
    let pin = caller.pin(pin, pin_length)?;
    engine.login(session, user, pin.expose())
}

/// `C_LoginUser` (PKCS#11 3.2 §5.6)
#[unsafe(no_mangle)]
pub extern "C" fn C_LoginUser(
    session: CK_SESSION_HANDLE,
    user: CK_USER_TYPE,
    pin: Given<'_, CK_UTF8CHAR>,
    pin_length: CK_ULONG,
    name: Given<'_, CK_UTF8CHAR>,
    name_length: CK_ULONG,
) -> CK_RV {
    enter_audited(Function::LoginUser, session, |engine, caller, session, note| {
        note.user(user);
        engine.session_info(session)?;
        let name = caller.bytes(name, name_length)?;
        if name.is_empty() {
            return login(engine, caller, session, user, (pin, pin_length));
        }
        let name = Name::of_user(user, name)?;
        note.name(name);
        let pin = caller.pin(pin, pin_length)?;
        engine.login_as(session, name, pin.expose())
    })
}

/// `C_Logout` (PKCS#11 3.2 §5.6)
#[unsafe(no_mangle)]
pub extern "C" fn C_Logout(session: CK_SESSION_HANDLE) -> CK_RV {
    enter_audited(Function::Logout, session, |engine, _, session, _| engine.logout(session))
}

/// `C_GetSessionValidationFlags` (PKCS#11 3.2 §5.6)
#[unsafe(no_mangle)]
pub extern "C" fn C_GetSessionValidationFlags(
    session: CK_SESSION_HANDLE,
    kind: CK_SESSION_VALIDATION_FLAGS_TYPE,
    flags: Given<'_, CK_FLAGS>,
) -> CK_RV {
    enter_session(Function::GetSessionValidationFlags, session, |engine, caller, session| {
        let place = caller.place(flags)?;
        let approved = engine.last_was_approved(session)?;
        // There is no other type (§4.16.3.1), and no code that would say so: none of its flags is set.
        place.set(CK_FLAGS::from(approved && kind == CKS_LAST_VALIDATION_OK));
        Ok(())
    })
}
