// SPDX-License-Identifier: Apache-2.0
//! Buffers that lie alike for every subject. Where `malloc` puts them decides by up to a tenth how
//! fast wide vector code runs over them, and would be taken for the subject's doing.

use std::ops::{Deref, DerefMut};

/// Bytes that begin at a fixed place within a page.
pub(super) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

const PAGE: usize = 4096;

impl Buffer {
    /// For data that is read: at the start of a page.
    pub(super) fn input(length: usize) -> Self {
        Self::at(0, length, 0x5A)
    }

    /// For results: in the middle of a page, so that stores do not look like they hit later loads.
    pub(super) fn output(length: usize) -> Self {
        Self::at(PAGE / 2, length, 0)
    }

    fn at(offset: usize, length: usize, byte: u8) -> Self {
        let bytes = vec![byte; length + 2 * PAGE];
        let start = bytes.as_ptr().align_offset(PAGE) + offset;
        Self { bytes, start, length }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..][..self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_begin_at_their_place_in_a_page() {
        for length in [0, 16, 5000] {
            let (input, output) = (Buffer::input(length), Buffer::output(length));
            assert_eq!(input.as_ptr().addr() % PAGE, 0);
            assert_eq!(output.as_ptr().addr() % PAGE, PAGE / 2);
            assert_eq!((input.len(), output.len()), (length, length));
            assert!(input.iter().all(|byte| *byte == 0x5A));
        }
    }
}
