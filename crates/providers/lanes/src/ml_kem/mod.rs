// SPDX-License-Identifier: Apache-2.0
//! ML-KEM (FIPS 203): secrets into ciphertexts, and out of them.
//!
//! A ciphertext is opened and made again, to see that it was honest. What that needs of the key is kept with it: its matrix, transformed, which
//! would take more than twice as long as the rest. The noise of one request fills lanes of Keccak beside the hash of its ciphertext, and
//! the coefficients of its polynomials the lanes of everything else, so that a single request gains; it waits for no other.
//!
//! Constant time: no branch and no address depends on a secret, nor on whether a ciphertext was honest. What was on the stack is wiped.

mod coding;
mod hashes;
mod ring;
mod vector;

use crate::cpu::{Cpu, cpu};
use crate::hash::squeeze::{BLOCK_128, squeezed};
use hashes::{Made, Noise};
use metaslot_awslc_wrapper::digest::Hash;
pub use metaslot_awslc_wrapper::ml_kem::{SECRET_LENGTH, Set};
use metaslot_awslc_wrapper::{Failed, Result, random};
use metaslot_memory::{Secret, wipe_stack};
use ring::{Factor, Poly, Q};
use std::hint::black_box;

/// Bytes of a polynomial in a key: 256 numbers of 12 bits.
const ENCODED: usize = 384;
/// Bytes of the same in a decoded key.
const DECODED: usize = 512;
/// The largest rank.
const RANKS: usize = 4;
/// The longest ciphertext.
const CIPHERTEXT: usize = 1568;

/// Random bytes of a polynomial of the matrix. Of 560 numbers of twelve bits 455 are below q in the mean; fewer than 256 are not to be
/// expected in any key's life.
const UNIFORM: usize = 840;

/// Without it the plain library is as fast.
pub const NEEDS: Cpu = Cpu::AVX2;

/// Whether this gains anything here.
#[must_use]
pub fn available() -> bool {
    cpu().has(NEEDS)
}

/// An encapsulation key, ready for use.
#[derive(Debug)]
pub struct PublicKey {
    set: Set,
    /// Â by columns, then t̂; in pairs.
    polys: Vec<Poly>,
    /// H(ek)
    hash: [u8; 32],
}

impl PublicKey {
    /// Of its bytes, which have been checked.
    ///
    /// # Errors
    /// For another length than [`Set::public_length`]; where this is not [`available`].
    pub fn new(set: Set, bytes: &[u8]) -> Result<Self> {
        let mut hash = [0; 32];
        Hash::Sha3_256.digest(bytes, &mut hash)?;
        Self::with_hash(set, bytes, hash)
    }

    fn with_hash(set: Set, bytes: &[u8], hash: [u8; 32]) -> Result<Self> {
        if bytes.len() != set.public_length() || !available() {
            return Err(Failed);
        }
        // SAFETY: the processor has the instructions.
        let polys = unsafe { Self::polys(set.rank(), bytes) }?;
        Ok(Self { set, polys, hash })
    }

    #[target_feature(enable = "avx2")]
    fn polys(rank: usize, bytes: &[u8]) -> Result<Vec<Poly>> {
        let (public, seed) = bytes.split_at(ENCODED * rank);
        let mut polys = Vec::with_capacity(rank * rank + rank);
        let mut random = [[0; UNIFORM]; RANKS * RANKS];
        let random = &mut random[..rank * rank];
        let place = |at: u8| [at / index(rank), at % index(rank)];
        squeezed(BLOCK_128, seed, place, UNIFORM, random.as_flattened_mut());
        for random in random {
            polys.push(uniform(random)?);
        }
        polys.extend(public.chunks(ENCODED).map(|bytes| coding::numbers::<12>(bytes)));
        polys.iter_mut().for_each(|poly| poly.in_pairs());
        Ok(polys)
    }

    /// Its parameter set.
    #[must_use]
    pub const fn set(&self) -> Set {
        self.set
    }

