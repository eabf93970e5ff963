// SPDX-License-Identifier: Apache-2.0
//! The library, its slots and its tokens.

use super::connection::Asked;
use super::text::{self, padded, version};
use metaslot_ck::*;
use metaslot_client::protocol::{GREETING, OFFER, OWN, Writer};
use metaslot_engine::TokenInfo;
use metaslot_wiring::version::{LIBRARY, MANUFACTURER, NONE};

/// `C_Initialize` (PKCS#11 3.2 §5.4), with which a client of ours offers a version of the protocol that is our own.
pub(super) fn initialize(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let greeting = asked.data()?;
    let (has_reserved, reserved) = (asked.request.byte()?, asked.data()?);
    asked.request.end()?;
    if greeting != GREETING {
        return Err(Error::GENERAL_ERROR);
    }
    if asked.connection.initialized {
        return Err(Error::CRYPTOKI_ALREADY_INITIALIZED);
    }
    asked.connection.initialized = true;
    let offer = reserved.strip_prefix(OFFER).filter(|_| has_reserved == CK_FALSE);
    if let Some([newest]) = offer {
        let agreed = asked.connection.newest.min(*newest);
        if agreed >= OWN {
            asked.connection.version = agreed;
            asked.answer.byte(agreed);
        }
    }
    Ok(())
}

/// `C_Finalize` (PKCS#11 3.2 §5.4)
pub(super) fn finalize(asked: Asked<'_, '_, '_>) -> Result<()> {
    asked.request.end()?;
    asked.connection.finalize();
    Ok(())
}

/// `C_GetInfo` (PKCS#11 3.2 §5.4)
pub(super) fn info(asked: Asked<'_, '_, '_>) -> Result<()> {
    asked.request.end()?;
    version(asked.answer, text::CRYPTOKI);
    padded::<32>(asked.answer, MANUFACTURER);
    asked.answer.number(0);
    padded::<32>(asked.answer, "Metaslot");
    version(asked.answer, LIBRARY);
    Ok(())
}

/// `C_GetSlotList` (PKCS#11 3.2 §5.5)
pub(super) fn slot_list(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (present, room) = (asked.request.byte()?, asked.room_for_numbers()?);
    asked.request.end()?;
    let slots = asked.connection.engine.slot_list(present != CK_FALSE).map(|slot| slot.0);
    asked.list(room, &slots.collect::<Vec<_>>());
    Ok(())
}

/// `C_GetSlotInfo` (PKCS#11 3.2 §5.5)
pub(super) fn slot_info(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let slot = asked.slot()?;
    asked.request.end()?;
    let slot = asked.connection.engine.slot_info(slot)?;
    padded::<64>(asked.answer, &slot.description);
    padded::<32>(asked.answer, MANUFACTURER);
    asked.answer.number(slot.flags);
    version(asked.answer, NONE);
    version(asked.answer, LIBRARY);
    Ok(())
}

/// `C_GetTokenInfo` (PKCS#11 3.2 §5.5)
pub(super) fn token_info(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let slot = asked.slot()?;
    asked.request.end()?;
    write_token(asked.answer, &asked.connection.engine.token_info(slot)?);
    Ok(())
}

fn write_token(answer: &mut Writer, token: &TokenInfo) {
    let other = token.other.as_ref();
    padded::<32>(answer, &token.label);
    padded::<32>(answer, other.map_or(MANUFACTURER, |other| &other.manufacturer));
    padded::<16>(answer, other.map_or("Metaslot", |other| &other.model));
    padded::<16>(answer, &token.serial);
    let numbers = [
        // Results do not come later here.
        token.flags & !CKF_ASYNC_SESSION_SUPPORTED,
        token.sessions.0,
        token.sessions.1,
        token.sessions.0,
        token.write_sessions,
        token.pin_length.1,
        token.pin_length.0,
        UNAVAILABLE,
        UNAVAILABLE,
        UNAVAILABLE,
        UNAVAILABLE,
    ];
    numbers.into_iter().for_each(|number| answer.number(number));
    version(answer, NONE);
    version(answer, LIBRARY);
    padded::<16>(answer, "");
}

/// `C_GetMechanismList` (PKCS#11 3.2 §5.5)
pub(super) fn mechanism_list(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (slot, room) = (asked.slot()?, asked.room_for_numbers()?);
    asked.request.end()?;
    let mechanisms = asked.connection.engine.mechanism_list(slot)?;
    asked.list(room, &mechanisms);
    Ok(())
}

/// `C_GetMechanismInfo` (PKCS#11 3.2 §5.5)
pub(super) fn mechanism_info(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (slot, mechanism) = (asked.slot()?, asked.request.number()?);
    asked.request.end()?;
    let (least, most, flags) = asked.connection.engine.mechanism_info(slot, mechanism)?;
    [least, most, flags].into_iter().for_each(|number| asked.answer.number(number));
    Ok(())
}

/// `C_InitToken` (PKCS#11 3.2 §5.5)
pub(super) fn init_token(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (slot, pin) = (asked.slot()?, asked.pin()?);
    let label = asked.request.counted()?.ok_or(Error::ARGUMENTS_BAD)?;
    asked.request.end()?;
    asked.connection.engine.init_token(slot, pin, &text::label(label)?)
}

/// `C_WaitForSlotEvent` (PKCS#11 3.2 §5.5), which does not wait.
pub(super) fn slot_event(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let flags = asked.request.number()?;
    asked.request.end()?;
    if flags & CKF_DONT_BLOCK == 0 {
        return Err(Error::FUNCTION_NOT_SUPPORTED);
    }
    let slot = asked.connection.engine.slot_event().ok_or(Error::NO_EVENT)?;
    asked.answer.number(slot.0);
    Ok(())
}
