// SPDX-License-Identifier: Apache-2.0
//! MD2 (RFC 1319) and RIPEMD-128 (Dobbertin, Bosselaers, Preneel, 1996), for old data: no library here has them.

use metaslot_memory::Secret;
use std::fmt::Debug;

/// A hash in the middle, in protected memory.
pub(crate) trait Hash: Clone + Debug + Default + Send + Sync + 'static {
    const LENGTH: usize;
    const BLOCK: usize;

    fn update(&mut self, data: &[u8]);
    /// Writes the digest; the stream is used up.
    fn finish(&mut self, out: &mut [u8]);
    fn save(&self) -> Vec<u8>;
    fn restore(saved: &[u8]) -> Option<Self>;
}

/// What is between blocks, and what waits for a full block behind it, in protected memory.
#[derive(Debug)]
struct Blocks<const CHAIN: usize, const BLOCK: usize> {
    state: Secret,
    /// Bytes so far.
    count: u64,
}

impl<const CHAIN: usize, const BLOCK: usize> Clone for Blocks<CHAIN, BLOCK> {
    fn clone(&self) -> Self {
        Self { state: Secret::copy_of(self.state.expose()), count: self.count }
    }
}

impl<const CHAIN: usize, const BLOCK: usize> Blocks<CHAIN, BLOCK> {
    fn new(first: [u8; CHAIN]) -> Self {
        let mut state = Secret::zeroed(CHAIN + BLOCK);
        state.expose_mut()[..CHAIN].copy_from_slice(&first);
        Self { state, count: 0 }
    }

    /// Bytes that wait.
    fn waiting(&self) -> usize {
        usize::try_from(self.count % BLOCK as u64).unwrap_or(0)
    }

    fn update(&mut self, mut data: &[u8], compress: fn(&mut [u8; CHAIN], &[u8; BLOCK])) {
        while !data.is_empty() {
            let at = self.waiting();
            let (part, rest) = data.split_at(data.len().min(BLOCK - at));
            let (chain, block) = self.state.expose_mut().split_at_mut(CHAIN);
            block[at..at + part.len()].copy_from_slice(part);
            self.count += part.len() as u64;
            if let (0, Ok(chain), Ok(block)) =
                (self.count % BLOCK as u64, chain.try_into(), (&*block).try_into())
            {
                compress(chain, block);
            }
            data = rest;
        }
    }

    fn chain(&self) -> &[u8] {
        &self.state.expose()[..CHAIN]
    }

    fn save(&self) -> Vec<u8> {
        let waits = &self.state.expose()[..CHAIN + self.waiting()];
        [&self.count.to_be_bytes()[..], waits].concat()
    }

    fn restore(saved: &[u8]) -> Option<Self> {
        let (count, rest) = saved.split_first_chunk::<8>()?;
        let count = u64::from_be_bytes(*count);
        let mut blocks = Self { state: Secret::zeroed(CHAIN + BLOCK), count };
        // Nobody has hashed so many bytes, and with more the count ends.
        if count > u64::MAX / 8 || rest.len() != CHAIN + blocks.waiting() {
            return None;
        }
        blocks.state.expose_mut()[..rest.len()].copy_from_slice(rest);
        Some(blocks)
    }
}

/// RFC 1319: 48 bytes of state, of which the last 32 are made of a block each time; and the checksum.
#[derive(Clone, Debug)]
pub(crate) struct Md2(Blocks<32, 16>);

/// Made of the digits of π.
#[rustfmt::skip]
static PI: [u8; 256] = [
    41, 46, 67, 201, 162, 216, 124, 1, 61, 54, 84, 161, 236, 240, 6, 19, 98, 167, 5, 243, 192, 199, 115, 140, 152, 147, 43, 217,
    188, 76, 130, 202, 30, 155, 87, 60, 253, 212, 224, 22, 103, 66, 111, 24, 138, 23, 229, 18, 190, 78, 196, 214, 218, 158, 222,
    73, 160, 251, 245, 142, 187, 47, 238, 122, 169, 104, 121, 145, 21, 178, 7, 63, 148, 194, 16, 137, 11, 34, 95, 33, 128, 127,
    93, 154, 90, 144, 50, 39, 53, 62, 204, 231, 191, 247, 151, 3, 255, 25, 48, 179, 72, 165, 181, 209, 215, 94, 146, 42, 172, 86,
    170, 198, 79, 184, 56, 210, 150, 164, 125, 182, 118, 252, 107, 226, 156, 116, 4, 241, 69, 157, 112, 89, 100, 113, 135, 32,
    134, 91, 207, 101, 230, 45, 168, 2, 27, 96, 37, 173, 174, 176, 185, 246, 28, 70, 97, 105, 52, 64, 126, 15, 85, 71, 163, 35,
    221, 81, 175, 58, 195, 92, 249, 206, 186, 197, 234, 38, 44, 83, 13, 110, 133, 40, 132, 9, 211, 223, 205, 244, 65, 129, 77, 82,
    106, 220, 55, 200, 108, 193, 171, 250, 36, 225, 123, 8, 12, 189, 177, 74, 120, 136, 149, 139, 227, 99, 232, 109, 233, 203,
    213, 254, 59, 0, 29, 57, 242, 239, 183, 14, 102, 88, 208, 228, 166, 119, 114, 248, 235, 117, 75, 10, 49, 68, 80, 180, 143,
    237, 31, 26, 219, 153, 141, 51, 159, 17, 131, 20,
];

