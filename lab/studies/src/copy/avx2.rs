// SPDX-License-Identifier: Apache-2.0
//! Copies by vectors of 32 bytes.

use super::lines::{LINE, Line, split};
use super::small;
use std::arch::x86_64::{
    __m256i, _mm_sfence, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_stream_si256,
};

const VECTOR: usize = 32;
/// Four vectors on their way at a time.
const STEP: usize = 4 * VECTOR;

/// Copies with ordinary stores.
pub(super) fn copy(to: &mut [u8], from: &[u8]) {
    // SAFETY: the kernel is handed out only where the processor has AVX2.
    unsafe { allocating(to, from) }
}

/// Copies with non-temporal stores, and waits until others can see them.
pub(super) fn stream(to: &mut [u8], from: &[u8]) {
    // SAFETY: the kernel is handed out only where the processor has AVX2.
    unsafe { non_temporal(to, from) }
}

#[target_feature(enable = "avx2")]
fn allocating(to: &mut [u8], from: &[u8]) {
    if from.len() < STEP {
        return short(to, from);
    }
    let (steps, rest) = from.as_chunks::<STEP>();
    let (places, _) = to.as_chunks_mut::<STEP>();
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

/// Less than a step.
#[inline]
fn short(to: &mut [u8], from: &[u8]) {
    match from.len() {
        64.. => small::ends::<64>(to, from),
        _ => small::copy(to, from),
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn whole(place: &mut [u8; STEP], step: &[u8; STEP]) {
    let (places, _) = place.as_chunks_mut::<VECTOR>();
    let (vectors, _) = step.as_chunks::<VECTOR>();
    let values = [0, 1, 2, 3].map(|at| load(&vectors[at]));
    for (place, value) in places.iter_mut().zip(values) {
        store(place, value);
    }
}

#[target_feature(enable = "avx2")]
fn non_temporal(to: &mut [u8], from: &[u8]) {
    let (head, lines, tail) = split(to);
    let (first, rest) = from.split_at(head.len());
    head.copy_from_slice(first);
    let (sources, last) = rest.as_chunks::<LINE>();
    for (line, source) in lines.iter_mut().zip(sources) {
        let (vectors, _) = source.as_chunks::<VECTOR>();
        let values = [0, 1].map(|at| load(&vectors[at]));
        push(line, values);
    }
    tail.copy_from_slice(last);
    _mm_sfence();
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; VECTOR]) -> __m256i {
    // SAFETY: reads a vector's bytes, wherever they begin.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(bytes: &mut [u8; VECTOR], value: __m256i) {
    // SAFETY: writes a vector's bytes, wherever they begin.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), value) }
}

/// Both halves of a line, past the cache.
#[inline]
#[target_feature(enable = "avx2")]
fn push(line: &mut Line, values: [__m256i; 2]) {
    let (halves, _) = line.0.as_chunks_mut::<VECTOR>();
    for (half, value) in halves.iter_mut().zip(values) {
        // SAFETY: writes a vector's bytes; a line begins at a multiple of 64, its second half at one of 32.
        unsafe { _mm256_stream_si256(half.as_mut_ptr().cast(), value) }
    }
}
