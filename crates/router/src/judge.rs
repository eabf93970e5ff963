// SPDX-License-Identifier: Apache-2.0
//! Whether providers agree: what one seals or signs every other one opens or verifies, and digests are the same.

use crate::Job;
use crate::health::is_failure;
use crate::material::Pair;
use metaslot_ck::{CKF_DECRYPT, CKF_DIGEST, CKF_ENCRYPT, CKF_SIGN, CKF_VERIFY, Error, Result};
use metaslot_spi::provider::{Algorithm, Cipher, Direction, Postponed, Signature, SignatureStream};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

/// How a row is asked for something.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    /// In one call.
    Once,
    /// In parts, of which none is whole blocks.
    Parts,
    /// By several who come back for it, as asynchronous sessions do: what has lanes computes these side by side.
    Together,
}

/// As many as most kernels have lanes.
const TOGETHER: usize = 16;
/// Room for what a stream may write last, in bytes.
const LAST: usize = 256;

/// What each of those gets who asked; nothing where that is not done, or not so.
pub(crate) type Said = Vec<Result<Vec<u8>>>;

/// What one gets, of so many bytes at most.
fn one(length: usize, write: impl FnOnce(&mut [u8]) -> Result<usize>) -> Said {
    match written(length, write) {
        Err(Error::FUNCTION_NOT_SUPPORTED) => Said::new(),
        said => vec![said],
    }
}

/// What several get who all begin before the first comes back.
fn together(length: usize, begin: impl Fn() -> Postponed) -> Said {
    let mut begun = Vec::new();
    while begun.len() < TOGETHER
        && let Some(one) = begin().transpose()
    {
        begun.push(one);
    }
    let mut ended = Said::new();
    for one in begun {
        ended.push(written(length, |out| one?.finish(out)));
    }
    ended
}

fn written(length: usize, write: impl FnOnce(&mut [u8]) -> Result<usize>) -> Result<Vec<u8>> {
    let mut out = vec![0; length];
    let used = write(&mut out)?;
    out.truncate(used);
    Ok(out)
}

/// What is said where a check lets nothing begin: one that refuses says nothing of its answers, one that fails has failed.
fn begins(checked: Result<()>) -> std::result::Result<(), Said> {
    checked.map_err(|error| if is_failure(error) { vec![Err(error)] } else { Said::new() })
}

/// How many got what is right, and of how many: one that fails says nothing, and one that refuses what is right is wrong.
fn count(said: Said, right: &dyn Fn(Result<Vec<u8>>) -> bool) -> Result<(usize, usize)> {
    let (mut rights, of) = (0, said.len());
    for one in said {
        match one {
            Err(error) if is_failure(error) => return Err(error),
            one => rights += usize::from(right(one)),
        }
    }
    Ok((rights, of))
}

