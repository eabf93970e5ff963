// SPDX-License-Identifier: Apache-2.0
//! Keys, prepared for the kernel.

use super::constants::{self, PARTS, Part};
use super::memory::limb;
use super::power::WINDOW;
use crate::cpu::{Cpu, cpu};
use metaslot_awslc_wrapper::Failed;
use metaslot_awslc_wrapper::rsa::RsaNumbers;
use metaslot_memory::Secret;
use std::fmt;

/// Lengths of a modulus, in bytes.
const SIZES: [usize; 4] = [128, 256, 384, 512];

/// A public key.
pub struct PublicKey {
    /// Big-endian, with all its bytes.
    modulus: Box<[u8]>,
    exponent: u64,
    k0: u64,
    parts: Box<[u8]>,
}

impl PublicKey {
    /// Prepares a key: a modulus of exactly 1024, 2048, 3072 or 4096 bits and an odd exponent of 2 to 64 bits, both big-endian.
    ///
    /// # Errors
    /// For other sizes, an even number, or a machine without the instructions.
    pub fn new(modulus: &[u8], public_exponent: &[u8]) -> Result<Self, Failed> {
        let (modulus, exponent) = (trimmed(modulus), trimmed(public_exponent));
        if !SIZES.contains(&modulus.len()) || exponent.len() > 8 {
            return Err(Failed);
        }
        let exponent = exponent.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        if exponent < 3 || exponent % 2 == 0 {
            return Err(Failed);
        }
        check_modulus(modulus)?;
        let mut parts =
            vec![0; PARTS * constants::length(blocks(modulus.len()))].into_boxed_slice();
        let k0 = compute(modulus, &mut parts)?;
        Ok(Self { modulus: modulus.into(), exponent, k0, parts })
    }

    /// Length of the modulus, in bytes.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.modulus.len()
    }

    pub(super) const fn exponent(&self) -> u64 {
        self.exponent
    }

    pub(super) const fn k0(&self) -> u64 {
        self.k0
    }

    pub(super) fn part(&self, part: Part) -> &[u8] {
        constants::part(&self.parts, part)
    }

    /// Whether a number of the modulus's length is below it; reads all of both.
    pub(super) fn exceeds(&self, number: &[u8]) -> bool {
        let pairs = number.iter().zip(&self.modulus).rev();
        pairs.fold(0, |borrow, (number, modulus)| {
            (i32::from(*number) - i32::from(*modulus) + borrow) >> 8
        }) < 0
    }
}

/// A private key: zeroised when dropped, and shared by reference.
pub struct PrivateKey {
    public: PublicKey,
    p: Prime,
    q: Prime,
}

impl PrivateKey {
    /// Prepares a key. The modulus and the public exponent are as for [`PublicKey::new`], the primes half as long
    /// exactly. d is not used and may be empty. That the numbers belong together is not checked here: with others every
    /// operation fails.
    ///
    /// # Errors
    /// As for [`PublicKey::new`], or for primes of other sizes.
    pub fn new(numbers: &RsaNumbers<'_>) -> Result<Self, Failed> {
        let public = PublicKey::new(numbers.modulus, numbers.public_exponent)?;
        let half = public.size() / 2;
        Ok(Self {
            p: Prime::new(half, numbers.prime_1, numbers.exponent_1, Some(numbers.coefficient))?,
            q: Prime::new(half, numbers.prime_2, numbers.exponent_2, None)?,
            public,
        })
    }

    /// As if every secret had been wiped, which is what a forked child sees.
    #[cfg(test)]
    pub(super) fn wipe(&mut self) {
        for prime in [&mut self.p, &mut self.q] {
            let secrets =
                [&mut prime.parts, &mut prime.k0, &mut prime.digits, &mut prime.coefficient];
            secrets.into_iter().for_each(|secret| secret.expose_mut().fill(0));
        }
    }

    /// The public part.
    #[must_use]
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    pub(super) const fn p(&self) -> &Prime {
        &self.p
    }

    pub(super) const fn q(&self) -> &Prime {
        &self.q
    }
}

/// One prime of a key and its exponent.
pub(super) struct Prime {
    parts: Secret,
    /// −p⁻¹ mod 2⁵², as bytes.
    k0: Secret,
    /// The exponent less 1, the highest digit first.
    digits: Secret,
    /// The inverse of the other prime: limbs.
    coefficient: Secret,
}

