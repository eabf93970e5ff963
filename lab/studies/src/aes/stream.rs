// SPDX-License-Identifier: Apache-2.0
//! Streams of blocks.

/// A block.
pub type Block = [u8; 16];

/// Streams that are worked on at a time where there are several.
pub const MANY: usize = 16;

/// A stream: where it begins, what goes in, what comes out.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The initialisation vector.
    pub iv: Block,
    /// What goes in.
    pub input: Vec<Block>,
    /// As long as the input.
    pub output: Vec<Block>,
}

impl Stream {
    /// A stream with room for what comes out.
    #[must_use]
    pub fn new(iv: Block, input: Vec<Block>) -> Self {
        let output = vec![[0; 16]; input.len()];
        Self { iv, input, output }
    }
}

/// The sum of two blocks.
pub(super) fn add(a: Block, b: Block) -> Block {
    (u128::from_ne_bytes(a) ^ u128::from_ne_bytes(b)).to_ne_bytes()
}
