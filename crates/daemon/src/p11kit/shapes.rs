// SPDX-License-Identifier: Apache-2.0
//! The five shapes that the calls of an operation have: begin, transform, update, finish, check.

use super::connection::Asked;
use metaslot_ck::{CK_MECHANISM_TYPE, ObjectHandle, Result, SessionHandle};
use metaslot_engine::{Engine, OperationKind, Output};
use metaslot_spi::Params;

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
        work(self.connection.engine, session, number, params, key)
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
        self.fill(room, data.len(), |out| work(engine, session, data, out))
    }

    /// A call that takes more data: `C_DigestUpdate`, …
    pub(super) fn update(
        mut self,
        work: impl FnOnce(&Engine, SessionHandle, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let session = self.session()?;
        let data = self.decoded(session, Self::data)?;
        work(self.connection.engine, session, data)
    }

    /// A call that only writes: `C_SignFinal`, …
    pub(super) fn finish(
        mut self,
        work: impl Fn(&Engine, SessionHandle, &mut Output<'_>) -> Result<()>,
    ) -> Result<()> {
        let (session, engine) = (self.session()?, self.connection.engine);
        let room = self.decoded(session, Self::room)?;
        self.fill(room, 0, |out| work(engine, session, out))
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
