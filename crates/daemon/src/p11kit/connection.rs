// SPDX-License-Identifier: Apache-2.0
//! A client, and a call of its that is being served.

use crate::tokens::Client;
use metaslot_ck::{Error, Result, SessionHandle, SlotId};
use metaslot_client::protocol::{Call, Reader, Writer};
use metaslot_engine::Engine;
use metaslot_wiring::audit::Note;
use std::collections::BTreeMap;

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
    pub(super) sessions: BTreeMap<u64, SlotId>,
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.finalize();
    }
}

impl<'e> Connection<'e> {
    pub(super) const fn new(client: &'e Client, version: u8) -> Self {
        let engine = &client.engine;
        Self { client, engine, version, initialized: false, sessions: BTreeMap::new() }
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
        for (session, _) in self.sessions.extract_if(.., |_, slot| wanted(*slot)) {
            match self.engine.close_session(SessionHandle(session)) {
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
