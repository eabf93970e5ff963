// SPDX-License-Identifier: Apache-2.0
//! How an operation with a key begins: the checks of `C_EncryptInit`, `C_SignInit` and their like.

use super::{Choice, Lock, OperationKind};
use crate::engine::Engine;
use crate::session::SessionGuard;
use metaslot_ck::{CK_MECHANISM_TYPE, Error, ObjectHandle, Result};
use metaslot_router::tested::Tested;
use metaslot_rules::policy::KeyUse;
use metaslot_spi::provider::{Algorithm, Cipher, Digest, Direction, Recover, Signature};
use metaslot_spi::{Key, Params};

/// What is asked of an algorithm before it does anything.
pub(crate) trait Served: Tested + 'static {
    /// What a provider has for operations of a kind.
    fn of(row: &'static Algorithm, kind: OperationKind) -> Option<&'static Self>;

    /// Whether this provider is the one for such a key.
    fn takes(&self, _: &Key) -> bool {
        true
    }

    /// Whether a caller that waits gains anything.
    fn gains(&self, _: Direction) -> bool {
        true
    }

    /// Refuses keys and parameters that cannot work, and prepares the key.
    fn refuse(&self, direction: Direction, key: &Key, params: &Params) -> Result<()>;
}

impl Served for dyn Digest {
    fn of(row: &'static Algorithm, _: OperationKind) -> Option<&'static Self> {
        row.digest
    }

    fn gains(&self, _: Direction) -> bool {
        self.for_waiting()
    }

    fn refuse(&self, _: Direction, _: &Key, _: &Params) -> Result<()> {
        Ok(())
    }
}

impl Served for dyn Cipher {
    fn of(row: &'static Algorithm, kind: OperationKind) -> Option<&'static Self> {
        match kind.direction() {
            Direction::Forward => row.encrypt,
            Direction::Backward => row.decrypt,
        }
    }

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

impl Served for dyn Signature {
    fn of(row: &'static Algorithm, kind: OperationKind) -> Option<&'static Self> {
        match (kind, kind.direction()) {
            (OperationKind::SignRecover, _) => row.sign_recover,
            (_, Direction::Forward) => row.sign,
            (_, Direction::Backward) => row.verify,
        }
    }

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

impl Served for dyn Recover {
    fn of(row: &'static Algorithm, _: OperationKind) -> Option<&'static Self> {
        row.verify_recover
    }

    fn refuse(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        self.check(key, params)
    }
}

impl Engine {
    /// Checks key, usage, mechanism, parameters and policy, and chooses the provider: everything
    /// that can be refused is refused here.
    pub(crate) fn choose<A: Served + ?Sized>(
        &self,
        session: &mut SessionGuard<'_>,
        kind: OperationKind,
        (mechanism, params): (CK_MECHANISM_TYPE, &Params),
        key: ObjectHandle,
    ) -> Result<Choice<A>> {
        let direction = kind.direction();
        let operation = |row| A::of(row, kind);
        let object = self
            .key_for(session, key, kind.usage(), mechanism)
            .map_err(|error| self.refused(mechanism, operation, error))?;
        let signing = !matches!(kind.key_use(), KeyUse::Encrypt | KeyUse::Decrypt);
        let (policy, facts) = (self.policy(session)?, object.facts());
        policy.using_key(kind.key_use(), facts)?;
        let approved = policy.approving(mechanism, kind.flag(), Some(facts.key_type))?;
        policy.using_mechanism(mechanism, params, facts, direction, signing)?;
        let (key, later) = (self.key(&object)?, session.asynchronous);
        let (count, algorithm) = self
            .route_with(&object, mechanism, |row| {
                operation(row).filter(|a| a.takes(key) && (later || a.gains(direction)))
            })
            .map_err(|error| match error {
                Error::MECHANISM_INVALID => {
                    self.refused(mechanism, operation, Error::KEY_SIZE_RANGE)
                }
                // Who would do it failed in a self test.
                error => error,
            })?;
        algorithm.refuse(direction, key, params)?;
        let slot = session.slot;
        session.uses(&object, kind, &*self.token(slot)?.store);
        let lock = if object.facts().always_authenticate { Lock::Locked } else { Lock::Open };
        Ok(Choice { count, algorithm, object, lock, approved })
    }
}
