// SPDX-License-Identifier: Apache-2.0
//! CBC encryption of many messages: within one message each block waits for the one before, so up to 16 messages, four in a
//! register, hide each other's latency.

use super::key::{BLOCK, Key, ROUND_KEYS};
use crate::data::Data;
use std::arch::x86_64::{
    __m512i, _mm_loadu_si128, _mm_setzero_si128, _mm_storeu_si128, _mm512_aesenc_epi128,
    _mm512_aesenclast_epi128, _mm512_castsi128_si512, _mm512_castsi512_si128,
    _mm512_extracti32x4_epi32, _mm512_inserti32x4, _mm512_loadu_si512, _mm512_setzero_si512,
    _mm512_shuffle_i32x4, _mm512_storeu_si512, _mm512_xor_si512,
};
use std::hint::black_box;

/// How many messages are computed side by side.
pub const LANES: usize = 16;

/// Messages of one register.
const QUAD: usize = 4;

/// A message: its key, its IV and its whole blocks.
#[derive(Debug)]
pub struct Stream<'a> {
    /// The key; streams may share one.
    pub key: &'a Key,
    /// The IV; left as the next part needs it.
    pub iv: &'a mut [u8; BLOCK],
    /// A whole number of blocks.
    pub data: Data<'a>,
}

