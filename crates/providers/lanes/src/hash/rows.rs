// SPDX-License-Identifier: Apache-2.0
//! Where the lanes' blocks lie.

use std::marker::PhantomData;

/// The most lanes that any kernel has.
pub(super) const MAX_LANES: usize = 32;

/// So many readable bytes for each lane, anywhere in memory.
pub(super) struct Rows<'a> {
    starts: [*const u8; MAX_LANES],
    bytes: usize,
    borrowed: PhantomData<&'a [u8]>,
}

impl<'a> Rows<'a> {
    /// The first `bytes` of the same row for all lanes.
    pub(super) fn all(row: &'a [u8], bytes: usize) -> Self {
        Self { starts: [row[..bytes].as_ptr(); MAX_LANES], bytes, borrowed: PhantomData }
    }

    /// Another row for a lane.
    pub(super) fn set(&mut self, lane: usize, row: &'a [u8]) {
        self.starts[lane] = row[..self.bytes].as_ptr();
    }

    /// How many bytes each has.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of `count` bytes of one lane, at the byte `at`: they are readable.
    #[inline(always)]
    pub(super) fn start(&self, lane: usize, at: usize, count: usize) -> *const u8 {
        assert!(at <= self.bytes && count <= self.bytes - at);
        self.starts[lane].wrapping_add(at)
    }

    /// `count` bytes of one lane, at the byte `at`.
    pub(super) fn read(&self, lane: usize, at: usize, count: usize) -> &[u8] {
        // SAFETY: they are readable, and borrowed for as long as these rows are.
        unsafe { std::slice::from_raw_parts(self.start(lane, at, count), count) }
    }
}
