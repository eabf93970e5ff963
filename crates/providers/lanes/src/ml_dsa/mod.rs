// SPDX-License-Identifier: Apache-2.0
//! Signatures of ML-DSA (FIPS 204), all parameter sets.
//!
//! A signature is tried until an attempt is not rejected, four to five times in the mean. What that needs of the key is kept with it: its
//! matrix and its secrets, transformed. The masks of one request, of the attempts to come as well, fill the lanes of Keccak, and the coefficients of
//! its polynomials the lanes of everything else, so that a single request gains; it waits for no other.
//!
//! Constant time: no branch and no address depends on a secret but whether an attempt is rejected, and at which polynomial. That says nothing of the key: the masks are
//! chosen so that each coefficient is rejected as often whatever the secret is, and attempts are independent. What was on the stack is wiped.

mod coding;
mod kernel;
#[cfg(any(test, not(target_arch = "x86_64")))]
mod plain;
mod ring;
mod row;
mod set;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod ymm;
#[cfg(target_arch = "x86_64")]
mod zmm;

use crate::cpu::{Cpu, cpu};
use crate::hash::squeeze::{BLOCK_128, BLOCK_256, squeezed};
use coding::LOW_LENGTH;
use kernel::Kernel;
pub use metaslot_awslc_wrapper::ml_dsa::{MU_LENGTH, Set};
use metaslot_awslc_wrapper::shake::{Function, Shake};
use metaslot_awslc_wrapper::{Failed, Result};
use metaslot_memory::{Secret, wipe_deep_stack};
use ring::{Poly, Q};
use set::Terms;

/// Length of the randomness of a signature, in bytes: zeros make it deterministic.
pub const RANDOM_LENGTH: usize = 32;
/// Bytes of a polynomial in a prepared key.
const DECODED: usize = 1024;
/// Rows of the largest matrix, and its columns.
const ROWS: usize = 8;
const COLUMNS: usize = 7;
/// Bytes of the longest challenge.
const CHALLENGE: usize = 64;
/// How many masks are made at once, and bytes of the longest.
const MASKS: usize = 8;
const MASK: usize = 640;

/// Without it the plain library is as fast.
pub const NEEDS: Cpu = Cpu::AVX2;

/// Whether this gains anything here.
#[must_use]
pub fn available() -> bool {
    cpu().has(NEEDS)
}

/// A private key, ready for use.
#[derive(Debug)]
pub struct PrivateKey {
    set: Set,
    /// Transformed, coefficient by coefficient: s1, s2, t0; then K.
    secret: Secret,
    /// Â by rows.
    matrix: Vec<Poly>,
    /// tr: the hash of the public key.
    hash: [u8; 64],
}

impl PrivateKey {
    /// Of its expanded form, which has been checked.
    ///
    /// # Errors
    /// For another length than [`Set::private_length`], and without [`available`].
    pub fn new(set: Set, bytes: &[u8]) -> Result<Self> {
        let kernel = Kernel::best().ok_or(Failed)?;
        let key = Self::parsed(set, bytes, kernel);
        wipe_deep_stack();
        key
    }

    /// In a frame of its own, which the caller can wipe.
    #[inline(never)]
    fn parsed(set: Set, bytes: &[u8], kernel: Kernel) -> Result<Self> {
        if bytes.len() != set.private_length() {
            return Err(Failed);
        }
        let terms = Terms::of(set);
        let (seed, rest) = bytes.split_at(32);
        let (key, rest) = rest.split_at(32);
        let (hash, rest) = rest.split_at(64);
        let (small, low) = rest.split_at(terms.small_length() * (terms.columns + terms.rows));
        let places = DECODED * (terms.columns + 2 * terms.rows);
        let mut secret = Secret::try_zeroed(places + key.len()).ok_or(Failed)?;
        let (polys, end) = secret.expose_mut().split_at_mut(places);
        end.copy_from_slice(key);
        let (small, low) = (small.chunks(terms.small_length()), low.chunks(LOW_LENGTH));
        let mut poly = Poly::ZERO;
        for (place, bytes) in polys.chunks_mut(DECODED).zip(small.chain(low)) {
            match bytes.len() {
                LOW_LENGTH => coding::low(bytes, &mut poly),
                _ => terms.small(bytes, &mut poly),
            }
            kernel.transform(&mut poly);
            let numbers = place.as_chunks_mut::<4>().0.iter_mut().zip(poly.0.as_flattened());
            numbers.for_each(|(place, number)| *place = number.to_le_bytes());
        }
        let hash = hash.try_into().map_err(|_| Failed)?;
        Ok(Self { set, secret, matrix: matrix(terms, seed)?, hash })
    }

    /// Its parameter set.
    #[must_use]
    pub const fn set(&self) -> Set {
        self.set
    }

    /// The hash of the public key, with which each µ begins.
    #[must_use]
    pub const fn hash(&self) -> &[u8; 64] {
        &self.hash
    }

