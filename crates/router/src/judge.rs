// SPDX-License-Identifier: Apache-2.0
//! Whether providers agree: what one seals or signs every other one opens or verifies, and digests are the same.

use crate::Job;
use crate::material::Pair;
use metaslot_ck::{CKF_DECRYPT, CKF_DIGEST, CKF_ENCRYPT, CKF_SIGN, CKF_VERIFY, Error, Result};
use metaslot_spi::Params;
use metaslot_spi::provider::{Algorithm, Direction};
use std::sync::Arc;

/// One job, for any provider.
pub(crate) struct Judge {
    job: Job,
    /// A public key and its private one; twice the same secret key.
    pair: Option<Pair>,
    params: Params,
    data: Vec<u8>,
}

impl Judge {
    pub(crate) fn new(job: Job, pair: Option<Pair>, params: Params) -> Self {
        // No two neighbours alike.
        // 32 of these bytes end as ANSI X9.31 wants it.
        let data = (13..=251).cycle().take(job.bytes).collect();
        Self { job, pair, params, data }
    }

    /// Whether one key does both.
    pub(crate) fn has_secret_key(&self) -> bool {
        self.pair.as_ref().is_some_and(|[one, other]| Arc::ptr_eq(one, other))
    }

    /// Whether a provider's results are also another's (or its own again); `None` where one of them does not do this job.
    pub(crate) fn agree(&self, one: &Algorithm, other: &Algorithm) -> Option<bool> {
        let agreed = match self.job.operation {
            CKF_DIGEST => self.digest(one)? == self.digest(other)?,
            CKF_ENCRYPT => self.opened(other, self.sealed(one)?)?,
            CKF_DECRYPT => self.opened(one, self.sealed(other)?)?,
            CKF_SIGN => self.verified(other, self.signed(one)?)?,
            CKF_VERIFY => self.verified(one, self.signed(other)?)?,
            _ => return None,
        };
        Some(agreed)
    }

    pub(crate) fn digest(&self, row: &Algorithm) -> Option<Result<Vec<u8>>> {
        let digest = row.digest?;
        let mut out = vec![0; digest.length()];
        Some(digest.digest(&self.data, &mut out).map(|()| out))
    }

    pub(crate) fn sealed(&self, row: &Algorithm) -> Option<Result<Vec<u8>>> {
        let ([key, _], direction) = (self.pair.as_ref()?, Direction::Forward);
        let cipher = row.encrypt.filter(|row| row.serves(key))?;
        cipher.check(direction, key, &self.params).ok()?;
        let sealed =
            cipher.length(direction, key, &self.params, self.data.len()).and_then(|length| {
                let mut out = vec![0; length];
                let used = cipher.run(direction, key, &self.params, &self.data, &mut out)?;
                out.truncate(used);
                Ok(out)
            });
        Some(sealed)
    }

    /// Whether what was sealed is the data again.
    pub(crate) fn open(&self, row: &Algorithm, sealed: &[u8]) -> Option<Result<bool>> {
        let ([_, key], direction) = (self.pair.as_ref()?, Direction::Backward);
        let cipher = row.decrypt.filter(|row| row.serves(key))?;
        cipher.check(direction, key, &self.params).ok()?;
        let opened = cipher.length(direction, key, &self.params, sealed.len()).and_then(|length| {
            let mut out = vec![0; length];
            let used = cipher.run(direction, key, &self.params, sealed, &mut out)?;
            // What is raw has zeros before it.
            Ok(out[..used].ends_with(&self.data))
        });
        Some(opened)
    }

    /// Whether what was sealed is the data again, and is not when a bit of it is another one, where that must show.
    fn opened(&self, row: &Algorithm, sealed: Result<Vec<u8>>) -> Option<bool> {
        let Ok(mut sealed) = sealed else { return row.decrypt.map(|_| false) };
        let agreed = self.open(row, &sealed)? == Ok(true);
        if let Some(bit) = sealed.first_mut() {
            *bit ^= 1;
        }
        Some(agreed && self.open(row, &sealed)? != Ok(true))
    }

    pub(crate) fn signed(&self, row: &Algorithm) -> Option<Result<Vec<u8>>> {
        let [_, key] = self.pair.as_ref()?;
        let signer = row.sign.filter(|row| row.serves(key))?;
        signer.check(Direction::Forward, key, &self.params).ok()?;
        let mut out = vec![0; signer.length(key, &self.params)];
        let used = signer.sign(key, &self.params, &self.data, &mut out);
        Some(used.map(|used| {
            out.truncate(used);
            out
        }))
    }

    /// What is said of a signature.
    pub(crate) fn verify(&self, row: &Algorithm, signature: &[u8]) -> Option<Result<()>> {
        let [key, _] = self.pair.as_ref()?;
        let verifier = row.verify.filter(|row| row.serves(key))?;
        verifier.check(Direction::Backward, key, &self.params).ok()?;
        Some(verifier.verify(key, &self.params, &self.data, signature))
    }

    /// Whether a signature is taken, and refused when a bit of it is another one.
    fn verified(&self, row: &Algorithm, signature: Result<Vec<u8>>) -> Option<bool> {
        let Ok(mut signature) = signature else { return row.verify.map(|_| false) };
        let taken = self.verify(row, &signature)? == Ok(());
        if let Some(bit) = signature.last_mut() {
            *bit ^= 1;
        }
        Some(taken && self.verify(row, &signature)? == Err(Error::SIGNATURE_INVALID))
    }
}
