// SPDX-License-Identifier: Apache-2.0
//! RC4 as it was written and rewritten in 2008 and 2009: the same cipher, with its loads, stores and
//! index arithmetic arranged in other ways.
//!
//! RC4 is broken (RFC 7465 forbids it in TLS): this is for looking at loops, not at secrets.

mod element;
mod interleaved;
mod state;
mod versions;

pub use element::Element;
pub use state::State;

use interleaved::interleaved;
use versions::{version_1, version_2, version_3};

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

#[cfg(test)]
mod tests;
