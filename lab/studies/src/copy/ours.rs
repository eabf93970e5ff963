// SPDX-License-Identifier: Apache-2.0
//! A copy that chooses by the size alone, as a library must: it cannot know the state of the memory, nor
//! who reads next.

use super::{avx2, avx512, string};

/// From here on the processor's own loop is as fast as vectors and takes no registers.
const STRING: usize = 8 * 1024;
/// From here on nothing would stay in the last cache, however large: below, a copy past the cache loses
/// where source and destination are in it.
const STREAM: usize = 32 * 1024 * 1024;

/// Copies. Only for processors with AVX-512.
pub(super) fn copy(to: &mut [u8], from: &[u8]) {
    let length = from.len();
    if length < STRING {
        avx2::copy(to, from);
    } else if length < STREAM {
        string::movsb(to, from);
    } else {
        avx512::stream(to, from);
    }
}
