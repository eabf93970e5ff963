// SPDX-License-Identifier: Apache-2.0
//! A message that is signed in parts. A short one is kept, so that the token hashes and signs it in one call; a long one is
//! hashed by the token as it comes.

use crate::failure::{Failure, Result};
use crate::hash::Hash;
use crate::host::Lease;
use metaslot_ck::ObjectHandle;
use metaslot_client::Mechanism;

/// How many bytes are kept.
const SHORT: usize = 64 * 1024;

/// What has come so far.
#[derive(Debug, Default)]
pub(crate) struct Message {
    bytes: Vec<u8>,
    /// A session that hashes, and what came before `bytes` in it.
    running: Option<Lease>,
    /// The module cannot copy what it hashes, or is not asked to: all is kept.
    kept: bool,
}

/// All of it.
#[derive(Debug)]
pub(crate) enum Whole {
    Bytes(Vec<u8>),
    Digest(Vec<u8>),
}

impl Message {
    /// One that is kept whatever its length: there is no hash function, or two.
    pub(crate) fn kept() -> Self {
        Self { kept: true, ..Self::default() }
    }

    /// One more part; `session` is where the token hashes.
    pub(crate) fn update(
        &mut self,
        part: &[u8],
        hash: &Hash,
        session: impl FnOnce() -> Result<Lease>,
    ) -> Result<()> {
        if self.running.is_none() {
            self.bytes.extend_from_slice(part);
            if self.kept || self.bytes.len() <= SHORT {
                return Ok(());
            }
            let lease = session()?;
            let failed = |error| lease.token().failed("hash", error);
            lease.digest_init(&Mechanism::new(hash.digest)).map_err(failed)?;
            lease.digest_update(&self.bytes).map_err(failed)?;
            if lease.operation_state().is_err() {
                // OpenSSL 3.0 copies contexts before it finishes them.
                self.kept = true;
                return Ok(());
            }
            self.bytes = Vec::new();
            self.running = Some(lease);
            return Ok(());
        }
        match &self.running {
            Some(lease) => {
                here(lease)?;
                lease.digest_update(part).map_err(|error| lease.token().failed("hash", error))
            }
            None => Ok(()),
        }
    }

    /// Whether nothing has come.
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.running.is_none()
    }

    /// All that came, or its digest.
    pub(crate) fn finish(&mut self) -> Result<Whole> {
        let Some(mut lease) = self.running.take() else {
            return Ok(Whole::Bytes(std::mem::take(&mut self.bytes)));
        };
        here(&lease)?;
        let digest = lease.digest_final().map_err(|error| lease.token().failed("hash", error))?;
        lease.succeeded();
        Ok(Whole::Digest(digest))
    }

    /// A copy, which goes on for itself.
    pub(crate) fn copy(&self) -> Result<Self> {
        let running = match &self.running {
            None => None,
            Some(lease) => {
                here(lease)?;
                let failed = |error| lease.token().failed("copy what is hashed", error);
                let state = lease.operation_state().map_err(failed)?;
                let copy = lease.token().session()?;
                let none = ObjectHandle(0);
                copy.set_operation_state(&state, none, none).map_err(failed)?;
                Some(copy)
            }
        };
        Ok(Self { bytes: self.bytes.clone(), running, kept: self.kept })
    }
}

/// A session of the parent's process is none here.
fn here(lease: &Lease) -> Result<()> {
    let elsewhere = || Failure::input("the message was begun before the process was forked");
    lease.is_here().then_some(()).ok_or_else(elsewhere)
}