/// CBC encryption of any number of streams of any lengths and key lengths: a lane whose stream ends takes the next.
///
/// # Panics
/// When a stream is no whole number of blocks.
pub fn cbc_encrypt(streams: &mut [Stream<'_>]) {
    for stream in &*streams {
        assert!(stream.data.len().is_multiple_of(BLOCK), "no whole number of blocks");
    }
    for rounds in [10, 12, 14] {
        let wanted = |stream: &Stream<'_>| stream.key.rounds() == rounds && !stream.data.is_empty();
        let count = streams.iter().filter(|stream| wanted(stream)).count();
        let waiting = streams.iter_mut().filter(|stream| wanted(stream));
        match rounds {
            10 => side_by_side::<10>(count.min(LANES), waiting),
            12 => side_by_side::<12>(count.min(LANES), waiting),
            _ => side_by_side::<14>(count.min(LANES), waiting),
        }
    }
}

/// Four lanes' blocks or round keys: what a register takes.
type Four = [[u8; BLOCK]; QUAD];

/// What the lanes work with.
#[repr(C, align(64))]
struct Work {
    keys: [[Four; LANES / QUAD]; ROUND_KEYS],
    /// The last block that each lane put out.
    chain: [Four; LANES / QUAD],
    /// Where each lane reads and writes: at least `left` blocks, or 64 bytes when nothing is left.
    input: [*const u8; LANES],
    output: [*mut u8; LANES],
    /// All ones; 0 for a lane that stays where it is, because nothing is left.
    moves: [usize; LANES],
    left: [usize; LANES],
}

impl Work {
    /// Gives a lane a stream, or a place to idle in.
    fn begin(&mut self, lane: usize, stream: Option<&mut Stream<'_>>, idle: (*const u8, *mut u8)) {
        let Some(stream) = stream else {
            (self.input[lane], self.output[lane]) = idle;
            (self.moves[lane], self.left[lane]) = (0, 0);
            return;
        };
        for (keys, key) in self.keys.iter_mut().zip(stream.key.encryption()) {
            keys[lane / QUAD][lane % QUAD] = *key;
        }
        self.chain[lane / QUAD][lane % QUAD] = *stream.iv;
        (self.input[lane], self.output[lane]) = (stream.data.input(), stream.data.output());
        (self.moves[lane], self.left[lane]) = (usize::MAX, stream.data.len() / BLOCK);
    }

    /// Moves on after `blocks` of each lane.
    fn advance(&mut self, blocks: usize) {
        for lane in 0..LANES {
            let bytes = (blocks * BLOCK) & self.moves[lane];
            self.input[lane] = self.input[lane].wrapping_add(bytes);
            self.output[lane] = self.output[lane].wrapping_add(bytes);
            self.left[lane] = self.left[lane].saturating_sub(blocks);
        }
    }
}

/// Serves what waits with `width` lanes.
fn side_by_side<'w, 's: 'w, const ROUNDS: usize>(
    width: usize,
    mut waiting: impl Iterator<Item = &'w mut Stream<'s>>,
) {
    if width == 0 {
        return;
    }
    let zero = [0; BLOCK];
    // Not one place for both: the next load would wait for the store.
    let (source, mut sink) = ([0_u8; QUAD * BLOCK], [0; QUAD * BLOCK]);
    let idle = (source.as_ptr(), sink.as_mut_ptr());
    let mut work = Work {
        keys: [[[zero; QUAD]; LANES / QUAD]; ROUND_KEYS],
        chain: [[zero; QUAD]; LANES / QUAD],
        input: [idle.0; LANES],
        output: [idle.1; LANES],
        moves: [0; LANES],
        left: [0; LANES],
    };
    let mut streams: [Option<&mut Stream<'s>>; LANES] = [const { None }; LANES];
    loop {
        for (lane, stream) in streams.iter_mut().enumerate().take(width) {
            if work.left[lane] == 0 {
                if let Some(done) = stream.take() {
                    *done.iv = work.chain[lane / QUAD][lane % QUAD];
                }
                *stream = waiting.next();
                work.begin(lane, stream.as_deref_mut(), idle);
            }
        }
        let Some(blocks) = work.left.iter().copied().filter(|left| *left > 0).min() else {
            break;
        };
        match width.div_ceil(QUAD) {
            // SAFETY: where there is a key, there are the instructions.
            1 => unsafe { run::<ROUNDS, 1>(&mut work, blocks) },
            // SAFETY: as above.
            2 => unsafe { run::<ROUNDS, 2>(&mut work, blocks) },
            // SAFETY: as above.
            3 => unsafe { run::<ROUNDS, 3>(&mut work, blocks) },
            // SAFETY: as above.
            _ => unsafe { run::<ROUNDS, 4>(&mut work, blocks) },
        }
        work.advance(blocks);
    }
    work.keys = [[[zero; QUAD]; LANES / QUAD]; ROUND_KEYS];
    black_box(&mut work);
}

/// So many blocks of the first `4 * G` lanes; none has fewer left, unless it idles.
#[target_feature(enable = "avx512f,vaes")]
fn run<const ROUNDS: usize, const G: usize>(work: &mut Work, blocks: usize) {
    let mut chain = [_mm512_setzero_si512(); G];
    for (chain, before) in chain.iter_mut().zip(&work.chain) {
        *chain = four(before);
    }
    let mut at = 0;
    for _ in 0..blocks / QUAD {
        let mut text = [[_mm512_setzero_si512(); QUAD]; G];
        for (g, text) in text.iter_mut().enumerate() {
            for (i, text) in text.iter_mut().enumerate() {
                let lane = QUAD * g + i;
                let from = work.input[lane].wrapping_add(at & work.moves[lane]);
                // SAFETY: the lane has four more blocks, or idles where there is room for them.
                *text = unsafe { _mm512_loadu_si512(from.cast()) };
            }
            *text = transposed(*text);
        }
        turn::<ROUNDS, G, 0>(&work.keys, &mut chain, &mut text);
        turn::<ROUNDS, G, 1>(&work.keys, &mut chain, &mut text);
        turn::<ROUNDS, G, 2>(&work.keys, &mut chain, &mut text);
        turn::<ROUNDS, G, 3>(&work.keys, &mut chain, &mut text);
        for (g, text) in text.into_iter().enumerate() {
            for (i, text) in transposed(text).into_iter().enumerate() {
                let lane = QUAD * g + i;
                let to = work.output[lane].wrapping_add(at & work.moves[lane]);
                // SAFETY: as for the input.
                unsafe { _mm512_storeu_si512(to.cast(), text) };
            }
        }
        at += QUAD * BLOCK;
    }
    for _ in 0..blocks % QUAD {
        single::<ROUNDS, G>(work, &mut chain, at);
        at += BLOCK;
    }
    for (chain, last) in chain.into_iter().zip(&mut work.chain) {
        // SAFETY: four blocks are written.
        unsafe { _mm512_storeu_si512(last.as_mut_ptr().cast(), chain) };
    }
}

/// One block of each lane.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn single<const ROUNDS: usize, const G: usize>(work: &Work, chain: &mut [__m512i; G], at: usize) {
    for (g, chain) in chain.iter_mut().enumerate() {
        let mut text = [_mm_setzero_si128(); QUAD];
        for (i, text) in text.iter_mut().enumerate() {
            let lane = QUAD * g + i;
            let from = work.input[lane].wrapping_add(at & work.moves[lane]);
            // SAFETY: the lane has one more block, or idles where there is room for it.
            *text = unsafe { _mm_loadu_si128(from.cast()) };
        }
        let [a, b, c, d] = text;
        let text = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(a), b);
        let text = _mm512_inserti32x4::<2>(text, c);
        let text = _mm512_inserti32x4::<3>(text, d);
        *chain = _mm512_xor_si512(*chain, text);
    }
    encrypt::<ROUNDS, G, QUAD>(&work.keys, chain);
    for (g, chain) in chain.iter().enumerate() {
        let text = [
            _mm512_castsi512_si128(*chain),
            _mm512_extracti32x4_epi32::<1>(*chain),
            _mm512_extracti32x4_epi32::<2>(*chain),
            _mm512_extracti32x4_epi32::<3>(*chain),
        ];
        for (i, text) in text.into_iter().enumerate() {
            let lane = QUAD * g + i;
            let to = work.output[lane].wrapping_add(at & work.moves[lane]);
            // SAFETY: as for the input.
            unsafe { _mm_storeu_si128(to.cast(), text) };
        }
    }
}

