// SPDX-License-Identifier: Apache-2.0
//! What a module does without a key, for every caller: digests and random numbers.
//!
//! A caller can do nothing wrong here, so that every failure is the module's, and another provider may be asked.

use crate::token::{Taken, Token};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Once, Session};
use metaslot_memory::Secret;
use metaslot_spi::detail;
use metaslot_spi::hashes::{self, DIGESTS};
use metaslot_spi::provider::{Algorithm, Digest, DigestStream, Provider};

/// A token of the module, as a provider.
#[derive(Debug)]
pub(crate) struct Keyless {
    token: &'static Token,
    rows: &'static [Algorithm],
}

/// What a token does so, if it does anything that the configuration wants.
pub(crate) fn provider(token: &'static Token) -> Option<&'static dyn Provider> {
    if let Some(known) = token.keyless.get() {
        return Some(*known);
    }
    let rows = if token.serves.digest { digests(token) } else { Vec::new() };
    // One that is not there yet says nothing yet.
    let serves = !rows.is_empty() || token.serves.random && has_random(token);
    let served = || &*Box::leak(Box::new(Keyless { token, rows: Vec::leak(rows) }));
    serves.then(|| *token.keyless.get_or_init(|| served()))
}

fn has_random(token: &Token) -> bool {
    let info = token.call(|| token.module.library.token_info(token.slot()));
    info.is_ok_and(|info| info.has(CKF_TOKEN_INITIALIZED) && info.has(CKF_RNG))
}

fn digests(token: &'static Token) -> Vec<Algorithm> {
    let info = token.call(|| token.module.library.token_info(token.slot()));
    if !info.is_ok_and(|info| info.has(CKF_TOKEN_INITIALIZED)) {
        return Vec::new();
    }
    let named = |number| token.mechanisms.contains(&number) && !token.without.contains(&number);
    let does = |number| {
        let info = token.call(|| token.module.library.mechanism_info(token.slot(), number));
        info.is_ok_and(|info| info.flags & CKF_DIGEST != 0)
    };
    let row = |(mechanism, length)| {
        let hash: &'static Hash = Box::leak(Box::new(Hash { token, mechanism, length }));
        Algorithm { mechanism, digest: Some(hash), ..Algorithm::NONE }
    };
    let all = DIGESTS.into_iter().filter(|(number, _)| named(*number) && does(*number));
    let mut rows: Vec<_> = all.map(row).collect();
    rows.sort_unstable_by_key(|row| row.mechanism);
    rows
}

/// Chance does not make so many bytes of zeros: nothing was written.
const TELLING: usize = 16;

impl Provider for Keyless {
    fn name(&self) -> &'static str {
        self.token.name
    }

    fn depends_on_company(&self) -> bool {
        true
    }

    fn answers_for_itself(&self) -> bool {
        true
    }

    fn algorithms(&'static self) -> &'static [Algorithm] {
        self.rows
    }

    fn random(&self, out: &mut [u8]) -> Result<()> {
        if !self.token.serves.random {
            return Err(Error::RANDOM_NO_RNG);
        }
        if out.len() < TELLING {
            let mut more = Secret::try_zeroed(TELLING).ok_or(Error::DEVICE_MEMORY)?;
            self.random(more.expose_mut())?;
            out.copy_from_slice(&more.expose()[..out.len()]);
            return Ok(());
        }
        out.fill(0);
        self.token.with(|session| session.random(out)).map_err(failed)?;
        match out.iter().all(|byte| *byte == 0) {
            true => Err(self.token.lied("no random numbers")),
            false => Ok(()),
        }
    }
}

/// A code that says that the module failed.
const fn failed(code: Error) -> Error {
    match code {
        Error::DEVICE_REMOVED | Error::TOKEN_NOT_RECOGNIZED => Error::DEVICE_REMOVED,
        Error::DEVICE_MEMORY => Error::DEVICE_MEMORY,
        _ => Error::DEVICE_ERROR,
    }
}

/// A hash function of a module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hash {
    token: &'static Token,
    mechanism: CK_MECHANISM_TYPE,
    length: usize,
}

impl Hash {
    /// None where it is not known how long its digests are.
    pub(crate) fn of(token: &'static Token, mechanism: CK_MECHANISM_TYPE) -> Option<Self> {
        let length = hashes::length(mechanism)?;
        Some(Self { token, mechanism, length })
    }

    /// Of its digests, in bytes.
    pub(crate) const fn length(self) -> usize {
        self.length
    }
}

impl Digest for Hash {
    fn length(&self) -> usize {
        self.length
    }

    fn digest(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        let mechanism = Mechanism::new(self.mechanism);
        let written = self.token.with(|session| {
            let calls = [Function::DigestInit, Function::Digest];
            let once = Once { calls, slot: None, mechanism: &mechanism, key: None, data: &[data] };
            if let Some(written) = self.token.at_once(session, None, once, &mut *out) {
                return written;
            }
            session.digest_init(&mechanism)?;
            session.digest_into(data, out)
        });
        fits(self.token, written.map_err(failed)?, out.len())
    }

    fn start(&self) -> Result<Box<dyn DigestStream>> {
        let mechanism = Mechanism::new(self.mechanism);
        let taken = self.token.begin(|session| session.digest_init(&mechanism)).map_err(failed)?;
        Ok(Box::new(Run { token: self.token, taken: Some(taken) }))
    }

    /// What others saved means nothing to the module.
    fn restore(&self, _: &[u8]) -> Result<Box<dyn DigestStream>> {
        Err(Error::SAVED_STATE_INVALID)
    }
}

fn fits(token: &Token, written: usize, length: usize) -> Result<()> {
    match written == length {
        true => Ok(()),
        false => Err(token.lied("a digest of another length than it must have")),
    }
}

/// A hash in the middle. A session that is dropped here is closed, and the operation with it.
#[derive(Debug)]
struct Run {
    token: &'static Token,
    taken: Option<Taken>,
}

impl DigestStream for Run {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        self.token.go_on(&mut self.taken, |session| session.digest_update(data)).map_err(failed)
    }

    fn update_by_key(&mut self, _: &[u8]) -> Result<()> {
        detail::set(format_args!("{} is brought no key to digest", self.token.name));
        Err(Error::KEY_INDIGESTIBLE)
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<()> {
        let digest = self.token.finish(&mut self.taken, Session::digest_final).map_err(failed)?;
        fits(self.token, digest.len(), out.len())?;
        out.copy_from_slice(&digest);
        Ok(())
    }

    fn save(&self) -> Result<Vec<u8>> {
        detail::set(format_args!("{} keeps the state of its digests", self.token.name));
        Err(Error::STATE_UNSAVEABLE)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.token.abandon(&mut self.taken);
    }
}
