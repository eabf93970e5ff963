// SPDX-License-Identifier: Apache-2.0
//! Key expansion (FIPS 197 §5.2) and the schedules of both directions.

use super::available;
use metaslot_memory::{Protected, wipe_shallow_stack};
use std::arch::x86_64::{
    __m128i, _mm_aesenclast_si128, _mm_aesimc_si128, _mm_cvtsi128_si32, _mm_loadu_si128,
    _mm_set_epi32, _mm_set1_epi32, _mm_setzero_si128, _mm_storeu_si128,
};

/// Length of a block, in bytes.
pub const BLOCK: usize = 16;

/// Round keys at most: 14 rounds and the first whitening.
pub(super) const ROUND_KEYS: usize = 15;

/// Four words for each round key.
const WORDS: usize = 4 * ROUND_KEYS;

pub(super) type RoundKeys = [[u8; BLOCK]; ROUND_KEYS];

/// A prepared key: the round keys of both directions, in protected memory; shared by any number of threads.
///
/// That there is one proves that the machine has the instructions.
#[derive(Debug)]
pub struct Key {
    schedules: Protected<Schedules>,
    rounds: usize,
}

#[derive(Clone, Copy)]
#[repr(align(16))]
struct Schedules {
    encrypt: RoundKeys,
    /// For the equivalent inverse cipher (FIPS 197 §5.3.5).
    decrypt: RoundKeys,
}

impl Key {
    /// Prepares a key of 16, 24 or 32 bytes; `None` for another length, and where [`available`] says no.
    #[must_use]
    pub fn new(key: &[u8]) -> Option<Self> {
        if !matches!(key.len(), 16 | 24 | 32) || !available() {
            return None;
        }
        // SAFETY: a schedule is numbers; zero is one.
        let mut schedules = unsafe { Protected::<Schedules>::zeroed() };
        let rounds = key.len() / 4 + 6;
        // SAFETY: the instructions are available.
        unsafe { expand(key, rounds, &mut schedules) };
        wipe_shallow_stack();
        Some(Self { schedules, rounds })
    }

    /// 10, 12 or 14.
    pub(super) const fn rounds(&self) -> usize {
        self.rounds
    }

    pub(super) fn encryption(&self) -> &RoundKeys {
        &self.schedules.encrypt
    }

    pub(super) fn decryption(&self) -> &RoundKeys {
        &self.schedules.decrypt
    }
}

#[target_feature(enable = "aes,sse2")]
fn expand(key: &[u8], rounds: usize, schedules: &mut Schedules) {
    let length = key.len() / 4;
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(key.as_chunks::<4>().0) {
        *word = i32::from_le_bytes(*bytes);
    }
    let mut constant = 1;
    for at in length..4 * (rounds + 1) {
        let mut word = words[at - 1];
        if at % length == 0 {
            // The first byte is the lowest here, so the standard's rotation to the left is one to the right.
            word = substituted(word).rotate_right(8) ^ constant;
            constant = (constant << 1) ^ if constant == 0x80 { 0x11b } else { 0 };
        } else if length == 8 && at % length == 4 {
            word = substituted(word);
        }
        words[at] = words[at - length] ^ word;
    }
    for (round, four) in words.as_chunks::<4>().0.iter().take(rounds + 1).enumerate() {
        let round_key = _mm_set_epi32(four[3], four[2], four[1], four[0]);
        schedules.encrypt[round] = bytes(round_key);
        let inner = round != 0 && round != rounds;
        let inverse = if inner { _mm_aesimc_si128(round_key) } else { round_key };
        schedules.decrypt[rounds - round] = bytes(inverse);
    }
}

/// The round key in a register.
#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn register(bytes: &[u8; BLOCK]) -> __m128i {
    // SAFETY: 16 bytes are read.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// The register's bytes.
#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn bytes(register: __m128i) -> [u8; BLOCK] {
    let mut bytes = [0; BLOCK];
    // SAFETY: 16 bytes are written.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), register) };
    bytes
}

/// Each byte through the S-box: in four equal columns, the last round's row shift changes nothing.
#[target_feature(enable = "aes,sse2")]
fn substituted(word: i32) -> i32 {
    _mm_cvtsi128_si32(_mm_aesenclast_si128(_mm_set1_epi32(word), _mm_setzero_si128()))
}
