// SPDX-License-Identifier: Apache-2.0
//! SHA-3 (FIPS 202) as a stream whose state can be saved: AWS-LC keeps its own to itself. Single
//! calls still run there.

use metaslot_awslc_wrapper::digest::Hash;
use metaslot_memory::Secret;
use std::hint::black_box;

/// Width of the state, in bytes.
const WIDTH: usize = 200;

const LANES: usize = 25;

/// A hash in the middle; its state lies in protected memory.
#[derive(Debug)]
pub(crate) struct Stream {
    state: Secret,
    /// Where the next byte goes.
    at: usize,
    /// Length of a block, in bytes.
    rate: usize,
    length: usize,
}

impl Stream {
    /// The beginning; `hash` is one of the SHA-3 functions.
    pub(crate) fn new(hash: Hash) -> Self {
        let length = hash.length();
        Self { state: Secret::zeroed(WIDTH), at: 0, rate: WIDTH - 2 * length, length }
    }

    /// Takes more data.
    pub(crate) fn update(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let (part, rest) = data.split_at(data.len().min(self.rate - self.at));
            let place = &mut self.state.expose_mut()[self.at..];
            for (byte, new) in place.iter_mut().zip(part) {
                *byte ^= new;
            }
            self.at += part.len();
            data = rest;
            if self.at == self.rate {
                permute(self.state.expose_mut());
                self.at = 0;
            }
        }
    }

    /// Writes the digest; the stream is used up.
    pub(crate) fn finish(&mut self, out: &mut [u8]) {
        let (at, last) = (self.at, self.rate - 1);
        let state = self.state.expose_mut();
        state[at] ^= 0x06;
        state[last] ^= 0x80;
        permute(state);
        out.copy_from_slice(&state[..self.length]);
    }

    /// The state, then the place in the block.
    pub(crate) fn save(&self) -> Vec<u8> {
        let mut saved = self.state.expose().to_vec();
        saved.extend(u8::try_from(self.at));
        saved
    }

    /// Continues from what [`Self::save`] wrote; `None` when the bytes are no such state.
    pub(crate) fn restore(hash: Hash, saved: &[u8]) -> Option<Self> {
        let mut stream = Self::new(hash);
        let (at, state) = saved.split_last()?;
        stream.at = usize::from(*at);
        if state.len() != WIDTH || stream.at >= stream.rate {
            return None;
        }
        stream.state.expose_mut().copy_from_slice(state);
        Some(stream)
    }
}

/// Keccak-f\[1600\].
fn permute(bytes: &mut [u8]) {
    let mut lanes = [0; LANES];
    for (lane, bytes) in lanes.iter_mut().zip(bytes.as_chunks().0) {
        *lane = u64::from_le_bytes(*bytes);
    }
    for constant in CONSTANTS {
        round(&mut lanes, constant);
    }
    for (bytes, lane) in bytes.as_chunks_mut().0.iter_mut().zip(lanes) {
        *bytes = lane.to_le_bytes();
    }
    lanes = [0; LANES];
    // Keeps the line above: what was hashed may have been secret.
    black_box(&lanes);
}

#[inline(always)]
fn round(lanes: &mut [u64; LANES], constant: u64) {
    // θ
    let parity = [0, 1, 2, 3, 4]
        .map(|x| lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20]);
    let effect = [0, 1, 2, 3, 4].map(|x| parity[(x + 4) % 5] ^ parity[(x + 1) % 5].rotate_left(1));
    // ρ and π, written out: a loop would keep the compiler from using registers.
    let moved = [
        (lanes[0] ^ effect[0]),
        (lanes[6] ^ effect[1]).rotate_left(44),
        (lanes[12] ^ effect[2]).rotate_left(43),
        (lanes[18] ^ effect[3]).rotate_left(21),
        (lanes[24] ^ effect[4]).rotate_left(14),
        (lanes[3] ^ effect[3]).rotate_left(28),
        (lanes[9] ^ effect[4]).rotate_left(20),
        (lanes[10] ^ effect[0]).rotate_left(3),
        (lanes[16] ^ effect[1]).rotate_left(45),
        (lanes[22] ^ effect[2]).rotate_left(61),
        (lanes[1] ^ effect[1]).rotate_left(1),
        (lanes[7] ^ effect[2]).rotate_left(6),
        (lanes[13] ^ effect[3]).rotate_left(25),
        (lanes[19] ^ effect[4]).rotate_left(8),
        (lanes[20] ^ effect[0]).rotate_left(18),
        (lanes[4] ^ effect[4]).rotate_left(27),
        (lanes[5] ^ effect[0]).rotate_left(36),
        (lanes[11] ^ effect[1]).rotate_left(10),
        (lanes[17] ^ effect[2]).rotate_left(15),
        (lanes[23] ^ effect[3]).rotate_left(56),
        (lanes[2] ^ effect[2]).rotate_left(62),
        (lanes[8] ^ effect[3]).rotate_left(55),
        (lanes[14] ^ effect[4]).rotate_left(39),
        (lanes[15] ^ effect[0]).rotate_left(41),
        (lanes[21] ^ effect[1]).rotate_left(2),
    ];
    // χ
    for y in [0, 5, 10, 15, 20] {
        for x in [0, 1, 2, 3, 4] {
            lanes[y + x] = moved[y + x] ^ (!moved[y + (x + 1) % 5] & moved[y + (x + 2) % 5]);
        }
    }
    // ι
    lanes[0] ^= constant;
}

/// The constants of ι, from the linear feedback shift register of FIPS 202 §3.2.5.
const CONSTANTS: [u64; 24] = {
    let mut constants = [0; 24];
    let mut register = 1_u32;
    let mut round = 0;
    while round < 24 {
        let mut bit = 0;
        while bit < 7 {
            if register & 1 == 1 {
                constants[round] |= 1 << ((1_u64 << bit) - 1);
            }
            register <<= 1;
            if register & 0x100 != 0 {
                register ^= 0x171;
            }
            bit += 1;
        }
        round += 1;
    }
    constants
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_library_for_every_length_and_cut() {
        for hash in [Hash::Sha3_224, Hash::Sha3_256, Hash::Sha3_384, Hash::Sha3_512] {
            for length in (0..300).chain([1000, 5000]) {
                let data: Vec<u8> = (0..=255).cycle().take(length).collect();
                let (mut library, mut own) = (vec![0; hash.length()], vec![0; hash.length()]);
                hash.digest(&data, &mut library).unwrap();
                let mut stream = Stream::new(hash);
                let (head, tail) = data.split_at(length / 3);
                stream.update(head);
                let mut stream = Stream::restore(hash, &stream.save()).unwrap();
                stream.update(tail);
                stream.finish(&mut own);
                assert_eq!(library, own, "{hash:?} of {length} bytes");
            }
        }
    }

    #[test]
    fn places_beyond_the_block_are_refused() {
        let mut saved = Stream::new(Hash::Sha3_512).save();
        *saved.last_mut().unwrap() = 72;
        assert!(Stream::restore(Hash::Sha3_512, &saved).is_none());
        assert!(Stream::restore(Hash::Sha3_512, &saved[1..]).is_none());
    }
}
