// SPDX-License-Identifier: Apache-2.0
//! What an entry of the permutation is stored in.

/// A byte, or a whole word, of which only the low byte is used.
pub trait Element: Copy {
    /// The entry that holds this byte.
    fn from_byte(byte: u8) -> Self;

    /// The byte that it holds.
    fn byte(self) -> u8;

    /// The entry that holds the low byte of an index.
    fn from_index(index: usize) -> Self;

    /// What it holds, as an index.
    fn index(self) -> usize;
}

impl Element for u8 {
    fn from_byte(byte: u8) -> Self {
        byte
    }

    fn byte(self) -> u8 {
        self
    }

    fn from_index(index: usize) -> Self {
        index.to_le_bytes()[0]
    }

    fn index(self) -> usize {
        usize::from(self)
    }
}

impl Element for u32 {
    fn from_byte(byte: u8) -> Self {
        Self::from(byte)
    }

    fn byte(self) -> u8 {
        self.to_le_bytes()[0]
    }

    #[expect(clippy::cast_possible_truncation, reason = "an index below 256")]
    fn from_index(index: usize) -> Self {
        index as Self
    }

    fn index(self) -> usize {
        self as usize
    }
}