    /// Signs µ (algorithm 7).
    ///
    /// # Errors
    /// Where `out` is not [`Set::signature_length`] bytes long, and without [`available`].
    pub fn sign(
        &self,
        mu: &[u8; MU_LENGTH],
        random: &[u8; RANDOM_LENGTH],
        out: &mut [u8],
    ) -> Result<()> {
        let kernel = Kernel::best().ok_or(Failed)?;
        let done = self.signed(kernel, mu, random, out);
        wipe_deep_stack();
        done
    }

    /// In a frame of its own, which the caller can wipe.
    #[inline(never)]
    fn signed(
        &self,
        kernel: Kernel,
        mu: &[u8; MU_LENGTH],
        random: &[u8; RANDOM_LENGTH],
        out: &mut [u8],
    ) -> Result<()> {
        if out.len() != self.set.signature_length() {
            return Err(Failed);
        }
        let terms = Terms::of(self.set);
        let mut masks = Masks::new(terms, Masks::seed(&self.secret, mu, random)?);
        let mut attempt = Attempt::new(self, kernel);
        while !attempt.succeeds(&mut masks, mu, out)? {}
        Ok(())
    }

    /// A polynomial of s1, s2 and t0.
    fn secret(&self, at: usize, poly: &mut Poly) {
        let numbers = self.secret.expose()[DECODED * at..][..DECODED].as_chunks::<4>().0;
        for (place, number) in poly.0.as_flattened_mut().iter_mut().zip(numbers) {
            *place = i32::from_le_bytes(*number);
        }
    }
}

/// The masks of a signature, one after the other (algorithm 34).
struct Masks {
    seed: [u8; 64],
    length: usize,
    ready: [u8; MASK * MASKS],
    next: u16,
}

impl Masks {
    /// Where it lies, for it is large.
    #[inline(always)]
    const fn new(terms: &Terms, seed: [u8; 64]) -> Self {
        Self { seed, length: terms.mask_length(), ready: [0; MASK * MASKS], next: 0 }
    }

    /// The seed of the masks of a signature.
    fn seed(secret: &Secret, mu: &[u8], random: &[u8]) -> Result<[u8; 64]> {
        let mut seed = [0; 64];
        let mut shake = Shake::new(Function::Shake256)?;
        shake.update(&secret.expose()[secret.expose().len() - 32..])?;
        shake.update(random)?;
        shake.update(mu)?;
        shake.finish(&mut seed)?;
        Ok(seed)
    }

    /// That thousands of attempts are rejected is not to be expected in any key's life.
    fn next(&mut self) -> Result<&[u8]> {
        let at = usize::from(self.next) % MASKS;
        let ready = &mut self.ready[..self.length * MASKS];
        if at == 0 {
            let first = self.next;
            let ends = |at| (first + u16::from(at)).to_le_bytes();
            squeezed(BLOCK_256, &self.seed, ends, self.length, ready);
        }
        self.next = self.next.checked_add(1).ok_or(Failed)?;
        Ok(&ready[self.length * at..][..self.length])
    }
}

/// What attempts compute with.
struct Attempt<'a> {
    kernel: Kernel,
    terms: &'static Terms,
    key: &'a PrivateKey,
    /// y, then z.
    y: [Poly; COLUMNS],
    /// The lower parts of w, and what becomes of them.
    w: [Poly; ROWS],
    /// w1
    highs: [[u8; 256]; ROWS],
}

impl<'a> Attempt<'a> {
    #[inline(always)]
    fn new(key: &'a PrivateKey, kernel: Kernel) -> Self {
        let (y, w, highs) = ([Poly::ZERO; COLUMNS], [Poly::ZERO; ROWS], [[0; 256]; ROWS]);
        Self { kernel, terms: Terms::of(key.set), key, y, w, highs }
    }

    /// One attempt; whether it is not rejected. `out` is the caller's memory, which others may see and change: nothing of an attempt that is
    /// rejected is written there, and nothing is read.
    fn succeeds(
        &mut self,
        masks: &mut Masks,
        mu: &[u8; MU_LENGTH],
        out: &mut [u8],
    ) -> Result<bool> {
        let Terms { columns, challenge: length, hints, .. } = *self.terms;
        for y in &mut self.y[..columns] {
            self.terms.mask(masks.next()?, y);
        }
        let mut seed = [0; CHALLENGE];
        let seed = &mut seed[..length];
        self.commit(mu, seed)?;
        let mut challenge = coding::challenge(seed, self.terms.weight)?;
        self.kernel.transform(&mut challenge);
        if self.answers(&challenge) || self.count() > hints {
            return Ok(false);
        }
        // From here on all of it is public.
        let (place, rest) = out.split_at_mut(length);
        place.copy_from_slice(seed);
        let (responses, marks) = rest.split_at_mut(self.terms.mask_length() * columns);
        for (z, out) in self.y.iter().zip(responses.chunks_mut(self.terms.mask_length())) {
            self.terms.response(z, out);
        }
        let (places, ends) = marks.split_at_mut(hints);
        self.marks(places, ends);
        Ok(true)
    }

