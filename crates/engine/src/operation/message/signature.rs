// SPDX-License-Identifier: Apache-2.0
//! Signatures of several messages by one key (PKCS#11 3.2 §5.14, §5.16).

use crate::engine::Engine;
use crate::operation::OperationKind::{self, MessageSign, MessageVerify};
use crate::operation::signature::{sign_once, split, start, verify_once};
use crate::output::{Output, Written};
use metaslot_ck::*;
use metaslot_counters::Watch;

impl Engine {
    /// `C_SignMessage`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.14.2 names them.
    pub fn sign_message(
        &self,
        session: SessionHandle,
        data: &[u8],
        out: &mut Output<'_>,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        self.begin_message(&mut session, MessageSign)?;
        let watch = metaslot_counters::begin();
        let (active, recent) = split(MessageSign, &mut session);
        let result = self
            .serve(MessageSign, active, data.len(), |active| sign_once(active, None, data, out));
        active.next_message(recent, data.len(), watch, result)
    }

    /// `C_VerifyMessage`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.16.2 names them.
    pub fn verify_message(
        &self,
        session: SessionHandle,
        data: &[u8],
        signature: &[u8],
    ) -> Result<()> {
        let mut session = self.session(session)?;
        self.begin_message(&mut session, MessageVerify)?;
        let watch = metaslot_counters::begin();
        let (active, recent) = split(MessageVerify, &mut session);
        let result = self.serve(MessageVerify, active, data.len(), |active| {
            verify_once(active, None, data, signature)
        });
        active.next_message(recent, data.len(), watch, result)
    }

    /// `C_SignMessageBegin` and `C_VerifyMessageBegin`.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.14.3 and §5.16.3 name them.
    pub fn signature_message_begin(
        &self,
        session: SessionHandle,
        kind: OperationKind,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        self.begin_message(&mut session, kind)?;
        let (active, _) = split(kind, &mut session);
        let result = self.serve(kind, active, 0, |active| {
            active.single()?;
            active.stream(start(kind)).map(|_| Written::Done)
        });
        active.same_message(result)
    }

    /// `C_SignMessageNext`; with `out` the last part.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.14.4 names them.
    pub fn sign_message_next(
        &self,
        session: SessionHandle,
        data: &[u8],
        out: Option<&mut Output<'_>>,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        let (active, recent) = split(MessageSign, &mut session);
        let (chosen, stream) = active.message()?;
        let Some(out) = out else {
            let result = stream.update(data).map(|()| Written::Done);
            chosen.count.add(usize::from(result.is_ok()) * data.len());
            return active.same_message(result);
        };
        let result = chosen.key().map(|key| chosen.algorithm.length(key, &chosen.params));
        let result = result.and_then(|length| {
            out.exact(length, |room| {
                stream.update(data)?;
                stream.sign(room).map(drop)
            })
        });
        active.next_message(recent, data.len(), Watch::OFF, result)
    }

    /// `C_VerifyMessageNext`; with `signature` the last part.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.16.4 names them.
    pub fn verify_message_next(
        &self,
        session: SessionHandle,
        data: &[u8],
        signature: Option<&[u8]>,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        let (active, recent) = split(MessageVerify, &mut session);
        let (chosen, stream) = active.message()?;
        let result = stream.update(data).map(|()| Written::Done);
        let Some(signature) = signature else {
            chosen.count.add(usize::from(result.is_ok()) * data.len());
            return active.same_message(result);
        };
        let result = result.and_then(|done| stream.verify(signature).map(|()| done));
        active.next_message(recent, data.len(), Watch::OFF, result)
    }
}
