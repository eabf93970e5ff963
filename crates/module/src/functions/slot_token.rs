// SPDX-License-Identifier: Apache-2.0
//! Slot and token management functions.

use crate::decode::{Caller, Given};
use crate::enter::{enter, enter_audited, enter_counted, enter_library};
use crate::library::Library;
use crate::process;
use metaslot_ck::*;
use metaslot_counters as counters;
use metaslot_wiring::audit::{Act, Log, audited};
use metaslot_wiring::text::{self, padded};
use metaslot_wiring::version;
use std::ffi::c_void;
use std::time::Duration;

/// `C_GetSlotList` (PKCS#11 3.2 §5.5)
#[unsafe(no_mangle)]
pub extern "C" fn C_GetSlotList(
    token_present: CK_BBOOL,
    list: Given<'_, CK_SLOT_ID>,
    count: Given<'_, CK_ULONG>,
) -> CK_RV {
    enter(Function::GetSlotList, |engine, caller| {
        let slots: Vec<_> =
            engine.slot_list(token_present != CK_FALSE).map(|slot| slot.0).collect();
        caller.list(&slots, list, count)
    })
}

/// `C_GetSlotInfo` (PKCS#11 3.2 §5.5)
#[unsafe(no_mangle)]
pub extern "C" fn C_GetSlotInfo(slot: CK_SLOT_ID, info: Given<'_, CK_SLOT_INFO>) -> CK_RV {
    enter(Function::GetSlotInfo, |engine, caller| {
        let place = caller.place(info)?;
        let slot = engine.slot_info(SlotId(slot))?;
        place.set(CK_SLOT_INFO {
            slotDescription: padded(&slot.description),
            manufacturerID: padded(version::MANUFACTURER),
            flags: slot.flags,
            hardwareVersion: version::NONE,
            firmwareVersion: version::LIBRARY,
        });
        Ok(())
    })
}

/// `C_GetTokenInfo` (PKCS#11 3.2 §5.5)
#[unsafe(no_mangle)]
pub extern "C" fn C_GetTokenInfo(slot: CK_SLOT_ID, info: Given<'_, CK_TOKEN_INFO>) -> CK_RV {
    enter(Function::GetTokenInfo, |engine, caller| {
        let place = caller.place(info)?;
        let token = engine.token_info(SlotId(slot))?;
        let other = token.other.as_ref();
        let manufacturer = other.map_or(version::MANUFACTURER, |other| other.manufacturer.as_str());
        place.set(CK_TOKEN_INFO {
            label: padded(&token.label),
            manufacturerID: padded(manufacturer),
            model: padded(other.map_or("Metaslot", |other| other.model.as_str())),
            serialNumber: padded(&token.serial),
            flags: token.flags,
            ulMaxSessionCount: token.sessions.0,
            ulSessionCount: token.sessions.1,
            ulMaxRwSessionCount: token.sessions.0,
            ulRwSessionCount: token.write_sessions,
            ulMaxPinLen: token.pin_length.1,
            ulMinPinLen: token.pin_length.0,
            ulTotalPublicMemory: UNAVAILABLE,
            ulFreePublicMemory: UNAVAILABLE,
            ulTotalPrivateMemory: UNAVAILABLE,
            ulFreePrivateMemory: UNAVAILABLE,
            hardwareVersion: version::NONE,
            firmwareVersion: version::LIBRARY,
            utcTime: padded(""),
        });
        Ok(())
    })
}

/// How often a caller that waits looks whether a token of another module came or went: modules tell it to those only
/// who ask.
const LOOK: Duration = Duration::from_millis(500);