    /// The commitment w of the masks, and the challenge that it gets.
    #[inline(never)]
    fn commit(&mut self, mu: &[u8], challenge: &mut [u8]) -> Result<()> {
        let (kernel, columns) = (self.kernel, self.terms.columns);
        let mut y = self.y;
        y[..columns].iter_mut().for_each(|y| kernel.transform(y));
        let mut hash = Shake::new(Function::Shake256)?;
        hash.update(mu)?;
        for (at, row) in self.key.matrix.chunks(columns).enumerate() {
            kernel.product(row, &y[..columns], &mut self.w[at]);
            kernel.decompose(&mut self.w[at], &self.terms.rounding, &mut self.highs[at]);
            let mut bytes = [0; 192];
            let length = self.terms.commitment(&self.highs[at], &mut bytes);
            hash.update(&bytes[..length])?;
        }
        hash.finish(challenge)
    }

    /// What becomes of y and w with a challenge; whether that is rejected. First where it is likeliest.
    #[inline(never)]
    fn answers(&mut self, challenge: &Poly) -> bool {
        let Self { kernel, terms: Terms { rows, columns, rounding, .. }, key, .. } = *self;
        let beta = self.terms.beta();
        let (mut secret, mut product) = (Poly::ZERO, Poly::ZERO);
        let mut times = |at, product: &mut Poly| {
            key.secret(at, &mut secret);
            kernel.product(std::slice::from_ref(&secret), std::slice::from_ref(challenge), product);
        };
        for (at, w) in self.w[..*rows].iter_mut().enumerate() {
            times(columns + at, &mut product);
            if kernel.add(w, &product, -1, rounding.half - beta) {
                return true;
            }
        }
        for (at, y) in self.y[..*columns].iter_mut().enumerate() {
            times(at, &mut product);
            if kernel.add(y, &product, 1, self.terms.gamma() - beta) {
                return true;
            }
        }
        for (at, w) in self.w[..*rows].iter_mut().enumerate() {
            times(columns + rows + at, &mut product);
            let mut low = Poly::ZERO;
            if kernel.add(&mut low, &product, 1, rounding.half) {
                return true;
            }
            // At most 2γ2 from zero.
            kernel.add(w, &low, 1, Q);
        }
        false
    }

    /// Of a row's coefficients, whether there is a hint (algorithm 39).
    fn hints(&self, row: usize) -> impl Iterator<Item = bool> {
        let half = self.terms.rounding.half;
        let pairs = self.w[row].0.as_flattened().iter().zip(&self.highs[row]);
        pairs.map(move |(low, high)| {
            (*low > half) | (*low < -half) | ((*low == -half) & (*high != 0))
        })
    }

    /// How many hints there are.
    fn count(&self) -> usize {
        (0..self.terms.rows).flat_map(|row| self.hints(row)).map(usize::from).sum()
    }

    /// Writes the hints (algorithm 20), of which there are not too many.
    fn marks(&self, places: &mut [u8], ends: &mut [u8]) {
        let mut next = 0_u8;
        for (row, end) in ends.iter_mut().enumerate() {
            for (at, hint) in (0..=u8::MAX).zip(self.hints(row)) {
                // What is no hint is written over.
                if let Some(place) = places.get_mut(usize::from(next)) {
                    *place = at;
                }
                next += u8::from(hint);
            }
            *end = next;
        }
        places[usize::from(next)..].fill(0);
    }
}

/// The matrix, transformed (algorithm 32): nothing of it is secret.
fn matrix(terms: &Terms, seed: &[u8]) -> Result<Vec<Poly>> {
    // Of a thousand numbers of 23 bits one is above q − 1. An implementation that looks at a limited number looks at 298 or more
    // (FIPS 204, appendix C).
    const LENGTH: usize = 6 * BLOCK_128;
    let mut matrix = Vec::with_capacity(terms.rows * terms.columns);
    let mut random = [[0; LENGTH]; COLUMNS];
    for row in (0..).take(terms.rows) {
        let random = &mut random[..terms.columns];
        squeezed(BLOCK_128, seed, |at| [at, row], LENGTH, random.as_flattened_mut());
        for random in random {
            let number = |[a, b, c]: &[u8; 3]| i32::from_le_bytes([*a, *b, c & 0x7f, 0]);
            let mut good = random.as_chunks().0.iter().map(number).filter(|number| *number < Q);
            let mut poly = Poly::ZERO;
            // In columns.
            for at in 0..256 {
                poly.0[at % 16][at / 16] = good.next().ok_or(Failed)?;
            }
            matrix.push(poly);
        }
    }
    Ok(matrix)
}
