// SPDX-License-Identifier: Apache-2.0
//! Verification that gives the data back (PKCS#11 3.2 §5.15.5).

use super::{Active, OperationKind, Operations, Streams};
use crate::engine::Engine;
use crate::output::Output;
use crate::session::Session;
use metaslot_ck::*;
use metaslot_spi::Params;
use metaslot_spi::provider::Recover;

/// There is no multi-part form.
#[derive(Debug)]
pub(crate) enum Never {}

impl Streams for dyn Recover {
    type Stream = Never;
}

impl Engine {
    /// `C_VerifyRecoverInit`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.15.5 names them.
    pub fn verify_recover_init(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: Params,
        key: ObjectHandle,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        session.operations.verify_recover.free()?;
        let kind = OperationKind::VerifyRecover;
        let choice = self.choose(&mut session, kind, (mechanism, &params), key)?;
        session.operations.verify_recover = Active::Initialized(choice.with(mechanism, params));
        Ok(())
    }

    /// `C_VerifyRecover`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.15.6 names them.
    pub fn verify_recover(
        &self,
        session: SessionHandle,
        signature: &[u8],
        out: &mut Output<'_>,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        let watch = metaslot_counters::begin();
        let Session { operations: Operations { verify_recover: active, .. }, recent, .. } =
            &mut *session;
        let result = active.single().and_then(|chosen| {
            let key = chosen.unlocked_key()?;
            out.at_most(chosen.algorithm.length(key, &chosen.params), |room| {
                chosen.algorithm.recover(key, &chosen.params, signature, room)
            })
        });
        active.conclude(recent, signature.len(), watch, result)
    }
}
