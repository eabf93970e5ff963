// SPDX-License-Identifier: Apache-2.0
//! Bytes and words as vectors: what the intrinsics do by pointers.

use std::arch::x86_64::{__m128i, __m512i};
use std::mem::transmute;

/// 16 bytes, the first lowest.
pub(crate) fn from_bytes(bytes: [u8; 16]) -> __m128i {
    // SAFETY: both are 16 bytes, and every pattern of bits is a value of either.
    unsafe { transmute(bytes) }
}

/// The bytes, the lowest first.
pub(crate) fn to_bytes(vector: __m128i) -> [u8; 16] {
    // SAFETY: as above.
    unsafe { transmute(vector) }
}

/// Four words, the lowest first.
pub(crate) fn to_words(vector: __m128i) -> [u32; 4] {
    // SAFETY: as above.
    unsafe { transmute(vector) }
}

/// 64 bytes, the first lowest.
pub(crate) fn wide_from_bytes(bytes: [u8; 64]) -> __m512i {
    // SAFETY: both are 64 bytes, and every pattern of bits is a value of either.
    unsafe { transmute(bytes) }
}

/// The bytes, the lowest first.
pub(crate) fn wide_to_bytes(vector: __m512i) -> [u8; 64] {
    // SAFETY: as above.
    unsafe { transmute(vector) }
}
