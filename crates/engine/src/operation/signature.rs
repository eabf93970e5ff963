// SPDX-License-Identifier: Apache-2.0
//! Signatures and MACs (PKCS#11 3.2 §5.13, §5.15).

use super::{Active, Chosen, OperationKind, Streams};
use crate::engine::Engine;
use crate::object::recent::Recent;
use crate::output::{Output, Written};
use crate::session::{Session, SessionGuard};
use metaslot_ck::*;
use metaslot_counters::Watch;
use metaslot_spi::Params;
use metaslot_spi::provider::{Signature, SignatureStream};

impl Streams for dyn Signature {
    type Stream = Box<dyn SignatureStream>;
}

impl Engine {
    /// `C_SignInit`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.13.1 names them.
    pub fn sign_init(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: Params,
        key: ObjectHandle,
    ) -> Result<()> {
        self.signature_init(OperationKind::Sign, session, (mechanism, params), key)
    }

    /// `C_Sign`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.13.2 names them.
    pub fn sign(&self, session: SessionHandle, data: &[u8], out: &mut Output<'_>) -> Result<()> {
        let mut session = self.session(session)?;
        let watch = metaslot_counters::begin();
        let later = session.asynchronous;
        let (active, recent) = split(OperationKind::Sign, &mut session);
        let result = self.serve(OperationKind::Sign, active, data.len(), |active| {
            sign_once(active, later.then_some(watch), data, out)
        });
        active.conclude(recent, data.len(), watch, result)
    }

    /// `C_SignUpdate`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.13.3 names them.
    pub fn sign_update(&self, session: SessionHandle, data: &[u8]) -> Result<()> {
        self.signature_update(OperationKind::Sign, session, data)
    }

    /// `C_SignFinal`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.13.4 names them.
    pub fn sign_final(&self, session: SessionHandle, out: &mut Output<'_>) -> Result<()> {
        let mut session = self.session(session)?;
        let (active, recent) = split(OperationKind::Sign, &mut session);
        let longest = active.chosen().and_then(|op| Ok(op.algorithm.length(op.key()?, &op.params)));
        let result = longest.and_then(|longest| {
            out.exact(longest, |room| {
                let (_, stream) = active.stream(start(OperationKind::Sign))?;
                stream.sign(room).map(drop)
            })
        });
        active.conclude(recent, 0, Watch::OFF, result)
    }

    /// `C_SignRecoverInit`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.13.5 names them.
    pub fn sign_recover_init(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: Params,
        key: ObjectHandle,
    ) -> Result<()> {
        self.signature_init(OperationKind::SignRecover, session, (mechanism, params), key)
    }

    /// `C_SignRecover`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.13.6 names them.
    pub fn sign_recover(
        &self,
        session: SessionHandle,
        data: &[u8],
        out: &mut Output<'_>,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        let watch = metaslot_counters::begin();
        let (active, recent) = split(OperationKind::SignRecover, &mut session);
        let result = sign_once(active, None, data, out);
        active.conclude(recent, data.len(), watch, result)
    }

    /// `C_VerifyInit`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.15.1 names them.
    pub fn verify_init(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: Params,
        key: ObjectHandle,
    ) -> Result<()> {
        self.signature_init(OperationKind::Verify, session, (mechanism, params), key)
    }

    /// `C_Verify`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.15.2 names them.
    pub fn verify(&self, session: SessionHandle, data: &[u8], signature: &[u8]) -> Result<()> {
        let mut session = self.session(session)?;
        let watch = metaslot_counters::begin();
        let later = session.asynchronous;
        let (active, recent) = split(OperationKind::Verify, &mut session);
        let result = self.serve(OperationKind::Verify, active, data.len(), |active| {
            verify_once(active, later.then_some(watch), data, signature)
        });
        active.conclude(recent, data.len(), watch, result)
    }

    /// `C_VerifyUpdate`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.15.3 names them.
    pub fn verify_update(&self, session: SessionHandle, data: &[u8]) -> Result<()> {
        self.signature_update(OperationKind::Verify, session, data)
    }

    /// `C_VerifyFinal`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.15.4 names them.
    pub fn verify_final(&self, session: SessionHandle, signature: &[u8]) -> Result<()> {
        let mut session = self.session(session)?;
        finish_verifying(OperationKind::Verify, &mut session, signature)
    }

    /// `C_VerifySignatureInit`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.15.7 names them.
    pub fn verify_signature_init(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: Params,
        key: ObjectHandle,
        signature: &[u8],
    ) -> Result<()> {
        const KIND: OperationKind = OperationKind::VerifySignature;
        let mut session = self.session(session)?;
        self.begin_signature(KIND, &mut session, (mechanism, params), key)?;
        session.operations.signature = signature.to_vec();
        Ok(())
    }

    /// `C_VerifySignature`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.15.8 names them.
    pub fn verify_signature(&self, session: SessionHandle, data: &[u8]) -> Result<()> {
        const KIND: OperationKind = OperationKind::VerifySignature;
        let mut session = self.session(session)?;
        let watch = metaslot_counters::begin();
        let later = session.asynchronous;
        let signature = std::mem::take(&mut session.operations.signature);
        let (active, recent) = split(KIND, &mut session);
        let result = self.serve(KIND, active, data.len(), |active| {
            verify_once(active, later.then_some(watch), data, &signature)
        });
        active.conclude(recent, data.len(), watch, result)
    }

