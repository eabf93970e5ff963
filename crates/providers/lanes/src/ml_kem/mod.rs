// SPDX-License-Identifier: Apache-2.0
//! ML-KEM-768 and ML-KEM-1024 (FIPS 203): secrets out of ciphertexts.
//!
//! A ciphertext is opened and made again, to see that it was honest. What that needs of the key is kept with it: its matrix, transformed, which
//! takes a third of the time to make anew. The noise of one request fills the lanes of Keccak, and the coefficients of its
//! polynomials the lanes of everything else, so that a single request gains; it waits for no other.
//!
//! Constant time: no branch and no address depends on a secret, nor on whether a ciphertext was honest. What was on the stack is wiped.

mod coding;
mod ring;

use crate::cpu::{Cpu, cpu};
use crate::hash::noise::noise;
use coding::NOISE;
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::shake::{Function, Shake};
use metaslot_awslc_wrapper::{Failed, Result};
use metaslot_memory::{Secret, wipe_stack};
use ring::{Poly, Q};
use std::hint::black_box;

/// Length of a shared secret, in bytes.
pub const SECRET_LENGTH: usize = 32;
/// Bytes of a polynomial in a key: 256 numbers of 12 bits.
const ENCODED: usize = 384;
/// Bytes of the same in a decoded key.
const DECODED: usize = 512;
/// The largest rank.
const RANKS: usize = 4;

/// The parameter sets that are here (FIPS 203 §8). ML-KEM-512 has noise of another width.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Set {
    /// ML-KEM-768
    Ml768,
    /// ML-KEM-1024
    Ml1024,
}

impl Set {
    const fn rank(self) -> usize {
        match self {
            Self::Ml768 => 3,
            Self::Ml1024 => 4,
        }
    }

    /// Length of a ciphertext, in bytes.
    #[must_use]
    pub const fn ciphertext_length(self) -> usize {
        match self {
            Self::Ml768 => 1088,
            Self::Ml1024 => 1568,
        }
    }

    /// Length of a decapsulation key in its expanded form, in bytes.
    #[must_use]
    pub const fn private_length(self) -> usize {
        2 * ENCODED * self.rank() + 96
    }
}

/// Without it the plain library is as fast.
pub const NEEDS: Cpu = Cpu::AVX2;

/// Whether this gains anything here.
#[must_use]
pub fn available() -> bool {
    cpu().has(NEEDS)
}

/// A decapsulation key, ready for use.
#[derive(Debug)]
pub struct PrivateKey {
    set: Set,
    /// ŝ, coefficient by coefficient, then z.
    secret: Secret,
    /// Â by columns, then t̂.
    public: Vec<Poly>,
    /// H(ek)
    hash: [u8; 32],
}

impl PrivateKey {
    /// Of its expanded form, which has been checked.
    ///
    /// # Errors
    /// For another length than [`Set::private_length`].
    pub fn new(set: Set, bytes: &[u8]) -> Result<Self> {
        let key = Self::parsed(set, bytes);
        wipe_stack();
        key
    }

    /// In a frame of its own, which the caller can wipe.
    #[inline(never)]
    fn parsed(set: Set, bytes: &[u8]) -> Result<Self> {
        let rank = set.rank();
        if bytes.len() != set.private_length() {
            return Err(Failed);
        }
        let (pke, rest) = bytes.split_at(ENCODED * rank);
        let (public, rest) = rest.split_at(ENCODED * rank);
        let (seed, rest) = rest.split_at(32);
        let (hash, reject) = rest.split_at(32);
        let mut matrix = Vec::with_capacity(rank * rank + rank);
        for row in 0..rank {
            for column in 0..rank {
                matrix.push(uniform(seed, [index(row), index(column)])?);
            }
        }
        matrix
            .extend(public.chunks(ENCODED).map(|bytes| coding::numbers::<12>(bytes).in_columns()));
        let mut secret = Secret::zeroed(DECODED * rank + 32);
        let (decoded, end) = secret.expose_mut().split_at_mut(DECODED * rank);
        for (out, bytes) in decoded.chunks_mut(DECODED).zip(pke.chunks(ENCODED)) {
            let poly = coding::numbers::<12>(bytes).in_columns();
            let places = out.as_chunks_mut::<2>().0;
            for (place, number) in places.iter_mut().zip(poly.0.as_flattened()) {
                *place = number.to_le_bytes();
            }
        }
        end.copy_from_slice(reject);
        let hash = hash.try_into().map_err(|_| Failed)?;
        Ok(Self { set, secret, public: matrix, hash })
    }