    /// A new shared secret; its ciphertext goes to `out` (algorithm 20).
    ///
    /// # Errors
    /// For another length of `out` than [`Set::ciphertext_length`].
    pub fn encapsulate(&self, out: &mut [u8]) -> Result<Secret> {
        let mut message = Secret::zeroed(32);
        random::fill(message.expose_mut())?;
        self.encapsulate_this(message.expose(), out)
    }

    /// The same of a message (algorithm 17), which must be random.
    fn encapsulate_this(&self, message: &[u8], out: &mut [u8]) -> Result<Secret> {
        if out.len() != self.set.ciphertext_length() {
            return Err(Failed);
        }
        let mut shared = Secret::zeroed(SECRET_LENGTH);
        // SAFETY: there are keys only where the processor has the instructions.
        let done = unsafe { self.close(message, out, shared.expose_mut()) };
        wipe_stack();
        done.map(|()| shared)
    }

    #[target_feature(enable = "avx2")]
    #[inline(never)]
    fn close(&self, message: &[u8], out: &mut [u8], shared: &mut [u8]) -> Result<()> {
        let made = Made::honest(self.set, message, &self.hash)?;
        self.encrypt(message, &made.noise, out);
        shared.copy_from_slice(&made.honest);
        Ok(())
    }

    /// The ciphertext of a message with that noise (algorithm 14), by the parameters of each set (§8).
    #[target_feature(enable = "avx2")]
    #[inline(never)]
    fn encrypt(&self, message: &[u8], noise: &Noise, out: &mut [u8]) {
        match self.set {
            Set::Ml512 => self.encrypt_as::<2, 10, 4, 3>(message, noise, out),
            Set::Ml768 => self.encrypt_as::<3, 10, 4, 2>(message, noise, out),
            Set::Ml1024 => self.encrypt_as::<4, 11, 5, 2>(message, noise, out),
        }
    }

    /// Of secrets with noise of width `ETA`.
    #[target_feature(enable = "avx2")]
    fn encrypt_as<const RANK: usize, const DU: usize, const DV: usize, const ETA: usize>(
        &self,
        message: &[u8],
        noise: &Noise,
        out: &mut [u8],
    ) {
        let length = hashes::noise_length(self.set);
        let mut secrets = [Factor::ZERO; RANK];
        for (secret, noise) in secrets.iter_mut().zip(noise.chunks_exact(length)) {
            coding::noise::<ETA>(noise).transform(secret);
        }
        let errors = noise[length * RANK..].chunks_exact(length);
        let mut errors = errors.map(|bytes| coding::noise::<2>(&bytes[..128]));
        let (u, v) = out.split_at_mut(32 * DU * RANK);
        let mut polys = self.polys.as_chunks::<RANK>().0.iter();
        for u in u.chunks_exact_mut(32 * DU) {
            let (Some(column), Some(error)) = (polys.next(), errors.next()) else { break };
            coding::encode::<DU>(&Poly::product(column, &secrets).with(&error, 1), u);
        }
        if let (Some(public), Some(error)) = (polys.next(), errors.next()) {
            let error = error.with(&coding::decompressed::<1>(message), 1);
            coding::encode::<DV>(&Poly::product(public, &secrets).with(&error, 1), v);
        }
    }
}

/// A decapsulation key, ready for use.
#[derive(Debug)]
pub struct PrivateKey {
    public: PublicKey,
    /// ŝ in pairs, coefficient by coefficient, then z.
    secret: Secret,
}

