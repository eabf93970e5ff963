// SPDX-License-Identifier: Apache-2.0
//! CBC encryption of many messages, each with its own key.

use super::LANES;
use super::cipher::triple;
use super::key::{BLOCK, Key};
use super::transpose::{BITS, Slab};
use super::word::Word;
#[cfg(target_arch = "x86_64")]
use super::word::{Avx2, Avx512};
use crate::cpu::{Cpu, cpu};
use crate::data::{Data, Way};
use metaslot_memory::{Secret, wiping};

/// A message: its key, its IV and its whole blocks.
#[derive(Debug)]
pub struct Stream<'a> {
    /// The key; streams may share one.
    pub key: &'a Key,
    /// The IV; left as the next part needs it.
    pub iv: &'a mut [u8; BLOCK],
    /// A whole number of blocks.
    pub data: Data<'a>,
}

/// Room for a pass over many streams, 20 KiB of protected memory; to be kept and used again.
#[derive(Debug)]
pub struct Lanes(Secret);

#[repr(C)]
struct Work {
    /// Every lane's three keys: as numbers while they come and go, as bits during a pass.
    numbers: [Slab; 3],
    keys: [Slab; 3],
    slab: Slab,
}

/// No stream.
const IDLE: u32 = u32::MAX;

impl Default for Lanes {
    fn default() -> Self {
        Self::new()
    }
}

impl Lanes {
    /// Makes the room.
    #[must_use]
    pub fn new() -> Self {
        Self(Secret::zeroed(size_of::<Work>() + align_of::<Work>()))
    }

    fn work(&mut self) -> &mut Work {
        // SAFETY: a `Work` is numbers, which any bytes are.
        let (_, work, _) = unsafe { self.0.expose_mut().align_to_mut::<Work>() };
        &mut work[0]
    }

    /// CBC encryption of any number of streams of any lengths: a lane whose stream ends takes the next.
    ///
    /// # Panics
    /// When a stream is no whole number of blocks, or there are 2^32 - 1 streams.
    pub fn cbc_encrypt(&mut self, streams: &mut [Stream<'_>]) {
        self.run(streams, cpu());
    }

    /// With the instructions of `cpu`, which the machine has.
    pub(super) fn run(&mut self, streams: &mut [Stream<'_>], cpu: Cpu) {
        for stream in &*streams {
            assert!(stream.data.len().is_multiple_of(BLOCK), "no whole number of blocks");
        }
        assert!(streams.len() < IDLE as usize, "too many streams");
        wiping(|| self.passes(streams, cpu));
    }

    fn passes(&mut self, streams: &mut [Stream<'_>], cpu: Cpu) {
        #[cfg(target_arch = "x86_64")]
        if cpu.has(Cpu::AVX512) {
            // SAFETY: the machine has the instructions.
            return unsafe { wide(self.work(), streams) };
        } else if cpu.has(Cpu::AVX2) {
            // SAFETY: as above.
            return unsafe { medium(self.work(), streams) };
        }
        side_by_side::<u64>(self.work(), streams);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn wide(work: &mut Work, streams: &mut [Stream<'_>]) {
    side_by_side::<Avx512>(work, streams);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn medium(work: &mut Work, streams: &mut [Stream<'_>]) {
    side_by_side::<Avx2>(work, streams);
}

/// Which stream each lane has, and how far it is.
struct Places {
    stream: [u32; LANES],
    done: [usize; LANES],
}

#[inline(always)]
fn side_by_side<W: Word>(work: &mut Work, streams: &mut [Stream<'_>]) {
    let width = (BITS * W::WORDS).min(streams.len());
    let mut places = Places { stream: [IDLE; LANES], done: [0; LANES] };
    let mut next = 0;
    loop {
        let blocks = refill::<W>(work, streams, &mut places, width, &mut next);
        if blocks == 0 {
            break;
        }
        for _ in 0..blocks {
            step::<W>(work, streams, &mut places, width);
        }
    }
}

/// Gives lanes whose stream has ended the next one; how many blocks all lanes with a stream have, 0 when there is none.
#[inline(always)]
fn refill<W: Word>(
    work: &mut Work,
    streams: &[Stream<'_>],
    places: &mut Places,
    width: usize,
    next: &mut usize,
) -> usize {
    let mut least = usize::MAX;
    for lane in 0..width {
        let ended = |at: u32| match streams.get(at as usize) {
            Some(stream) => places.done[lane] == stream.data.len(),
            None => true,
        };
        if ended(places.stream[lane]) {
            places.stream[lane] = IDLE;
            while let Some(stream) = streams.get(*next) {
                *next += 1;
                if !stream.data.is_empty() {
                    #[expect(clippy::cast_possible_truncation, reason = "asserted to be less")]
                    let at = (*next - 1) as u32;
                    (places.stream[lane], places.done[lane]) = (at, 0);
                    for (numbers, key) in work.numbers.iter_mut().zip(stream.key.numbers()) {
                        numbers.0[Slab::place::<W>(lane)] = *key;
                    }
                    break;
                }
            }
        }
        if let Some(stream) = streams.get(places.stream[lane] as usize) {
            least = least.min((stream.data.len() - places.done[lane]) / BLOCK);
        }
    }
    if least == usize::MAX {
        return 0;
    }
    work.keys = work.numbers;
    for keys in &mut work.keys {
        keys.transpose::<W>();
    }
    least
}

/// One block of each lane that has a stream.
#[inline(always)]
fn step<W: Word>(work: &mut Work, streams: &mut [Stream<'_>], places: &mut Places, width: usize) {
    let Work { keys, slab, .. } = work;
    for lane in 0..width {
        if let Some(stream) = streams.get(places.stream[lane] as usize) {
            let mut block = [0; BLOCK];
            stream.data.read(places.done[lane], &mut block);
            let block = u64::from_le_bytes(block) ^ u64::from_le_bytes(*stream.iv);
            slab.0[Slab::place::<W>(lane)] = block;
        }
    }
    slab.transpose::<W>();
    triple::<W>(Way::Encrypt, keys, slab);
    slab.transpose::<W>();
    for lane in 0..width {
        if let Some(stream) = streams.get_mut(places.stream[lane] as usize) {
            *stream.iv = slab.0[Slab::place::<W>(lane)].to_le_bytes();
            stream.data.write(places.done[lane], stream.iv);
            places.done[lane] += BLOCK;
        }
    }
}
