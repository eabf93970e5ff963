// SPDX-License-Identifier: Apache-2.0
//! How an operation with a key begins: the checks of `C_EncryptInit`, `C_SignInit` and their like.

use super::{Choice, Lock, OperationKind};
use crate::engine::Engine;
use crate::session::SessionGuard;
use metaslot_ck::{CK_MECHANISM_TYPE, Error, ObjectHandle, Result};
use metaslot_spi::provider::{Algorithm, Cipher, Direction, Recover, Signature};
use metaslot_spi::{Key, Params};

/// What is asked of an algorithm before it gets a key.
pub(crate) trait Keyed {
    /// Whether this provider is the one for such a key.
    fn takes(&self, key: &Key) -> bool;

    /// Whether a caller that waits gains anything.
    fn gains(&self, direction: Direction) -> bool;

    /// Refuses keys and parameters that cannot work, and prepares the key.
    fn refuse(&self, direction: Direction, key: &Key, params: &Params) -> Result<()>;
}

impl Keyed for dyn Cipher {
    fn takes(&self, key: &Key) -> bool {
        self.serves(key)
    }

    fn gains(&self, direction: Direction) -> bool {
        self.for_waiting(direction)
    }

    fn refuse(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.check(direction, key, params)
    }
}

impl Keyed for dyn Signature {
    fn takes(&self, key: &Key) -> bool {
        self.serves(key)
    }

    fn gains(&self, _: Direction) -> bool {
        self.for_waiting()
    }

    fn refuse(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.check(direction, key, params)
    }
}

impl Keyed for dyn Recover {
    fn takes(&self, _: &Key) -> bool {
        true
    }

    fn gains(&self, _: Direction) -> bool {
        true
    }

    fn refuse(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        self.check(key, params)
    }
}

impl Engine {
    /// Checks key, usage, mechanism, parameters and policy, and chooses the provider: everything
    /// that can be refused is refused here.
    pub(crate) fn choose<A: Keyed + ?Sized>(
        &self,
        session: &mut SessionGuard<'_>,
        kind: OperationKind,
        (mechanism, params): (CK_MECHANISM_TYPE, &Params),
        key: ObjectHandle,
        operation: impl Fn(&'static Algorithm) -> Option<&'static A>,
    ) -> Result<Choice<A>> {
        let direction = kind.direction();
        let object = self
            .key_for(session, key, kind.usage(), mechanism)
            .map_err(|error| self.refused(mechanism, &operation, error))?;
        let signing = !matches!(kind, OperationKind::Encrypt | OperationKind::Decrypt);
        let (policy, facts) = (self.policy(session)?, object.facts());
        policy.using_key(kind.key_use(), facts)?;
        policy.using_mechanism(mechanism, params, facts, direction, signing)?;
        let (key, later) = (self.key(&object)?, session.asynchronous);
        let (count, algorithm) = self
            .route_with(&object, mechanism, |row| {
                operation(row).filter(|a| a.takes(key) && (later || a.gains(direction)))
            })
            .map_err(|_| self.refused(mechanism, &operation, Error::KEY_SIZE_RANGE))?;
        algorithm.refuse(direction, key, params)?;
        session.uses(&object, kind);
        let lock = if object.facts().always_authenticate { Lock::Locked } else { Lock::Open };
        Ok(Choice { count, algorithm, object, lock })
    }
}
