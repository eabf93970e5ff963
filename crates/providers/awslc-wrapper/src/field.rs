// SPDX-License-Identifier: Apache-2.0
//! Groups of numbers modulo a prime, as Diffie-Hellman and DSA have them, by the library's arithmetic.

use crate::bn::{Bn, Scratch};
use crate::{Failed, Result, random};
use metaslot_memory::{Secret, wipe_stack};
use std::fmt;

/// Sizes of primes, in bits: what is larger takes seconds.
pub const SIZES: (usize, usize) = (512, 8192);

/// No order that a key is drawn below is missed so often.
const DRAWS: usize = 256;

/// A group: a prime, a base, and the order of the base where it is known.
pub struct Group {
    prime: Bn,
    /// The prime less 1.
    top: Bn,
    order: Option<Bn>,
    base: Bn,
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group({} bits)", self.bits())
    }
}

impl Group {
    /// Of numbers, big-endian. That the prime is one is not looked at.
    ///
    /// # Errors
    /// For an even prime or order, one of another size, and a base that is not of the order.
    pub fn new(prime: &[u8], base: &[u8], order: Option<&[u8]>) -> Result<Self> {
        if prime.len() > SIZES.1 / 8 || order.is_some_and(|order| order.len() > prime.len()) {
            return Err(Failed);
        }
        let prime = Bn::from_bytes(prime)?;
        let top = prime.less(1)?;
        let order = order.map(Bn::from_bytes).transpose()?;
        let group = Self { prime, top, order, base: Bn::from_bytes(base)? };
        let odd = group.prime.is_odd() && group.order.as_ref().is_none_or(Bn::is_odd);
        let small = group.order.as_ref().is_some_and(|order| order.is_one());
        let large = group.order.as_ref().is_some_and(|order| !order.is_below(&group.prime));
        if !odd || small || large || group.bits() < SIZES.0 {
            return Err(Failed);
        }
        group.check(&group.base).map(|()| group)
    }

