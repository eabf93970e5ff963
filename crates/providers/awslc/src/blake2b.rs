// SPDX-License-Identifier: Apache-2.0
//! `BLAKE2b` (RFC 7693) without a key of its own, as a stream whose state can be saved: AWS-LC has one of its four lengths.

use metaslot_memory::Secret;

/// Length of an input block, in bytes.
pub(crate) const BLOCK: usize = 128;

/// Words of the chaining value, before the block in the state.
const CHAIN: usize = 64;

const IV: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

const SIGMA: [[u8; 16]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];

/// A hash in the middle; its state lies in protected memory: the chaining value, then the block.
#[derive(Debug)]
pub(crate) struct Stream {
    state: Secret,
    /// Bytes before the block.
    count: u128,
    /// Bytes in the block, which is kept until more comes: the last one is another.
    at: usize,
}

impl Clone for Stream {
    fn clone(&self) -> Self {
        Self { state: Secret::copy_of(self.state.expose()), count: self.count, at: self.at }
    }
}

impl Stream {
    /// The beginning of a hash that is `length` bytes long.
    pub(crate) fn new(length: usize) -> Self {
        let mut state = Secret::zeroed(CHAIN + BLOCK);
        let first = IV[0] ^ 0x0101_0000 ^ length as u64;
        let chain = state.expose_mut().as_chunks_mut::<8>().0.iter_mut();
        for (word, value) in chain.zip([first].into_iter().chain(IV.into_iter().skip(1))) {
            *word = value.to_le_bytes();
        }
        Self { state, count: 0, at: 0 }
    }

    /// Takes more data.
    pub(crate) fn update(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            if self.at == BLOCK {
                self.count += BLOCK as u128;
                compress(self.state.expose_mut(), self.count, false);
                self.at = 0;
            }
            let (part, rest) = data.split_at(data.len().min(BLOCK - self.at));
            let start = CHAIN + self.at;
            self.state.expose_mut()[start..start + part.len()].copy_from_slice(part);
            self.at += part.len();
            data = rest;
        }
    }

    /// Writes the digest, as long as was said at the beginning; the stream is used up.
    pub(crate) fn finish(&mut self, out: &mut [u8]) {
        self.state.expose_mut()[CHAIN + self.at..].fill(0);
        self.count += self.at as u128;
        compress(self.state.expose_mut(), self.count, true);
        out.copy_from_slice(&self.state.expose()[..out.len()]);
    }

    /// The state, then how much came before the block, and how much is in it.
    pub(crate) fn save(&self) -> Vec<u8> {
        let mut saved = self.state.expose()[..CHAIN + self.at].to_vec();
        saved.extend_from_slice(&self.count.to_le_bytes());
        saved
    }

    /// Continues from what [`Self::save`] wrote; `None` when the bytes are no such state.
    pub(crate) fn restore(saved: &[u8]) -> Option<Self> {
        let (state, count) = saved.split_last_chunk::<16>()?;
        let count = u128::from_le_bytes(*count);
        let at = state.len().checked_sub(CHAIN)?;
        // Nothing waits at the beginning only.
        if at > BLOCK || !count.is_multiple_of(BLOCK as u128) || (at == 0 && count > 0) {
            return None;
        }
        let mut stream = Self { state: Secret::zeroed(CHAIN + BLOCK), count, at };
        stream.state.expose_mut()[..state.len()].copy_from_slice(state);
        Some(stream)
    }
}

/// One block into the chaining value.
fn compress(state: &mut [u8], count: u128, last: bool) {
    let word = |at: usize| {
        let bytes = state[8 * at..].first_chunk::<8>();
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    let mut chain: [u64; 8] = std::array::from_fn(word);
    let mut message: [u64; 16] = std::array::from_fn(|at| word(8 + at));
    let mut work = [0; 16];
    work[..8].copy_from_slice(&chain);
    work[8..].copy_from_slice(&IV);
    for (at, part) in [(12, count), (13, count >> 64)] {
        work[at] ^= u64::try_from(part & u128::from(u64::MAX)).unwrap_or(0);
    }
    if last {
        work[14] = !work[14];
    }
    for sigma in SIGMA.iter().chain(&SIGMA[..2]) {
        for (column, pair) in sigma.as_chunks::<2>().0.iter().enumerate() {
            let turn = if column < 4 { 0 } else { 1 };
            let place = |row: usize| 4 * row + (column + row * turn) % 4;
            let said = pair.map(|at| message[usize::from(at)]);
            mix(&mut work, [place(0), place(1), place(2), place(3)], said);
        }
    }
    // Borrowed: an iterator's copy would stay in the stack.
    let chaining = state.as_chunks_mut::<8>().0.iter_mut().zip(&chain);
    for (at, (place, old)) in chaining.enumerate() {
        *place = (old ^ work[at] ^ work[at + 8]).to_le_bytes();
    }
    wiped(&mut chain);
    wiped(&mut work);
    wiped(&mut message);
}

fn wiped(words: &mut [u64]) {
    words.fill(0);
    std::hint::black_box(words);
}

fn mix(work: &mut [u64; 16], [a, b, c, d]: [usize; 4], said: [u64; 2]) {
    for (said, [first, second]) in said.into_iter().zip([[32, 24], [16, 63]]) {
        work[a] = work[a].wrapping_add(work[b]).wrapping_add(said);
        work[d] = (work[d] ^ work[a]).rotate_right(first);
        work[c] = work[c].wrapping_add(work[d]);
        work[b] = (work[b] ^ work[c]).rotate_right(second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7693, appendix A.
    #[test]
    fn the_digest_of_abc_is_that_of_the_rfc() {
        let (mut stream, mut out) = (Stream::new(64), [0; 64]);
        stream.update(b"a");
        stream = Stream::restore(&stream.save()).unwrap();
        stream.update(b"bc");
        stream.finish(&mut out);
        assert_eq!(out[..8], [0xba, 0x80, 0xa5, 0x3f, 0x98, 0x1c, 0x4d, 0x0d]);
        assert_eq!(out[60..], [0xd4, 0x00, 0x99, 0x23]);
    }
}
