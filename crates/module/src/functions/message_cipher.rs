// SPDX-License-Identifier: Apache-2.0
//! What the functions that encrypt and decrypt messages have in common: begin, a whole message, one in parts.

use super::call::{Bytes, Room, decoded};
use crate::decode::message::Tag;
use crate::decode::{Caller, Given, check_room};
use crate::enter::enter_session;
use metaslot_ck::*;
use metaslot_engine::OperationKind;
use metaslot_spi::provider::Direction;
use std::ffi::c_void;

/// The parameter of a message: where, and how long.
pub(super) type Parameter<'a> = (Given<'a, c_void>, CK_ULONG);

const fn tag(direction: Direction) -> Tag {
    match direction {
        Direction::Forward => Tag::Made,
        Direction::Backward => Tag::Given,
    }
}

/// `C_MessageEncryptInit`, `C_MessageDecryptInit`
pub(super) fn init(
    direction: Direction,
    function: Function,
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    enter_session(function, session, |engine, caller, session| {
        if mechanism.is_null() {
            return engine.cancel_active(session, OperationKind::of(function));
        }
        let (mechanism, message) = caller.message_mechanism(mechanism)?;
        engine.message_cipher_init(direction, session, mechanism, &message, ObjectHandle(key))
    })
}

/// `C_EncryptMessage`, `C_DecryptMessage`
pub(super) fn whole(
    direction: Direction,
    function: Function,
    session: CK_SESSION_HANDLE,
    parameter: Parameter<'_>,
    aad: Bytes<'_>,
    data: Bytes<'_>,
    out: Room<'_>,
) -> CK_RV {
    enter_session(function, session, |engine, caller, session| {
        let shape = engine.message_shape(direction, session)?;
        let arguments = caller.output(out.0, out.1).and_then(|output| {
            let at = caller.message(parameter, shape, tag(direction))?;
            let aad = caller.input(aad.0, aad.1, &output)?;
            check_room(aad.len())?;
            let data = caller.input(data.0, data.1, &output)?;
            Ok((output, at, aad, data))
        });
        let (output, mut at, aad, data) = decoded(engine, session, function, arguments)?;
        let asked = output.is_asked();
        output.fill(|out| {
            engine.cipher_message(direction, session, &mut at.message, (&aad, &data), out)
        })?;
        if asked || direction == Direction::Backward {
            return Ok(());
        }
        at.put_iv(caller)?;
        at.put_tag(caller)
    })
}

/// `C_EncryptMessageBegin`, `C_DecryptMessageBegin`
pub(super) fn begin(
    direction: Direction,
    function: Function,
    session: CK_SESSION_HANDLE,
    parameter: Parameter<'_>,
    aad: Bytes<'_>,
) -> CK_RV {
    enter_session(function, session, |engine, caller, session| {
        let shape = engine.message_shape(direction, session)?;
        let arguments = caller
            .message(parameter, shape, Tag::Later)
            .and_then(|at| Ok((at, caller.bytes(aad.0, aad.1)?)))
            .and_then(|(at, aad)| check_room(aad.len()).map(|()| (at, aad)));
        let (mut at, aad) = decoded(engine, session, function, arguments)?;
        engine.cipher_message_begin(direction, session, &mut at.message, aad)?;
        if direction == Direction::Forward { at.put_iv(caller) } else { Ok(()) }
    })
}

/// `C_EncryptMessageNext`, `C_DecryptMessageNext`; with its parameter the last part.
pub(super) fn next(
    direction: Direction,
    function: Function,
    session: CK_SESSION_HANDLE,
    parameter: Option<Parameter<'_>>,
    part: Bytes<'_>,
    out: Room<'_>,
) -> CK_RV {
    enter_session(function, session, |engine, caller: Caller<'_>, session| {
        let shape = engine.message_shape(direction, session)?;
        let arguments = caller.output(out.0, out.1).and_then(|output| {
            let message = |parameter| caller.message(parameter, shape, tag(direction));
            let at = parameter.map(message).transpose()?;
            Ok((caller.input(part.0, part.1, &output)?, output, at))
        });
        let (part, output, mut at) = decoded(engine, session, function, arguments)?;
        let asked = output.is_asked();
        output.fill(|out| {
            let tag = at.as_mut().map(|at| &mut at.message.tag[..]);
            engine.cipher_message_next(direction, session, &part, tag, out)
        })?;
        match at {
            Some(at) if !asked && direction == Direction::Forward => at.put_tag(caller),
            _ => Ok(()),
        }
    })
}