    /// Length of the prime, in bits.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.prime.view().bits()
    }

    /// Length of the prime, in bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.prime.view().length()
    }

    /// Length of the order, in bits, where it is known.
    #[must_use]
    pub fn order_bits(&self) -> Option<usize> {
        self.order.as_ref().map(|order| order.view().bits())
    }

    /// Whether a number is between 1 and the prime less 1, and of the order where that is known.
    fn check(&self, number: &Bn) -> Result<()> {
        let within = !number.less(0)?.is_one() && number.is_below(&self.top);
        let zero = number.view().bits() == 0;
        let of_order = || match &self.order {
            Some(order) => {
                number.power(order, &self.prime, &mut Scratch::new()?).map(|one| one.is_one())
            }
            None => Ok(true),
        };
        if within && !zero && of_order()? { Ok(()) } else { Err(Failed) }
    }

    /// A public value, big-endian: whether it is one of this group.
    ///
    /// # Errors
    /// Where it is not.
    pub fn check_public(&self, public: &[u8]) -> Result<()> {
        if public.len() > self.length() {
            return Err(Failed);
        }
        self.check(&Bn::from_bytes(public)?)
    }

    fn exponent(&self, private: &[u8]) -> Result<Bn> {
        if private.len() > self.length() {
            return Err(Failed);
        }
        let exponent = Bn::from_bytes(private)?;
        let below = exponent.is_below(self.order.as_ref().unwrap_or(&self.top));
        if below && exponent.view().bits() > 0 { Ok(exponent) } else { Err(Failed) }
    }

    fn raise(&self, number: &Bn, private: &[u8]) -> Result<Secret> {
        let exponent = self.exponent(private)?;
        let power = number.power(&exponent, &self.prime, &mut Scratch::new()?)?;
        let mut out = Secret::try_zeroed(self.length()).ok_or(Failed)?;
        let done = power.view().write(out.expose_mut());
        wipe_stack();
        done.map(|()| out)
    }

    /// The public value of a private one, as long as the prime.
    ///
    /// # Errors
    /// For a private value that is 0 or too large.
    pub fn public(&self, private: &[u8]) -> Result<Vec<u8>> {
        self.raise(&self.base, private).map(|public| public.expose().to_vec())
    }

    /// What a private value and the other side's public value share, as long as the prime.
    ///
    /// # Errors
    /// As [`Self::check_public`] and [`Self::public`].
    pub fn agree(&self, private: &[u8], public: &[u8]) -> Result<Secret> {
        self.check_public(public)?;
        let shared = self.raise(&Bn::from_bytes(public)?, private)?;
        let (last, rest) = shared.expose().split_last().ok_or(Failed)?;
        let one = rest.iter().fold(*last ^ 1, |all, byte| all | byte) == 0;
        if one { Err(Failed) } else { Ok(shared) }
    }

    /// Whether r and s, of one length, are a signature of DSA over a digest, which is cut to the length of the order (FIPS 186-4
    /// §4.7).
    ///
    /// # Errors
    /// Where they are not, and for a group without an order.
    pub fn verify(&self, public: &[u8], digest: &[u8], signature: &[u8]) -> Result<()> {
        let order = self.order.as_ref().ok_or(Failed)?;
        let mut scratch = Scratch::new()?;
        let (r, s) = signature.split_at(signature.len() / 2);
        let [r, s] = [Bn::from_bytes(r)?, Bn::from_bytes(s)?];
        let fits = |number: &Bn| number.view().bits() > 0 && number.is_below(order);
        if !fits(&r) || !fits(&s) {
            return Err(Failed);
        }
        let digest = Bn::from_bytes(&digest[..digest.len().min(order.view().length())])?;
        // The inverse, by Fermat.
        let inverse = s.power(&order.less(2)?, order, &mut scratch)?;
        let mut raised = |base: &Bn, by: &Bn| -> Result<Bn> {
            let by = by.times(&inverse, &mut scratch)?.modulo(order, &mut scratch)?;
            base.power(&by, &self.prime, &mut scratch)
        };
        let both = [raised(&self.base, &digest)?, raised(&Bn::from_bytes(public)?, &r)?];
        let product = both[0].times(&both[1], &mut scratch)?.modulo(&self.prime, &mut scratch)?;
        match product.modulo(order, &mut scratch)?.equals(&r) {
            true => Ok(()),
            false => Err(Failed),
        }
    }

    /// A new private value: below the order where that is known, and else of exactly so many bits.
    ///
    /// # Errors
    /// For more bits than the group has, and when memory is short.
    pub fn private(&self, bits: usize) -> Result<Secret> {
        let bits = self.order_bits().unwrap_or(bits);
        if bits == 0 || bits >= self.bits() {
            return Err(Failed);
        }
        let mut private = Secret::try_zeroed(bits.div_ceil(8)).ok_or(Failed)?;
        let top = 1 << ((bits - 1) % 8);
        for _ in 0..DRAWS {
            random::fill(private.expose_mut())?;
            let first = &mut private.expose_mut()[0];
            *first &= top | (top - 1);
            if self.order.is_none() {
                *first |= top;
            }
            if self.exponent(private.expose()).is_ok() {
                return Ok(private);
            }
        }
        Err(Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A prime of 512 bits, 2 q k + 1, with q of 160 bits, and a base of that order (RFC 2246's time, and no use today).
    const PRIME: &str = "fca682ce8e12caba26efccf7110e526db078b05edecbcd1eb4a208f3ae1617ae01f35b91a47e6df63413c5e12ed0899bcd132acd50d99151bdc43ee737592e17";
    const ORDER: &str = "962eddcc369cba8ebb260ee6b6a126d9346e38c5";
    const BASE: &str = "678471b27a9cf44ee91a49c5147db1a9aaf244f05a434d6486931d2d14271b9e35030b71fd73da179069b32e2935630e1c2062354d0da20a6c416e50be794ca4";

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = hex.as_bytes().chunks(2);
        digits.map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap()).collect()
    }

    #[test]
    fn two_sides_agree_and_numbers_outside_the_group_are_refused() {
        let (prime, order, base) = (bytes(PRIME), bytes(ORDER), bytes(BASE));
        for order in [None, Some(&order[..])] {
            let group = Group::new(&prime, &base, order).unwrap();
            let (one, other) = (group.private(200).unwrap(), group.private(200).unwrap());
            assert_eq!(one.len(), if order.is_some() { 20 } else { 25 });
            let public = |private: &Secret| group.public(private.expose()).unwrap();
            let shared = group.agree(one.expose(), &public(&other)).unwrap();
            let again = group.agree(other.expose(), &public(&one)).unwrap();
            assert_eq!(shared.expose(), again.expose());
            assert_eq!(shared.len(), prime.len());
            let mut top = prime.clone();
            *top.last_mut().unwrap() -= 1;
            for wrong in [&[][..], &[0], &[1], &top, &prime, &[7; 65]] {
                assert!(group.check_public(wrong).is_err());
                assert!(group.agree(one.expose(), wrong).is_err());
            }
            // Not of the order, which is not known without it.
            assert_eq!(group.check_public(&[2]).is_err(), order.is_some());
            assert!(group.public(&[0; 20]).is_err());
            assert!(group.public(&top).is_err());
        }
        assert!(Group::new(&prime, &[2], Some(&order)).is_err(), "a base of another order");
        assert!(Group::new(&prime, &[1], None).is_err());
        assert!(Group::new(&prime[..63], &base[..62], None).is_err(), "a short prime");
        assert!(Group::new(&[0xff; 1025], &base, None).is_err(), "a long prime");
    }
}
