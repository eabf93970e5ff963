// SPDX-License-Identifier: Apache-2.0
//! Takes requests of any lengths through a kernel's lanes: a lane that has finished gets the next request.
//!
//! A request goes through its own memory as long as there are whole blocks, then through its tail, which is a copy of what
//! is left with the padding, and with HMAC through the tail once more for the outer hash. The kernel runs for as many blocks
//! as every lane has left of what it is in. A lane without a request follows another's blocks, and its state is
//! ignored.

use super::kernel::Kernel;
use super::key::Key;
use super::rows::{MAX_LANES, Rows};
use super::shape::Shape;
use metaslot_awslc_wrapper::cleanse;
use metaslot_memory::wipe_shallow_stack;

/// A request of either kind.
pub(super) trait Job {
    /// What is hashed.
    fn data(&self) -> &[u8];
    /// Takes the digest, or its beginning.
    fn output(&mut self) -> &mut [u8];
    /// The key of an HMAC.
    fn key(&self) -> Option<&Key>;
}

/// The widest state: Keccak in eight lanes.
const STATE: usize = 25 * 64;
/// Two blocks for each lane: MD5 in 32 has the most.
const TAILS: usize = 32 * 2 * 64;

/// What a lane is in.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Stage {
    /// The request's own memory.
    Data,
    /// The end of the message.
    Tail,
    /// The block of the outer hash.
    Outer,
}

/// A request under way.
#[derive(Clone, Copy)]
struct Active {
    job: usize,
    stage: Stage,
    /// Where the next block begins, in the data or the tail.
    at: usize,
    /// How many blocks this stage has left.
    blocks: usize,
}

/// The states of the lanes, in words of `WORD` bytes, and the ends of their messages.
#[repr(align(64))]
struct Workspace<const WORD: usize> {
    state: [u8; STATE],
    tails: [u8; TAILS],
    shape: Shape,
    kernel: Kernel,
}

impl<const WORD: usize> Drop for Workspace<WORD> {
    fn drop(&mut self) {
        let lanes = self.kernel.lanes;
        cleanse(&mut self.state[..self.shape.start.len() * lanes * WORD]);
        cleanse(&mut self.tails[..2 * self.shape.block * lanes]);
    }
}

/// Answers all requests.
pub(super) fn run<J: Job>(shape: Shape, kernel: Kernel, jobs: &mut [J]) {
    match shape.word {
        4 => Workspace::<4>::new(shape, kernel).run(jobs),
        _ => Workspace::<8>::new(shape, kernel).run(jobs),
    }
}

/// What HMAC's key becomes: the chaining values after each of two blocks.
pub(super) fn after_blocks(shape: Shape, kernel: Kernel, blocks: [&[u8]; 2], out: [&mut [u8]; 2]) {
    match shape.word {
        4 => Workspace::<4>::new(shape, kernel).after_blocks(blocks, out),
        _ => Workspace::<8>::new(shape, kernel).after_blocks(blocks, out),
    }
}

impl<const WORD: usize> Workspace<WORD> {
    /// All lanes have the initial chaining value.
    fn new(shape: Shape, kernel: Kernel) -> Self {
        let mut new = Self { state: [0; STATE], tails: [0; TAILS], shape, kernel };
        let words = new.state.as_chunks_mut().0.chunks_exact_mut(kernel.lanes);
        for (lanes, word) in words.zip(shape.start) {
            lanes.fill(low_bytes::<WORD>(*word));
        }
        new
    }

    fn run<J: Job>(&mut self, jobs: &mut [J]) {
        let mut lanes = [None; MAX_LANES];
        let lanes = &mut lanes[..self.kernel.lanes];
        let mut next = 0;
        for (lane, active) in lanes.iter_mut().enumerate().take(jobs.len()) {
            *active = Some(self.begin(lane, next, &jobs[next]));
            next += 1;
        }
        while self.step(lanes, jobs) {
            for (lane, active) in lanes.iter_mut().enumerate() {
                let Some(now) = active else { continue };
                if now.blocks > 0 {
                    continue;
                }
                *active = self.advance(lane, *now, &mut jobs[now.job]);
                if active.is_none() && next < jobs.len() {
                    self.restart(lane);
                    *active = Some(self.begin(lane, next, &jobs[next]));
                    next += 1;
                }
            }
        }
        if jobs.iter().any(|job| job.key().is_some()) {
            // What the kernel put there of the states.
            wipe_shallow_stack();
        }
    }

    /// Runs the kernel for as long as nothing changes; `false` when no lane has a request.
    fn step<J: Job>(&mut self, lanes: &mut [Option<Active>], jobs: &[J]) -> bool {
        let Some(steps) = lanes.iter().flatten().map(|active| active.blocks).min() else {
            return false;
        };
        let bytes = steps * self.shape.block;
        let mut rows = None;
        for (lane, active) in lanes.iter_mut().enumerate() {
            let Some(active) = active else { continue };
            let from = match active.stage {
                Stage::Data => jobs[active.job].data(),
                Stage::Tail | Stage::Outer => &self.tails[self.shape.tail(lane)],
            };
            let row = &from[active.at..];
            rows.get_or_insert_with(|| Rows::all(row, bytes)).set(lane, row);
            active.at += bytes;
            active.blocks -= steps;
        }
        if let Some(rows) = rows {
            self.kernel.run(&mut self.state, &rows, self.shape.block);
        }
        true
    }

