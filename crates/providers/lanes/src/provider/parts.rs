// SPDX-License-Identifier: Apache-2.0
//! What the rows of all kernels are made of.

#[cfg(target_arch = "x86_64")]
use crate::data::Way;
use metaslot_ck::{CK_MECHANISM_TYPE, Error, Result};
use metaslot_memory::Secret;
use metaslot_spi::Key;
use metaslot_spi::provider::Algorithm;
#[cfg(target_arch = "x86_64")]
use metaslot_spi::provider::Direction;
use std::ops::Deref;
use std::sync::Arc;

/// The rows beneath.
#[derive(Clone, Copy)]
pub(super) struct Plain(pub(super) &'static [Algorithm]);

impl Plain {
    pub(super) fn row(self, mechanism: CK_MECHANISM_TYPE) -> Option<&'static Algorithm> {
        self.0.iter().find(|row| row.mechanism == mechanism)
    }
}

#[cfg(target_arch = "x86_64")]
impl From<Direction> for Way {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Forward => Self::Encrypt,
            Direction::Backward => Self::Decrypt,
        }
    }
}

/// A value that lives as long as the process, as rows need it; each is made once.
pub(super) fn kept<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// A key for the time of a work: borrowed while a thread waits, shared when none does.
pub(super) enum Held<'a> {
    Borrowed(&'a Key),
    Shared(Arc<Key>),
}

impl Deref for Held<'_> {
    type Target = Key;

    fn deref(&self) -> &Key {
        match self {
            Self::Borrowed(key) => key,
            Self::Shared(key) => key,
        }
    }
}

/// Requests side by side in a vector of 64-bit words; more in one call share an inversion at most.
pub(super) const WIDTH: usize = 8;

/// How many works meet in a batch at most, from how many on it takes less processor time than one work after the other, and from
/// how many threads per core on that pays for their waiting; measured (`metaslot lab lanes`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) lanes: usize,
    pub(super) jobs: usize,
    pub(super) threads: usize,
}

impl Size {
    /// Where so many jobs pay for their waiting too.
    pub(super) const fn new(lanes: usize, jobs: usize) -> Self {
        Self { lanes, jobs, threads: jobs }
    }

    /// Without the instructions nothing wins.
    pub(super) const fn when(self, available: bool) -> Self {
        if available { self } else { Self::new(self.lanes, usize::MAX) }
    }
}

/// A message for the time of a work: borrowed while a thread waits, a copy that is wiped when none does.
pub(super) enum Message<'a> {
    Borrowed(&'a [u8]),
    Copied(Secret),
}

impl Message<'_> {
    pub(super) fn copy(data: &[u8]) -> Result<Self> {
        Secret::try_copy_of(data).map(Self::Copied).ok_or(Error::DEVICE_MEMORY)
    }
}

impl Deref for Message<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(data) => data,
            Self::Copied(copy) => copy.expose(),
        }
    }
}

/// Writes a result to where the caller wants it.
pub(super) fn put(result: &[u8], out: &mut [u8]) -> Result<usize> {
    out.get_mut(..result.len()).ok_or(Error::BUFFER_TOO_SMALL)?.copy_from_slice(result);
    Ok(result.len())
}

/// For failures that no input explains.
pub(super) fn device_error(_: metaslot_awslc_wrapper::Failed) -> Error {
    Error::DEVICE_ERROR
}