impl Default for Md2 {
    fn default() -> Self {
        Self(Blocks::new([0; 2 * Self::BLOCK]))
    }
}

impl Hash for Md2 {
    const LENGTH: usize = 16;
    const BLOCK: usize = 16;

    fn update(&mut self, data: &[u8]) {
        self.0.update(data, Self::compress);
    }

    fn finish(&mut self, out: &mut [u8]) {
        let missing = Self::BLOCK - self.0.waiting();
        let padding = [u8::try_from(missing).unwrap_or(0); Self::BLOCK];
        self.update(&padding[..missing]);
        let checksum = Secret::copy_of(&self.0.chain()[Self::BLOCK..]);
        self.update(checksum.expose());
        out.copy_from_slice(&self.0.chain()[..out.len()]);
    }

    fn save(&self) -> Vec<u8> {
        self.0.save()
    }

    fn restore(saved: &[u8]) -> Option<Self> {
        Blocks::restore(saved).map(Self)
    }
}

impl Md2 {
    fn compress(chain: &mut [u8; 2 * Self::BLOCK], block: &[u8; Self::BLOCK]) {
        let (state, checksum) = chain.split_at_mut(Self::BLOCK);
        let mut last = checksum[Self::BLOCK - 1];
        for (byte, data) in checksum.iter_mut().zip(block) {
            *byte ^= PI[usize::from(data ^ last)];
            last = *byte;
        }
        let mut all = [0; 3 * Self::BLOCK];
        for (at, (byte, data)) in state.iter().zip(block).enumerate() {
            (all[at], all[at + Self::BLOCK], all[at + 2 * Self::BLOCK]) =
                (*byte, *data, byte ^ data);
        }
        let mut turn = 0;
        for round in 0..18 {
            for byte in &mut all {
                *byte ^= PI[usize::from(turn)];
                turn = *byte;
            }
            turn = turn.wrapping_add(round);
        }
        state.copy_from_slice(&all[..Self::BLOCK]);
        metaslot_awslc_wrapper::cleanse(&mut all);
    }
}

/// Two lines of four rounds, whose results are added.
#[derive(Clone, Debug)]
pub(crate) struct Ripemd128(Blocks<16, 64>);

/// Which word of the block a step takes, for each line.
#[rustfmt::skip]
const WORDS: [[u8; 64]; 2] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 7, 4, 13, 1, 10, 6, 15, 3, 12, 0, 9, 5, 2, 14, 11, 8,
     3, 10, 14, 4, 9, 15, 8, 1, 2, 7, 0, 6, 13, 11, 5, 12, 1, 9, 11, 10, 0, 8, 12, 4, 13, 3, 7, 15, 14, 5, 6, 2],
    [5, 14, 7, 0, 9, 2, 11, 4, 13, 6, 15, 8, 1, 10, 3, 12, 6, 11, 3, 7, 0, 13, 5, 10, 14, 15, 8, 12, 4, 9, 1, 2,
     15, 5, 1, 3, 7, 14, 6, 9, 11, 8, 12, 2, 10, 0, 4, 13, 8, 6, 4, 1, 3, 11, 15, 0, 5, 12, 2, 13, 9, 7, 10, 14],
];

