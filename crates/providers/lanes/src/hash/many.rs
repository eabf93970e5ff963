// SPDX-License-Identifier: Apache-2.0
//! Many short messages of one length, which all begin alike: the hash functions of signatures that are made of hashes.
//!
//! Messages and digests stay in the lanes' own memory from one run to the next, so that a chain of hashes copies its digest
//! alone. A seed is in each message while a signature is made, which takes long: that memory is protected. What the kernels leave
//! of it in the stack is wiped when it is dropped.

use super::kernel::Kernel;
use super::rows::Rows;
use super::sha2::Link;
use super::shape::{Core, Shape};
use crate::cpu::{Cpu, cpu};
use metaslot_awslc_wrapper::Result;
use metaslot_awslc_wrapper::digest::{Hash, Stream};
use metaslot_awslc_wrapper::shake::{self, Shake};
use metaslot_memory::{Secret, wipe_shallow_stack};

/// Whether there is ordinary memory for so many bytes of nodes, and for what is needed beside them.
pub(crate) fn has_room(nodes: usize) -> bool {
    let mut room = Vec::<u8>::new();
    let has = room.try_reserve_exact(nodes + SPARE).is_ok();
    // Not a pair of calls that the compiler leaves out.
    std::hint::black_box(room.as_ptr());
    has
}

/// Bytes beside the nodes: lanes, indices, and what an allocator keeps for itself.
const SPARE: usize = 1 << 18;

/// What hashes them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Function {
    Sha256,
    Sha512,
    Shake128,
    Shake256,
}

impl Function {
    /// Bytes of a block.
    pub(crate) const fn block(self) -> usize {
        self.shape().block
    }

    /// One hash by the plain library: of these parts, one after the other, as much as there is room for.
    ///
    /// # Errors
    /// When the library fails.
    pub(crate) fn digest(self, parts: &[&[u8]], out: &mut [u8]) -> Result<()> {
        let squeeze = |function, out: &mut [u8]| {
            let mut shake = Shake::new(function)?;
            parts.iter().try_for_each(|part| shake.update(part))?;
            shake.finish(out)
        };
        let hash = match self {
            Self::Sha256 => Hash::Sha256,
            Self::Sha512 => Hash::Sha512,
            Self::Shake128 => return squeeze(shake::Function::Shake128, out),
            Self::Shake256 => return squeeze(shake::Function::Shake256, out),
        };
        let mut stream = Stream::new(hash)?;
        parts.iter().try_for_each(|part| stream.update(part))?;
        let mut whole = Secret::zeroed(hash.length());
        stream.finish(whole.expose_mut())?;
        out.copy_from_slice(&whole.expose()[..out.len()]);
        Ok(())
    }

    const fn shape(self) -> Shape {
        match self {
            Self::Sha256 => Shape::of(Hash::Sha256),
            Self::Sha512 => Shape::of(Hash::Sha512),
            Self::Shake128 => Shape::sponge(168),
            Self::Shake256 => Shape::of(Hash::Sha3_256),
        }
    }
}

/// Lanes, each with a message.
pub(crate) struct Many {
    shape: Shape,
    kernel: Kernel,
    sponge: bool,
    /// The state of all lanes after the block that all messages begin with.
    start: Vec<u8>,
    state: Secret,
    /// The padded messages, one after the other.
    rows: Secret,
    /// Bytes of a padded message, and of a message.
    stride: usize,
    length: usize,
}

impl Drop for Many {
    fn drop(&mut self) {
        wipe_shallow_stack();
    }
}

impl Many {
    /// For messages of `length` bytes behind `block`, which is a whole block of the function or nothing.
    pub(crate) fn new(function: Function, block: &[u8], length: usize) -> Self {
        Self::on(cpu(), function, block, length)
    }

    fn on(cpu: Cpu, function: Function, block: &[u8], length: usize) -> Self {
        let shape = function.shape();
        let kernel =
            Kernel::choose(shape.core, cpu, usize::MAX).or_else(|| Kernel::one(shape.core));
        let kernel = kernel.expect("each of these functions has one lane at least");
        let sponge = shape.core == Core::Keccak;
        let mut start = Vec::with_capacity(shape.start.len() * kernel.lanes * shape.word);
        for word in shape.start {
            for _ in 0..kernel.lanes {
                start.extend_from_slice(&word.to_le_bytes()[..shape.word]);
            }
        }
        if !block.is_empty() {
            kernel.run(&mut start, &Rows::all(block, shape.block), shape.block);
        }
        let mut padded =
            vec![0; (length + shape.block).next_multiple_of(shape.block) + shape.block];
        let blocks = {
            let whole = length / shape.block * shape.block;
            let total = (block.len() + length) as u64;
            whole / shape.block + shape.pad(&mut padded[whole..], length - whole, total)
        };
        let stride = blocks * shape.block;
        if sponge {
            // FIPS 202 §6.2: the four bits that follow a message to SHAKE, in the place of SHA-3's two.
            padded[length] ^= 0x06 ^ 0x1f;
        }
        let mut rows = Secret::zeroed(stride * kernel.lanes);
        rows.expose_mut()
            .chunks_exact_mut(stride)
            .for_each(|row| row.copy_from_slice(&padded[..stride]));
        let state = Secret::zeroed(start.len());
        Self { shape, kernel, sponge, state, start, rows, stride, length }
    }