    /// `C_VerifySignatureUpdate`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.15.9 names them.
    pub fn verify_signature_update(&self, session: SessionHandle, data: &[u8]) -> Result<()> {
        self.signature_update(OperationKind::VerifySignature, session, data)
    }

    /// `C_VerifySignatureFinal`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.15.10 names them.
    pub fn verify_signature_final(&self, session: SessionHandle) -> Result<()> {
        let mut session = self.session(session)?;
        let signature = std::mem::take(&mut session.operations.signature);
        finish_verifying(OperationKind::VerifySignature, &mut session, &signature)
    }

    fn signature_update(
        &self,
        kind: OperationKind,
        session: SessionHandle,
        data: &[u8],
    ) -> Result<()> {
        let mut session = self.session(session)?;
        let (active, recent) = split(kind, &mut session);
        let result = self.serve(kind, active, data.len(), |active| fed(kind, active, data));
        active.proceed(recent, result)
    }

    /// `C_SignInit` and its like, also for messages.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.13.1, §5.14.1, §5.15.1 and §5.16.1 name them.
    pub fn signature_init(
        &self,
        kind: OperationKind,
        session: SessionHandle,
        (mechanism, params): (CK_MECHANISM_TYPE, Params),
        key: ObjectHandle,
    ) -> Result<()> {
        self.begin_signature(kind, &mut self.session(session)?, (mechanism, params), key)
    }

    fn begin_signature(
        &self,
        kind: OperationKind,
        session: &mut SessionGuard<'_>,
        (mechanism, params): (CK_MECHANISM_TYPE, Params),
        key: ObjectHandle,
    ) -> Result<()> {
        split(kind, session).0.free()?;
        let choice = self.choose(session, kind, (mechanism, &params), key)?;
        *split(kind, session).0 = Active::Initialized(choice.with(mechanism, params));
        Ok(())
    }
}

/// Ends a verification of what came in parts.
fn finish_verifying(kind: OperationKind, session: &mut Session, signature: &[u8]) -> Result<()> {
    let (active, recent) = split(kind, session);
    let verified = active.stream(start(kind)).and_then(|(_, stream)| stream.verify(signature));
    active.conclude(recent, 0, Watch::OFF, verified.map(|()| Written::Done))
}

/// The operation of one of the six kinds that sign and verify.
#[inline(always)]
pub(super) fn split(
    kind: OperationKind,
    session: &mut Session,
) -> (&mut Active<dyn Signature>, &mut Recent) {
    let Session { operations, recent, .. } = session;
    match kind {
        OperationKind::Verify => (&mut operations.verify, recent),
        OperationKind::SignRecover => (&mut operations.sign_recover, recent),
        OperationKind::VerifySignature => (&mut operations.verify_signature, recent),
        OperationKind::MessageSign => (&mut operations.message_sign, recent),
        OperationKind::MessageVerify => (&mut operations.message_verify, recent),
        _ => (&mut operations.sign, recent),
    }
}

/// `later`: where the session is asynchronous, the clock of the call.
pub(super) fn sign_once(
    active: &mut Active<dyn Signature>,
    later: Option<Watch>,
    data: &[u8],
    out: &mut Output<'_>,
) -> Result<Written> {
    let chosen = active.single()?;
    let length = chosen.algorithm.length(chosen.key()?, &chosen.params);
    if let Some(watch) = later {
        active.begin_later(length, out, data.len(), watch, |chosen| {
            chosen.algorithm.sign_later(chosen.unlocked_key()?, &chosen.params, data)
        })?;
    }
    let chosen = active.single()?;
    out.exact(length, |room| {
        let Chosen { algorithm, params, .. } = chosen;
        algorithm.sign(chosen.unlocked_key()?, params, data, room).map(drop)
    })
}

/// As [`sign_once`]; a verification has no result but its code.
pub(super) fn verify_once(
    active: &mut Active<dyn Signature>,
    later: Option<Watch>,
    data: &[u8],
    signature: &[u8],
) -> Result<Written> {
    if let Some(watch) = later {
        let out = &mut Output::buffer(&mut []);
        active.begin_later(0, out, data.len(), watch, |chosen| {
            let Chosen { algorithm, params, .. } = chosen;
            algorithm.verify_later(chosen.unlocked_key()?, params, data, signature)
        })?;
    }
    let chosen = active.single()?;
    chosen.algorithm.verify(chosen.unlocked_key()?, &chosen.params, data, signature)?;
    Ok(Written::Done)
}

/// Makes the stream, with the key unlocked.
pub(crate) fn start(
    kind: OperationKind,
) -> impl FnOnce(&Chosen<dyn Signature>) -> Result<Box<dyn SignatureStream>> {
    move |chosen| chosen.algorithm.start(kind.direction(), chosen.unlocked_key()?, &chosen.params)
}

pub(crate) fn fed(
    kind: OperationKind,
    active: &mut Active<dyn Signature>,
    data: &[u8],
) -> Result<Written> {
    active.feed(start(kind), |stream| stream.update(data))?.count.add(data.len());
    Ok(Written::Done)
}
