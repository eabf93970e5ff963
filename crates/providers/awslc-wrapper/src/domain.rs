// SPDX-License-Identifier: Apache-2.0
//! New groups of numbers modulo a prime (FIPS 186-4 appendices A.1, A.2 and C.6), of public numbers: nothing here takes constant time.

use crate::bn::{Bn, Scratch};
use crate::digest::Hash;
use crate::{Failed, Result, random};

/// A number that is no prime passes for one by a chance of at most 1 in 4 to the power of this.
const ROUNDS: usize = 64;
/// What is divided by one odd number after the other before anything costs more.
const SMALL: u64 = 2000;
/// Below this a prime is found by dividing, in bits (FIPS 186-4 C.6).
const BY_DIVISION: usize = 33;

/// Two primes, big-endian, of which the second divides the predecessor of the first.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Primes {
    /// The modulus.
    pub prime: Vec<u8>,
    /// The order of a subgroup.
    pub order: Vec<u8>,
    /// What comes after the seed that the caller has, in what says how they were made.
    pub seed: Vec<u8>,
    /// After how many tries: of the modulus, and of the order where it took any.
    pub counters: [usize; 2],
}

/// The primes of a seed, by A.1.1.2; `None` where it has none. Lengths are in bits.
///
/// # Errors
/// For a hash function that is too short, and where memory is.
pub fn probable(hash: Hash, [length, short]: [usize; 2], seed: &[u8]) -> Result<Option<Primes>> {
    let width = 8 * hash.length();
    if width < short || short < 8 || length <= short {
        return Err(Failed);
    }
    let scratch = &mut Scratch::new()?;
    let mut at = seed.to_vec();
    let mut order = digests(hash, &mut at, 1)?;
    cut(&mut order, short);
    if let Some(last) = order.last_mut() {
        *last |= 1;
    }
    let order = Bn::from_bytes(&order)?;
    if !is_prime(&order, scratch)? {
        return Ok(None);
    }
    let double = order.times_word(2)?;
    for counter in 0..4 * length {
        let mut number = digests(hash, &mut at, length.div_ceil(width))?;
        cut(&mut number, length);
        let number = Bn::from_bytes(&number)?;
        let prime = number.minus(&number.modulo(&double, scratch)?)?.plus(1)?;
        if prime.view().bits() == length && is_prime(&prime, scratch)? {
            let (prime, order) = (bytes(&prime)?, bytes(&order)?);
            return Ok(Some(Primes { prime, order, seed: Vec::new(), counters: [counter, 0] }));
        }
    }
    Ok(None)
}

/// The primes of a first seed, whose first bit is set, by A.1.2; `None` where it has none.
///
/// # Errors
/// As [`probable`].
pub fn provable(hash: Hash, [length, short]: [usize; 2], seed: &[u8]) -> Result<Option<Primes>> {
    if 8 * hash.length() < short || short < BY_DIVISION || length <= short {
        return Err(Failed);
    }
    let scratch = &mut Scratch::new()?;
    let Some(order) = proven(hash, short, seed, scratch)? else { return Ok(None) };
    let half = proven(hash, length.div_ceil(2) + 1, &order.seed, scratch)?;
    let Some(half) = half else { return Ok(None) };
    let Some(prime) = grown(hash, length, &half, &order.prime, scratch)? else { return Ok(None) };
    let counters = [prime.counter, order.counter];
    let seed = [prime.seed, order.seed].concat();
    Ok(Some(Primes { prime: bytes(&prime.prime)?, order: bytes(&order.prime)?, seed, counters }))
}

/// A number whose powers modulo `prime` are as many as `order`, by A.2.3: seed and index say how it was made.
///
/// # Errors
/// Where the numbers are no primes, or the second does not divide the predecessor of the first.
pub fn base(hash: Hash, prime: &[u8], order: &[u8], seed: &[u8], index: u8) -> Result<Vec<u8>> {
    let scratch = &mut Scratch::new()?;
    let (prime, order) = (Bn::from_bytes(prime)?, Bn::from_bytes(order)?);
    let small = order.view().bits() < 8 || !order.is_below(&prime);
    if small || !is_prime(&order, scratch)? || !is_prime(&prime, scratch)? {
        return Err(Failed);
    }
    let (exponent, rest) = prime.less(1)?.divided(&order, scratch)?;
    if rest.view().bits() > 0 {
        return Err(Failed);
    }
    for count in 1..=u16::MAX {
        let mut digest = vec![0; hash.length()];
        let said = [seed, b"ggen", &[index], &count.to_be_bytes()].concat();
        hash.digest(&said, &mut digest)?;
        let number = Bn::from_bytes(&digest)?.modulo(&prime, scratch)?;
        let base = number.power(&exponent, &prime, scratch)?;
        if base.view().bits() > 1 {
            return bytes(&base);
        }
    }
    Err(Failed)
}

