// SPDX-License-Identifier: Apache-2.0
//! The five shapes that the calls of an operation have: begin, transform, update, finish, check.

use super::connection::Asked;
use metaslot_ck::*;
use metaslot_engine::{Engine, OperationKind, Output};
use metaslot_spi::Params;

/// Signatures of data that is not hashed before it is signed: all of it is there until then.
const GATHER: [CK_MECHANISM_TYPE; 9] = [
    CKM_EDDSA,
    CKM_HSS,
    CKM_ML_DSA,
    CKM_SLH_DSA,
    CKM_SSL3_MD5_MAC,
    CKM_SSL3_SHA1_MAC,
    CKM_XEDDSA,
    CKM_XMSS,
    CKM_XMSSMT,
];

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
        let kept = &mut self.connection.kept;
        for kind in OperationKind::of(self.call.function) {
            kept.begun(session, *kind, self.length, GATHER.contains(&number))?;
        }
        Ok(())
    }

    /// More data is given to a signature, which keeps it if it is one that does.
    ///
    /// # Errors
    /// `CKR_DEVICE_MEMORY` where the client's user has no room; then the operation ends.
    pub(super) fn gather(
        &mut self,
        session: SessionHandle,
        kind: OperationKind,
        more: usize,
    ) -> Result<()> {
        let kept = &mut self.connection.kept;
        if kept.is_gathering(session, kind) {
            kept.gather(session, kind, [more, 0])?;
        }
        Ok(())
    }

    /// A call of two operations: `C_DigestEncryptUpdate`, …
    pub(super) fn both(self) -> Result<()> {
        let function = self.call.function;
        self.part(|engine, session, part, out| engine.update_both(function, session, part, out))
    }

    /// A call of a cipher in parts: `C_EncryptUpdate`, … What comes in and does not go out is kept by it, and what is signed
    /// beside it by the signature.
    pub(super) fn part(
        mut self,
        work: impl Fn(&Engine, SessionHandle, &[u8], &mut Output<'_>) -> Result<()>,
    ) -> Result<()> {
        let (session, engine) = (self.session()?, self.connection.engine);
        let (data, room) = self.decoded(session, |asked| Ok((asked.data()?, asked.room()?)))?;
        let before = self.answer.length();
        if !self.fill(room, data.len(), |out| work(engine, session, data, out))? {
            return Ok(());
        }
        let given = self.answer.length() - before;
        for kind in OperationKind::of(self.call.function) {
            match kind {
                OperationKind::Encrypt | OperationKind::Decrypt => {
                    self.connection.kept.gather(session, *kind, [data.len(), given])?;
                }
                // What goes to it is what came in, or what was decrypted.
                kind => self.gather(session, *kind, data.len())?,
            }
        }
        Ok(())
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
        for kind in OperationKind::of(self.call.function) {
            self.gather(session, *kind, data.len())?;
        }
        work(self.connection.engine, session, data)
    }

    /// A call that only writes: `C_SignFinal`, …
    pub(super) fn finish(
        mut self,
        work: impl Fn(&Engine, SessionHandle, &mut Output<'_>) -> Result<()>,
    ) -> Result<()> {
        let (session, engine) = (self.session()?, self.connection.engine);
        let room = self.decoded(session, Self::room)?;
        self.fill(room, 0, |out| work(engine, session, out)).map(drop)
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
}
