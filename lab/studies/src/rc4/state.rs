// SPDX-License-Identifier: Apache-2.0
//! The state of a stream.

use super::element::Element;

/// Entries of the permutation.
pub(super) const SIZE: usize = 256;

/// A stream: the permutation, and the two indices into it. It is left after any number of bytes and
/// taken up there again, by the same version or by another one.
///
/// It begins a line of the cache: streams of two threads have no line in common.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct State<T> {
    pub(super) table: [T; SIZE],
    pub(super) i: u8,
    pub(super) j: u8,
}

impl<T: Element> State<T> {
    /// The state after the key schedule. An empty key counts as a single zero.
    #[must_use]
    pub fn new(key: &[u8]) -> Self {
        let mut table = [T::from_byte(0); SIZE];
        for (entry, value) in table.iter_mut().zip(0..=u8::MAX) {
            *entry = T::from_byte(value);
        }
        let key = if key.is_empty() { &[0] } else { key };
        let mut j = 0_u8;
        for (at, byte) in (0..SIZE).zip(key.iter().cycle()) {
            j = j.wrapping_add(table[at].byte()).wrapping_add(*byte);
            table.swap(at, usize::from(j));
        }
        Self { table, i: 0, j: 0 }
    }

    /// Bytes of the permutation.
    #[must_use]
    pub const fn table_bytes() -> usize {
        size_of::<[T; SIZE]>()
    }

    /// An entry; only the low eight bits of the index count.
    pub(super) fn at(&self, index: usize) -> usize {
        self.table[index & (SIZE - 1)].index()
    }

    pub(super) fn put(&mut self, index: usize, value: usize) {
        self.table[index & (SIZE - 1)] = T::from_index(value);
    }
}
