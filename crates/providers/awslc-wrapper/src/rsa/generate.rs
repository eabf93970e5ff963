// SPDX-License-Identifier: Apache-2.0
//! New key pairs (FIPS 186-5, appendix A.1.3). The library's own generation rounds sizes that are no multiple of 128
//! bits down, so those are made here.

use super::{Rsa, RsaNumbers, rsa_crt_values};
use crate::bn::{Bn, Scratch};
use crate::raw::not_null;
use crate::{Failed, Result, check};
use aws_lc_sys as sys;
use metaslot_memory::{Secret, wipe_stack};
use std::ffi::c_int;
use std::ptr;

/// The primes differ within their first so many bits.
const DISTANCE: usize = 100;

impl Rsa {
    /// A new key pair with a modulus of exactly `bits` bits.
    ///
    /// # Errors
    /// For an even, too small or too large (33 bits) exponent, or a size below 256 bits.
    pub fn generate(bits: u32, public_exponent: &[u8]) -> Result<Self> {
        let key = Self::made(bits, public_exponent);
        // A prime's Montgomery constants, by which it is known.
        wipe_stack();
        key
    }

    /// In a frame of its own, which the caller can wipe.
    #[inline(never)]
    fn made(bits: u32, public_exponent: &[u8]) -> Result<Self> {
        if !bits.is_multiple_of(128) {
            return generate(bits, public_exponent);
        }
        let e = Bn::from_bytes(public_exponent)?;
        let bits = c_int::try_from(bits).map_err(|_| Failed)?;
        // SAFETY: no argument.
        let key = not_null(unsafe { sys::RSA_new() }).map(Self)?;
        // SAFETY: the key is ours alone until this returns; no callback is given.
        check(unsafe {
            sys::RSA_generate_key_ex(key.0.as_ptr(), bits, e.as_ptr(), ptr::null_mut())
        })?;
        Ok(key)
    }
}

/// A pair with a modulus of exactly `bits` bits and this public exponent, which is odd and above 1.
fn generate(bits: u32, public_exponent: &[u8]) -> Result<Rsa> {
    let scratch = &mut Scratch::new()?;
    let e = Bn::from_bytes(public_exponent)?;
    let half = bits.div_ceil(2);
    loop {
        let (p, q) = (prime(half, &e, scratch)?, prime(bits - half, &e, scratch)?);
        let apart = if q.is_below(&p) { p.minus(&q)? } else { q.minus(&p)? };
        if apart.view().bits() + DISTANCE < half as usize {
            continue;
        }
        // Both primes begin with two set bits, so the product has all its bits.
        let n = p.times(&q, scratch)?;
        let d = inverse(&e, &p.less(1)?.times(&q.less(1)?, scratch)?)?;
        let (p, q, d) = (secret(&p)?, secret(&q)?, secret(&d)?);
        let mut modulus = vec![0; n.view().length()];
        n.view().write(&mut modulus)?;
        let primes = Some((p.expose(), q.expose()));
        let crt = rsa_crt_values(&modulus, public_exponent, d.expose(), primes)?;
        return Rsa::private(&RsaNumbers {
            modulus: &modulus,
            public_exponent,
            private_exponent: d.expose(),
            prime_1: p.expose(),
            prime_2: q.expose(),
            exponent_1: crt.exponent_1.expose(),
            exponent_2: crt.exponent_2.expose(),
            coefficient: crt.coefficient.expose(),
        });
    }
}

/// A random prime of so many bits whose predecessor shares no factor with `e`.
fn prime(bits: u32, e: &Bn, scratch: &mut Scratch) -> Result<Bn> {
    loop {
        let p = Bn::random_prime(bits)?;
        if p.less(1)?.gcd(e, scratch)?.is_one() {
            return Ok(p);
        }
    }
}

/// The inverse of the small number `e` modulo the secret `phi`: (phi · k + 1) / e, where
/// k = −phi⁻¹ modulo e. Only divisions by a word see the secret.
fn inverse(e: &Bn, phi: &Bn) -> Result<Bn> {
    let word = e.word().ok_or(Failed)?;
    let rest = phi.modulo_word(word)?;
    phi.times_word(factor(rest, word)?)?.plus(1)?.divided_by_word(word)
}

/// −rest⁻¹ modulo `word`, by the extended algorithm of Euclid on numbers that are no secret: both are
/// smaller than the public exponent.
fn factor(rest: u64, word: u64) -> Result<u64> {
    let (mut a, mut b) = (i128::from(word), i128::from(rest));
    let (mut x, mut y) = (0_i128, 1_i128);
    while b != 0 {
        let quotient = a / b;
        (a, b) = (b, a - quotient * b);
        (x, y) = (y, x - quotient * y);
    }
    if a != 1 {
        return Err(Failed);
    }
    u64::try_from((-x).rem_euclid(i128::from(word))).map_err(|_| Failed)
}

fn secret(number: &Bn) -> Result<Secret> {
    let mut bytes = Secret::zeroed(number.view().length());
    number.view().write(bytes.expose_mut())?;
    Ok(bytes)
}
