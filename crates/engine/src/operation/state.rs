// SPDX-License-Identifier: Apache-2.0
//! Saved operations (PKCS#11 3.2 §5.6.6): digests only, since nothing else can be saved without a key.

use super::{Active, Chosen, Lock, OperationKind, digest};
use crate::engine::Engine;
use crate::session::Session;
use metaslot_ck::{CKF_DIGEST, Error, ObjectHandle, Result, SessionHandle};
use metaslot_memory::Secret;
use metaslot_spi::Params;

/// Begins every saved state; the digit is its version.
const MAGIC: &[u8; 8] = b"metadig1";

impl Engine {
    /// `C_GetOperationState`: the bytes are [`MAGIC`], the mechanism, and the provider's own.
    ///
    /// # Errors
    /// `CKR_OPERATION_NOT_INITIALIZED`; `CKR_STATE_UNSAVEABLE` for any operation but a digest, and for
    /// a digest that holds a key which may not be read.
    pub fn operation_state(&self, session: SessionHandle) -> Result<Secret> {
        let mut session = self.session(session)?;
        let operations = &mut session.operations;
        if operations.any(|kind, operation| {
            operation.is_pending() || (kind != OperationKind::Digest && operation.is_active())
        }) {
            return Err(Error::STATE_UNSAVEABLE);
        }
        let (op, run) = operations.digest.stream(digest::start)?;
        if run.holds_key {
            return Err(Error::STATE_UNSAVEABLE);
        }
        let mut state = MAGIC.to_vec();
        state.extend_from_slice(&op.mechanism.to_le_bytes());
        state.extend_from_slice(Secret::taken(run.stream.save()?).expose());
        Ok(Secret::taken(state))
    }

    /// `C_SetOperationState`: what was active in the session is cancelled.
    ///
    /// # Errors
    /// `CKR_SAVED_STATE_INVALID`, `CKR_KEY_NOT_NEEDED`
    pub fn set_operation_state(
        &self,
        session: SessionHandle,
        state: &[u8],
        encryption_key: ObjectHandle,
        authentication_key: ObjectHandle,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        if encryption_key.0 != 0 || authentication_key.0 != 0 {
            return Err(Error::KEY_NOT_NEEDED);
        }
        let rest = state.strip_prefix(MAGIC).ok_or(Error::SAVED_STATE_INVALID)?;
        let (mechanism, rest) = rest.split_first_chunk().ok_or(Error::SAVED_STATE_INVALID)?;
        let mechanism = u64::from_le_bytes(*mechanism);
        let approved = self.policy(&session)?.approving(mechanism, CKF_DIGEST, None);
        let approved = approved.map_err(|_| Error::SAVED_STATE_INVALID)?;
        let route = self.route(mechanism, |row| row.digest);
        let (count, algorithm) = route.map_err(|error| match error {
            Error::MECHANISM_INVALID => Error::SAVED_STATE_INVALID,
            error => error,
        })?;
        let stream = algorithm.restore(rest)?;
        let run = digest::DigestRun { stream, holds_key: false, brought: true };
        let Session { operations, recent, find, .. } = &mut *session;
        operations.cancel(recent, |_, _| true);
        *find = None;
        let (params, lock) = (Params::None, Lock::Open);
        let chosen = Chosen { count, mechanism, algorithm, params, object: None, lock, approved };
        operations.digest = Active::MultiPart(chosen, run);
        Ok(())
    }
}