    /// Its parameter set.
    #[must_use]
    pub const fn set(&self) -> Set {
        self.set
    }

    /// The shared secret of a ciphertext; of one that was changed another, which only the key knows (algorithm 18).
    ///
    /// # Errors
    /// For another length than [`Set::ciphertext_length`].
    pub fn decapsulate(&self, ciphertext: &[u8]) -> Result<Secret> {
        if ciphertext.len() != self.set.ciphertext_length() {
            return Err(Failed);
        }
        let mut shared = Secret::zeroed(SECRET_LENGTH);
        let done = self.open(ciphertext, shared.expose_mut());
        wipe_stack();
        done.map(|()| shared)
    }

    #[inline(never)]
    fn open(&self, ciphertext: &[u8], shared: &mut [u8]) -> Result<()> {
        #[cfg(target_arch = "x86_64")]
        {
            if cpu().has(Cpu::AVX512) {
                // SAFETY: the processor has the instructions.
                return unsafe { open_zmm(self, ciphertext, shared) };
            }
            if cpu().has(Cpu::AVX2) {
                // SAFETY: as above.
                return unsafe { open_ymm(self, ciphertext, shared) };
            }
        }
        open_plain(self, ciphertext, shared)
    }

    #[inline(always)]
    fn open_here(&self, ciphertext: &[u8], shared: &mut [u8]) -> Result<()> {
        match self.set {
            Set::Ml768 => self.open_as::<3, 10, 4>(ciphertext, shared),
            Set::Ml1024 => self.open_as::<4, 11, 5>(ciphertext, shared),
        }
    }

    #[inline(always)]
    fn open_as<const RANK: usize, const DU: usize, const DV: usize>(
        &self,
        ciphertext: &[u8],
        shared: &mut [u8],
    ) -> Result<()> {
        let (u, v) = ciphertext.split_at(32 * DU * RANK);
        let message = self.message::<RANK, DU, DV>(u, v);
        let mut input = [0; 64];
        input[..32].copy_from_slice(&message);
        input[32..].copy_from_slice(&self.hash);
        let mut output = [0; 64];
        Hash::Sha3_512.digest(&input, &mut output)?;
        let (honest, seed) = output.split_at(32);
        let mut rejected = [0; 32];
        let mut shake = Shake::new(Function::Shake256)?;
        shake.update(&self.secret.expose()[DECODED * RANK..])?;
        shake.update(ciphertext)?;
        shake.finish(&mut rejected)?;
        let mut random = [[0; NOISE]; 2 * RANKS + 1];
        let random = &mut random[..=2 * RANK];
        noise(seed.try_into().map_err(|_| Failed)?, 0, random);
        let difference = self.difference::<RANK, DU, DV>(&message, random, u, v);
        // All ones if there is none.
        let [mask, ..] = black_box(((i32::from(difference) & 0xffff) - 1) >> 31).to_le_bytes();
        for ((out, honest), rejected) in shared.iter_mut().zip(honest).zip(rejected) {
            *out = (honest & mask) | (rejected & !mask);
        }
        Ok(())
    }

