// SPDX-License-Identifier: Apache-2.0
//! Several messages under one key (PKCS#11 3.2 §5.9, §5.11, §5.14, §5.16): what `C_Message…Init` chose stays, and each
//! message is what the functions for one message do, with the same checks. A call that fails ends its message and not the process.

mod cipher;
mod iv;
mod signature;

use super::OperationKind;
use crate::engine::Engine;
use crate::session::{Session, SessionGuard};
use metaslot_ck::{Error, Result, SessionHandle};

impl Engine {
    /// `C_MessageEncryptFinal` and its like.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.9.5 and its like name them; `CKR_OPERATION_ACTIVE` within a message.
    pub fn message_final(&self, session: SessionHandle, kind: OperationKind) -> Result<()> {
        let mut session = self.session(session)?;
        let Session { operations, recent, .. } = &mut *session;
        let process = operations.of(kind);
        process.between_messages()?;
        process.cancel(recent);
        Ok(())
    }

    /// A message begins, under the policy of this moment: what it does is as approved as if it were alone.
    fn begin_message(&self, session: &mut SessionGuard<'_>, kind: OperationKind) -> Result<()> {
        let policy = self.policy(session)?;
        let process = session.operations.of(kind);
        let key_type = process.object().map(|key| key.facts().key_type);
        let mechanism = process.mechanism().ok_or(Error::OPERATION_NOT_INITIALIZED)?;
        let approved = policy.approving(mechanism, kind.flag(), key_type)?;
        process.begins(approved);
        Ok(())
    }
}
