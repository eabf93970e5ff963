// SPDX-License-Identifier: Apache-2.0
//! Operations that go on after their call has returned (PKCS#11 3.2: `CKF_ASYNC_SESSION`, `C_AsyncComplete`). A session has one of each kind; many
//! sessions of one thread have many, and the caller that asks for a result helps to compute all of them.

use super::OperationKind;
use super::active::Later;
use crate::engine::Engine;
use crate::output::Room;
use crate::session::Session;
use metaslot_ck::{Error, Function, Result, SessionHandle};

impl Engine {
    /// `C_AsyncComplete`: the result of `function` (`C_Sign`, …) goes into the room that its call named, which `open` makes writable. How much of it
    /// was written, and where it is. Of `C_DeriveKey`, only whether it is there.
    ///
    /// # Errors
    /// `CKR_PENDING`; `CKR_OPERATION_NOT_INITIALIZED` when nothing is pending; what `function` says.
    pub fn async_complete<'a>(
        &self,
        session: SessionHandle,
        function: Function,
        open: impl FnOnce(Room) -> &'a mut [u8],
    ) -> Result<Room> {
        let mut session = self.session(session)?;
        let Session { operations, recent, .. } = &mut *session;
        let [kind] = OperationKind::of(function) else {
            return Err(Error::OPERATION_NOT_INITIALIZED);
        };
        if *kind == OperationKind::Derive {
            // It has no room: when it is there `derived_key` makes a key of it.
            return operations.derive.polled().map(|()| Room::default());
        }
        let (later, count, approved) = operations.of(*kind).arrive(recent)?;
        let Later { work, room, bytes, watch } = later;
        let result = work.finish(open(room)).map(|length| Room { length, ..room });
        count.done(bytes, result.is_ok(), watch);
        if result.is_ok() {
            recent.completes(approved);
        }
        result
    }

    /// Whether `function` is pending in the session.
    ///
    /// # Errors
    /// `CKR_SESSION_HANDLE_INVALID`
    pub fn is_pending(&self, session: SessionHandle, function: Function) -> Result<bool> {
        let mut session = self.session(session)?;
        Ok(OperationKind::of(function).iter().any(|kind| session.operations.of(*kind).is_pending()))
    }
}
