// SPDX-License-Identifier: Apache-2.0
//! Data that must be whole before it can be worked on.

use metaslot_ck::{Error, Result};
use metaslot_memory::Secret;

/// No operation in parts holds more than this, in bytes.
pub const MOST_HELD: usize = 1 << 30;

/// Adds `data`, which is no secret, to what an operation holds; beyond [`MOST_HELD`] that is `too_long`.
///
/// # Errors
/// As said, or `CKR_DEVICE_MEMORY`.
pub fn hold(held: &mut Vec<u8>, data: &[u8], too_long: Error) -> Result<()> {
    if data.len() > MOST_HELD - held.len() {
        return Err(too_long);
    }
    held.try_reserve(data.len()).map_err(|_| Error::DEVICE_MEMORY)?;
    held.extend_from_slice(data);
    Ok(())
}

/// Makes room for `more` in a list that is as long as callers make it.
///
/// # Errors
/// `CKR_HOST_MEMORY`
#[inline]
pub fn make_room<T>(list: &mut Vec<T>, more: usize) -> Result<()> {
    list.try_reserve(more).map_err(|_| Error::HOST_MEMORY)
}

/// Protected memory that grows as data comes; what it leaves behind is zeroised.
#[derive(Debug)]
pub struct Buffer {
    place: Secret,
    length: usize,
}

impl Default for Buffer {
    fn default() -> Self {
        Self { place: Secret::zeroed(0), length: 0 }
    }
}

impl Buffer {
    /// What was pushed.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.place.expose()[..self.length]
    }

    /// Adds `data`.
    ///
    /// # Errors
    /// `CKR_DEVICE_MEMORY`
    pub fn push(&mut self, data: &[u8]) -> Result<()> {
        let length = self.length.checked_add(data.len()).ok_or(Error::DEVICE_MEMORY)?;
        if length > self.place.len() {
            let room = length.checked_next_power_of_two().ok_or(Error::DEVICE_MEMORY)?.max(256);
            let mut larger = Secret::try_zeroed(room).ok_or(Error::DEVICE_MEMORY)?;
            larger.expose_mut()[..self.length].copy_from_slice(self.bytes());
            self.place = larger;
        }
        self.place.expose_mut()[self.length..length].copy_from_slice(data);
        self.length = length;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_pushed_is_there_in_order() {
        let mut buffer = Buffer::default();
        let data: Vec<u8> = (0..=255).cycle().take(5000).collect();
        for part in data.chunks(77) {
            buffer.push(part).unwrap();
        }
        assert_eq!(buffer.bytes(), data);
        assert_eq!(buffer.bytes().len(), 5000);
    }
}
