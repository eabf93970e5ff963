// SPDX-License-Identifier: Apache-2.0
//! Buffers that lie alike for every subject. Where `malloc` puts them decides by up to a tenth how
//! fast wide vector code runs over them, and would be taken for the subject's doing.

use std::ops::{Deref, DerefMut};

/// Bytes that begin at a fixed place within a page.
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

const PAGE: usize = 4096;

/// How much further each lane begins: whole lines, and all places of a page before one comes again.
const APART: usize = 5 * 64;

impl Buffer {
    /// For data that is read: at the start of a page.
    #[must_use]
    pub fn input(length: usize) -> Self {
        Self::at(0, length, 0x5A)
    }

    /// For results: in the middle of a page, so that stores do not look like they hit later loads.
    #[must_use]
    pub fn output(length: usize) -> Self {
        Self::at(PAGE / 2, length, 0)
    }

    /// For data that is read side by side with that of other lanes, each elsewhere in its page: at the same place all of them would
    /// compete for the same few lines of the cache.
    #[must_use]
    pub fn input_of(lane: usize, length: usize) -> Self {
        Self::at(lane * APART % PAGE, length, 0x5A)
    }

    /// The same for results.
    #[must_use]
    pub fn output_of(lane: usize, length: usize) -> Self {
        Self::at((lane * APART + PAGE / 2) % PAGE, length, 0)
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
            assert_eq!(Buffer::input_of(3, length).as_ptr().addr() % PAGE, 3 * APART);
            assert_eq!(Buffer::output_of(9, length).as_ptr().addr() % PAGE, 9 * APART - PAGE / 2);
            assert!(input.iter().all(|byte| *byte == 0x5A));
        }
    }
}
