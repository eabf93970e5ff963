// SPDX-License-Identifier: Apache-2.0
//! Operations that go on after their call has returned (PKCS#11 3.2: `CKF_ASYNC_SESSION`,
//! `C_AsyncComplete`). A session has one of each kind; many sessions of one thread have many, and
//! whoever asks for a result helps to compute all of them.

use super::Active;
use crate::engine::Engine;
use crate::metaslot::route::Count;
use crate::object::Object;
use crate::provider::{Pending, Postponed};
use crate::session::Session;
use metaslot_ck::{Error, Function, Result, SessionHandle};
use metaslot_counters::Watch;
use std::sync::Arc;

/// A place in the caller's memory that is written when the operation is complete: numbers here, a
/// pointer only at the edge.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Room {
    /// Where.
    pub address: usize,
    /// How many bytes there are, of which the result needs no more.
    pub length: usize,
}

/// An operation on its way, and what is needed when it arrives.
#[derive(Debug)]
pub(crate) struct Later {
    pub(crate) work: Box<dyn Pending>,
    pub(crate) room: Room,
    pub(crate) bytes: usize,
    pub(crate) watch: Watch,
}

/// Begins what a session that is asynchronous may complete later. `None`: it is computed at once,
/// because the provider has it so or because the caller only asked for a length.
pub(crate) fn begin(
    room: Result<Option<Room>>,
    begin: impl FnOnce() -> Postponed,
) -> Result<Option<(Room, Box<dyn Pending>)>> {
    match room? {
        Some(room) => Ok(begin()?.map(|work| (room, work))),
        None => Ok(None),
    }
}

impl Engine {
    /// `C_AsyncComplete`: the result of `function` (`C_Sign`, …) goes into the room that its call
    /// named, which `open` makes writable. How much of it was written, and where it is.
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
        let session = &mut *session;
        match function {
            Function::Digest => finish(&mut session.digest, open, |op| (op.count, None)).1,
            Function::Encrypt => {
                let (object, result) =
                    finish(&mut session.encrypt, open, |op| (op.count, Some(op.object)));
                kept(session, object, result)
            }
            Function::Decrypt => {
                let (object, result) =
                    finish(&mut session.decrypt, open, |op| (op.count, Some(op.object)));
                kept(session, object, result)
            }
            Function::Sign => {
                let (object, result) =
                    finish(&mut session.sign, open, |op| (op.count, Some(op.object)));
                kept(session, object, result)
            }
            Function::Verify => {
                let (object, result) =
                    finish(&mut session.verify, open, |op| (op.count, Some(op.object)));
                kept(session, object, result)
            }
            _ => Err(Error::OPERATION_NOT_INITIALIZED),
        }
    }

    /// Whether `function` is pending in the session.
    ///
    /// # Errors
    /// `CKR_SESSION_HANDLE_INVALID`
    pub fn is_pending(&self, session: SessionHandle, function: Function) -> Result<bool> {
        let session = self.session(session)?;
        Ok(match function {
            Function::Digest => session.digest.is_pending(),
            Function::Encrypt => session.encrypt.is_pending(),
            Function::Decrypt => session.decrypt.is_pending(),
            Function::Sign => session.sign.is_pending(),
            Function::Verify => session.verify.is_pending(),
            _ => false,
        })
    }
}

fn kept(session: &mut Session, object: Option<Arc<Object>>, result: Result<Room>) -> Result<Room> {
    if let Some(object) = object {
        session.keep(object);
    }
    result
}

/// Looks whether the operation has arrived; then it is over, whatever became of it.
fn finish<'a, T, S>(
    state: &mut Active<T, S>,
    open: impl FnOnce(Room) -> &'a mut [u8],
    parts: impl FnOnce(T) -> (Count, Option<Arc<Object>>),
) -> (Option<Arc<Object>>, Result<Room>) {
    match state {
        Active::Pending(_, later) => {
            if !later.work.poll() {
                return (None, Err(Error::PENDING));
            }
        }
        _ => return (None, Err(Error::OPERATION_NOT_INITIALIZED)),
    }
    let Active::Pending(chosen, later) = std::mem::take(state) else {
        return (None, Err(Error::GENERAL_ERROR));
    };
    let Later { work, room, bytes, watch } = later;
    let result = work.finish(open(room)).map(|length| Room { length, ..room });
    let (count, object) = parts(chosen);
    count.done(bytes, result.is_ok(), watch);
    (object, result)
}
