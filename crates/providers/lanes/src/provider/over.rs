// SPDX-License-Identifier: Apache-2.0
//! A kernel's rows over the plain provider's: what the kernel does not take, and all that is not computing, is the plain row's.

use super::batch::{Batch, Meeting};
use super::parts::{Held, Message, Plain, kept};
use metaslot_ck::{CK_MECHANISM_TYPE, Result};
use metaslot_spi::provider::{
    Algorithm, Cipher, CipherStream, Direction, Postponed, Signature, SignatureStream,
};
use metaslot_spi::{Key, Params};
use std::fmt::Debug;
use std::sync::Arc;

/// A row over a plain one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Over<T>(pub(super) T);

/// Who calls with a message: a thread that waits, or one that comes back for the result and lends nothing until then.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call<'a, 'd> {
    Waits { key: &'a Key, data: &'a [u8] },
    Leaves { key: &'d Arc<Key>, data: &'d [u8] },
}

impl<'a> Call<'a, '_> {
    pub(super) const fn waits(self) -> bool {
        matches!(self, Self::Waits { .. })
    }

    pub(super) fn key(&self) -> &Key {
        match self {
            Self::Waits { key, .. } => key,
            Self::Leaves { key, .. } => key,
        }
    }

    pub(super) const fn data(&self) -> &[u8] {
        match self {
            Self::Waits { data, .. } => data,
            Self::Leaves { data, .. } => data,
        }
    }

    /// The key for the time of a work.
    pub(super) fn held(self) -> Held<'a> {
        match self {
            Self::Waits { key, .. } => Held::Borrowed(key),
            Self::Leaves { key, .. } => Held::Shared(Arc::clone(key)),
        }
    }

    /// The message for the time of a work.
    pub(super) fn message(self) -> Result<Message<'a>> {
        match self {
            Self::Waits { data, .. } => Ok(Message::Borrowed(data)),
            Self::Leaves { data, .. } => Message::copy(data),
        }
    }
}

/// A work and where it meets others; `None` for what the plain row does.
pub(super) type Ready<'a, B> = Option<(&'static Meeting<B>, <B as Batch>::Work<'a>)>;

/// What kernels do of a row of signatures.
pub(super) trait Signing: Debug + Sync {
    type Sign: Batch;
    type Verify: Batch;

    /// The row beneath.
    fn plain(&self) -> &'static dyn Signature;

    /// As [`Signature::serves`].
    fn serves(&self, key: &Key) -> bool;

    /// As [`Signature::for_waiting`].
    fn for_waiting(&self) -> bool {
        true
    }

    /// A signature to be made.
    fn sign<'a>(&self, call: Call<'a, '_>, params: &Params) -> Result<Ready<'a, Self::Sign>>;

    /// A signature to be checked.
    fn verify<'a>(
        &self,
        call: Call<'a, '_>,
        params: &Params,
        signature: &[u8],
    ) -> Result<Ready<'a, Self::Verify>>;

    /// As [`Signature::start`]; `None` for what the plain row does.
    fn start(
        &self,
        _: Direction,
        _: &Arc<Key>,
        _: &Params,
    ) -> Result<Option<Box<dyn SignatureStream>>> {
        Ok(None)
    }
}

impl<S: Signing> Signature for Over<S> {
    fn serves(&self, key: &Key) -> bool {
        self.0.serves(key)
    }

    fn for_waiting(&self) -> bool {
        self.0.for_waiting()
    }

    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.0.plain().check(direction, key, params)
    }

    fn length(&self, key: &Key, params: &Params) -> usize {
        self.0.plain().length(key, params)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        match self.0.sign(Call::Waits { key, data }, params)? {
            Some((meeting, work)) => S::Sign::answer(meeting.run(work)?, out),
            None => self.0.plain().sign(key, params, data, out),
        }
    }

    fn sign_later(&self, key: &Arc<Key>, params: &Params, data: &[u8]) -> Postponed {
        let ready = self.0.sign(Call::Leaves { key, data }, params)?;
        ready.map_or(Ok(None), |(meeting, work)| meeting.later(work))
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        match self.0.verify(Call::Waits { key, data }, params, signature)? {
            Some((meeting, work)) => S::Verify::answer(meeting.run(work)?, &mut []).map(drop),
            None => self.0.plain().verify(key, params, data, signature),
        }
    }

    fn verify_later(
        &self,
        key: &Arc<Key>,
        params: &Params,
        data: &[u8],
        signature: &[u8],
    ) -> Postponed {
        let ready = self.0.verify(Call::Leaves { key, data }, params, signature)?;
        ready.map_or(Ok(None), |(meeting, work)| meeting.later(work))
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        match self.0.start(direction, key, params)? {
            Some(stream) => Ok(stream),
            None => self.0.plain().start(direction, key, params),
        }
    }
}

/// What kernels do of a row of ciphers.
pub(super) trait Ciphering: Debug + Sync {
    /// The row beneath.
    fn plain(&self) -> &'static dyn Cipher;

    /// As [`Cipher::serves`].
    fn serves(&self) -> bool {
        true
    }

    /// As [`Cipher::for_waiting`].
    fn for_waiting(&self, _: Direction) -> bool {
        true
    }

    /// As [`Cipher::run`]; `None` for what the plain row does.
    fn run(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<Option<usize>>;

    /// As [`Cipher::run_later`].
    fn run_later(&self, _: Direction, _: &Arc<Key>, _: &Params, _: &[u8]) -> Postponed;

    /// As [`Cipher::start`]; `None` for what the plain row does.
    fn start(&self, _: Direction, _: &Key, _: &Params) -> Result<Option<Box<dyn CipherStream>>> {
        Ok(None)
    }
}

/// A row over that of a cipher, for both directions.
pub(super) fn cipher<C: Ciphering + 'static>(
    plain: Plain,
    mechanism: CK_MECHANISM_TYPE,
    over: impl FnOnce(&'static dyn Cipher) -> C,
) -> Option<Algorithm> {
    let row = plain.row(mechanism)?;
    let cipher = kept(Over(over(row.encrypt?)));
    Some(Algorithm {
        mechanism,
        key_sizes: row.key_sizes,
        encrypt: Some(cipher),
        decrypt: Some(cipher),
        ..Algorithm::NONE
    })
}

impl<C: Ciphering> Cipher for Over<C> {
    fn serves(&self, _: &Key) -> bool {
        self.0.serves()
    }

    fn for_waiting(&self, direction: Direction) -> bool {
        self.0.for_waiting(direction)
    }

    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.0.plain().check(direction, key, params)
    }

    fn length(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: usize,
    ) -> Result<usize> {
        self.0.plain().length(direction, key, params, input)
    }

    fn run(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        match self.0.run(direction, key, params, input, out)? {
            Some(length) => Ok(length),
            None => self.0.plain().run(direction, key, params, input, out),
        }
    }

    fn run_later(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
        input: &[u8],
    ) -> Postponed {
        self.0.run_later(direction, key, params, input)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        match self.0.start(direction, key, params)? {
            Some(stream) => Ok(stream),
            None => self.0.plain().start(direction, key, params),
        }
    }
}
