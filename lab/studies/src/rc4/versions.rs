// SPDX-License-Identifier: Apache-2.0
//! One stream, in three arrangements.

use super::{Element, State};

/// Bytes that are gathered before they are stored.
const WORD: usize = 8;

/// The plain loop: indices are bytes, and each byte of the stream is applied by itself.
#[inline(never)]
pub(super) fn version_1<T: Element>(state: &mut State<T>, data: &mut [u8]) {
    let (mut i, mut j) = (state.i, state.j);
    for byte in data {
        i = i.wrapping_add(1);
        let x = state.table[usize::from(i)].byte();
        j = j.wrapping_add(x);
        let y = state.table[usize::from(j)].byte();
        state.table[usize::from(i)] = T::from_byte(y);
        state.table[usize::from(j)] = T::from_byte(x);
        *byte ^= state.table[usize::from(x.wrapping_add(y))].byte();
    }
    (state.i, state.j) = (i, j);
}

/// Indices are whole registers, so that none is written in part and then read as a whole; eight bytes
/// of the stream are gathered in a register and applied by one load and one store.
#[inline(never)]
pub(super) fn version_2<T: Element>(state: &mut State<T>, data: &mut [u8]) {
    let (mut i, mut j) = (usize::from(state.i), usize::from(state.j));
    let (words, rest) = data.as_chunks_mut::<WORD>();
    for word in words {
        let mut stream = 0;
        for at in 0..WORD {
            stream |= step(state, &mut i, &mut j) << (8 * at);
        }
        apply(word, stream);
    }
    for byte in rest {
        *byte ^= step(state, &mut i, &mut j).to_le_bytes()[0];
    }
    store(state, i, j);
}

/// A byte of the stream.
#[inline(always)]
fn step<T: Element>(state: &mut State<T>, i: &mut usize, j: &mut usize) -> u64 {
    *i = (*i + 1) & 0xff;
    let x = state.at(*i);
    *j = (*j + x) & 0xff;
    let y = state.at(*j);
    state.put(*i, y);
    state.put(*j, x);
    state.at(x + y) as u64
}

/// As [`version_2`], and the entry that the next byte begins with is loaded before this byte's entries
/// are stored: the load need not wait to learn where the stores go. Where one of them went to that very
/// entry, what was stored is taken instead.
#[inline(never)]
pub(super) fn version_3<T: Element>(state: &mut State<T>, data: &mut [u8]) {
    let (mut i, mut j) = (usize::from(state.i), usize::from(state.j));
    // The entry of the byte to come, known before its turn.
    let mut x = state.at(i + 1);
    let (words, rest) = data.as_chunks_mut::<WORD>();
    for word in words {
        let mut stream = 0;
        for at in 0..WORD {
            stream |= step_ahead(state, &mut i, &mut j, &mut x) << (8 * at);
        }
        apply(word, stream);
    }
    for byte in rest {
        *byte ^= step_ahead(state, &mut i, &mut j, &mut x).to_le_bytes()[0];
    }
    store(state, i, j);
}

/// A byte of the stream; `x` is its first entry, and becomes the next one's.
#[inline(always)]
fn step_ahead<T: Element>(
    state: &mut State<T>,
    i: &mut usize,
    j: &mut usize,
    x: &mut usize,
) -> u64 {
    *i = (*i + 1) & 0xff;
    let next = (*i + 1) & 0xff;
    let here = *x;
    *j = (*j + here) & 0xff;
    let (y, ahead) = (state.at(*j), state.at(next));
    state.put(*i, y);
    state.put(*j, here);
    *x = if *j == next { here } else { ahead };
    state.at(here + y) as u64
}

fn apply(word: &mut [u8; WORD], stream: u64) {
    *word = (u64::from_le_bytes(*word) ^ stream).to_le_bytes();
}

fn store<T>(state: &mut State<T>, i: usize, j: usize) {
    (state.i, state.j) = (i.to_le_bytes()[0], j.to_le_bytes()[0]);
}