    /// Puts a request into a lane that has the initial chaining value.
    #[inline]
    fn begin<J: Job>(&mut self, lane: usize, job: usize, request: &J) -> Active {
        if let Some(key) = request.key() {
            self.set(lane, key.inner());
        }
        match request.data().len() / self.shape.block {
            0 => Active { job, stage: Stage::Tail, at: 0, blocks: self.tail(lane, 0, request) },
            blocks => Active { job, stage: Stage::Data, at: 0, blocks },
        }
    }

    /// The stage after one that is through; `None` when the request is answered.
    #[inline]
    fn advance<J: Job>(&mut self, lane: usize, active: Active, request: &mut J) -> Option<Active> {
        let (stage, blocks) = match (active.stage, request.key()) {
            (Stage::Data, _) => (Stage::Tail, self.tail(lane, active.at, request)),
            (Stage::Tail, Some(key)) => (Stage::Outer, self.outer(lane, key)),
            (Stage::Tail, None) | (Stage::Outer, _) => {
                digest::<WORD>(&self.state, self.shape, self.kernel.lanes, lane, request.output());
                return None;
            }
        };
        Some(Active { job: active.job, stage, at: 0, blocks })
    }

    /// Writes what is left of a message from `at` on, and its padding; gives the number of blocks.
    fn tail<J: Job>(&mut self, lane: usize, at: usize, request: &J) -> usize {
        let (data, block) = (request.data(), self.shape.block);
        let before = if request.key().is_some() { block } else { 0 };
        let rest = &data[at..];
        let tail = &mut self.tails[self.shape.tail(lane)];
        tail[..rest.len()].copy_from_slice(rest);
        self.shape.pad(tail, rest.len(), (before + data.len()) as u64)
    }

    /// Begins the outer hash with the digest of the inner; gives the number of blocks.
    fn outer(&mut self, lane: usize, key: &Key) -> usize {
        let length = key.hash().length();
        let tail = &mut self.tails[self.shape.tail(lane)];
        digest::<WORD>(&self.state, self.shape, self.kernel.lanes, lane, &mut tail[..length]);
        let blocks = self.shape.pad(tail, length, (self.shape.block + length) as u64);
        self.set(lane, key.outer());
        blocks
    }

    /// Gives a lane the initial chaining value.
    fn restart(&mut self, lane: usize) {
        let start = self.shape.start;
        for (to, word) in self.words(lane).zip(start) {
            *to = low_bytes::<WORD>(*word);
        }
    }

    /// Gives a lane a chaining value.
    fn set(&mut self, lane: usize, chain: &[u8]) {
        for (to, word) in self.words(lane).zip(chain.as_chunks().0) {
            *to = *word;
        }
    }

    /// The words of a lane, and more.
    fn words(&mut self, lane: usize) -> impl Iterator<Item = &mut [u8; WORD]> {
        let rows = self.state.as_chunks_mut().0.chunks_exact_mut(self.kernel.lanes);
        rows.map(move |row| &mut row[lane])
    }

    fn after_blocks(&mut self, blocks: [&[u8]; 2], out: [&mut [u8]; 2]) {
        let mut rows = Rows::all(blocks[0], self.shape.block);
        rows.set(1, blocks[1]);
        self.kernel.run(&mut self.state, &rows, self.shape.block);
        for (lane, out) in out.into_iter().enumerate() {
            for (to, word) in out.as_chunks_mut().0.iter_mut().zip(self.words(lane)) {
                *to = *word;
            }
        }
        wipe_shallow_stack();
    }
}

/// A lane's digest, or its beginning.
fn digest<const WORD: usize>(
    state: &[u8],
    shape: Shape,
    lanes: usize,
    lane: usize,
    out: &mut [u8],
) {
    let mut words = state.as_chunks::<WORD>().0.chunks_exact(lanes).map(|row| row[lane]);
    let (whole, part) = out.as_chunks_mut();
    if shape.big {
        whole.iter_mut().zip(&mut words).for_each(|(to, word)| *to = reversed(word));
    } else {
        whole.iter_mut().zip(&mut words).for_each(|(to, word)| *to = word);
    }
    if let Some(word) = words.next().filter(|_| !part.is_empty()) {
        let word = if shape.big { reversed(word) } else { word };
        part.copy_from_slice(&word[..part.len()]);
    }
}

fn reversed<const WORD: usize>(mut word: [u8; WORD]) -> [u8; WORD] {
    word.reverse();
    word
}

/// A word of the length that is wanted, as it lies in memory.
fn low_bytes<const WORD: usize>(word: u64) -> [u8; WORD] {
    let bytes = word.to_le_bytes();
    std::array::from_fn(|i| bytes[i])
}