/// `C_WaitForSlotEvent` (PKCS#11 3.2 §5.5). Without other modules there is only the end to wait for.
#[unsafe(no_mangle)]
pub extern "C" fn C_WaitForSlotEvent(
    flags: CK_FLAGS,
    mut slot: Given<'_, CK_SLOT_ID>,
    reserved: Given<'_, c_void>,
) -> CK_RV {
    let mut waited = false;
    let rv = loop {
        let mut waits = None;
        let slot = slot.reborrow();
        let call = |library: &Library, caller: Caller<'_>| {
            let place = caller.place(slot)?;
            if !reserved.is_null() {
                return Err(Error::ARGUMENTS_BAD);
            }
            let engine = library.engine()?;
            if let Some(changed) = engine.slot_event() {
                place.set(changed.0);
                return Ok(());
            }
            if flags & CKF_DONT_BLOCK != 0 {
                return Err(Error::NO_EVENT);
            }
            waits = Some((library.epoch(), engine.slots_change().then_some(LOOK)));
            Ok(())
        };
        // Each look is a part of one call.
        let rv = enter_counted(call, |_, _| ());
        let Some((epoch, patience)) = waits else { break rv };
        waited = true;
        if process::wait_for_end(epoch, patience) {
            break CKR_CRYPTOKI_NOT_INITIALIZED;
        }
    };
    if waited || rv != CKR_CRYPTOKI_NOT_INITIALIZED {
        counters::call(Function::WaitForSlotEvent, rv);
    }
    rv
}

/// `C_GetMechanismList` (PKCS#11 3.2 §5.5)
#[unsafe(no_mangle)]
pub extern "C" fn C_GetMechanismList(
    slot: CK_SLOT_ID,
    list: Given<'_, CK_MECHANISM_TYPE>,
    count: Given<'_, CK_ULONG>,
) -> CK_RV {
    enter(Function::GetMechanismList, |engine, caller| {
        let mechanisms = engine.mechanism_list(SlotId(slot))?;
        caller.list(&mechanisms, list, count)
    })
}

/// `C_GetMechanismInfo` (PKCS#11 3.2 §5.5)
#[unsafe(no_mangle)]
pub extern "C" fn C_GetMechanismInfo(
    slot: CK_SLOT_ID,
    mechanism: CK_MECHANISM_TYPE,
    info: Given<'_, CK_MECHANISM_INFO>,
) -> CK_RV {
    enter(Function::GetMechanismInfo, |engine, caller| {
        let place = caller.place(info)?;
        let (min, max, flags) = engine.mechanism_info(SlotId(slot), mechanism)?;
        place.set(CK_MECHANISM_INFO { ulMinKeySize: min, ulMaxKeySize: max, flags });
        Ok(())
    })
}

/// `C_InitToken` (PKCS#11 3.2 §5.5)
#[unsafe(no_mangle)]
pub extern "C" fn C_InitToken(
    slot: CK_SLOT_ID,
    pin: Given<'_, CK_UTF8CHAR>,
    pin_length: CK_ULONG,
    label: Given<'_, CK_UTF8CHAR>,
) -> CK_RV {
    enter_library(Function::InitToken, |library, caller| {
        let engine = library.engine()?;
        let pin = caller.pin(pin, pin_length)?;
        let label = text::label(caller.bytes(label, text::LABEL)?)?;
        let place = |log: &Log| log.renamed(SlotId(slot), &label);
        audited(library.log(), Act::of(Function::InitToken), place, |_| {
            engine.init_token(SlotId(slot), pin.expose(), &label)
        })
    })
}

/// `C_InitPIN` (PKCS#11 3.2 §5.5)
#[unsafe(no_mangle)]
pub extern "C" fn C_InitPIN(
    session: CK_SESSION_HANDLE,
    pin: Given<'_, CK_UTF8CHAR>,
    pin_length: CK_ULONG,
) -> CK_RV {
    enter_audited(Function::InitPIN, session, |engine, caller, session, _| {
        let pin = caller.pin(pin, pin_length)?;
        engine.init_pin(session, pin.expose())
    })
}

/// `C_SetPIN` (PKCS#11 3.2 §5.5)
#[unsafe(no_mangle)]
pub extern "C" fn C_SetPIN(
    session: CK_SESSION_HANDLE,
    old: Given<'_, CK_UTF8CHAR>,
    old_length: CK_ULONG,
    new: Given<'_, CK_UTF8CHAR>,
    new_length: CK_ULONG,
) -> CK_RV {
    enter_audited(Function::SetPIN, session, |engine, caller, session, _| {
        let old = caller.pin(old, old_length)?;
        let new = caller.pin(new, new_length)?;
        engine.set_pin(session, old.expose(), new.expose())
    })
}
