// SPDX-License-Identifier: Apache-2.0
//! The two halves of the work, each by itself: what the expansion costs without rounds, and the rounds
//! without the expansion.

use super::INITIAL;
use super::rounds::{BLOCK, expanded, schedule};

/// Blocks whose words are kept: they stay in a first-level cache.
const BLOCKS: usize = 16;

/// The words of some blocks.
#[derive(Debug)]
pub struct Parts(Box<[[u32; 80]; BLOCKS]>);

impl Default for Parts {
    fn default() -> Self {
        Self(Box::new([[0; 80]; BLOCKS]))
    }
}

impl Parts {
    /// Expands every whole block of a message; the words of the last ones are kept.
    #[inline(never)]
    pub fn expand(&mut self, message: &[u8]) {
        let (blocks, _) = message.as_chunks::<BLOCK>();
        for (at, block) in blocks.iter().enumerate() {
            let words = &mut self.0[at % BLOCKS];
            schedule(block, |at, word| words[at] = word);
        }
    }

    /// The rounds of so many blocks, over and over with the words that were kept, and the state after
    /// them.
    #[inline(never)]
    #[must_use]
    pub fn rounds(&self, blocks: usize) -> [u32; 5] {
        let mut state = INITIAL;
        for words in self.0.iter().cycle().take(blocks) {
            expanded(&mut state, |at| words[at]);
        }
        state
    }
}