impl Prime {
    fn new(
        half: usize,
        prime: &[u8],
        exponent: &[u8],
        coefficient: Option<&[u8]>,
    ) -> Result<Self, Failed> {
        let (prime, exponent) = (at_most(half, prime)?, at_most(half, exponent)?);
        check_modulus(prime)?;
        if prime.len() != half {
            return Err(Failed);
        }
        if exponent.last().is_none_or(|last| last % 2 == 0) {
            return Err(Failed);
        }
        let mut parts = Secret::zeroed(PARTS * constants::length(blocks(half)));
        let k0 = compute(prime, parts.expose_mut())?;
        let coefficient = match coefficient {
            Some(coefficient) => limbs_of(at_most(half, coefficient)?, blocks(half)),
            None => Secret::zeroed(0),
        };
        let (k0, digits) = (Secret::copy_of(&k0.to_ne_bytes()), digits_of(exponent, half));
        Ok(Self { parts, k0, digits, coefficient })
    }

    pub(super) fn part(&self, part: Part) -> &[u8] {
        constants::part(self.parts.expose(), part)
    }

    pub(super) const fn k0(&self) -> &[u8] {
        self.k0.expose()
    }

    pub(super) const fn digits(&self) -> &[u8] {
        self.digits.expose()
    }

    pub(super) const fn coefficient(&self) -> &[u8] {
        self.coefficient.expose()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({} bytes)", self.size())
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({} bytes)", self.public.size())
    }
}

/// Blocks of limbs for a number of so many bytes, with at least eight bits to spare.
pub(super) const fn blocks(length: usize) -> usize {
    length / 64
}

/// Without leading zeros; for public numbers.
fn trimmed(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..]
}

/// The last `length` bytes, or fewer, when what is before them is zero.
fn at_most(length: usize, bytes: &[u8]) -> Result<&[u8], Failed> {
    let (zeros, number) = bytes.split_at(bytes.len().saturating_sub(length));
    if zeros.iter().fold(0, |all, byte| all | byte) == 0 { Ok(number) } else { Err(Failed) }
}

/// An odd number with its highest bit.
fn check_modulus(modulus: &[u8]) -> Result<(), Failed> {
    let (high, low) = (modulus.first().unwrap_or(&0), modulus.last().unwrap_or(&0));
    if high & 0x80 != 0 && low & 1 != 0 { Ok(()) } else { Err(Failed) }
}

/// All parts of a modulus; returns −n⁻¹ mod 2⁵².
fn compute(modulus: &[u8], parts: &mut [u8]) -> Result<u64, Failed> {
    if !cpu().has(Cpu::AVX512_IFMA) {
        return Err(Failed);
    }
    let compute = match blocks(modulus.len()) {
        1 => constants::compute::<1>,
        2 => constants::compute::<2>,
        3 => constants::compute::<3>,
        4 => constants::compute::<4>,
        6 => constants::compute::<6>,
        _ => constants::compute::<8>,
    };
    // SAFETY: the machine has the instructions, as was just asked.
    unsafe { compute(modulus, parts) };
    Ok(constants::k0_of(limb(modulus, 0)))
}

fn limbs_of(number: &[u8], blocks: usize) -> Secret {
    let mut limbs = Secret::zeroed(constants::length(blocks));
    for (index, out) in limbs.expose_mut().as_chunks_mut().0.iter_mut().enumerate() {
        *out = limb(number, index).to_ne_bytes();
    }
    limbs
}

/// The exponent, which is odd, less 1, in digits of [`WINDOW`] bits.
fn digits_of(exponent: &[u8], length: usize) -> Secret {
    let count = (8 * length).div_ceil(WINDOW);
    let mut digits = Secret::zeroed(count);
    for (index, digit) in digits.expose_mut().iter_mut().rev().enumerate() {
        let (skipped, shift) = (index * WINDOW / 8, index * WINDOW % 8);
        let byte =
            |place: usize| exponent.iter().rev().nth(place).map_or(0, |byte| u16::from(*byte));
        let bits = (byte(skipped) | byte(skipped + 1) << 8) >> shift;
        *digit = bits.to_le_bytes()[0] & ((1 << WINDOW) - 1);
    }
    if let Some(lowest) = digits.expose_mut().last_mut() {
        *lowest &= !1;
    }
    digits
}
