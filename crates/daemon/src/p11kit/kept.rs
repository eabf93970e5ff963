// SPDX-License-Identifier: Apache-2.0
//! What of a client is in memory: its sessions, what stays in them between its calls, and the messages that are on their way. All
//! of it is taken from what its user may have.

use crate::allowance::{Allowance, Room};
use metaslot_ck::*;
use metaslot_engine::{Answer, Engine, OperationKind};
use metaslot_spi::Value;
use std::collections::BTreeMap;

/// What a session takes, roughly, in bytes.
const SESSION: usize = 1 << 13;
/// What an object takes beside its attributes.
const OBJECT: usize = 1 << 11;
/// What a private key takes beside that: its value, and what is computed of it.
const PRIVATE: usize = 1 << 14;
/// Messages of a connection that are on their way take so much for nothing: who has no room left can still give some back.
const FREE: usize = 1 << 17;
/// What a session has room for beside its operations: of a usual one the parameter is not worth the count.
const LITTLE: usize = 1 << 8;

/// What a client has.
#[derive(Debug)]
pub(super) struct Kept<'e> {
    engine: &'e Engine,
    allowance: &'e Allowance,
    /// By their handles.
    sessions: BTreeMap<u64, (SlotId, Room<'e>)>,
    /// Objects of sessions, by the session and their handle. Some may not be there any more.
    objects: BTreeMap<(u64, u64), Room<'e>>,
    /// Operations that have more than a session has room for, by session and kind. Some may have ended.
    operations: BTreeMap<(u64, u8), Operation<'e>>,
    /// By the session.
    searches: BTreeMap<u64, Room<'e>>,
    /// Of messages on their way: what they take, and the room for what of it is not free.
    on_their_way: (usize, Option<Room<'e>>),
}

/// What an operation has.
#[derive(Debug)]
struct Operation<'e> {
    /// Of its parameter, as long as it lasts; the rest is of its data.
    parameter: usize,
    /// Whether it keeps all data of its parts.
    gathers: bool,
    room: Room<'e>,
}

impl<'e> Kept<'e> {
    pub(super) const fn new(engine: &'e Engine, allowance: &'e Allowance) -> Self {
        Self {
            engine,
            allowance,
            sessions: BTreeMap::new(),
            objects: BTreeMap::new(),
            operations: BTreeMap::new(),
            searches: BTreeMap::new(),
            on_their_way: (0, None),
        }
    }