    /// How many messages are hashed at once.
    pub(crate) const fn lanes(&self) -> usize {
        self.kernel.lanes
    }

    /// The message of a lane.
    pub(crate) fn message(&mut self, lane: usize) -> &mut [u8] {
        &mut self.rows.expose_mut()[lane * self.stride..][..self.length]
    }

    /// Hashes what the lanes have.
    pub(crate) fn run(&mut self) {
        let (state, messages) = (self.state.expose_mut(), self.rows.expose());
        state.copy_from_slice(&self.start);
        let mut rows = Rows::all(messages, self.stride);
        for lane in 1..self.kernel.lanes {
            rows.set(lane, &messages[lane * self.stride..]);
        }
        self.kernel.run(state, &rows, self.shape.block);
    }

    /// Hashes each lane's digest again so many times, in its place from the byte `at` of the message on, and with the number of the
    /// step in the byte before; says whether it can. The digests are as after [`Self::run`].
    pub(crate) fn chain(&mut self, at: usize, length: usize, steps: u8) -> bool {
        let one_block = self.stride == self.shape.block;
        let Some(link) = Link::of(at, length).filter(|_| one_block) else { return false };
        let (state, messages) = (self.state.expose_mut(), self.rows.expose());
        let mut rows = Rows::all(messages, self.stride);
        for lane in 1..self.kernel.lanes {
            rows.set(lane, &messages[lane * self.stride..]);
        }
        self.kernel.chain(state, &rows, self.shape.start, (link, steps))
    }

    /// The beginning of a lane's digest, a multiple of eight bytes.
    pub(crate) fn digest(&self, lane: usize, out: &mut [u8]) {
        read(self.state.expose(), self.kernel.lanes, self.shape.word, self.sponge, lane, out);
    }

    /// Puts a lane's digest at the byte `at` of its message, where it is hashed again.
    pub(crate) fn feed(&mut self, lane: usize, at: usize, length: usize) {
        let out = &mut self.rows.expose_mut()[lane * self.stride + at..][..length];
        read(self.state.expose(), self.kernel.lanes, self.shape.word, self.sponge, lane, out);
    }
}

pub(super) fn read(
    state: &[u8],
    lanes: usize,
    word: usize,
    little: bool,
    lane: usize,
    out: &mut [u8],
) {
    if word == 4 {
        for (to, row) in out.as_chunks_mut::<4>().0.iter_mut().zip(state.chunks_exact(4 * lanes)) {
            let word: &[u8; 4] = row[4 * lane..].first_chunk().expect("a whole word");
            *to = u32::from_le_bytes(*word).to_be_bytes();
        }
        return;
    }
    for (to, row) in out.as_chunks_mut::<8>().0.iter_mut().zip(state.chunks_exact(8 * lanes)) {
        let word: &[u8; 8] = row[8 * lane..].first_chunk().expect("a whole word");
        *to = if little { *word } else { u64::from_le_bytes(*word).to_be_bytes() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_memory::size_of_allocation;
    use std::ptr::NonNull;

    #[test]
    fn a_chain_at_once_is_its_steps_one_after_the_other() {
        let all = [Cpu::AVX512.and(Cpu::AVX2), Cpu::AVX2];
        for on in all.into_iter().filter(|one| cpu().has(*one)) {
            for (at, length) in [(23, 24), (23, 32), (7, 8), (27, 4)] {
                let mut lanes = Many::on(on, Function::Sha256, &[], at + length);
                let bytes = |lane: usize| {
                    (0..at + length).map(move |byte| (17 * lane + 5 * byte).to_le_bytes()[0])
                };
                for lane in 0..lanes.lanes() {
                    lanes.message(lane).iter_mut().zip(bytes(lane)).for_each(|(to, it)| *to = it);
                }
                lanes.run();
                assert!(lanes.chain(at, length, 255), "{at} {length}");
                for lane in 0..lanes.lanes() {
                    let mut message: Vec<u8> = bytes(lane).collect();
                    let mut digest = vec![0; length];
                    let hash = |message: &[u8], out: &mut [u8]| {
                        Function::Sha256.digest(&[message], out).expect("the library hashes");
                    };
                    hash(&message, &mut digest);
                    for step in 0..255 {
                        message[at - 1] = step;
                        message[at..].copy_from_slice(&digest);
                        hash(&message, &mut digest);
                    }
                    let mut out = vec![0; length];
                    lanes.digest(lane, &mut out);
                    assert_eq!(out, digest, "{at} {length} {lane}");
                }
            }
        }
        // Two blocks, another place, another function.
        for (function, length, at) in
            [(Function::Sha256, 56, 23), (Function::Sha256, 50, 24), (Function::Shake256, 55, 23)]
        {
            assert!(!Many::new(function, &[], length).chain(at, 24, 1), "{function:?} {length}");
        }
    }

    #[test]
    fn what_is_hashed_lies_in_protected_memory() {
        for function in [Function::Sha256, Function::Sha512, Function::Shake128, Function::Shake256]
        {
            let mut many = Many::new(function, &[], 32);
            let place = NonNull::from(&mut many.message(0)[0]);
            assert!(size_of_allocation(place) >= 32, "{function:?}");
        }
    }
}
