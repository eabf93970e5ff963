// SPDX-License-Identifier: Apache-2.0
//! The five shapes that the calls of an operation have: begin, transform, update, finish, check.

use super::connection::Asked;
use metaslot_ck::*;
use metaslot_engine::{Engine, OperationKind, Output};
use metaslot_spi::Params;

/// Signatures of data that is not hashed before it is signed: all of it is there until then.
const GATHER: [CK_MECHANISM_TYPE; 6] =
    [CKM_EDDSA, CKM_XEDDSA, CKM_ML_DSA, CKM_SLH_DSA, CKM_HSS, CKM_XMSS];

impl Asked<'_, '_, '_> {
    /// `*Init`. Without a mechanism it cancels the operation that is active (PKCS#11 3.2 §5.8.1).
    pub(super) fn begin(
        mut self,
        work: impl FnOnce(&Engine, SessionHandle, CK_MECHANISM_TYPE, Params, ObjectHandle) -> Result<()>,
    ) -> Result<()> {
        let session = self.session()?;
        let mechanism = self.mechanism()?;
        let key = self.object()?;
        self.request.end()?;
        let Some(mechanism) = mechanism else { return self.cancel(session) };
        let (number, params) = mechanism.chosen()?;
        work(self.connection.engine, session, number, params, key)?;
        if let Some(kind) = self.kind() {
            self.connection.ended(session, kind);
            if GATHER.contains(&number) {
                self.connection.gathers(session, kind);
            }
        }
        Ok(())
    }

    /// What a call goes on with; of two the cipher, which may gather what it is given.
    fn kind(&self) -> Option<OperationKind> {
        let kinds = OperationKind::of(self.call.function);
        let is_cipher =
            |kind: &&OperationKind| matches!(kind, OperationKind::Encrypt | OperationKind::Decrypt);
        kinds.iter().find(is_cipher).or_else(|| kinds.first()).copied()
    }

    /// More data is given to an operation that may gather it.
    ///
    /// # Errors
    /// `CKR_DEVICE_MEMORY`, by which the operation ends, where the client's user has no room.
    fn check_room_to_gather(&mut self, session: SessionHandle, more: usize) -> Result<()> {
        const LITTLE: usize = 1 << 16;
        let Some(kind) = self.kind() else { return Ok(()) };
        if more.max(self.connection.has_gathered(session, kind)) <= LITTLE {
            return Ok(());
        }
        self.connection.check_room().inspect_err(|_| {
            let kinds = OperationKind::of(self.call.function);
            self.connection.engine.fail_active(session, kinds);
            self.connection.ended(session, kind);
        })
    }

    /// More data is given to a signature, which gathers it if it is one that does.
    ///
    /// # Errors
    /// As [`Self::check_room_to_gather`].
    pub(super) fn gather(&mut self, session: SessionHandle, more: usize) -> Result<()> {
        let kind = self.kind().filter(|kind| self.connection.is_gathering(session, *kind));
        let Some(kind) = kind else { return Ok(()) };
        self.check_room_to_gather(session, more)?;
        self.connection.gather(session, kind, more);
        Ok(())
    }

    /// All of a message has been given: the next one begins.
    pub(super) fn gathered(&mut self, session: SessionHandle) {
        let kind = self.kind().filter(|kind| self.connection.is_gathering(session, *kind));
        if let Some(kind) = kind {
            self.connection.ended(session, kind);
            self.connection.gathers(session, kind);
        }
    }

    /// A call of a cipher in parts: `C_EncryptUpdate`, … What comes in and does not go out is gathered.
    pub(super) fn part(
        mut self,
        work: impl Fn(&Engine, SessionHandle, &[u8], &mut Output<'_>) -> Result<()>,
    ) -> Result<()> {
        let (session, engine) = (self.session()?, self.connection.engine);
        let (data, room) = self.decoded(session, |asked| Ok((asked.data()?, asked.room()?)))?;
        self.check_room_to_gather(session, data.len())?;
        let before = self.answer.length();
        let given = self.fill(room, data.len(), |out| work(engine, session, data, out));
        match (given, self.kind()) {
            (Ok(true), Some(kind)) => {
                let stays = data.len().saturating_sub(self.answer.length() - before);
                self.connection.gather(session, kind, stays);
            }
            (Err(_), Some(kind)) => self.connection.ended(session, kind),
            _ => {}
        }
        given.map(drop)
    }

    pub(super) fn cancel(&self, session: SessionHandle) -> Result<()> {
        let kinds = OperationKind::of(self.call.function);
        self.connection.engine.cancel_active(session, kinds)
    }

    /// A call that reads bytes and writes others: `C_Encrypt`, `C_EncryptUpdate`, `C_Sign`, …
    pub(super) fn transform(
        mut self,
        work: impl Fn(&Engine, SessionHandle, &[u8], &mut Output<'_>) -> Result<()>,
    ) -> Result<()> {
        let (session, engine) = (self.session()?, self.connection.engine);
        let (data, room) = self.decoded(session, |asked| Ok((asked.data()?, asked.room()?)))?;
        self.fill(room, data.len(), |out| work(engine, session, data, out)).map(drop)
    }

    /// A call that takes more data: `C_DigestUpdate`, …
    pub(super) fn update(
        mut self,
        work: impl FnOnce(&Engine, SessionHandle, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let session = self.session()?;
        let data = self.decoded(session, Self::data)?;
        let kind = self.kind().filter(|kind| self.connection.is_gathering(session, *kind));
        let Some(kind) = kind else { return work(self.connection.engine, session, data) };
        self.gather(session, data.len())?;
        let done = work(self.connection.engine, session, data);
        if done.is_err() || self.call.function == Function::VerifyFinal {
            self.connection.ended(session, kind);
        }
        done
    }

    /// A call that only writes: `C_SignFinal`, …
    pub(super) fn finish(
        mut self,
        work: impl Fn(&Engine, SessionHandle, &mut Output<'_>) -> Result<()>,
    ) -> Result<()> {
        let (session, engine) = (self.session()?, self.connection.engine);
        let room = self.decoded(session, Self::room)?;
        let given = self.fill(room, 0, |out| work(engine, session, out));
        if let Some(kind) = self.kind().filter(|_| given != Ok(false)) {
            self.connection.ended(session, kind);
        }
        given.map(drop)
    }

    /// `C_Verify`: data and a signature, and no result but the code.
    pub(super) fn check(
        mut self,
        work: impl FnOnce(&Engine, SessionHandle, &[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let session = self.session()?;
        let (data, signature) =
            self.decoded(session, |asked| Ok((asked.data()?, asked.data()?)))?;
        work(self.connection.engine, session, data, signature)
    }

    /// A call of a session and nothing else.
    pub(super) fn alone(
        mut self,
        work: impl FnOnce(&Engine, SessionHandle) -> Result<()>,
    ) -> Result<()> {
        let session = self.session()?;
        self.request.end()?;
        work(self.connection.engine, session)
    }

    /// A call of a session and a number.
    pub(super) fn with_number(
        mut self,
        work: impl FnOnce(&Engine, SessionHandle, u64) -> Result<()>,
    ) -> Result<()> {
        let (session, number) = (self.session()?, self.request.number()?);
        self.request.end()?;
        work(self.connection.engine, session, number)
    }
}