/// The block `TURN` of each of these four.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn turn<const ROUNDS: usize, const G: usize, const TURN: usize>(
    keys: &[[Four; LANES / QUAD]; ROUND_KEYS],
    chain: &mut [__m512i; G],
    text: &mut [[__m512i; QUAD]; G],
) {
    for (chain, text) in chain.iter_mut().zip(&*text) {
        *chain = _mm512_xor_si512(*chain, text[TURN]);
    }
    // Otherwise the compiler would keep round keys from turn to turn, and do group after group to have registers for them.
    encrypt::<ROUNDS, G, TURN>(black_box(keys), chain);
    for (chain, text) in chain.iter().zip(text) {
        text[TURN] = *chain;
    }
}

/// One block of each lane through the cipher. `PLACE` tells callers apart: the compiler inlines what it sees used once, and only
/// then do the blocks stay in registers.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn encrypt<const ROUNDS: usize, const G: usize, const PLACE: usize>(
    keys: &[[Four; LANES / QUAD]; ROUND_KEYS],
    chain: &mut [__m512i; G],
) {
    for (chain, key) in chain.iter_mut().zip(&keys[0]) {
        *chain = _mm512_xor_si512(*chain, four(key));
    }
    for keys in &keys[1..ROUNDS] {
        for (chain, key) in chain.iter_mut().zip(keys) {
            *chain = _mm512_aesenc_epi128(*chain, four(key));
        }
    }
    for (chain, key) in chain.iter_mut().zip(&keys[ROUNDS]) {
        *chain = _mm512_aesenclast_epi128(*chain, four(key));
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn four(blocks: &Four) -> __m512i {
    // SAFETY: four blocks are read.
    unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) }
}

/// Four lanes of each of four registers, from one message in a register to one turn, and back.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn transposed([a, b, c, d]: [__m512i; QUAD]) -> [__m512i; QUAD] {
    let (ab, cd) = (_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0x44>(c, d));
    let (ab2, cd2) = (_mm512_shuffle_i32x4::<0xee>(a, b), _mm512_shuffle_i32x4::<0xee>(c, d));
    [
        _mm512_shuffle_i32x4::<0x88>(ab, cd),
        _mm512_shuffle_i32x4::<0xdd>(ab, cd),
        _mm512_shuffle_i32x4::<0x88>(ab2, cd2),
        _mm512_shuffle_i32x4::<0xdd>(ab2, cd2),
    ]
}
