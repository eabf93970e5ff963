// SPDX-License-Identifier: Apache-2.0
//! A client, and a call of its that is being served.

use crate::allowance::Allowance;
use crate::tokens::Client;
use metaslot_ck::{CKA_TOKEN, Error, ObjectHandle, Result, SessionHandle, SlotId};
use metaslot_client::protocol::{Call, Reader, Writer};
use metaslot_engine::{Answer, Engine, OperationKind};
use metaslot_spi::Value;
use metaslot_wiring::audit::Note;
use std::collections::BTreeMap;

/// What a session takes, roughly, in bytes.
const SESSION: usize = 1 << 13;
/// What an object of a session takes beside its attributes.
const OBJECT: usize = 1 << 11;

/// What is known of a client.
#[derive(Debug)]
pub(super) struct Connection<'e> {
    pub(super) client: &'e Client,
    pub(super) engine: &'e Engine,
    /// Of the protocol, as agreed on.
    pub(super) version: u8,
    /// Between `C_Initialize` and `C_Finalize`.
    pub(super) initialized: bool,
    /// Its own, by their handles.
    sessions: BTreeMap<u64, SlotId>,
    allowance: &'e Allowance,
    /// Objects of sessions, by the session and their handle, and what each takes. Some may not be there any more.
    objects: BTreeMap<(u64, u64), usize>,
    /// Of operations that need all data before they give any, by session and kind: how much they have.
    gathered: BTreeMap<(u64, u8), usize>,
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.finalize();
    }
}

impl<'e> Connection<'e> {
    pub(super) const fn new(client: &'e Client, version: u8) -> Self {
        let Client { engine, allowance, .. } = client;
        Self {
            client,
            engine,
            version,
            initialized: false,
            sessions: BTreeMap::new(),
            allowance,
            objects: BTreeMap::new(),
            gathered: BTreeMap::new(),
        }
    }

    /// # Errors
    /// `CKR_SESSION_COUNT` where the client's user has no room.
    pub(super) fn check_room_for_session(&mut self) -> Result<()> {
        if self.has_room() { Ok(()) } else { Err(Error::SESSION_COUNT) }
    }

    /// # Errors
    /// `CKR_DEVICE_MEMORY` where the client's user has no room.
    pub(super) fn check_room(&mut self) -> Result<()> {
        if self.has_room() { Ok(()) } else { Err(Error::DEVICE_MEMORY) }
    }

    /// Looks for what is not there any more before it says no.
    fn has_room(&mut self) -> bool {
        let Self { engine, allowance, objects, .. } = self;
        if !allowance.has_room() {
            objects.retain(|&(session, object), bytes| {
                let there = engine.object(SessionHandle(session), ObjectHandle(object)).is_ok();
                if !there {
                    allowance.give_back(*bytes);
                }
                there
            });
        }
        allowance.has_room()
    }

    /// A session has been opened.
    pub(super) fn opened(&mut self, session: SessionHandle, slot: SlotId) {
        self.allowance.take(SESSION);
        self.sessions.insert(session.0, slot);
    }

    /// An object has been made: if it is one of the session, it is kept here.
    pub(super) fn made(&mut self, session: SessionHandle, made: ObjectHandle) {
        let is_kept_here = !self.is_of_token(session, made);
        let size = self.engine.object_size(session, made).ok().filter(|_| is_kept_here);
        if let Some(size) = size.and_then(|size| usize::try_from(size).ok()) {
            self.allowance.take(size + OBJECT);
            self.objects.insert((session.0, made.0), size + OBJECT);
        }
    }

    /// Whether an object is one of the token.
    pub(super) fn is_of_token(&self, session: SessionHandle, object: ObjectHandle) -> bool {
        self.engine.object(session, object).is_ok_and(|object| {
            matches!(object.answer(CKA_TOKEN), Ok(Answer::Value(Value::Bool(true))))
        })
    }

    /// An object has been destroyed.
    pub(super) fn destroyed(&mut self, session: SessionHandle, object: ObjectHandle) {
        if let Some(bytes) = self.objects.remove(&(session.0, object.0)) {
            self.allowance.give_back(bytes);
        }
    }

    /// An operation has begun that gathers all data of its parts.
    pub(super) fn gathers(&mut self, session: SessionHandle, kind: OperationKind) {
        self.gathered.insert((session.0, kind as u8), 0);
    }

    /// Whether it is one that gathers.
    pub(super) fn is_gathering(&self, session: SessionHandle, kind: OperationKind) -> bool {
        self.gathered.contains_key(&(session.0, kind as u8))
    }

    /// How much it has.
    pub(super) fn has_gathered(&self, session: SessionHandle, kind: OperationKind) -> usize {
        self.gathered.get(&(session.0, kind as u8)).copied().unwrap_or(0)
    }

    /// An operation has so much more.
    pub(super) fn gather(&mut self, session: SessionHandle, kind: OperationKind, bytes: usize) {
        self.allowance.take(bytes);
        *self.gathered.entry((session.0, kind as u8)).or_default() += bytes;
    }

    /// An operation has ended.
    pub(super) fn ended(&mut self, session: SessionHandle, kind: OperationKind) {
        if let Some(bytes) = self.gathered.remove(&(session.0, kind as u8)) {
            self.allowance.give_back(bytes);
        }
    }

    /// A session has been closed, and its objects with it.
    pub(super) fn closed(&mut self, session: SessionHandle) {
        if self.sessions.remove(&session.0).is_some() {
            self.allowance.give_back(SESSION);
        }
        let its_own = (session.0, 0)..=(session.0, u64::MAX);
        for (_, bytes) in self.objects.extract_if(its_own, |_, _| true) {
            self.allowance.give_back(bytes);
        }
        let its_own = (session.0, 0)..=(session.0, u8::MAX);
        for (_, bytes) in self.gathered.extract_if(its_own, |_, _| true) {
            self.allowance.give_back(bytes);
        }
    }

    /// A session of this client.
    pub(super) fn session(&self, handle: u64) -> Result<SessionHandle> {
        match self.sessions.contains_key(&handle) {
            true => Ok(SessionHandle(handle)),
            false => Err(Error::SESSION_HANDLE_INVALID),
        }
    }

    /// Closes the client's sessions where `wanted` says so.
    pub(super) fn close(&mut self, wanted: impl Fn(SlotId) -> bool) -> Result<()> {
        let mut result = Ok(());
        let wanted = self.sessions.iter().filter(|(_, slot)| wanted(**slot));
        for session in wanted.map(|(session, _)| SessionHandle(*session)).collect::<Vec<_>>() {
            self.closed(session);
            match self.engine.close_session(session) {
                // With its token it may have gone before.
                Ok(()) | Err(Error::SESSION_HANDLE_INVALID) => {}
                Err(error) => result = Err(error),
            }
        }
        result
    }

    /// With the last session of a slot its login ends.
    pub(super) fn finalize(&mut self) {
        self.initialized = false;
        self.close(|_| true).ok();
    }
}

/// A call that is being served.
pub(super) struct Asked<'m, 'c, 'e> {
    pub(super) connection: &'c mut Connection<'e>,
    pub(super) call: &'static Call,
    /// What is left of the request.
    pub(super) request: Reader<'m>,
    /// Its call and its signature stand there already.
    pub(super) answer: &'c mut Writer,
    /// For the audit log.
    pub(super) note: &'c mut Note,
}

/// Reads the arguments, does the call, and writes its results.
pub(super) type Work = fn(Asked<'_, '_, '_>) -> Result<()>;
