// SPDX-License-Identifier: Apache-2.0
//! RC4 with a state of 32-bit words, which spares the processor byte moves, and several streams interleaved, which hide each other's
//! latency.
//!
//! Not constant time: RC4 looks its state up at places that depend on the key, by design. It is here for old data and protocols; the
//! default policy makes nothing new with it.

#[cfg(test)]
mod tests;

use crate::data::Data;
use metaslot_memory::{Protected, wipe_shallow_stack, wiping};
use std::hint::black_box;

/// How many streams are computed at the same time at most.
pub const LANES: usize = 4;

/// Longest key, in bytes.
pub const LONGEST_KEY: usize = 256;

/// Bytes that are read and written at once.
const STEP: usize = 8;

/// A key stream in protected memory: what is left of it after the bytes used.
#[derive(Debug)]
pub struct Rc4(Protected<State>);

#[derive(Clone, Copy)]
struct State {
    table: [u32; 256],
    /// The index that counts, and the one that wanders.
    x: u32,
    y: u32,
}

/// The kernel is plain code: it runs everywhere.
#[must_use]
pub const fn available() -> bool {
    true
}

impl Rc4 {
    /// Begins a key stream with a key of 1 to 256 bytes; `None` for another length.
    #[must_use]
    pub fn new(key: &[u8]) -> Option<Self> {
        if key.is_empty() || key.len() > LONGEST_KEY {
            return None;
        }
        // SAFETY: numbers; zero is one.
        let mut state = unsafe { Protected::<State>::zeroed() };
        for (entry, value) in state.table.iter_mut().zip(0..) {
            *entry = value;
        }
        let mut y = 0;
        for (x, byte) in (0..256).zip(key.iter().cycle()) {
            let entry = state.table[x];
            y = (y + entry as usize + usize::from(*byte)) & 255;
            state.table[x] = state.table[y];
            state.table[y] = entry;
        }
        Some(Self(state))
    }

    /// Encrypts or decrypts: the next bytes of the key stream are added.
    pub fn apply(&mut self, data: Data<'_>) {
        alone(&mut self.0, data);
        wipe_shallow_stack();
    }
}

#[inline(never)]
fn alone(state: &mut State, data: Data<'_>) {
    interleave([(state, data)]);
}

/// A key stream and what it is to be added to.
#[derive(Debug)]
pub struct Stream<'a> {
    /// Left where the next part needs it.
    pub state: &'a mut Rc4,
    /// Any number of bytes.
    pub data: Data<'a>,
}

/// A state and what its bytes are added to.
type Lane<'a> = (&'a mut State, Data<'a>);

/// Encrypts or decrypts any number of streams of any lengths, up to [`LANES`] at the same time.
pub fn apply(streams: &mut [Stream<'_>]) {
    wiping(|| side_by_side(streams));
}

fn side_by_side(streams: &mut [Stream<'_>]) {
    let mut waiting = streams.iter_mut().filter(|stream| !stream.data.is_empty());
    let mut lanes: [Option<Lane<'_>>; LANES] = [const { None }; LANES];
    loop {
        for lane in &mut lanes {
            if lane.is_none() {
                *lane = waiting.next().map(|stream| (&mut *stream.state.0, stream.data.again()));
            }
        }
        lanes.sort_unstable_by_key(Option::is_none);
        let lengths = lanes.iter().flatten().map(|(_, data)| data.len());
        let Some(length) = lengths.min() else {
            break;
        };
        match &mut lanes {
            [Some(a), Some(b), Some(c), Some(d)] => {
                interleave([a, b, c, d].map(|lane| part(lane, length)))
            }
            [Some(a), Some(b), Some(c), _] => interleave([a, b, c].map(|lane| part(lane, length))),
            [Some(a), Some(b), ..] => interleave([a, b].map(|lane| part(lane, length))),
            [Some(a), ..] => interleave([part(a, length)]),
            [None, ..] => break,
        }
        for lane in &mut lanes {
            if lane.as_ref().is_some_and(|(_, data)| data.is_empty()) {
                *lane = None;
            }
        }
    }
}

/// The first `length` bytes of a lane, which keeps the others.
fn part<'a>(lane: &'a mut Lane<'_>, length: usize) -> Lane<'a> {
    let (state, data) = lane;
    let (part, rest) = std::mem::replace(data, Data::in_place(&mut [])).split(length);
    *data = rest;
    (state, part)
}

/// Lanes of one length, a byte of each in turn. Several tables are brought side by side first: where they lie a multiple of a page
/// apart, the processor takes one table's store for another's.
fn interleave<const N: usize>(mut lanes: [Lane<'_>; N]) {
    if N == 1 {
        let [(state, data)] = &mut lanes[..] else { return };
        run::<1>([&mut state.table], [(&mut state.x, &mut state.y)], [data]);
        return;
    }
    let mut tables = [[0; 256]; N];
    for (table, (state, _)) in tables.iter_mut().zip(&lanes) {
        *table = state.table;
    }
    let mut indices = [(0, 0); N];
    for (index, (state, _)) in indices.iter_mut().zip(&lanes) {
        *index = (state.x, state.y);
    }
    run(
        tables.each_mut(),
        indices.each_mut().map(|(x, y)| (x, y)),
        lanes.each_mut().map(|(_, data)| data),
    );
    for ((table, index), (state, _)) in tables.iter().zip(indices).zip(&mut lanes) {
        state.table = *table;
        (state.x, state.y) = index;
    }
    tables = [[0; 256]; N];
    black_box(&mut tables);
}

#[inline(always)]
fn run<const N: usize>(
    tables: [&mut [u32; 256]; N],
    indices: [(&mut u32, &mut u32); N],
    mut data: [&mut Data<'_>; N],
) {
    let (mut x, mut y) = ([0; N], [0; N]);
    for at in 0..N {
        (x[at], y[at]) = (*indices[at].0, *indices[at].1);
    }
    let length = data[0].len();
    for start in (0..length).step_by(STEP) {
        let count = STEP.min(length - start);
        let mut streams = [0_u64; N];
        for byte in 0..count {
            for at in 0..N {
                let next = u64::from(next(tables[at], &mut x[at], &mut y[at]));
                streams[at] |= next << (8 * byte);
            }
        }
        for (data, stream) in data.iter_mut().zip(streams) {
            let mut bytes = [0; STEP];
            data.read(start, &mut bytes[..count]);
            let bytes = (u64::from_le_bytes(bytes) ^ stream).to_le_bytes();
            data.write(start, &bytes[..count]);
        }
    }
    for at in 0..N {
        (*indices[at].0, *indices[at].1) = (x[at], y[at]);
    }
}

/// The next byte of a key stream.
#[inline(always)]
const fn next(table: &mut [u32; 256], x: &mut u32, y: &mut u32) -> u8 {
    *x = x.wrapping_add(1) & 255;
    let a = table[*x as usize];
    *y = y.wrapping_add(a) & 255;
    let b = table[*y as usize];
    table[*y as usize] = a;
    table[*x as usize] = b;
    table[(a.wrapping_add(b) & 255) as usize].to_le_bytes()[0]
}
