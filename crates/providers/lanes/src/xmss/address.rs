// SPDX-License-Identifier: Apache-2.0
//! Where in the structure something is hashed (RFC 8391 §2.5).

/// What is there.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    /// Chains of a one-time key: which key, chain, step.
    Chain = 0,
    /// The tree over the ends of its chains: which key, height, index.
    Ends = 1,
    /// The tree of all keys: nothing, height, index.
    Tree = 2,
}

/// A tree: its layer from the bottom, and which it is there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    pub(super) layer: u32,
    pub(super) tree: u64,
}

impl Place {
    /// An address in this tree; `last` is which of the values of a hash it is for: the key, and masks.
    pub(super) fn write(self, kind: Kind, words: [usize; 3], last: usize, out: &mut [u8]) {
        out[..4].copy_from_slice(&self.layer.to_be_bytes());
        out[4..12].copy_from_slice(&self.tree.to_be_bytes());
        let numbers = [kind as usize, words[0], words[1], words[2], last];
        for (out, number) in out[12..].as_chunks_mut().0.iter_mut().zip(numbers) {
            *out = word(number);
        }
    }
}

/// A number as the standard has it, in four bytes; all of them are below 2³².
const fn word(number: usize) -> [u8; 4] {
    let [_, _, _, _, a, b, c, d] = (number as u64).to_be_bytes();
    [a, b, c, d]
}
