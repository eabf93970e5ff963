// SPDX-License-Identifier: Apache-2.0
//! Coefficients in bytes (FIPS 204 §7.1, §7.2), and a challenge of its hash, without a branch or an address that depends on secrets. A challenge is
//! none: a signature shows it, and one that was rejected is a hash of what nobody can know.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of so many bits, masked"
)]

use super::ring::Poly;
use super::set::Terms;
use crate::hash::squeeze::BLOCK_256;
use metaslot_awslc_wrapper::shake::{Function, Shake};
use metaslot_awslc_wrapper::{Failed, Result};

/// `most` less numbers of `BITS` bits, of which whole ones fill `BYTES` bytes (algorithm 19).
fn unpacked<const BITS: usize, const BYTES: usize>(bytes: &[u8], most: i32, poly: &mut Poly) {
    let groups = poly.0.as_flattened_mut().chunks_exact_mut(8 * BYTES / BITS);
    for (group, bytes) in groups.zip(bytes.as_chunks::<BYTES>().0) {
        let mut wide = [0; 16];
        wide[..BYTES].copy_from_slice(bytes);
        let wide = u128::from_le_bytes(wide);
        for (at, number) in group.iter_mut().enumerate() {
            *number = most - ((wide >> (BITS * at)) as i32 & ((1 << BITS) - 1));
        }
    }
}

/// The reverse, of numbers that are not above that (algorithms 16 and 17).
fn packed<const BITS: usize, const BYTES: usize>(number: impl Fn(usize) -> u32, out: &mut [u8]) {
    let mut place = 0;
    for bytes in out.as_chunks_mut::<BYTES>().0 {
        let mut wide = 0_u128;
        for at in 0..8 * BYTES / BITS {
            wide |= u128::from(number(place)) << (BITS * at);
            place += 1;
        }
        bytes.copy_from_slice(&wide.to_le_bytes()[..BYTES]);
    }
}

impl Terms {
    /// A polynomial of y.
    pub(super) fn mask(&self, bytes: &[u8], poly: &mut Poly) {
        match self.mask_bits {
            18 => unpacked::<18, 9>(bytes, self.gamma(), poly),
            _ => unpacked::<20, 10>(bytes, self.gamma(), poly),
        }
    }

    /// A polynomial of z.
    pub(super) fn response(&self, poly: &Poly, out: &mut [u8]) {
        let numbers = poly.0.as_flattened();
        let number = |at: usize| (self.gamma() - numbers[at]) as u32;
        match self.mask_bits {
            18 => packed::<18, 9>(number, out),
            _ => packed::<20, 10>(number, out),
        }
    }

    /// A polynomial of s1 or s2.
    pub(super) fn small(&self, bytes: &[u8], poly: &mut Poly) {
        match self.eta {
            2 => unpacked::<3, 3>(bytes, 2, poly),
            _ => unpacked::<4, 4>(bytes, 4, poly),
        }
    }

    /// Bytes of one.
    pub(super) const fn small_length(&self) -> usize {
        if self.eta == 2 { 96 } else { 128 }
    }

    /// A polynomial of w1, and its length (algorithm 28).
    pub(super) fn commitment(&self, highs: &[u8; 256], out: &mut [u8; 192]) -> usize {
        let number = |at: usize| u32::from(highs[at]);
        let length = if self.mask_bits == 18 { 192 } else { 128 };
        match length {
            192 => packed::<6, 3>(number, out),
            _ => packed::<4, 4>(number, &mut out[..128]),
        }
        length
    }
}

/// Bytes of a polynomial of t0.
pub(super) const LOW_LENGTH: usize = 416;

/// A polynomial of t0.
pub(super) fn low(bytes: &[u8], poly: &mut Poly) {
    unpacked::<13, 13>(bytes, 1 << 12, poly);
}

/// The polynomial of a challenge (algorithm 29).
pub(super) fn challenge(seed: &[u8], weight: u8) -> Result<Poly> {
    // Some 70 bytes of a block are needed. An implementation that looks at a limited number looks at 221 or more (appendix C).
    for blocks in 1..=2 {
        let mut random = [0; 2 * BLOCK_256];
        let random = &mut random[..blocks * BLOCK_256];
        let mut shake = Shake::new(Function::Shake256)?;
        shake.update(seed)?;
        shake.finish(random)?;
        if let Some(poly) = placed(random, weight) {
            return Ok(poly);
        }
    }
    Err(Failed)
}

/// The same of the hash's bytes, where they are enough.
fn placed(random: &[u8], weight: u8) -> Option<Poly> {
    let (signs, places) = random.split_first_chunk()?;
    let (mut signs, mut places) = (u64::from_le_bytes(*signs), places.iter());
    let mut poly = Poly::ZERO;
    let numbers = poly.0.as_flattened_mut();
    for at in 256 - usize::from(weight)..256 {
        let place = places.find(|place| usize::from(**place) <= at)?;
        numbers[at] = numbers[usize::from(*place)];
        numbers[usize::from(*place)] = 1 - 2 * (signs & 1) as i32;
        signs >>= 1;
    }
    Some(poly)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_looks_at_as_many_bytes_as_the_standard_wants() {
        // As few places as there may be in the first 213: all that comes before them is too far.
        let mut random = [0xff; 2 * BLOCK_256];
        random[8 + 213 - 60..].fill(0);
        assert!(placed(&random, 60).is_some());
        assert!(placed(&random[..BLOCK_256], 60).is_none());
    }
}
