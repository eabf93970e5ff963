// SPDX-License-Identifier: Apache-2.0
//! Numbers of several words, and their big-endian bytes.

/// Big-endian bytes, at most as many as the words hold.
pub(super) fn from_bytes<const W: usize>(bytes: &[u8]) -> [u64; W] {
    let mut out = [0; W];
    for (at, byte) in bytes.iter().rev().enumerate() {
        out[at / 8] |= u64::from(*byte) << (8 * (at % 8));
    }
    out
}

/// Big-endian bytes into all of `out`; what does not fit is dropped.
pub(super) fn to_bytes<const W: usize>(words: &[u64; W], out: &mut [u8]) {
    for (at, byte) in out.iter_mut().rev().enumerate() {
        *byte = words.get(at / 8).map_or(0, |word| word.to_le_bytes()[at % 8]);
    }
}
