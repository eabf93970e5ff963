// SPDX-License-Identifier: Apache-2.0
//! One operation, by the raw library or a module.

use crate::{Failure, Result};

/// One operation, ready to be repeated.
pub(crate) trait Operation {
    /// Does it `times` times; the loop is inside, so no call through the trait is timed.
    fn repeat(&mut self, times: u64) -> Result<()>;

    /// Checks the last result: a signature verifies, a ciphertext decrypts to what it was.
    fn check(&mut self) -> Result<()>;
}

/// An operation made of its state and two functions.
pub(crate) struct Loop<S, R, C> {
    state: S,
    once: R,
    check: C,
}

impl<S, R, C> Loop<S, R, C>
where
    R: FnMut(&mut S) -> Result<()>,
    C: FnMut(&mut S) -> Result<()>,
{
    /// Boxed, because every caller wants it so.
    pub(crate) fn boxed(state: S, once: R, check: C) -> Box<dyn Operation>
    where
        S: 'static,
        R: 'static,
        C: 'static,
    {
        Box::new(Self { state, once, check })
    }
}

impl<S, R, C> Operation for Loop<S, R, C>
where
    R: FnMut(&mut S) -> Result<()>,
    C: FnMut(&mut S) -> Result<()>,
{
    fn repeat(&mut self, times: u64) -> Result<()> {
        for _ in 0..times {
            (self.once)(&mut self.state)?;
        }
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        (self.check)(&mut self.state)
    }
}

/// Fails with `what` unless `right`.
pub(crate) fn expect(right: bool, what: &str) -> Result<()> {
    if right { Ok(()) } else { Err(Failure::new(format!("wrong result: {what}"))) }
}

/// A fresh IV for each operation: the standard forbids to use one twice with one key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nonce(u64);

impl Nonce {
    /// Threads must not share IVs either: each starts elsewhere.
    pub(crate) fn new() -> Self {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed) << 40)
    }

    /// The next one, in the first eight of `N` bytes.
    pub(crate) fn next<const N: usize>(&mut self) -> [u8; N] {
        self.0 += 1;
        let mut bytes = [0; N];
        bytes[..8].copy_from_slice(&self.0.to_be_bytes());
        bytes
    }
}
