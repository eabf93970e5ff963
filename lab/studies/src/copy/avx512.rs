// SPDX-License-Identifier: Apache-2.0
//! Copies by vectors of 64 bytes: a line each.

use super::lines::{LINE, Line, split};
use super::small;
use std::arch::x86_64::{
    __m512i, _mm_sfence, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_stream_si512,
};

/// Four vectors on their way at a time.
const STEP: usize = 4 * LINE;

/// Copies with ordinary stores.
pub(super) fn copy(to: &mut [u8], from: &[u8]) {
    // SAFETY: the kernel is handed out only where the processor has AVX-512.
    unsafe { allocating(to, from) }
}

/// Copies with ordinary stores, from the end to the start.
pub(super) fn copy_back(to: &mut [u8], from: &[u8]) {
    // SAFETY: the kernel is handed out only where the processor has AVX-512.
    unsafe { backwards(to, from) }
}

/// Copies with non-temporal stores, and waits until others can see them.
pub(super) fn stream(to: &mut [u8], from: &[u8]) {
    // SAFETY: the kernel is handed out only where the processor has AVX-512.
    unsafe { non_temporal(to, from) }
}

#[target_feature(enable = "avx512f")]
fn allocating(to: &mut [u8], from: &[u8]) {
    match from.len() / LINE {
        0 => return small::copy(to, from),
        1 => return ends::<1>(to, from),
        2 | 3 => return ends::<2>(to, from),
        _ => {}
    }
    // A store that crosses a line is two: all but the first and the last ones begin where a line does.
    let first = to.as_ptr().addr().wrapping_neg() % LINE;
    if let (Some(place), Some(step), 1..) = (to.first_chunk_mut(), from.first_chunk(), first) {
        store(place, load(step));
    }
    let (steps, rest) = from[first..].as_chunks::<STEP>();
    let (places, _) = to[first..].as_chunks_mut::<STEP>();
    for (place, step) in places.iter_mut().zip(steps) {
        whole(place, step);
    }
    if rest.is_empty() {
        return;
    }
    // The last step may overlap the one before: it writes the same again.
    if let (Some(place), Some(step)) = (to.last_chunk_mut::<STEP>(), from.last_chunk::<STEP>()) {
        whole(place, step);
    }
}

/// The order matters where a page is made in the middle of a copy.
#[target_feature(enable = "avx512f")]
fn backwards(to: &mut [u8], from: &[u8]) {
    let (rest, steps) = from.as_rchunks::<STEP>();
    let (begin, places) = to.as_rchunks_mut::<STEP>();
    for (place, step) in places.iter_mut().zip(steps).rev() {
        let (places, _) = place.as_chunks_mut::<LINE>();
        let (vectors, _) = step.as_chunks::<LINE>();
        let values = [3, 2, 1, 0].map(|at| load(&vectors[at]));
        for (place, value) in places.iter_mut().rev().zip(values) {
            store(place, value);
        }
    }
    begin.copy_from_slice(rest);
}

/// The first and the last `LINES` lines: everything, if there are between so many and twice as many.
#[inline]
#[target_feature(enable = "avx512f")]
fn ends<const LINES: usize>(to: &mut [u8], from: &[u8]) {
    let length = from.len();
    let start = |at: usize| if at < LINES { at * LINE } else { length - (at - LINES + 1) * LINE };
    for at in 0..2 * LINES {
        let start = start(at);
        let place = to.get_mut(start..).and_then(|bytes| bytes.first_chunk_mut());
        let bytes = from.get(start..).and_then(|bytes| bytes.first_chunk());
        if let (Some(place), Some(bytes)) = (place, bytes) {
            store(place, load(bytes));
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn whole(place: &mut [u8; STEP], step: &[u8; STEP]) {
    let (places, _) = place.as_chunks_mut::<LINE>();
    let (vectors, _) = step.as_chunks::<LINE>();
    let values = [0, 1, 2, 3].map(|at| load(&vectors[at]));
    for (place, value) in places.iter_mut().zip(values) {
        store(place, value);
    }
}

#[target_feature(enable = "avx512f")]
fn non_temporal(to: &mut [u8], from: &[u8]) {
    let (head, lines, tail) = split(to);
    let (first, rest) = from.split_at(head.len());
    head.copy_from_slice(first);
    let (sources, last) = rest.as_chunks::<LINE>();
    for (line, source) in lines.iter_mut().zip(sources) {
        push(line, load(source));
    }
    tail.copy_from_slice(last);
    _mm_sfence();
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; LINE]) -> __m512i {
    // SAFETY: reads a vector's bytes, wherever they begin.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(bytes: &mut [u8; LINE], value: __m512i) {
    // SAFETY: writes a vector's bytes, wherever they begin.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), value) }
}

/// A line, past the cache.
#[inline]
#[target_feature(enable = "avx512f")]
fn push(line: &mut Line, value: __m512i) {
    // SAFETY: writes a vector's bytes, and a line begins at a multiple of 64.
    unsafe { _mm512_stream_si512((&raw mut *line).cast(), value) }
}
