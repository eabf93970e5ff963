// SPDX-License-Identifier: Apache-2.0
//! Four sponges side by side, each at its own place of its own message: what one request has to hash, block after block, and what
//! it hashes meanwhile (FIPS 203 §7.3).

use super::kernel::Kernel;
use super::many;
use super::rows::Rows;
use super::squeeze::BLOCK_256;
use crate::cpu::{Cpu, cpu};

/// How many there are.
pub(crate) const LANES: usize = 4;
/// Bytes of a word of Keccak, and of its state.
const WORD: usize = 8;
const STATE: usize = 25 * WORD;

/// A block of SHAKE256; one of a function with shorter blocks ends with zeros.
pub(crate) type Block = [u8; BLOCK_256];
/// What a sponge takes in that takes nothing more in.
pub(crate) const NOTHING: &Block = &[0; BLOCK_256];

/// The state of four sponges.
pub(crate) struct Four {
    kernel: Kernel,
    state: [u8; STATE * LANES],
}

impl Four {
    /// Four sponges that have taken nothing in; `None` where the processor has no instructions for them.
    pub(crate) fn new() -> Option<Self> {
        Self::on(cpu())
    }

    fn on(cpu: Cpu) -> Option<Self> {
        Some(Self { kernel: Kernel::four(cpu)?, state: [0; STATE * LANES] })
    }

    /// Takes in a block of each, and permutes.
    pub(crate) fn take(&mut self, blocks: [&Block; LANES]) {
        let mut rows = Rows::all(blocks[0], BLOCK_256);
        for (lane, block) in blocks.into_iter().enumerate() {
            rows.set(lane, block);
        }
        self.kernel.run(&mut self.state, &rows, BLOCK_256);
    }

    /// The beginning of what one gives now: whole words, at most a block.
    pub(crate) fn read(&self, lane: usize, out: &mut [u8]) {
        many::read(&self.state, LANES, WORD, true, lane, out);
    }

    /// Has all but the first begin anew.
    pub(crate) fn restart(&mut self) {
        for row in self.state.as_chunks_mut::<{ WORD * LANES }>().0 {
            row[WORD..].fill(0);
        }
    }
}

/// The last block of a message to SHAKE256, which is shorter than one (FIPS 202 §6.2, §5.1).
pub(crate) fn last_block(parts: &[&[u8]]) -> Block {
    let mut block = [0; BLOCK_256];
    let mut length = 0;
    for part in parts {
        block[length..][..part.len()].copy_from_slice(part);
        length += part.len();
    }
    block[length] = 0x1f;
    block[BLOCK_256 - 1] |= 0x80;
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_awslc_wrapper::shake::{Function, Shake};

    fn shake(parts: &[&[u8]], out: &mut [u8]) {
        let mut shake = Shake::new(Function::Shake256).unwrap();
        parts.iter().for_each(|part| shake.update(part).unwrap());
        shake.finish(out).unwrap();
    }

    #[test]
    fn each_sponge_has_its_own_message() {
        let all = [Cpu::AVX512.and(Cpu::AVX2), Cpu::AVX2];
        for on in all.into_iter().filter(|on| cpu().has(*on)) {
            let whole: Block = std::array::from_fn(|at| u8::try_from(at).unwrap() ^ 0x5a);
            let seeds: [[u8; 40]; 4] = std::array::from_fn(|lane| [0x11 << lane; 40]);
            let last = seeds.map(|seed| last_block(&[&seed, b"end"]));
            let mut four = Four::on(on).unwrap();
            four.take([&whole, &last[1], &last[2], &last[3]]);
            let (mut first, mut right) = ([0; BLOCK_256], [0; BLOCK_256]);
            for (lane, seed) in seeds.iter().enumerate().skip(1) {
                four.read(lane, &mut first);
                shake(&[seed, b"end"], &mut right);
                assert_eq!(first, right, "lane {lane}");
            }
            // The first goes on; another is squeezed again.
            four.take([&last[0], NOTHING, NOTHING, NOTHING]);
            four.read(0, &mut first);
            shake(&[&whole, &seeds[0], b"end"], &mut right);
            assert_eq!(first, right);
            four.read(3, &mut first);
            let mut both = [0; 2 * BLOCK_256];
            shake(&[&seeds[3], b"end"], &mut both);
            assert_eq!(first, both[BLOCK_256..]);
            four.restart();
            four.take([NOTHING, &last[0], NOTHING, NOTHING]);
            four.read(1, &mut first);
            shake(&[&seeds[0], b"end"], &mut right);
            assert_eq!(first, right);
        }
    }
}
