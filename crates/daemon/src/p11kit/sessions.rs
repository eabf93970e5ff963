// SPDX-License-Identifier: Apache-2.0
//! Sessions, login, and random numbers.

use super::arguments::Room;
use super::connection::Asked;
use super::door;
use super::frame::LONGEST;
use crate::allowance::Allowance;
use crate::tokens::Client;
use metaslot_ck::*;
use metaslot_client::Message;
use metaslot_spi::store::Name;

/// `C_OpenSession` (PKCS#11 3.2 §5.6)
pub(super) fn open(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (slot, flags) = (asked.slot()?, asked.request.number()?);
    asked.request.end()?;
    if flags & CKF_ASYNC_SESSION != 0 {
        return Err(Error::SESSION_ASYNC_NOT_SUPPORTED);
    }
    let room = asked.connection.kept.room_for_session()?;
    let session = asked.connection.engine.open_session(slot, flags)?;
    asked.connection.kept.opened(session, slot, room);
    asked.answer.number(session.0);
    Ok(())
}

/// `C_CloseSession` (PKCS#11 3.2 §5.6)
pub(super) fn close(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let session = asked.session()?;
    asked.request.end()?;
    asked.connection.kept.closed(session);
    asked.connection.engine.close_session(session)
}

/// `C_CloseAllSessions` (PKCS#11 3.2 §5.6): those of this client.
pub(super) fn close_all(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let slot = asked.slot()?;
    asked.request.end()?;
    asked.connection.engine.slot_info(slot)?;
    asked.connection.close(|one| one == slot)
}

/// `C_GetSessionInfo` (PKCS#11 3.2 §5.6)
pub(super) fn info(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let session = asked.session()?;
    asked.request.end()?;
    let info = asked.connection.engine.session_info(session)?;
    [info.slot.0, info.state, info.flags, 0].into_iter().for_each(|one| asked.answer.number(one));
    Ok(())
}

/// `C_SessionCancel` (PKCS#11 3.2 §5.6)
pub(super) fn cancel(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, flags) = (asked.session()?, asked.request.number()?);
    asked.request.end()?;
    asked.connection.engine.session_cancel(session, flags)?;
    if flags & CKF_FIND_OBJECTS != 0 {
        asked.connection.kept.has_found(session);
    }
    Ok(())
}

/// `C_GetOperationState` (PKCS#11 3.2 §5.6)
pub(super) fn operation_state(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, room) = (asked.session()?, asked.room()?);
    asked.request.end()?;
    let saved = asked.connection.engine.operation_state(session)?;
    match room {
        Room::Of(room) if saved.len() <= room => asked.answer.bytes(Some(saved.expose())),
        _ => asked.answer.absent(saved.len()),
    }
    Ok(())
}

/// `C_SetOperationState` (PKCS#11 3.2 §5.6)
pub(super) fn set_operation_state(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let session = asked.session()?;
    let state = asked.optional()?.ok_or(Error::ARGUMENTS_BAD)?;
    let (encryption, authentication) = (asked.object()?, asked.object()?);
    asked.request.end()?;
    let engine = asked.connection.engine;
    engine.set_operation_state(session, state, encryption, authentication)?;
    // What was active is not any more, a search neither.
    asked.connection.kept.has_found(session);
    Ok(())
}

/// `C_InitPIN` (PKCS#11 3.2 §5.5)
pub(super) fn init_pin(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, pin) = (asked.session()?, asked.pin()?);
    asked.request.end()?;
    asked.connection.engine.init_pin(session, pin)
}

/// `C_SetPIN` (PKCS#11 3.2 §5.5)
pub(super) fn set_pin(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, old, new) = (asked.session()?, asked.pin()?, asked.pin()?);
    asked.request.end()?;
    let Client { engine, allowance, .. } = asked.connection.client;
    try_pin(allowance, || engine.set_pin(session, old, new))
}

/// `C_Login` (PKCS#11 3.2 §5.6)
pub(super) fn login(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, user, pin) = user(&mut asked)?;
    asked.request.end()?;
    log_in(&mut asked, session, user, pin)
}

/// `C_LoginUser` (PKCS#11 3.2 §5.6)
pub(super) fn login_user(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, user, pin) = user(&mut asked)?;
    let name = asked.data()?;
    asked.request.end()?;
    if name.is_empty() {
        return log_in(&mut asked, session, user, pin);
    }
    asked.note.user(user);
    let name = Name::of_user(user, name)?;
    asked.note.name(name);
    let pin = pin.ok_or(Error::ARGUMENTS_BAD)?;
    let Client { engine, allowance, .. } = asked.connection.client;
    try_pin(allowance, || engine.login_as(session, name, pin))
}

/// A try of a PIN that may be an identity's. Until it is its turn it waits.
pub(super) fn try_pin<T>(allowance: &Allowance, attempt: impl FnOnce() -> Result<T>) -> Result<T> {
    door::asleep(|| allowance.turn()).attempt(attempt)
}

type User<'m> = (SessionHandle, CK_USER_TYPE, Option<&'m [u8]>);

fn user<'m>(asked: &mut Asked<'m, '_, '_>) -> Result<User<'m>> {
    Ok((asked.session()?, asked.request.number()?, asked.optional_pin()?))
}

fn log_in(
    asked: &mut Asked<'_, '_, '_>,
    session: SessionHandle,
    user: CK_USER_TYPE,
    pin: Option<&[u8]>,
) -> Result<()> {
    let Client { engine, allowance, .. } = asked.connection.client;
    asked.note.user(user);
    match pin {
        Some(pin) if user == CKU_CONTEXT_SPECIFIC => {
            try_pin(allowance, || engine.login(session, user, pin))
        }
        Some(pin) => engine.login(session, user, pin),
        None => engine.login_without_pin(session, user),
    }
}

/// `C_GenerateRandom` (PKCS#11 3.2 §5.19): all that is asked for, or nothing.
pub(super) fn random(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, room) = (asked.session()?, asked.room()?);
    asked.request.end()?;
    let Room::Of(length) = room else {
        asked.answer.bytes(Some(&[]));
        return Ok(());
    };
    if length > LONGEST {
        return Err(Error::HOST_MEMORY);
    }
    asked.connection.kept.under_way(2 * length)?;
    let mut bytes = Message::zeroed(length).ok_or(Error::HOST_MEMORY)?;
    asked.connection.engine.random(session, bytes.as_mut())?;
    asked.answer.bytes(Some(bytes.as_ref()));
    Ok(())
}