    /// Room for so much.
    ///
    /// # Errors
    /// `CKR_DEVICE_MEMORY` where the client's user has no more.
    pub(super) fn room(&mut self, bytes: usize) -> Result<Room<'e>> {
        let allowance = self.allowance;
        if let Some(room) = allowance.room(bytes) {
            return Ok(room);
        }
        self.look_again();
        allowance.room(bytes).ok_or(Error::DEVICE_MEMORY)
    }

    /// What is not there any more takes no room.
    fn look_again(&mut self) {
        let Self { engine, sessions, objects, operations, searches, .. } = self;
        sessions.retain(|session, _| {
            let info = engine.session_info(SessionHandle(*session));
            !matches!(info, Err(Error::SESSION_HANDLE_INVALID))
        });
        objects.retain(|&(session, object), _| {
            engine.object(SessionHandle(session), ObjectHandle(object)).is_ok()
        });
        operations.retain(|&(session, kind), _| is_active(engine, session, kind));
        searches.retain(|session, _| sessions.contains_key(session));
    }

    /// So much more is on its way: a request, what is made of it, an answer.
    ///
    /// # Errors
    /// As [`Self::room`].
    pub(super) fn under_way(&mut self, bytes: usize) -> Result<()> {
        let all = self.on_their_way.0.saturating_add(bytes);
        let there = self.on_their_way.1.as_ref().map_or(0, Room::bytes);
        let more = all.saturating_sub(FREE).saturating_sub(there);
        if more > 0 {
            let more = self.room(more)?;
            match &mut self.on_their_way.1 {
                Some(room) => room.join(more),
                none => *none = Some(more),
            }
        }
        self.on_their_way.0 = all;
        Ok(())
    }

    /// What was on its way has arrived.
    pub(super) fn arrived(&mut self) {
        self.on_their_way = (0, None);
    }

    /// Room for a session.
    ///
    /// # Errors
    /// `CKR_SESSION_COUNT` where the client's user has no more.
    pub(super) fn room_for_session(&mut self) -> Result<Room<'e>> {
        self.room(SESSION).map_err(|_| Error::SESSION_COUNT)
    }

    /// A session has been opened.
    pub(super) fn opened(&mut self, session: SessionHandle, slot: SlotId, room: Room<'e>) {
        self.sessions.insert(session.0, (slot, room));
    }

    /// A session of this client.
    pub(super) fn session(&self, handle: u64) -> Result<SessionHandle> {
        match self.sessions.contains_key(&handle) {
            true => Ok(SessionHandle(handle)),
            false => Err(Error::SESSION_HANDLE_INVALID),
        }
    }

    /// How many sessions there are, and objects of sessions.
    pub(super) fn levels(&self) -> [usize; 2] {
        [self.sessions.len(), self.objects.len()]
    }

    /// Those of the slots that are wanted.
    pub(super) fn sessions(&self, wanted: impl Fn(SlotId) -> bool) -> Vec<SessionHandle> {
        let wanted = self.sessions.iter().filter(|(_, (slot, _))| wanted(*slot));
        wanted.map(|(session, _)| SessionHandle(*session)).collect()
    }

    /// A session has been closed, and what was in it is gone.
    pub(super) fn closed(&mut self, session: SessionHandle) {
        self.sessions.remove(&session.0);
        self.searches.remove(&session.0);
        self.objects.extract_if((session.0, 0)..=(session.0, u64::MAX), |_, _| true).for_each(drop);
        let its_own = (session.0, 0)..=(session.0, u8::MAX);
        self.operations.extract_if(its_own, |_, _| true).for_each(drop);
    }

    /// Room for objects that are made of a request of this length, so many of them; none of it for what will be the token's.
    ///
    /// # Errors
    /// As [`Self::room`].
    pub(super) fn room_for_objects(&mut self, length: usize, count: usize) -> Result<Room<'e>> {
        self.room(count.saturating_mul(OBJECT + PRIVATE).saturating_add(length))
    }

    /// An object has been made or changed in the room that there was for it: if it is one of the session, it is kept here.
    pub(super) fn made(&mut self, session: SessionHandle, made: ObjectHandle, is_kept_here: bool) {
        self.objects.remove(&(session.0, made.0));
        if is_kept_here && let Ok(size) = self.engine.object_size(session, made) {
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            let size = size.saturating_add(self.secret_size(session, made)).saturating_add(OBJECT);
            self.objects.insert((session.0, made.0), self.allowance.of_what_is(size));
        }
    }

    /// The session in which an object was made; this one where that is not known.
    pub(super) fn session_of(&self, session: SessionHandle, object: ObjectHandle) -> SessionHandle {
        if self.objects.contains_key(&(session.0, object.0)) {
            return session;
        }
        let made = self.objects.keys().find(|(_, one)| *one == object.0);
        made.map_or(session, |(session, _)| SessionHandle(*session))
    }

    /// What the value of a key takes that is no attribute. It may be any number: another module says how long it is.
    pub(super) fn secret_size(&self, session: SessionHandle, object: ObjectHandle) -> usize {
        let Ok(object) = self.engine.object(session, object) else { return 0 };
        let number = |attribute| match object.answer(attribute) {
            Ok(Answer::Value(Value::Ulong(number))) => usize::try_from(*number).ok(),
            _ => None,
        };
        match number(CKA_CLASS).and_then(|class| u64::try_from(class).ok()) {
            Some(CKO_PRIVATE_KEY) => PRIVATE,
            Some(CKO_SECRET_KEY | CKO_OTP_KEY) => number(CKA_VALUE_LEN).unwrap_or(0),
            _ => 0,
        }
    }

    /// An object has been destroyed, by way of whichever session.
    pub(super) fn destroyed(&mut self, session: SessionHandle, object: ObjectHandle) {
        let made = self.session_of(session, object);
        self.objects.remove(&(made.0, object.0));
    }

    /// A search has begun. It may have the handle of each object.
    pub(super) fn searches(&mut self, session: SessionHandle, room: Room<'e>) {
        self.searches.insert(session.0, room);
    }

    /// Room for a search by a request of this length.
    ///
    /// # Errors
    /// As [`Self::room`].
    pub(super) fn room_for_search(&mut self, length: usize) -> Result<Room<'e>> {
        self.room((self.objects.len() * size_of::<ObjectHandle>()).saturating_add(length))
    }

    /// A search has ended.
    pub(super) fn has_found(&mut self, session: SessionHandle) {
        self.searches.remove(&session.0);
    }

    /// An operation has begun, with a parameter of this length.
    ///
    /// # Errors
    /// As [`Self::room`].
    pub(super) fn begun(
        &mut self,
        session: SessionHandle,
        kind: OperationKind,
        parameter: usize,
        gathers: bool,
    ) -> Result<()> {
        self.operations.remove(&(session.0, kind as u8));
        if gathers || parameter > LITTLE {
            let operation = Operation { parameter, gathers, room: self.room(parameter)? };
            self.operations.insert((session.0, kind as u8), operation);
        }
        Ok(())
    }

    /// Whether an operation keeps all data that it is given.
    pub(super) fn is_gathering(&self, session: SessionHandle, kind: OperationKind) -> bool {
        self.operations.get(&(session.0, kind as u8)).is_some_and(|operation| operation.gathers)
    }

    /// An operation has so much more of its data, or less.
    ///
    /// # Errors
    /// As [`Self::room`].
    pub(super) fn gather(
        &mut self,
        session: SessionHandle,
        kind: OperationKind,
        [given, taken]: [usize; 2],
    ) -> Result<()> {
        let operation = (session.0, kind as u8);
        if let Some(more) = given.checked_sub(taken).filter(|more| *more > 0) {
            let more = self.room(more)?;
            match self.operations.get_mut(&operation) {
                Some(operation) => operation.room.join(more),
                None => {
                    let new = Operation { parameter: 0, gathers: false, room: more };
                    self.operations.insert(operation, new);
                }
            }
        } else if let Some(operation) = self.operations.get_mut(&operation) {
            let rest = operation.room.bytes().saturating_sub(taken - given);
            operation.room.shrink(rest.max(operation.parameter));
        }
        Ok(())
    }

    /// A message of several has ended, and its data is gone.
    pub(super) fn gathered(&mut self, session: SessionHandle, kind: OperationKind) {
        if let Some(operation) = self.operations.get_mut(&(session.0, kind as u8)) {
            operation.room.shrink(operation.parameter);
        }
    }

    /// A function was called, by which operations of a session may have ended.
    pub(super) fn settle(&mut self, function: Function, session: SessionHandle) {
        if function == Function::Logout {
            // Of every session, and private objects with them: other clients of the user have the room now.
            return self.look_again();
        }
        if self.operations.is_empty() {
            return;
        }
        let engine = self.engine;
        let ended = |&(session, kind): &(u64, u8), _: &mut _| !is_active(engine, session, kind);
        match function {
            Function::SessionCancel
            | Function::MessageSignFinal
            | Function::MessageVerifyFinal
            | Function::SetOperationState => {
                let its_own = (session.0, 0)..=(session.0, u8::MAX);
                self.operations.extract_if(its_own, ended).for_each(drop);
            }
            function => {
                for kind in OperationKind::of(function) {
                    if !is_active(engine, session.0, *kind as u8) {
                        self.operations.remove(&(session.0, *kind as u8));
                    }
                }
            }
        }
    }
}

fn is_active(engine: &Engine, session: u64, kind: u8) -> bool {
    let kind = OperationKind::ALL.into_iter().find(|one| *one as u8 == kind);
    kind.is_some_and(|kind| engine.is_active(SessionHandle(session), kind) == Ok(true))
}