/// A prime of so many bits, of which half the predecessor is one, too: 4 has the powers of that order.
///
/// # Errors
/// Where memory is short.
pub fn safe_prime(bits: usize) -> Result<Vec<u8>> {
    let scratch = &mut Scratch::new()?;
    let mut drawn = vec![0; bits.div_ceil(8)];
    loop {
        random::fill(&mut drawn)?;
        cut(&mut drawn, bits - 1);
        let start = Bn::from_bytes(&drawn)?;
        // Every other rest modulo 6 has a half or a whole that 2 or 3 divides.
        let start = start.plus(5)?.less(start.modulo_word(6)?)?;
        for place in sieved(&start)? {
            let half = start.plus(6 * place as u64)?;
            let whole = half.times_word(2)?.plus(1)?;
            let once = passes(&half, 1, scratch)? && passes(&whole, 1, scratch)?;
            let both = once && passes(&half, ROUNDS, scratch)? && passes(&whole, ROUNDS, scratch)?;
            if both && whole.view().bits() == bits {
                return bytes(&whole);
            }
        }
    }
}

/// The places of a sieve whose numbers, 6 apart, have no small factor, nor twice the number and one.
fn sieved(start: &Bn) -> Result<Vec<usize>> {
    const PLACES: usize = 1 << 14;
    const FACTORS: usize = 1 << 14;
    let mut left = vec![true; PLACES];
    // Other numbers than primes mark what primes have marked.
    for by in (5..FACTORS).step_by(2).filter(|by| !by.is_multiple_of(3)) {
        let rest = usize::try_from(start.modulo_word(by as u64)?).map_err(|_| Failed)?;
        // 6 times this is 1, modulo the factor.
        let sixth = (1..6).map(|times| times * by + 1).find(|number| number.is_multiple_of(6));
        let sixth = sixth.ok_or(Failed)? / 6;
        for zero in [0, by / 2] {
            let first = (zero + by - rest) % by * sixth % by;
            let places = left.iter_mut().skip(first).step_by(by);
            places.for_each(|place| *place = false);
        }
    }
    Ok((0..PLACES).filter(|place| left[*place]).collect())
}

/// A prime with what comes after it.
struct Proven {
    prime: Bn,
    seed: Vec<u8>,
    counter: usize,
}

/// C.6: a prime of so many bits that is proven to be one.
fn proven(hash: Hash, length: usize, seed: &[u8], scratch: &mut Scratch) -> Result<Option<Proven>> {
    if length >= BY_DIVISION {
        let half = proven(hash, length.div_ceil(2) + 1, seed, scratch)?;
        let Some(half) = half else { return Ok(None) };
        return grown(hash, length, &half, &Bn::from_bytes(&[1])?, scratch);
    }
    let mut seed = seed.to_vec();
    for counter in 1..=4 * length + 1 {
        let two = digests(hash, &mut seed, 2)?;
        let (one, other) = two.split_at(hash.length());
        let mut number: Vec<u8> = one.iter().zip(other).map(|(one, other)| one ^ other).collect();
        cut(&mut number, length);
        let number = number.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)) | 1;
        if (3..).step_by(2).take_while(|by| by * by <= number).all(|by| !number.is_multiple_of(by))
        {
            let prime = Bn::from_bytes(&number.to_be_bytes())?;
            return Ok(Some(Proven { prime, seed, counter }));
        }
    }
    Ok(None)
}

