// SPDX-License-Identifier: Apache-2.0
//! A client, and a call of its that is being served.

use super::kept::Kept;
use crate::tokens::Client;
use metaslot_ck::{CKA_TOKEN, Error, ObjectHandle, Result, SessionHandle, SlotId};
use metaslot_client::protocol::{Call, Reader, Writer};
use metaslot_engine::{Answer, Engine};
use metaslot_spi::Value;
use metaslot_wiring::audit::Note;

/// What is known of a client.
#[derive(Debug)]
pub(super) struct Connection<'e> {
    pub(super) client: &'e Client,
    pub(super) engine: &'e Engine,
    /// The newest version of the protocol that is spoken here.
    pub(super) newest: u8,
    /// Of p11-kit's, as it was greeted.
    greeted: u8,
    /// Of the protocol, as agreed on.
    pub(super) version: u8,
    /// Between `C_Initialize` and `C_Finalize`.
    pub(super) initialized: bool,
    /// Its sessions, and what stays in them.
    pub(super) kept: Kept<'e>,
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.finalize();
    }
}

impl<'e> Connection<'e> {
    pub(super) const fn new(client: &'e Client, newest: u8, greeted: u8) -> Self {
        let Client { engine, allowance, .. } = client;
        let kept = Kept::new(engine, allowance);
        Self { client, engine, newest, greeted, version: greeted, initialized: false, kept }
    }

    /// Whether an object is one of the token.
    pub(super) fn is_of_token(&self, session: SessionHandle, object: ObjectHandle) -> bool {
        self.engine.object(session, object).is_ok_and(|object| {
            matches!(object.answer(CKA_TOKEN), Ok(Answer::Value(Value::Bool(true))))
        })
    }

    /// An object has been made or changed: if it is one of the session, it is kept here.
    pub(super) fn made(&mut self, session: SessionHandle, made: ObjectHandle) {
        let is_kept_here = !self.is_of_token(session, made);
        self.kept.made(session, made, is_kept_here);
    }

    /// What an object takes, with its value; nothing of one that is not there.
    pub(super) fn size(&self, session: SessionHandle, object: ObjectHandle) -> usize {
        let size = self.engine.object_size(session, object).unwrap_or(0);
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        size.saturating_add(self.kept.secret_size(session, object))
    }

    /// Closes the client's sessions where `wanted` says so.
    pub(super) fn close(&mut self, wanted: impl Fn(SlotId) -> bool) -> Result<()> {
        let mut result = Ok(());
        for session in self.kept.sessions(wanted) {
            self.kept.closed(session);
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
        self.version = self.greeted;
        self.close(|_| true).ok();
    }
}

/// A call that is being served.
pub(super) struct Asked<'m, 'c, 'e> {
    pub(super) connection: &'c mut Connection<'e>,
    pub(super) call: &'static Call,
    /// What is left of the request.
    pub(super) request: Reader<'m>,
    /// How long all of it is.
    pub(super) length: usize,
    /// Its call and its signature stand there already.
    pub(super) answer: &'c mut Writer,
    /// For the audit log.
    pub(super) note: &'c mut Note,
}

/// Reads the arguments, does the call, and writes its results.
pub(super) type Work = fn(Asked<'_, '_, '_>) -> Result<()>;