impl PrivateKey {
    /// Of its expanded form, which has been checked.
    ///
    /// # Errors
    /// For another length than [`Set::private_length`]; where this is not [`available`].
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
        let (public, rest) = rest.split_at(set.public_length());
        let (hash, reject) = rest.split_at(32);
        let public = PublicKey::with_hash(set, public, hash.try_into().map_err(|_| Failed)?)?;
        let mut secret = Secret::zeroed(DECODED * rank + 32);
        let (decoded, end) = secret.expose_mut().split_at_mut(DECODED * rank);
        for (out, bytes) in decoded.chunks_mut(DECODED).zip(pke.chunks(ENCODED)) {
            // SAFETY: there are public keys only where the processor has the instructions.
            let poly = unsafe { in_pairs(bytes) };
            let places = out.as_chunks_mut::<2>().0;
            for (place, number) in places.iter_mut().zip(poly.0.as_flattened()) {
                *place = number.to_le_bytes();
            }
        }
        end.copy_from_slice(reject);
        Ok(Self { public, secret })
    }

    /// Its parameter set.
    #[must_use]
    pub const fn set(&self) -> Set {
        self.public.set
    }

    /// The shared secret of a ciphertext; of one that was changed another, which only the key knows (algorithm 18).
    ///
    /// # Errors
    /// For another length than [`Set::ciphertext_length`].
    pub fn decapsulate(&self, ciphertext: &[u8]) -> Result<Secret> {
        if ciphertext.len() != self.set().ciphertext_length() {
            return Err(Failed);
        }
        let mut shared = Secret::zeroed(SECRET_LENGTH);
        // SAFETY: there are keys only where the processor has the instructions.
        let done = unsafe { self.open(ciphertext, shared.expose_mut()) };
        wipe_stack();
        done.map(|()| shared)
    }

    #[target_feature(enable = "avx2")]
    #[inline(never)]
    fn open(&self, ciphertext: &[u8], shared: &mut [u8]) -> Result<()> {
        let message = match self.set() {
            Set::Ml512 => self.message::<2, 10, 4>(ciphertext),
            Set::Ml768 => self.message::<3, 10, 4>(ciphertext),
            Set::Ml1024 => self.message::<4, 11, 5>(ciphertext),
        };
        let reject = &self.secret.expose()[DECODED * self.set().rank()..];
        let made = Made::all(self.set(), &message, &self.public.hash, (reject, ciphertext))?;
        let mut again = [0; CIPHERTEXT];
        let again = &mut again[..ciphertext.len()];
        self.public.encrypt(&message, &made.noise, again);
        let difference = again.iter().zip(ciphertext).fold(0, |all, (a, b)| all | (a ^ b));
        // All ones if there is none.
        let [mask, ..] = black_box((i32::from(difference) - 1) >> 31).to_le_bytes();
        for ((out, honest), rejected) in shared.iter_mut().zip(made.honest).zip(made.rejected) {
            *out = (honest & mask) | (rejected & !mask);
        }
        Ok(())
    }

    /// The message of a ciphertext (algorithm 15). In a frame of its own, for what is wiped would not reach below this one and that of
    /// [`PublicKey::encrypt`] together.
    #[target_feature(enable = "avx2")]
    #[inline(never)]
    fn message<const RANK: usize, const DU: usize, const DV: usize>(
        &self,
        ciphertext: &[u8],
    ) -> [u8; 32] {
        let (u, v) = ciphertext.split_at(32 * DU * RANK);
        let mut factors = [Factor::ZERO; RANK];
        for (factor, bytes) in factors.iter_mut().zip(u.chunks_exact(32 * DU)) {
            coding::decompressed::<DU>(bytes).transform(factor);
        }
        let secret: [Poly; RANK] = std::array::from_fn(|at| decoded(&self.secret, at));
        let product = Poly::product(&secret, &factors);
        let mut message = [0; 32];
        coding::encode::<1>(&coding::decompressed::<DV>(v).with(&product, -1), &mut message);
        message
    }
}

fn index(at: usize) -> u8 {
    u8::try_from(at).unwrap_or(u8::MAX)
}

/// A polynomial of a key.
#[target_feature(enable = "avx2")]
fn in_pairs(bytes: &[u8]) -> Poly {
    let mut poly = coding::numbers::<12>(bytes);
    poly.in_pairs();
    poly
}

fn decoded(secret: &Secret, at: usize) -> Poly {
    let numbers = secret.expose()[DECODED * at..][..DECODED].as_chunks::<2>().0;
    let mut poly = Poly::ZERO;
    for (place, number) in poly.0.as_flattened_mut().iter_mut().zip(numbers) {
        *place = i16::from_le_bytes(*number);
    }
    poly
}

/// A transformed polynomial of the matrix (algorithm 7), of random bytes: nothing of it is secret.
fn uniform(random: &[u8; UNIFORM]) -> Result<Poly> {
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
    Ok(poly)
}

#[cfg(test)]
mod tests;