    /// The message of a ciphertext (algorithm 15).
    #[inline(always)]
    fn message<const RANK: usize, const DU: usize, const DV: usize>(
        &self,
        u: &[u8],
        v: &[u8],
    ) -> [u8; 32] {
        let (mut secret, mut factors) = ([Poly::ZERO; RANK], [Poly::ZERO; RANK]);
        for (at, u) in u.chunks_exact(32 * DU).enumerate() {
            factors[at] = coding::decompressed::<DU>(&coding::numbers::<DU>(u)).transform();
            secret[at] = decoded(&self.secret, at);
        }
        let product = Poly::sum(&secret, &factors).back();
        let v = coding::decompressed::<DV>(&coding::numbers::<DV>(v));
        coding::message(&v.with(&product, -1))
    }

    /// How a ciphertext differs from that of the message with that noise (algorithm 14).
    #[inline(always)]
    fn difference<const RANK: usize, const DU: usize, const DV: usize>(
        &self,
        message: &[u8; 32],
        random: &[[u8; NOISE]],
        u: &[u8],
        v: &[u8],
    ) -> i16 {
        let mut y = [Poly::ZERO; RANK];
        for (y, random) in y.iter_mut().zip(random) {
            *y = coding::noise(random).transform();
        }
        let mut difference = 0;
        for (at, u) in u.chunks_exact(32 * DU).enumerate() {
            let error = coding::noise(&random[RANK + at]);
            let made = Poly::sum(&self.public[RANK * at..][..RANK], &y).back().with(&error, 1);
            difference |= coding::difference::<DU>(&made, &coding::numbers::<DU>(u));
        }
        let error = coding::noise(&random[2 * RANK]).with(&coding::of_message(message), 1);
        let made = Poly::sum(&self.public[RANK * RANK..], &y).back().with(&error, 1);
        difference | coding::difference::<DV>(&made, &coding::numbers::<DV>(v))
    }
}

/// In a frame of its own: the others' would lie below it, deeper than is wiped.
#[inline(never)]
fn open_plain(key: &PrivateKey, ciphertext: &[u8], shared: &mut [u8]) -> Result<()> {
    key.open_here(ciphertext, shared)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn open_zmm(key: &PrivateKey, ciphertext: &[u8], shared: &mut [u8]) -> Result<()> {
    key.open_here(ciphertext, shared)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn open_ymm(key: &PrivateKey, ciphertext: &[u8], shared: &mut [u8]) -> Result<()> {
    key.open_here(ciphertext, shared)
}

fn index(at: usize) -> u8 {
    u8::try_from(at).unwrap_or(u8::MAX)
}

#[inline(always)]
fn decoded(secret: &Secret, at: usize) -> Poly {
    let numbers = secret.expose()[DECODED * at..][..DECODED].as_chunks::<2>().0;
    let mut poly = Poly::ZERO;
    for (place, number) in poly.0.as_flattened_mut().iter_mut().zip(numbers) {
        *place = i16::from_le_bytes(*number);
    }
    poly
}

/// A transformed polynomial of the matrix (algorithm 7): nothing of it is secret.
fn uniform(seed: &[u8], place: [u8; 2]) -> Result<Poly> {
    // Of 560 numbers of twelve bits 455 are below q in the mean; fewer than 256 are not to be expected in any key's life.
    let mut random = [0; 840];
    let mut shake = Shake::new(Function::Shake128)?;
    shake.update(seed)?;
    shake.update(&place)?;
    shake.finish(&mut random)?;
    let triples = random.as_chunks::<3>().0.iter();
    let both = |[a, b, c]: &[u8; 3]| {
        let (a, b, c) = (i16::from(*a), i16::from(*b), i16::from(*c));
        [a | (b & 15) << 8, b >> 4 | c << 4]
    };
    let mut good = triples.flat_map(both).filter(|number| *number < Q);
    let mut poly = Poly::ZERO;
    for place in poly.0.as_flattened_mut() {
        *place = good.next().ok_or(Failed)?;
    }
    Ok(poly.in_columns())
}

#[cfg(test)]
mod tests;
