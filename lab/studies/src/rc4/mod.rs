// SPDX-License-Identifier: Apache-2.0
//! RC4 as it was written and rewritten in 2008 and 2009: the same cipher, with its loads, stores and
//! index arithmetic arranged in other ways.
//!
//! RC4 is broken (RFC 7465 forbids it in TLS): this is for looking at loops, not at secrets.

mod element;
mod interleaved;
mod versions;

pub use element::Element;

use interleaved::interleaved;
use versions::{version_1, version_2, version_3};

/// Entries of the permutation.
const SIZE: usize = 256;

/// A stream: the permutation, and the two indices into it. It is left after any number of bytes and
/// taken up there again, by the same version or by another one.
///
/// It begins a line of the cache: streams of two threads have no line in common.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct State<T> {
    table: [T; SIZE],
    i: u8,
    j: u8,
}

/// Applies a stream to data.
pub type Single<T> = fn(&mut State<T>, &mut [u8]);

/// All arrangements for one kind of entry. They are reached through the two values below, so that they
/// are compiled once, with this crate and as it says.
#[derive(Clone, Copy, Debug)]
pub struct Versions<T: 'static> {
    /// The plain loop, the one with whole registers and gathered bytes, the one that loads ahead.
    pub single: [Single<T>; 3],
    /// Two streams in one loop.
    pub two: fn(&mut [State<T>; 2], [&mut [u8]; 2]),
    /// Four streams in one loop.
    pub four: fn(&mut [State<T>; 4], [&mut [u8]; 4]),
}

impl<T: Element> Versions<T> {
    const ALL: Self = Self {
        single: [version_1, version_2, version_3],
        two: interleaved::<T, 2>,
        four: interleaved::<T, 4>,
    };
}

/// With entries of a byte.
pub static BYTES: Versions<u8> = Versions::ALL;
/// With entries of 32 bits, of which eight are used.
pub static WORDS: Versions<u32> = Versions::ALL;

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
