// SPDX-License-Identifier: Apache-2.0
//! Registers of four blocks: into them, through the rounds, and out.

use super::key::{BLOCK, RoundKeys, register};
use crate::data::Data;
use std::arch::x86_64::{
    __m512i, __mmask64, _mm512_aesdec_epi128, _mm512_aesenc_epi128, _mm512_broadcast_i32x4,
    _mm512_loadu_si512, _mm512_mask_storeu_epi8, _mm512_maskz_loadu_epi8, _mm512_setzero_si512,
    _mm512_storeu_si512, _mm512_xor_si512,
};

/// Bytes of a register.
pub(super) const REGISTER: usize = 64;

/// Registers of input from `at` on; of the last only what `mask` says. `MODE` and `ROUNDS` tell callers apart: the compiler
/// inlines what it sees used once, and only then do the blocks stay in registers.
///
/// # Panics
/// When that is beyond the end.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn load<const MODE: u8, const ROUNDS: usize, const N: usize, const WHOLE: bool>(
    data: &Data<'_>,
    at: usize,
    mask: u64,
) -> [__m512i; N] {
    assert!(at + end(N, WHOLE, mask) <= data.len(), "load beyond the end");
    let from = data.input().wrapping_add(at);
    let mut registers = [_mm512_setzero_si512(); N];
    for (i, register) in registers.iter_mut().enumerate() {
        let from = from.wrapping_add(REGISTER * i);
        if WHOLE || i < N - 1 {
            // SAFETY: all of the register's bytes are within the input (asserted).
            *register = unsafe { _mm512_loadu_si512(from.cast()) };
        } else {
            // SAFETY: the bytes in the mask are within the input (asserted); others are not touched.
            *register = unsafe { _mm512_maskz_loadu_epi8(mask, from.cast()) };
        }
    }
    registers
}

/// Writes what [`load`] with the same numbers would read.
///
/// # Panics
/// When that is beyond the end.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn store<const MODE: u8, const ROUNDS: usize, const N: usize, const WHOLE: bool>(
    data: &mut Data<'_>,
    at: usize,
    mask: u64,
    registers: &[__m512i; N],
) {
    assert!(at + end(N, WHOLE, mask) <= data.len(), "store beyond the end");
    let to = data.output().wrapping_add(at);
    for (i, register) in registers.iter().enumerate() {
        let to = to.wrapping_add(REGISTER * i);
        if WHOLE || i < N - 1 {
            // SAFETY: all of the register's bytes are within the output (asserted).
            unsafe { _mm512_storeu_si512(to.cast(), *register) };
        } else {
            // SAFETY: the bytes in the mask are within the output (asserted); others are not touched.
            unsafe { _mm512_mask_storeu_epi8(to.cast(), mask, *register) };
        }
    }
}

/// Bytes of `count` registers whose last is masked, or whole.
const fn end(count: usize, whole: bool, mask: u64) -> usize {
    REGISTER * count - if whole { 0 } else { mask.leading_zeros() as usize }
}

/// The mask of the first `count` bytes, 1 to 64.
pub(super) const fn first(count: usize) -> __mmask64 {
    u64::MAX >> (REGISTER - count)
}

/// Four times the block.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn broadcast(block: &[u8; BLOCK]) -> __m512i {
    _mm512_broadcast_i32x4(register(block))
}

/// All of the cipher, or of its equivalent inverse, but the last round. `PLACE` tells callers apart, as in
/// [`load`].
#[inline]
#[target_feature(enable = "avx512f,vaes")]
pub(super) fn rounds<
    const ENCRYPT: bool,
    const ROUNDS: usize,
    const N: usize,
    const PLACE: usize,
>(
    keys: &RoundKeys,
    x: &mut [__m512i; N],
) {
    let key = broadcast(&keys[0]);
    for x in &mut *x {
        *x = _mm512_xor_si512(*x, key);
    }
    for key in &keys[1..ROUNDS] {
        let key = broadcast(key);
        for x in &mut *x {
            *x =
                if ENCRYPT { _mm512_aesenc_epi128(*x, key) } else { _mm512_aesdec_epi128(*x, key) };
        }
    }
}
