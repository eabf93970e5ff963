// SPDX-License-Identifier: Apache-2.0
//! Results of variable length, once for all functions (PKCS#11 3.2 §5.2).

use metaslot_ck::{Error, Result};
use metaslot_memory::Secret;

/// Where a result goes: NULL asks for its length, a short buffer is told the length and keeps the
/// operation alive.
#[derive(Debug)]
pub struct Output<'a> {
    buffer: Option<&'a mut [u8]>,
    length: usize,
}

/// A place in the caller's memory that is written when the operation is complete: numbers here, a
/// pointer only at the edge.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Room {
    /// Where.
    pub address: usize,
    /// How many bytes there are, of which the result needs no more.
    pub length: usize,
}

/// What became of an output.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Written {
    /// The caller asked for the length only: the operation goes on as if not called.
    Asked,
    /// The result is in the buffer.
    Done,
}

impl<'a> Output<'a> {
    /// The caller passed NULL: only the length is wanted.
    #[must_use]
    pub const fn ask() -> Self {
        Self { buffer: None, length: 0 }
    }

    /// The caller passed a buffer.
    #[must_use]
    pub const fn buffer(buffer: &'a mut [u8]) -> Self {
        Self { buffer: Some(buffer), length: 0 }
    }

    /// What goes into `*pulLen`, after `CKR_OK` and after `CKR_BUFFER_TOO_SMALL`.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Whether the caller passed NULL.
    pub(crate) const fn was_asked(&self) -> bool {
        self.buffer.is_none()
    }

    /// Where a result of at most `most` bytes may go later; `None` when the caller only asked.
    pub(crate) fn room(&mut self, most: usize) -> Result<Option<Room>> {
        self.length = most;
        let Some(buffer) = &mut self.buffer else { return Ok(None) };
        let room = buffer.get_mut(..most).ok_or(Error::BUFFER_TOO_SMALL)?;
        Ok(Some(Room { address: room.as_mut_ptr().expose_provenance(), length: most }))
    }

    /// What was written; nothing when the caller only asked.
    pub(crate) fn written(&self) -> &[u8] {
        self.buffer.as_deref().and_then(|buffer| buffer.get(..self.length)).unwrap_or_default()
    }

    /// A result that is exactly `length` long; `write` gets a slice of that length.
    #[inline]
    pub(crate) fn exact(
        &mut self,
        length: usize,
        write: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<Written> {
        self.length = length;
        let Some(buffer) = &mut self.buffer else { return Ok(Written::Asked) };
        let room = buffer.get_mut(..length).ok_or(Error::BUFFER_TOO_SMALL)?;
        write(room)?;
        Ok(Written::Done)
    }

    /// A result of at most `most` bytes whose length only the work can tell: `write` gets `most`
    /// bytes of room and says how many it used. `write` must be repeatable.
    #[inline]
    pub(crate) fn at_most(
        &mut self,
        most: usize,
        write: impl FnOnce(&mut [u8]) -> Result<usize>,
    ) -> Result<Written> {
        self.length = most;
        let Some(buffer) = &mut self.buffer else { return Ok(Written::Asked) };
        if let Some(room) = buffer.get_mut(..most) {
            self.length = write(room)?;
            return Ok(Written::Done);
        }
        let mut scratch = Secret::try_zeroed(most).ok_or(Error::DEVICE_MEMORY)?;
        self.length = write(scratch.expose_mut())?;
        let room = buffer.get_mut(..self.length).ok_or(Error::BUFFER_TOO_SMALL)?;
        room.copy_from_slice(&scratch.expose()[..self.length]);
        Ok(Written::Done)
    }
}
