// SPDX-License-Identifier: Apache-2.0
//! Asynchronous sessions (PKCS#11 3.2: `CKF_ASYNC_SESSION`, `C_AsyncComplete`): a signature that is begun, left and completed. What the module reads
//! and writes meanwhile is owned by what stands for it, and stays where it is until it is over.

use crate::session::Session;
use crate::{Error, Mechanism, Module, Result, length, ulong};
use metaslot_ck::{self as ck, *};

/// `C_Sign`, as `C_AsyncComplete` is told.
const SIGN: &std::ffi::CStr = c"C_Sign";

/// A session that was opened with `CKF_ASYNC_SESSION`, closed on drop. It has no functions that write into a caller's room.
#[derive(Debug)]
pub struct AsyncSession(Session);

/// A signature on its way. Where it is dropped, it is cancelled and its session closed, before its memory goes.
#[derive(Debug)]
pub struct PendingSignature {
    /// There until it is over.
    session: Option<Session>,
    /// What the module may read until then.
    data: Vec<u8>,
    /// What it may write.
    room: Vec<u8>,
    /// The room's length, in and out.
    used: Box<CK_ULONG>,
}

/// How far it is.
#[derive(Debug)]
pub enum Progress {
    /// Not at its end: [`PendingSignature::complete`] asks again.
    Pending(PendingSignature),
    /// At its end; the session is ready for another one.
    Done(AsyncSession, Result<Vec<u8>>),
}

impl Module {
    /// `C_OpenSession` with `CKF_ASYNC_SESSION`.
    ///
    /// # Errors
    /// The module's code: `CKR_SESSION_ASYNC_NOT_SUPPORTED`; `CKR_FUNCTION_NOT_SUPPORTED` where it has no `C_AsyncComplete`.
    pub fn open_async_session(&self, slot: SlotId) -> Result<AsyncSession> {
        if self.complete_function().is_none() {
            return Err(Error::missing(Function::AsyncComplete));
        }
        self.open_with(slot, CKF_SERIAL_SESSION | CKF_ASYNC_SESSION).map(AsyncSession)
    }

    fn complete_function(&self) -> CK_C_AsyncComplete {
        // A module in another process has no lists.
        self.lists().v3_2.as_ref()?.C_AsyncComplete
    }
}

impl AsyncSession {
    /// `C_SignInit` and `C_Sign`, with room for a signature of so many bytes.
    ///
    /// # Errors
    /// Of `C_SignInit`; the session is closed then. What `C_Sign` says is in [`Progress::Done`].
    pub fn sign_begin(
        self,
        mechanism: &Mechanism<'_>,
        key: ObjectHandle,
        data: &[u8],
        longest: usize,
    ) -> Result<Progress> {
        let Self(session) = self;
        session.sign_init(mechanism, key)?;
        let pending = PendingSignature {
            session: Some(session),
            data: data.to_vec(),
            room: vec![0; longest],
            used: Box::new(ulong(longest)),
        };
        Ok(pending.after(PendingSignature::begin))
    }
}

impl PendingSignature {
    /// `C_AsyncComplete`: who asks may compute what is pending in all sessions.
    #[must_use]
    pub fn complete(self) -> Progress {
        self.after(|pending, session| pending.ask(session))
    }

    /// How long the signature is.
    fn begin(&mut self, session: &Session) -> Result<usize> {
        let (out, used) = (self.room.as_mut_ptr(), &raw mut *self.used);
        session.transform_at(Function::Sign, session.list().C_Sign, &self.data, out, used)?;
        Ok(length(*self.used))
    }

    fn ask(&self, session: &Session) -> Result<usize> {
        let module = session.module();
        let name = SIGN.as_ptr().cast_mut().cast();
        let raw = module.fill(Function::AsyncComplete, module.complete_function(), |f, data| {
            // SAFETY: a name that ends with a zero, and a CK_ASYNC_DATA to be written; the room that `C_Sign` was given is still there.
            unsafe { f(session.handle().0, name, data) }
        });
        raw.map(|raw: CK_ASYNC_DATA| length(raw.ulValue))
    }

    /// What becomes of it by a call.
    fn after(mut self, call: impl FnOnce(&mut Self, &Session) -> Result<usize>) -> Progress {
        let Some(session) = self.session.take() else { return Progress::Pending(self) };
        let done = call(&mut self, &session);
        let is = |code| done.is_err_and(|error| error.code == code);
        if is(ck::Error::PENDING) {
            self.session = Some(session);
            return Progress::Pending(self);
        }
        if is(ck::Error::BUFFER_TOO_SMALL) {
            // Of all failures only this one leaves the operation as it is.
            session.cancel(CKF_SIGN).ok();
        }
        let signature = done.and_then(|length| {
            let mut room = std::mem::take(&mut self.room);
            if length > room.len() {
                return Err(Error::new(Function::Sign, ck::Error::GENERAL_ERROR));
            }
            room.truncate(length);
            Ok(room)
        });
        Progress::Done(AsyncSession(session), signature)
    }
}

impl Drop for PendingSignature {
    fn drop(&mut self) {
        // No caller is left to tell; a module that has been finalised knows neither.
        if let Some(session) = self.session.take() {
            session.cancel(CKF_SIGN).ok();
            drop(session);
        }
    }
}
