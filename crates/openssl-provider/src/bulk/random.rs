// SPDX-License-Identifier: Apache-2.0
//! Random bytes: the token's, without a state of their own.

use super::Work;
use super::sessions::Whose as _;
use crate::abi::Answer;
use crate::failure::{Failure, Result};
use crate::provider::Provider;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bits of security that a token's generator is said to have, and the most bytes that are asked for at once.
const STRENGTH: i64 = 256;
const MOST: i64 = 65_536;

/// libcrypto's numbers of what a generator is.
const UNINSTANTIATED: i64 = 0;
const READY: i64 = 1;

/// A generator, which threads share without a lock.
#[derive(Debug)]
pub(crate) struct Random {
    provider: Arc<Provider>,
    ready: AtomicBool,
}

impl Work for Random {
    fn provider(&self) -> &Arc<Provider> {
        &self.provider
    }

    fn answer(&self, name: &[u8]) -> Option<Answer<'_>> {
        Some(Answer::Number(match name {
            b"state" if self.is_ready() => READY,
            b"state" => UNINSTANTIATED,
            b"strength" => STRENGTH,
            b"max_request" => MOST,
            _ => return None,
        }))
    }
}

impl Random {
    pub(crate) const fn new(provider: Arc<Provider>) -> Self {
        Self { provider, ready: AtomicBool::new(false) }
    }

    pub(crate) fn begin(&self, strength: u32) -> Result<()> {
        self.ready.store(i64::from(strength) <= STRENGTH, Ordering::Relaxed);
        self.check(strength)
    }

    pub(crate) fn end(&self) {
        self.ready.store(false, Ordering::Relaxed);
    }

    fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    /// Whether it may be asked for bytes of this strength.
    fn check(&self, strength: u32) -> Result<()> {
        let right = self.is_ready() && i64::from(strength) <= STRENGTH;
        right.then_some(()).ok_or_else(|| Failure::input("the generator is not ready for this"))
    }

    pub(crate) fn fill(&self, strength: u32, out: &mut [u8]) -> Result<()> {
        self.check(strength)?;
        self.provider.bulk().random(&self.provider, out)
    }
}
