// SPDX-License-Identifier: Apache-2.0
//! The rounds, and the expansion in scalar registers.

/// Bytes of a block.
pub(super) const BLOCK: usize = 64;
/// The constants of the four times twenty rounds.
pub(super) const CONSTANTS: [u32; 4] = [0x5a82_7999, 0x6ed9_eba1, 0x8f1b_bcdc, 0xca62_c1d6];

/// Five working variables.
pub(super) type Working = [u32; 5];

/// One round; `word` is the message's word plus the round's constant.
#[inline(always)]
pub(super) fn round<const KIND: usize>([a, b, c, d, e]: Working, word: u32) -> Working {
    let mixed = match KIND {
        0 => d ^ (b & (c ^ d)),
        2 => (b & c) | (d & (b | c)),
        _ => b ^ c ^ d,
    };
    let next = a.rotate_left(5).wrapping_add(mixed).wrapping_add(e).wrapping_add(word);
    [next, a, b.rotate_left(30), c, d]
}

pub(super) fn add(state: &mut Working, working: Working) {
    state.iter_mut().zip(working).for_each(|(word, add)| *word = word.wrapping_add(add));
}

fn word(block: &[u8; BLOCK], at: usize) -> u32 {
    u32::from_be_bytes(block.as_chunks().0[at])
}

/// The next word, in the place of the one of 16 rounds ago.
#[inline(always)]
fn expand(words: &mut [u32; 16], at: usize) -> u32 {
    let of = |back: usize| words[(at + 16 - back) % 16];
    let word = (of(3) ^ of(8) ^ of(14) ^ of(16)).rotate_left(1);
    words[at % 16] = word;
    word
}

/// Each word is made in the round that uses it.
#[inline(never)]
pub(super) fn inline(state: &mut Working, blocks: &[[u8; BLOCK]]) {
    for block in blocks {
        let mut words = [0; 16];
        let mut working = *state;
        for (at, place) in words.iter_mut().enumerate() {
            *place = word(block, at);
            working = round::<0>(working, place.wrapping_add(CONSTANTS[0]));
        }
        for at in 16..20 {
            let word = expand(&mut words, at);
            working = round::<0>(working, word.wrapping_add(CONSTANTS[0]));
        }
        working = twenty::<1>(working, &mut words);
        working = twenty::<2>(working, &mut words);
        working = twenty::<3>(working, &mut words);
        add(state, working);
    }
}

#[inline(always)]
fn twenty<const KIND: usize>(mut working: Working, words: &mut [u32; 16]) -> Working {
    for at in 20 * KIND..20 * KIND + 20 {
        let word = expand(words, at);
        working = round::<KIND>(working, word.wrapping_add(CONSTANTS[KIND]));
    }
    working
}

/// All 80 words of a block with the rounds' constants, in their order.
pub(super) fn schedule(block: &[u8; BLOCK], mut take: impl FnMut(usize, u32)) {
    let mut words = [0; 16];
    for (at, place) in words.iter_mut().enumerate() {
        *place = word(block, at);
        take(at, place.wrapping_add(CONSTANTS[0]));
    }
    for at in 16..80 {
        let word = expand(&mut words, at);
        take(at, word.wrapping_add(CONSTANTS[at / 20]));
    }
}

/// The rounds of a block whose words are all there.
#[inline(always)]
pub(super) fn expanded(state: &mut Working, word: impl Fn(usize) -> u32) {
    let mut working = *state;
    for at in 0..20 {
        working = round::<0>(working, word(at));
    }
    for at in 20..40 {
        working = round::<1>(working, word(at));
    }
    for at in 40..60 {
        working = round::<2>(working, word(at));
    }
    for at in 60..80 {
        working = round::<3>(working, word(at));
    }
    add(state, working);
}
