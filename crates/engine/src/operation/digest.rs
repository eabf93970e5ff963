// SPDX-License-Identifier: Apache-2.0
//! Digests (PKCS#11 3.2 §5.12).

use super::{Active, Chosen, Lock, OperationKind, Operations, Streams};
use crate::engine::Engine;
use crate::output::{Output, Written};
use crate::session::{Session, SessionGuard};
use metaslot_ck::*;
use metaslot_counters::Watch;
use metaslot_router::Count;
use metaslot_rules::policy::KeyUse;
use metaslot_spi::Params;
use metaslot_spi::provider::{Algorithm, Digest, DigestStream};

/// A hash in the middle.
#[derive(Debug)]
pub(crate) struct DigestRun {
    pub(crate) stream: Box<dyn DigestStream>,
    /// A key that may not be read went in: the state must not come out.
    pub(crate) holds_key: bool,
    /// The caller brought its state, and may have written it.
    pub(crate) brought: bool,
}

impl Streams for dyn Digest {
    type Stream = DigestRun;
}

impl Engine {
    /// `C_DigestInit`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.12.1 names them.
    pub fn digest_init(&self, session: SessionHandle, mechanism: CK_MECHANISM_TYPE) -> Result<()> {
        let mut session = self.session(session)?;
        session.operations.digest.free()?;
        let later = session.asynchronous;
        let (count, algorithm, approved) = self.hashing(session.slot, mechanism, later)?;
        // No digest has parameters.
        let (params, object, lock) = (Params::None, None, Lock::Open);
        let chosen = Chosen { count, mechanism, algorithm, params, object, lock, approved };
        session.operations.digest = Active::Initialized(chosen);
        Ok(())
    }

    /// `later`: whether one serves that needs others to gain.
    #[inline(always)]
    pub(super) fn hashing(
        &self,
        slot: SlotId,
        mechanism: CK_MECHANISM_TYPE,
        later: bool,
    ) -> Result<(Count, &'static dyn Digest, bool)> {
        let approved = self.token(slot)?.policy().approving(mechanism, CKF_DIGEST, None)?;
        let of = |row: &'static Algorithm| row.digest.filter(|one| later || one.for_waiting());
        self.route(mechanism, of).map(|(count, algorithm)| (count, algorithm, approved))
    }

    /// `C_Digest`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.12.2 names them.
    pub fn digest(&self, session: SessionHandle, data: &[u8], out: &mut Output<'_>) -> Result<()> {
        let mut session = self.session(session)?;
        let watch = metaslot_counters::begin();
        let later = session.asynchronous;
        let Session { operations: Operations { digest: active, .. }, recent, .. } = &mut *session;
        let result = self.serve(OperationKind::Digest, active, data.len(), |active| {
            once(active, later.then_some(watch), data, out)
        });
        active.conclude(recent, data.len(), watch, result)
    }

    /// `C_DigestUpdate`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.12.3 names them.
    pub fn digest_update(&self, session: SessionHandle, data: &[u8]) -> Result<()> {
        let mut session = self.session(session)?;
        let Session { operations: Operations { digest: active, .. }, recent, .. } = &mut *session;
        let result =
            self.serve(OperationKind::Digest, active, data.len(), |active| fed(active, data));
        active.proceed(recent, result)
    }

    /// `C_DigestKey`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.12.4 names them.
    pub fn digest_key(&self, session: SessionHandle, key: ObjectHandle) -> Result<()> {
        let mut session = self.session(session)?;
        let mechanism = session.operations.digest.chosen()?.mechanism;
        let result = self.digest_value(&mut session, mechanism, key).map(|()| Written::Done);
        let Session { operations, recent, .. } = &mut *session;
        operations.digest.proceed(recent, result)
    }

    fn digest_value(
        &self,
        session: &mut SessionGuard<'_>,
        mechanism: CK_MECHANISM_TYPE,
        key: ObjectHandle,
    ) -> Result<()> {
        let object = self.object_in(session, key).map_err(|_| Error::KEY_HANDLE_INVALID)?;
        if object.class() != CKO_SECRET_KEY || !object.subject().allows(mechanism) {
            return Err(Error::KEY_INDIGESTIBLE);
        }
        self.kept_here(&object)?;
        let policy = self.policy(session)?;
        policy.using_key(KeyUse::DigestKey, object.facts())?;
        let value = self.key(&object)?.secret(CKA_VALUE)?;
        let digest = &session.operations.digest;
        let brought = matches!(digest, Active::MultiPart(_, run) if run.brought);
        policy.digesting(mechanism, object.facts(), value.len(), brought)?;
        let (chosen, run) = session.operations.digest.stream(start)?;
        run.stream.update_by_key(value)?;
        run.holds_key |= !object.subject().shows_secrets();
        chosen.count.add(value.len());
        Ok(())
    }

    /// `C_DigestFinal`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.12.5 names them.
    pub fn digest_final(&self, session: SessionHandle, out: &mut Output<'_>) -> Result<()> {
        let mut session = self.session(session)?;
        let Session { operations: Operations { digest: active, .. }, recent, .. } = &mut *session;
        let result = self.serve(OperationKind::Digest, active, 0, |active| {
            let length = active.chosen()?.algorithm.length();
            out.exact(length, |room| active.stream(start)?.1.stream.finish(room))
        });
        active.conclude(recent, 0, Watch::OFF, result)
    }
}

/// `later`: where the session is asynchronous, the clock of the call.
pub(super) fn once(
    active: &mut Active<dyn Digest>,
    later: Option<Watch>,
    data: &[u8],
    out: &mut Output<'_>,
) -> Result<Written> {
    let algorithm = active.single()?.algorithm;
    let length = algorithm.length();
    if let Some(watch) = later {
        active.begin_later(length, out, data.len(), watch, |_| algorithm.digest_later(data))?;
    }
    out.exact(length, |room| algorithm.digest(data, room))
}

pub(crate) fn start(chosen: &Chosen<dyn Digest>) -> Result<DigestRun> {
    Ok(DigestRun { stream: chosen.algorithm.start()?, holds_key: false, brought: false })
}

pub(crate) fn fed(active: &mut Active<dyn Digest>, data: &[u8]) -> Result<Written> {
    active.feed(start, |run| run.stream.update(data))?.count.add(data.len());
    Ok(Written::Done)
}
