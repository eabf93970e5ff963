// SPDX-License-Identifier: Apache-2.0
//! Signatures and MACs by keys of a token.

use crate::mechanism::Mechanism;
use crate::params;
use crate::pin::unlock;
use crate::token::{Taken, Token};
use metaslot_ck::*;
use metaslot_client::{Once, Result as Called, Session};
use metaslot_memory::Secret;
use metaslot_spi::provider::{Direction, Signature, SignatureStream};
use metaslot_spi::{Key, Params, detail};
use std::sync::Arc;

const WRONG_LENGTH: &str = "a signature of another length than it must have";

impl Mechanism {
    fn signature(&self, key: &Key, params: &Params) -> Result<usize> {
        self.length.for_key(key, params).ok_or_else(|| {
            let name = self.token.name;
            detail::set(format_args!("{name}: how long a signature of this key is, is not known"));
            Error::KEY_TYPE_INCONSISTENT
        })
    }
}

impl Signature for Mechanism {
    /// The module's own checks come with the first data: its sessions are not taken before.
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        self.may_use(key)?;
        params::mechanism(self.number, params)?;
        self.signature(key, params).map(drop)
    }

    fn length(&self, key: &Key, params: &Params) -> usize {
        self.length.for_key(key, params).unwrap_or(0)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        self.sign_by(self.token.pin_for(key)?.as_ref(), key, params, data, out)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        let (row, mechanism) = (Self::row(key)?, params::mechanism(self.number, params)?);
        let data = [data, signature];
        self.token.with(|session| {
            let calls = [Function::VerifyInit, Function::Verify];
            let once = Once { calls, slot: None, mechanism: &mechanism, key: None, data: &data };
            if let Some(verified) = self.token.at_once(session, Some(row), once, &mut []) {
                return verified.map(drop);
            }
            let [data, signature] = data;
            session.verify_init(&mechanism, self.token.handle(session, row)?)?;
            session.verify_initialized(data, signature)
        })
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        let (row, mechanism) = (Self::row(key)?, params::mechanism(self.number, params)?);
        let pin = self.token.pin_for(key)?;
        let taken = self.token.begin(|session| {
            let handle = self.token.handle(session, row)?;
            match direction {
                Direction::Forward => session.sign_init(&mechanism, handle)?,
                Direction::Backward => session.verify_init(&mechanism, handle)?,
            }
            unlock(session, pin.as_ref())
        })?;
        Ok(Box::new(Run { token: self.token, taken: Some(taken), direction }))
    }
}

impl Mechanism {
    /// Signs; `pin`: the operation's own, where the key wants one for each.
    pub(crate) fn sign_by(
        &self,
        pin: Option<&Secret>,
        key: &Key,
        params: &Params,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        let (row, mechanism) = (Self::row(key)?, params::mechanism(self.number, params)?);
        let written = self.token.with(|session| {
            let calls = [Function::SignInit, Function::Sign];
            let once = Once { calls, slot: None, mechanism: &mechanism, key: None, data: &[data] };
            let at_once = || self.token.at_once(session, Some(row), once, &mut *out);
            if let Some(written) = pin.is_none().then(at_once).flatten() {
                return written;
            }
            session.sign_init(&mechanism, self.token.handle(session, row)?)?;
            unlock(session, pin)?;
            session.sign_into(data, out)
        })?;
        match written == out.len() {
            true => Ok(written),
            false => Err(self.token.lied(WRONG_LENGTH)),
        }
    }

    /// A result that is no longer than there was room, or the module is wrong.
    pub(crate) fn within(&self, written: usize, room: usize) -> Result<usize> {
        match written <= room {
            true => Ok(written),
            false => Err(self.token.lied("more bytes than there was room for")),
        }
    }
}

/// A signature in the middle. A session that is dropped here is closed, and the operation with it.
#[derive(Debug)]
struct Run {
    token: &'static Token,
    taken: Option<Taken>,
    direction: Direction,
}

impl SignatureStream for Run {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        let direction = self.direction;
        self.token.go_on(&mut self.taken, |session| match direction {
            Direction::Forward => session.sign_update(data),
            Direction::Backward => session.verify_update(data),
        })
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        let signature = self.token.finish(&mut self.taken, Session::sign_final)?;
        if signature.len() != out.len() {
            return Err(self.token.lied(WRONG_LENGTH));
        }
        out.copy_from_slice(&signature);
        Ok(out.len())
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        let check = |session: &Session| -> Called<()> { session.verify_final(signature) };
        self.token.finish(&mut self.taken, check)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.token.abandon(&mut self.taken);
    }
}
