// SPDX-License-Identifier: Apache-2.0
//! RC4 as it was written and rewritten in 2008 and 2009: the same cipher, with its loads, stores and
//! index arithmetic arranged in other ways.
//!
//! RC4 is broken (RFC 7465 forbids it in TLS): this is for looking at loops, not at secrets.

mod element;
mod interleaved;
mod versions;

pub use element::Element;
pub use interleaved::interleaved;
pub use versions::{version_1, version_2, version_3};

/// Entries of the permutation.
const SIZE: usize = 256;

/// A stream: the permutation, and the two indices into it. It is left after any number of bytes and
/// taken up there again, by the same version or by another one.
#[derive(Clone, Debug)]
pub struct State<T> {
    table: [T; SIZE],
    i: u8,
    j: u8,
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
    fn at(&self, index: usize) -> usize {
        self.table[index & (SIZE - 1)].index()
    }

    fn put(&mut self, index: usize, value: usize) {
        self.table[index & (SIZE - 1)] = T::from_index(value);
    }
}

#[cfg(test)]
mod tests;
