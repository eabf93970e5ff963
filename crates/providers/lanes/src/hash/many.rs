// SPDX-License-Identifier: Apache-2.0
//! Many short messages of one length, which all begin alike: the hash functions of signatures that are made of hashes.
//!
//! Messages and digests stay in the lanes' own memory from one run to the next, so that a chain of hashes copies its digest
//! alone. A seed is in each message while a signature is made, which takes long: that memory is protected. What the kernels leave
//! of it in the stack is wiped when it is dropped.

pub(crate) use super::chain::ADDRESS;
use super::kernel::Kernel;
use super::rows::Rows;
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
    /// The state of all lanes after the block that all messages begin with, and whether there is such a block.
    start: Vec<u8>,
    has_prefix: bool,
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
        Self {
            shape,
            kernel,
            sponge,
            state,
            start,
            has_prefix: !block.is_empty(),
            rows,
            stride,
            length,
        }
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
        let state = self.state.expose_mut();
        state.copy_from_slice(&self.start);
        self.kernel.run(state, &rows(self.rows.expose(), self.stride), self.shape.block);
    }

    /// Goes so many steps of chains of HSS or SLH-DSA at once, whose digests of `length` bytes are as after [`Self::run`], and then
    /// again; says whether it can. Messages end with the digest, at the byte `at`, and have the number of the step before it.
    pub(crate) fn chain(&mut self, at: usize, length: usize, steps: u8) -> bool {
        let one_block = self.stride == self.shape.block && self.length == at + length;
        if !one_block || self.sponge && self.has_prefix {
            return false;
        }
        let rows = rows(self.rows.expose(), self.stride);
        self.kernel.chain(self.state.expose_mut(), &rows, &self.start, (at, length, steps))
    }

    /// Goes so many steps of chains of XMSS at once, whose nodes are what `nodes` hashes from the byte `at` on, and then again; says
    /// whether it can. These lanes make keys and masks of addresses, and have those of the first step.
    pub(crate) fn keyed_chain(&mut self, nodes: &mut Self, at: usize, steps: u8) -> bool {
        let one_block = self.stride == self.shape.block && self.length == ADDRESS;
        if !one_block || !self.has_prefix || (at, nodes.length) != (2 * ADDRESS, 3 * ADDRESS) {
            return false;
        }
        for lane in 0..self.lanes() {
            write(self.state.expose_mut(), self.kernel.lanes, lane, &nodes.message(lane)[at..]);
        }
        let rows = rows(self.rows.expose(), self.stride);
        let can = self.kernel.keyed_chain(self.state.expose_mut(), &rows, &self.start, steps);
        if can {
            (0..self.lanes()).for_each(|lane| self.digest(lane, &mut nodes.message(lane)[at..]));
        }
        can
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

/// Messages of so many bytes, one after the other.
fn rows(messages: &[u8], stride: usize) -> Rows<'_> {
    let mut rows = Rows::all(messages, stride);
    for (lane, message) in messages.chunks_exact(stride).enumerate() {
        rows.set(lane, message);
    }
    rows
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

/// Puts a digest of words of 32 bits into the state: the reverse of [`read`].
fn write(state: &mut [u8], lanes: usize, lane: usize, digest: &[u8]) {
    for (from, row) in digest.as_chunks::<4>().0.iter().zip(state.chunks_exact_mut(4 * lanes)) {
        row[4 * lane..][..4].copy_from_slice(&u32::from_be_bytes(*from).to_le_bytes());
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
        let before: Vec<u8> = (0..64).collect();
        // Those of HSS, those of SLH-DSA, and the others that there may be.
        let [hss, slh_dsa] = [(&before[..0], 23), (&before[..], 22)];
        let mut chains = vec![(hss, 24), (hss, 32), (slh_dsa, 16), (slh_dsa, 24), (slh_dsa, 32)];
        chains.extend((4..=32).step_by(4).map(|length| ((&before[..], 21), length)));
        for on in all.into_iter().filter(|one| cpu().has(*one)) {
            let chains = chains.iter().map(|chain| (Function::Sha256, *chain));
            let shake = (2..=4)
                .map(|words| (Function::Shake256, ((&before[..0], 32 + 8 * words), 8 * words)));
            let other = [
                (Function::Shake128, ((&before[..0], 8), 24)),
                (Function::Shake256, ((&before[..0], 96), 32)),
            ];
            for (function, ((before, at), length)) in chains.chain(shake).chain(other) {
                let mut lanes = Many::on(on, function, before, at + length);
                let bytes = |lane: usize| {
                    (0..at + length).map(move |byte| (17 * lane + 5 * byte).to_le_bytes()[0])
                };
                for lane in 0..lanes.lanes() {
                    lanes.message(lane).iter_mut().zip(bytes(lane)).for_each(|(to, it)| *to = it);
                }
                lanes.run();
                let done = lanes.chain(at, length, 255);
                if function != Function::Sha256 && !on.has(Cpu::AVX512) {
                    assert!(!done);
                    continue;
                }
                assert!(done, "{at} {length}");
                for lane in 0..lanes.lanes() {
                    let mut message: Vec<u8> = bytes(lane).collect();
                    let mut digest = vec![0; length];
                    let hash = |message: &[u8], out: &mut [u8]| {
                        let parts = [before, message];
                        function.digest(&parts, out).expect("the library hashes");
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
        // Another place, something behind the digest, a digest that ends within a word, two blocks, another function.
        for (function, length, at, digest) in [
            (Function::Sha256, 48, 24, 24),
            (Function::Sha256, 43, 19, 24),
            (Function::Sha256, 55, 23, 24),
            (Function::Sha256, 53, 23, 30),
            (Function::Sha256, 56, 23, 33),
            (Function::Sha256, 59, 23, 36),
            (Function::Sha512, 47, 23, 24),
            (Function::Shake256, 47, 23, 24),
            (Function::Shake256, 28, 8, 20),
            (Function::Shake256, 48, 8, 40),
            (Function::Shake256, 16, 0, 16),
            (Function::Shake256, 144, 112, 32),
        ] {
            let mut lanes = Many::new(function, &[], length);
            assert!(!lanes.chain(at, digest, 1), "{function:?} {length} {at} {digest}");
        }
    }

    #[test]
    fn a_keyed_chain_at_once_is_its_steps_one_after_the_other() {
        let hash = |parts: &[&[u8]]| {
            let mut out = [0; 32];
            Function::Sha256.digest(parts, &mut out).expect("the library hashes");
            out
        };
        let mut before = [0; 64];
        before.iter_mut().zip(0..).for_each(|(to, byte)| *to = byte);
        for on in [Cpu::AVX512.and(Cpu::AVX2), Cpu::AVX2].into_iter().filter(|on| cpu().has(*on)) {
            let mut values = Many::on(on, Function::Sha256, &before, 32);
            let mut nodes = Many::on(on, Function::Sha256, &[], 96);
            let place = |lane: usize| -> [u8; 24] { [lane.to_le_bytes()[0] + 1; 24] };
            for lane in 0..values.lanes() {
                values.message(lane)[..24].copy_from_slice(&place(lane));
                nodes.message(lane)[64..].fill(lane.to_le_bytes()[0]);
            }
            if !on.has(Cpu::AVX512) {
                assert!(!values.keyed_chain(&mut nodes, 64, 15));
                continue;
            }
            assert!(values.keyed_chain(&mut nodes, 64, 15));
            for lane in 0..values.lanes() {
                let mut node = [lane.to_le_bytes()[0]; 32];
                for step in 0..15_u32 {
                    let [key, mask] = [0, 1_u32].map(|which| {
                        let words = [step.to_be_bytes(), which.to_be_bytes()];
                        hash(&[&before, &place(lane), words.as_flattened()])
                    });
                    node.iter_mut().zip(mask).for_each(|(node, mask)| *node ^= mask);
                    node = hash(&[&[0; 32], &key, &node]);
                }
                assert_eq!(nodes.message(lane)[64..], node, "{lane}");
            }
        }
        // Nodes of another place, or of another length, and a seed that does not end with a block.
        for (block, address, length, at) in [
            (&before[..], 32, 96, 60),
            (&before, 32, 95, 64),
            (&[], 32, 96, 64),
            (&before, 56, 96, 64),
        ] {
            let mut values = Many::new(Function::Sha256, block, address);
            let mut nodes = Many::new(Function::Sha256, &[], length);
            assert!(!values.keyed_chain(&mut nodes, at, 15), "{address} {length} {at}");
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
