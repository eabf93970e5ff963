// SPDX-License-Identifier: Apache-2.0
//! The missing numbers of an imported RSA key: the primes from n, e and d, and what the Chinese
//! remainder theorem wants from the primes.
//!
//! This runs once for a key that comes from outside. Exponentiations and greatest common divisors
//! are constant-time; the divisions are the library's general ones and are not.

use crate::bn::{Bn, Scratch};
use crate::{Failed, Result};
use metaslot_memory::{Secret, wipe_stack};

/// What [`rsa_crt_values`] finds, each without leading zeros.
#[derive(Debug)]
pub struct RsaCrtValues {
    /// p
    pub prime_1: Secret,
    /// q
    pub prime_2: Secret,
    /// d mod p−1
    pub exponent_1: Secret,
    /// d mod q−1
    pub exponent_2: Secret,
    /// q⁻¹ mod p
    pub coefficient: Secret,
}

/// Computes the CRT values of a key. The primes are given or recovered from the rest; whether
/// all belong together is for [`crate::Rsa::private`] to check.
///
/// # Errors
/// When the numbers cannot be those of an RSA key.
pub fn rsa_crt_values(
    modulus: &[u8],
    public_exponent: &[u8],
    private_exponent: &[u8],
    primes: Option<(&[u8], &[u8])>,
) -> Result<RsaCrtValues> {
    let values = computed(modulus, public_exponent, private_exponent, primes);
    wipe_stack();
    values
}

/// In a frame of its own, which the caller can wipe.
#[inline(never)]
fn computed(
    modulus: &[u8],
    public_exponent: &[u8],
    private_exponent: &[u8],
    primes: Option<(&[u8], &[u8])>,
) -> Result<RsaCrtValues> {
    let scratch = &mut Scratch::new()?;
    let d = Bn::from_bytes(private_exponent)?;
    let (p, q) = match primes {
        Some((p, q)) => (Bn::from_bytes(p)?, Bn::from_bytes(q)?),
        None => {
            let (n, e) = (Bn::from_bytes(modulus)?, Bn::from_bytes(public_exponent)?);
            factor(&n, &e, &d, scratch)?
        }
    };
    // The exponentiation wants odd moduli above 1, and the primes of a key are.
    if !p.is_odd() || !q.is_odd() || p.is_one() || q.is_one() {
        return Err(Failed);
    }
    let exponent_1 = d.modulo(&p.less(1)?, scratch)?;
    let exponent_2 = d.modulo(&q.less(1)?, scratch)?;
    // Fermat: q to the power of p−2 is its inverse modulo a prime p.
    let coefficient = q.modulo(&p, scratch)?.power(&p.less(2)?, &p, scratch)?;
    Ok(RsaCrtValues {
        prime_1: secret(&p)?,
        prime_2: secret(&q)?,
        exponent_1: secret(&exponent_1)?,
        exponent_2: secret(&exponent_2)?,
        coefficient: secret(&coefficient)?,
    })
}

fn secret(number: &Bn) -> Result<Secret> {
    let mut bytes = Secret::zeroed(number.view().length());
    number.view().write(bytes.expose_mut())?;
    Ok(bytes)
}

/// SP 800-56B rev. 2, appendix C.1: e·d−1 = 2ᵗ·r, and the squares of some gʳ reach 1 through a
/// square root of 1 other than ±1, which shares a factor with n when 1 is taken off.
fn factor(n: &Bn, e: &Bn, d: &Bn, scratch: &mut Scratch) -> Result<(Bn, Bn)> {
    if !n.is_odd() || n.view().bits() < 16 || d.view().bits() > n.view().bits() {
        return Err(Failed);
    }
    let product = e.times(d, scratch)?;
    if !product.is_odd() || product.is_one() {
        return Err(Failed);
    }
    let k = product.less(1)?;
    let twos = k.trailing_zeros();
    let (r, n_minus_1) = (k.shifted_right(twos)?, n.less(1)?);
    for base in BASES {
        let mut x = Bn::from_bytes(&[base])?.power(&r, n, scratch)?;
        for _ in 0..twos {
            if x.is_one() || x.equals(&n_minus_1) {
                break;
            }
            let square = x.times(&x, scratch)?.modulo(n, scratch)?;
            if square.is_one() {
                let first = x.less(1)?.gcd(n, scratch)?;
                return second(first, &x, n, scratch);
            }
            x = square;
        }
    }
    Err(Failed)
}

/// The other factor is what n shares with the root plus 1.
fn second(first: Bn, root: &Bn, n: &Bn, scratch: &mut Scratch) -> Result<(Bn, Bn)> {
    let other = root.plus(1)?.gcd(n, scratch)?;
    let product = first.times(&other, scratch)?;
    if product.equals(n) { Ok((first, other)) } else { Err(Failed) }
}

/// Each splits a modulus of two primes with probability one half at least; small primes are as
/// good as random numbers for keys that no attacker chose, and such a key is refused.
const BASES: [u8; 54] = [
    2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97,
    101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179, 181, 191, 193,
    197, 199, 211, 223, 227, 229, 233, 239, 241, 251,
];
