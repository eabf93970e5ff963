// SPDX-License-Identifier: Apache-2.0
//! Verification that gives the data back (PKCS#11 3.2 §5.15.5).

use super::{Active, ends};
use crate::Params;
use crate::engine::Engine;
use crate::metaslot::route::Count;
use crate::object::Object;
use crate::output::Output;
use crate::provider::Recover;
use metaslot_ck::*;
use std::sync::Arc;

/// What `C_VerifyRecoverInit` chose.
#[derive(Debug)]
pub(crate) struct RecoverOp {
    count: Count,
    algorithm: &'static dyn Recover,
    pub(crate) object: Arc<Object>,
    params: Params,
}

/// There is no multi-part form.
#[derive(Debug)]
pub(crate) enum Never {}

pub(crate) type RecoverState = Active<RecoverOp, Never>;

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
        session.verify_recover.free()?;
        let (count, algorithm) = self.route(mechanism, |row| row.verify_recover)?;
        let object = self.key_for(&mut session, key, CKA_VERIFY_RECOVER, mechanism)?;
        algorithm.check(self.key(&object)?, &params)?;
        let op = RecoverOp { count, algorithm, object, params };
        session.verify_recover = Active::Initialized(op);
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
        let result = session.verify_recover.single().and_then(|op| {
            let key = op.object.key().ok_or(Error::KEY_HANDLE_INVALID)?;
            out.at_most(op.algorithm.length(key, &op.params), |room| {
                op.algorithm.recover(key, &op.params, signature, room)
            })
        });
        if ends(result)
            && let Some(op) = session.verify_recover.end()
        {
            op.count.done(signature.len(), result.is_ok(), watch);
            session.keep(op.object);
        }
        result.map(drop)
    }
}
