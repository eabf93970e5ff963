// SPDX-License-Identifier: Apache-2.0
//! A prepared key.

use super::cipher::Masks;
use metaslot_memory::Protected;

/// Length of a block, in bytes.
pub const BLOCK: usize = 8;

/// A triple key in protected memory; shared by any number of threads.
#[derive(Debug)]
pub struct Key(Protected<Bits>);

#[derive(Clone, Copy)]
struct Bits {
    keys: [u64; 3],
    masks: Masks,
}

impl Key {
    /// Prepares a key of three DES keys, or of two, of which the first is also the third. Parity bits do not matter. `None` for
    /// another length than 16 or 24 bytes.
    #[must_use]
    pub fn new(key: &[u8]) -> Option<Self> {
        if !matches!(key.len(), 16 | 24) {
            return None;
        }
        // SAFETY: numbers; zero is one.
        let mut bits = unsafe { Protected::<Bits>::zeroed() };
        let Bits { keys, masks } = &mut *bits;
        let parts = key.as_chunks::<BLOCK>().0.iter().cycle();
        for ((key, masks), bytes) in keys.iter_mut().zip(masks).zip(parts) {
            *key = u64::from_le_bytes(*bytes);
            for (at, mask) in masks.iter_mut().enumerate() {
                *mask = 0_u64.wrapping_sub((*key >> at) & 1);
            }
        }
        Some(Self(bits))
    }

    /// The three keys, as little-endian numbers.
    pub(super) fn numbers(&self) -> &[u64; 3] {
        &self.0.keys
    }

    /// All ones or zeros for every bit.
    pub(super) fn masks(&self) -> &Masks {
        &self.0.masks
    }
}