/// Neither half is whole blocks.
fn parts(data: &[u8]) -> [&[u8]; 2] {
    let (one, other) = data.split_at((data.len() * 2 / 3 + 1).min(data.len()));
    [one, other]
}

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
        let data = (13..=251).cycle().take(job.data_length()).collect();
        Self { job, pair, params, data }
    }

    /// Whether two keys do it.
    pub(crate) fn has_pair(&self) -> bool {
        self.pair.as_ref().is_some_and(|[public, private]| !Arc::ptr_eq(public, private))
    }

    /// Whether a provider's results are also another's (or its own again); `None` where one of them does not do this job.
    pub(crate) fn agree(&self, one: &Algorithm, other: &Algorithm) -> Option<bool> {
        let (from, by) = match self.job.operation {
            CKF_DIGEST => {
                let [one, other] = [one, other].map(|row| self.made(row, Way::Once));
                return (!one.is_empty() && !other.is_empty()).then(|| one == other);
            }
            CKF_ENCRYPT | CKF_SIGN => (one, other),
            CKF_DECRYPT | CKF_VERIFY => (other, one),
            _ => return None,
        };
        let ciphers = self.is_of_ciphers();
        let Ok(made) = self.made(from, Way::Once).pop()? else {
            let there = if ciphers { by.decrypt.is_some() } else { by.verify.is_some() };
            return there.then_some(false);
        };
        match self.takes(by, Way::Once, &made) {
            Ok((0, 0)) => None,
            Ok((1, 1)) => Some(self.refuses(by, Way::Once, &made).unwrap_or(ciphers)),
            _ => Some(false),
        }
    }

    fn is_of_ciphers(&self) -> bool {
        matches!(self.job.operation, CKF_ENCRYPT | CKF_DECRYPT)
    }

    /// What a row makes of the data.
    pub(crate) fn made(&self, row: &Algorithm, way: Way) -> Said {
        match self.job.operation {
            CKF_DIGEST => self.digest(row, way),
            CKF_ENCRYPT | CKF_DECRYPT => {
                self.ciphered(row.encrypt, Direction::Forward, &self.data, way)
            }
            _ => self.signed(row, way),
        }
    }

    /// How many get the data of what was made, or take it, and of how many.
    ///
    /// # Errors
    /// What keeps one from an answer.
    pub(crate) fn takes(&self, row: &Algorithm, way: Way, made: &[u8]) -> Result<(usize, usize)> {
        // What is raw has zeros before it.
        let right = |said: Result<Vec<u8>>| said.is_ok_and(|said| said.ends_with(&self.data));
        match self.is_of_ciphers() {
            true => count(self.ciphered(row.decrypt, Direction::Backward, made, way), &right),
            false => count(self.verified(row, way, made), &|said| said.is_ok()),
        }
    }

    /// Whether none does so where a bit is another one.
    ///
    /// # Errors
    /// As [`Self::takes`].
    pub(crate) fn refuses(&self, row: &Algorithm, way: Way, made: &[u8]) -> Result<bool> {
        let mut wrong = made.to_vec();
        let ciphers = self.is_of_ciphers();
        if let Some(byte) = if ciphers { wrong.first_mut() } else { wrong.last_mut() } {
            *byte ^= 1;
        }
        if ciphers {
            return Ok(self.takes(row, way, &wrong)?.0 == 0);
        }
        let refused = |said: Result<Vec<u8>>| said == Err(Error::SIGNATURE_INVALID);
        let (refused, of) = count(self.verified(row, way, &wrong), &refused)?;
        Ok(refused == of)
    }

    fn digest(&self, row: &Algorithm, way: Way) -> Said {
        let Some(digest) = row.digest else { return Said::new() };
        let length = digest.length();
        match way {
            Way::Once => one(length, |out| digest.digest(&self.data, out).map(|()| length)),
            Way::Parts => one(length, |out| {
                let mut stream = digest.start()?;
                parts(&self.data).into_iter().try_for_each(|part| stream.update(part))?;
                stream.finish(out).map(|()| length)
            }),
            Way::Together => together(length, || digest.digest_later(&self.data)),
        }
    }

    fn ciphered(&self, row: Option<&dyn Cipher>, to: Direction, input: &[u8], way: Way) -> Said {
        let Some(pair) = &self.pair else { return Said::new() };
        let key = &pair[usize::from(to == Direction::Backward)];
        let Some(cipher) = row.filter(|row| row.serves(key)) else { return Said::new() };
        if let Err(said) = begins(cipher.check(to, key, &self.params)) {
            return said;
        }
        let length = match cipher.length(to, key, &self.params, input.len()) {
            Ok(length) => length,
            Err(error) => return vec![Err(error)],
        };
        match way {
            Way::Once => one(length, |out| cipher.run(to, key, &self.params, input, out)),
            Way::Parts => one(length + LAST, |out| {
                let mut stream = cipher.start(to, key, &self.params)?;
                let mut at = 0;
                for part in parts(input) {
                    let end = at + stream.update_length(part.len());
                    stream.update(part, out.get_mut(at..end).ok_or(Error::FUNCTION_FAILED)?)?;
                    at = end;
                }
                let last = out.get_mut(at..at + stream.finish_length());
                Ok(at + stream.finish(last.ok_or(Error::FUNCTION_FAILED)?)?)
            }),
            Way::Together => together(length, || cipher.run_later(to, key, &self.params, input)),
        }
    }

    fn signed(&self, row: &Algorithm, way: Way) -> Said {
        let Some([_, key]) = &self.pair else { return Said::new() };
        let Some(signer) = row.sign.filter(|row| row.serves(key)) else { return Said::new() };
        if let Err(said) = begins(signer.check(Direction::Forward, key, &self.params)) {
            return said;
        }
        let length = signer.length(key, &self.params);
        match way {
            Way::Once => one(length, |out| signer.sign(key, &self.params, &self.data, out)),
            Way::Parts => {
                one(length, |out| self.stream(signer, Direction::Forward, key)?.sign(out))
            }
            Way::Together => together(length, || signer.sign_later(key, &self.params, &self.data)),
        }
    }

    fn verified(&self, row: &Algorithm, way: Way, signature: &[u8]) -> Said {
        let Some([key, _]) = &self.pair else { return Said::new() };
        let Some(verifier) = row.verify.filter(|row| row.serves(key)) else { return Said::new() };
        if let Err(said) = begins(verifier.check(Direction::Backward, key, &self.params)) {
            return said;
        }
        let (params, data) = (&self.params, &self.data);
        let taken = |taken: Result<()>| taken.map(|()| 0);
        match way {
            Way::Once => one(0, |_| taken(verifier.verify(key, params, data, signature))),
            Way::Parts => one(0, |_| {
                let mut stream = self.stream(verifier, Direction::Backward, key)?;
                taken(stream.verify(signature))
            }),
            Way::Together => together(0, || verifier.verify_later(key, params, data, signature)),
        }
    }

    /// All of the data in a stream.
    fn stream(
        &self,
        signature: &dyn Signature,
        to: Direction,
        key: &Arc<Key>,
    ) -> Result<Box<dyn SignatureStream>> {
        let mut stream = signature.start(to, key, &self.params)?;
        parts(&self.data).into_iter().try_for_each(|part| stream.update(part))?;
        Ok(stream)
    }
}