/// A prime 2·t·by·half + 1 of so many bits, proven by the one of half its length (Pocklington's theorem).
fn grown(
    hash: Hash,
    length: usize,
    half: &Proven,
    by: &Bn,
    scratch: &mut Scratch,
) -> Result<Option<Proven>> {
    let count = length.div_ceil(8 * hash.length());
    let mut seed = half.seed.clone();
    let mut first = digests(hash, &mut seed, count)?;
    cut(&mut first, length);
    let mut lowest = vec![0; length.div_ceil(8)];
    cut(&mut lowest, length);
    let double = by.times_word(2)?;
    let step = half.prime.times(&double, scratch)?;
    let mut factor = ceiling(&first, &step, scratch)?;
    for counter in half.counter + 1..=half.counter + 4 * length {
        let mut prime = factor.times(&step, scratch)?.plus(1)?;
        if prime.view().bits() > length {
            factor = ceiling(&lowest, &step, scratch)?;
            prime = factor.times(&step, scratch)?.plus(1)?;
        }
        let number = Bn::from_bytes(&digests(hash, &mut seed, count)?)?;
        let number = number.modulo(&prime.less(3)?, scratch)?.plus(2)?;
        let power = number.power(&factor.times(&double, scratch)?, &prime, scratch)?;
        let apart = power.view().bits() > 0 && power.less(1)?.gcd(&prime, scratch)?.is_one();
        if apart && power.power(&half.prime, &prime, scratch)?.is_one() {
            return Ok(Some(Proven { prime, seed, counter }));
        }
        factor = factor.plus(1)?;
    }
    Ok(None)
}

/// The quotient, and one more where something is left.
fn ceiling(number: &[u8], by: &Bn, scratch: &mut Scratch) -> Result<Bn> {
    let (whole, rest) = Bn::from_bytes(number)?.divided(by, scratch)?;
    if rest.view().bits() == 0 { Ok(whole) } else { whole.plus(1) }
}

/// The digests of a seed and of those after it, as one number: the first is its end. The seed is then the next one.
fn digests(hash: Hash, seed: &mut [u8], count: usize) -> Result<Vec<u8>> {
    let mut all = vec![0; count * hash.length()];
    for place in all.rchunks_mut(hash.length()) {
        hash.digest(seed, place)?;
        for byte in seed.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
    }
    Ok(all)
}

/// Makes a number of exactly so many bits of a longer one.
fn cut(number: &mut Vec<u8>, bits: usize) {
    let length = bits.div_ceil(8);
    number.drain(..number.len().saturating_sub(length));
    if let Some(first) = number.first_mut() {
        let top = 1 << ((bits - 1) % 8);
        *first = *first & (top - 1) | top;
    }
}

fn bytes(number: &Bn) -> Result<Vec<u8>> {
    let mut bytes = vec![0; number.view().length()];
    number.view().write(&mut bytes).map(|()| bytes)
}

/// Whether a number is prime; of those above [`SMALL`].
fn is_prime(number: &Bn, scratch: &mut Scratch) -> Result<bool> {
    if !number.is_odd() || number.word().is_some_and(|word| word <= SMALL) {
        return Ok(false);
    }
    for by in (3..SMALL).step_by(2) {
        if number.modulo_word(by)? == 0 {
            return Ok(false);
        }
    }
    passes(number, ROUNDS, scratch)
}

/// Miller and Rabin's test, with random numbers (C.3.1); of an odd number.
fn passes(number: &Bn, rounds: usize, scratch: &mut Scratch) -> Result<bool> {
    let top = number.less(1)?;
    let zeros = top.trailing_zeros();
    let odd = top.shifted_right(zeros)?;
    let mut drawn = vec![0; number.view().length() + 8];
    'rounds: for _ in 0..rounds {
        random::fill(&mut drawn)?;
        let witness = Bn::from_bytes(&drawn)?.modulo(&number.less(3)?, scratch)?.plus(2)?;
        let mut power = witness.power(&odd, number, scratch)?;
        if power.is_one() || power.equals(&top) {
            continue;
        }
        for _ in 1..zeros {
            power = power.times(&power, scratch)?.modulo(number, scratch)?;
            if power.equals(&top) {
                continue 'rounds;
            }
        }
        return Ok(false);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_told_from_other_numbers() {
        let scratch = &mut Scratch::new().unwrap();
        let mut is =
            |number: u64| is_prime(&Bn::from_bytes(&number.to_be_bytes()).unwrap(), scratch);
        // 3215031751 passes for a prime with the bases 2, 3, 5 and 7, and 65537 squared has no small factor.
        for (number, prime) in [
            (4_294_967_291, true),
            (65_537, true),
            (2003, true),
            (3_215_031_751, false),
            (65_537 * 65_537, false),
            (65_536, false),
            (1, false),
            (0, false),
        ] {
            assert_eq!(is(number), Ok(prime), "{number}");
        }
        let safe = Bn::from_bytes(&safe_prime(256).unwrap()).unwrap();
        let half = safe.shifted_right(1).unwrap();
        assert!(is_prime(&safe, scratch).unwrap() && is_prime(&half, scratch).unwrap());
    }
}