/// By how many bits a step turns.
#[rustfmt::skip]
const TURNS: [[u8; 64]; 2] = [
    [11, 14, 15, 12, 5, 8, 7, 9, 11, 13, 14, 15, 6, 7, 9, 8, 7, 6, 8, 13, 11, 9, 7, 15, 7, 12, 15, 9, 11, 7, 13, 12,
     11, 13, 6, 7, 14, 9, 13, 15, 14, 8, 13, 6, 5, 12, 7, 5, 11, 12, 14, 15, 14, 15, 9, 8, 9, 14, 5, 6, 8, 6, 5, 12],
    [8, 9, 9, 11, 13, 15, 15, 5, 7, 7, 8, 11, 14, 14, 12, 6, 9, 13, 15, 7, 12, 8, 9, 11, 7, 7, 12, 7, 6, 15, 13, 11,
     9, 7, 15, 11, 8, 6, 6, 14, 12, 13, 5, 14, 13, 13, 7, 5, 15, 5, 8, 11, 14, 14, 6, 14, 6, 9, 12, 9, 12, 5, 15, 8],
];

/// What each round adds.
const ADDED: [[u32; 4]; 2] =
    [[0, 0x5a82_7999, 0x6ed9_eba1, 0x8f1b_bcdc], [0x50a2_8be6, 0x5c4d_d124, 0x6d70_3ef3, 0]];

impl Default for Ripemd128 {
    fn default() -> Self {
        let mut first = [0; Self::LENGTH];
        let words = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
        first
            .as_chunks_mut()
            .0
            .iter_mut()
            .zip(words)
            .for_each(|(place, word)| *place = word.to_le_bytes());
        Self(Blocks::new(first))
    }
}

impl Hash for Ripemd128 {
    const LENGTH: usize = 16;
    const BLOCK: usize = 64;

    fn update(&mut self, data: &[u8]) {
        self.0.update(data, Self::compress);
    }

    fn finish(&mut self, out: &mut [u8]) {
        let bits = self.0.count.wrapping_mul(8);
        self.update(&[0x80]);
        let missing = (2 * Self::BLOCK - 8 - self.0.waiting()) % Self::BLOCK;
        self.update(&[0; Self::BLOCK][..missing]);
        self.update(&bits.to_le_bytes());
        out.copy_from_slice(&self.0.chain()[..out.len()]);
    }

    fn save(&self) -> Vec<u8> {
        self.0.save()
    }

    fn restore(saved: &[u8]) -> Option<Self> {
        Blocks::restore(saved).map(Self)
    }
}

impl Ripemd128 {
    fn compress(chain: &mut [u8; Self::LENGTH], block: &[u8; Self::BLOCK]) {
        let word = |bytes: &[u8], at: usize| {
            bytes[4 * at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
        };
        let first: [u32; 4] = std::array::from_fn(|at| word(chain, at));
        let [left, right] = [0, 1].map(|line: usize| {
            let [mut a, mut b, mut c, mut d] = first;
            for step in 0..64 {
                let round = step / 16;
                let mixed = match if line == 0 { round } else { 3 - round } {
                    0 => b ^ c ^ d,
                    1 => (b & c) | (!b & d),
                    2 => (b | !c) ^ d,
                    _ => (b & d) | (c & !d),
                };
                let data = word(block, usize::from(WORDS[line][step]));
                let sum = a.wrapping_add(mixed).wrapping_add(data).wrapping_add(ADDED[line][round]);
                let turned = sum.rotate_left(u32::from(TURNS[line][step]));
                (a, b, c, d) = (d, turned, b, c);
            }
            [a, b, c, d]
        });
        for (at, place) in chain.as_chunks_mut().0.iter_mut().enumerate() {
            let sum = first[(at + 1) % 4]
                .wrapping_add(left[(at + 2) % 4])
                .wrapping_add(right[(at + 3) % 4]);
            *place = sum.to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_in_the_table_of_md2_once() {
        let mut sorted = PI;
        sorted.sort_unstable();
        assert!(sorted.iter().copied().eq(0..=255));
    }

    #[test]
    fn a_state_goes_on_where_it_was_saved() {
        let data: Vec<u8> = (0..150).collect();
        for cut in [0, 1, 15, 16, 63, 64, 130] {
            let (mut whole, mut parts) = (Ripemd128::default(), Ripemd128::default());
            whole.update(&data);
            parts.update(&data[..cut]);
            let mut parts = Ripemd128::restore(&parts.save()).unwrap();
            parts.update(&data[cut..]);
            let mut digests = [[0; 16]; 2];
            whole.finish(&mut digests[0]);
            parts.finish(&mut digests[1]);
            assert_eq!(digests[0], digests[1]);
        }
        assert!(Md2::restore(&[0; 39]).is_none());
        assert!(Md2::restore(&[0; 41]).is_none());
        assert!(Md2::restore(&[0xff; 8 + 32 + 15]).is_none());
        assert!(Ripemd128::restore(&[0xff; 8 + 16 + 63]).is_none());
    }
}
