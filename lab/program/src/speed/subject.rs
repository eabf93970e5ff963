// SPDX-License-Identifier: Apache-2.0
//! What does the work: the raw library or a module, behind one trait.

use super::cell::Cell;
use crate::{Failure, Result};

/// One operation, ready to be repeated.
pub(crate) trait Operation {
    /// Does it `times` times; the loop is inside, so no call through the trait is timed.
    fn repeat(&mut self, times: u64) -> Result<()>;

    /// Checks the last result: a signature verifies, a ciphertext decrypts to what it was.
    fn check(&mut self) -> Result<()>;
}

/// Something that can do a cell's work, on any thread.
pub(crate) trait Subject: Sync {
    /// The operation of a cell, with its own session and buffers.
    ///
    /// # Errors
    /// The subject cannot do it; the words go into the result.
    fn operation<'a>(&'a self, cell: &Cell) -> Result<Box<dyn Operation + 'a>>;
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
    /// Boxed, because that is how everybody wants it.
    pub(crate) fn boxed<'a>(state: S, once: R, check: C) -> Box<dyn Operation + 'a>
    where
        S: 'a,
        R: 'a,
        C: 'a,
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

/// The message that is signed, or the digest for ECDSA.
pub(crate) const MESSAGE: [u8; 32] = *b"thirty-two bytes to sign, anyway";

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
