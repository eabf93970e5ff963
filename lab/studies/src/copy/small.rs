// SPDX-License-Identifier: Apache-2.0
//! Copies of less than a vector: two that overlap, each of half the length or more.

/// Copies up to 64 bytes.
#[inline]
pub(super) fn copy(to: &mut [u8], from: &[u8]) {
    match from.len() {
        32.. => ends::<32>(to, from),
        16.. => ends::<16>(to, from),
        8.. => ends::<8>(to, from),
        4.. => ends::<4>(to, from),
        2.. => ends::<2>(to, from),
        1 => to[0] = from[0],
        0 => {}
    }
}

/// Copies the first and the last `N` bytes: everything, if there are between `N` and twice as many.
#[inline]
pub(super) fn ends<const N: usize>(to: &mut [u8], from: &[u8]) {
    let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) else {
        return;
    };
    let (first, last) = (*first, *last);
    if let Some(to) = to.first_chunk_mut::<N>() {
        *to = first;
    }
    if let Some(to) = to.last_chunk_mut::<N>() {
        *to = last;
    }
}
