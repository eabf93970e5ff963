// SPDX-License-Identifier: Apache-2.0
//! Big integers of the library, owned, and only as much of them as the key types need.

use crate::raw::not_null;
use crate::{Result, check};
use aws_lc_sys as sys;
use std::ffi::c_int;
use std::ptr::{self, NonNull};

/// One big integer; zeroised when dropped.
pub(crate) struct Bn(NonNull<sys::BIGNUM>);

impl Bn {
    /// Zero.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: no argument.
        not_null(unsafe { sys::BN_new() }).map(Self)
    }

    /// Big-endian, unsigned.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        // SAFETY: the range is a slice's; NULL asks for a new integer.
        let raw = unsafe { sys::BN_bin2bn(bytes.as_ptr(), bytes.len(), ptr::null_mut()) };
        not_null(raw).map(Self)
    }

    pub(crate) const fn as_ptr(&self) -> *const sys::BIGNUM {
        self.0.as_ptr()
    }

    #[expect(clippy::needless_pass_by_ref_mut, reason = "the library writes through it")]
    pub(crate) const fn as_mut_ptr(&mut self) -> *mut sys::BIGNUM {
        self.0.as_ptr()
    }

    /// Gives the integer away.
    pub(crate) const fn into_raw(self) -> *mut sys::BIGNUM {
        let raw = self.0.as_ptr();
        std::mem::forget(self);
        raw
    }

    /// Whether the lowest bit is set.
    pub(crate) fn is_odd(&self) -> bool {
        self.view().bits() > 0 && self.trailing_zeros() == 0
    }

    /// Whether it is 1.
    pub(crate) fn is_one(&self) -> bool {
        self.word() == Some(1)
    }

    /// The number of zero bits below the lowest set one.
    pub(crate) fn trailing_zeros(&self) -> c_int {
        // SAFETY: ours, alive.
        unsafe { sys::BN_count_low_zero_bits(self.as_ptr()) }
    }

    /// Below 0 where it is smaller, 0 where both are the same, above where it is larger.
    fn compared_with(&self, other: &Self) -> c_int {
        // SAFETY: both ours, alive.
        unsafe { sys::BN_cmp(self.as_ptr(), other.as_ptr()) }
    }

    /// Whether both are the same number.
    pub(crate) fn equals(&self, other: &Self) -> bool {
        self.compared_with(other) == 0
    }

    /// The number less `word`.
    pub(crate) fn less(&self, word: u64) -> Result<Self> {
        let mut difference = Self::new()?;
        // SAFETY: both ours, alive.
        not_null(unsafe { sys::BN_copy(difference.as_mut_ptr(), self.as_ptr()) })?;
        // SAFETY: ours, alive.
        check(unsafe { sys::BN_sub_word(difference.as_mut_ptr(), word) })?;
        Ok(difference)
    }

    /// A random prime of exactly so many bits, whose first two are set.
    pub(crate) fn random_prime(bits: u32) -> Result<Self> {
        let mut prime = Self::new()?;
        let bits = c_int::try_from(bits).map_err(|_| crate::Failed)?;
        let (add, rest, callback) = (ptr::null(), ptr::null(), ptr::null_mut());
        // SAFETY: ours, alive; NULL for a prime without further conditions, and for no callback.
        check(unsafe {
            sys::BN_generate_prime_ex(prime.as_mut_ptr(), bits, 0, add, rest, callback)
        })?;
        Ok(prime)
    }

    /// The number as a word; `None` where it is larger.
    pub(crate) fn word(&self) -> Option<u64> {
        let mut word = 0;
        // SAFETY: ours, alive; the word is written.
        (unsafe { sys::BN_get_u64(self.as_ptr(), &raw mut word) } == 1).then_some(word)
    }

    /// Whether it is below `other`.
    pub(crate) fn is_below(&self, other: &Self) -> bool {
        self.compared_with(other) < 0
    }

    /// The number less a smaller one.
    pub(crate) fn minus(&self, other: &Self) -> Result<Self> {
        let mut difference = Self::new()?;
        // SAFETY: all ours, alive.
        check(unsafe { sys::BN_sub(difference.as_mut_ptr(), self.as_ptr(), other.as_ptr()) })?;
        Ok(difference)
    }

    /// The remainder of a division by a word that is not 0.
    pub(crate) fn modulo_word(&self, word: u64) -> Result<u64> {
        // SAFETY: ours, alive.
        let rest = unsafe { sys::BN_mod_word(self.as_ptr(), word) };
        if rest < word { Ok(rest) } else { Err(crate::Failed) }
    }

    /// The product with a word.
    pub(crate) fn times_word(&self, word: u64) -> Result<Self> {
        let mut product = self.less(0)?;
        // SAFETY: ours, alive.
        check(unsafe { sys::BN_mul_word(product.as_mut_ptr(), word) })?;
        Ok(product)
    }

    /// The quotient by a word that divides it.
    pub(crate) fn divided_by_word(&self, word: u64) -> Result<Self> {
        let mut quotient = self.less(0)?;
        // SAFETY: ours, alive.
        let rest = unsafe { sys::BN_div_word(quotient.as_mut_ptr(), word) };
        if rest == 0 { Ok(quotient) } else { Err(crate::Failed) }
    }

    /// The number plus a word.
    pub(crate) fn plus(&self, word: u64) -> Result<Self> {
        let mut sum = self.less(0)?;
        // SAFETY: ours, alive.
        check(unsafe { sys::BN_add_word(sum.as_mut_ptr(), word) })?;
        Ok(sum)
    }

    /// The number without its lowest `bits`.
    pub(crate) fn shifted_right(&self, bits: c_int) -> Result<Self> {
        let mut shifted = Self::new()?;
        // SAFETY: both ours, alive.
        check(unsafe { sys::BN_rshift(shifted.as_mut_ptr(), self.as_ptr(), bits) })?;
        Ok(shifted)
    }

    /// The product.
    pub(crate) fn times(&self, other: &Self, scratch: &mut Scratch) -> Result<Self> {
        let mut product = Self::new()?;
        let raw = product.as_mut_ptr();
        // SAFETY: all ours, alive.
        check(unsafe { sys::BN_mul(raw, self.as_ptr(), other.as_ptr(), scratch.as_mut_ptr()) })?;
        Ok(product)
    }

    /// Quotient and remainder of a division by `divisor`; not constant-time.
    pub(crate) fn divided(&self, divisor: &Self, scratch: &mut Scratch) -> Result<(Self, Self)> {
        let (mut quotient, mut rest) = (Self::new()?, Self::new()?);
        let (whole, left) = (quotient.as_mut_ptr(), rest.as_mut_ptr());
        // SAFETY: all ours, alive; the library refuses zero.
        check(unsafe {
            sys::BN_div(whole, left, self.as_ptr(), divisor.as_ptr(), scratch.as_mut_ptr())
        })?;
        Ok((quotient, rest))
    }

    /// The remainder of a division by `modulus`; not constant-time.
    pub(crate) fn modulo(&self, modulus: &Self, scratch: &mut Scratch) -> Result<Self> {
        self.divided(modulus, scratch).map(|(_, rest)| rest)
    }

    /// The greatest common divisor, in constant time.
    pub(crate) fn gcd(&self, other: &Self, scratch: &mut Scratch) -> Result<Self> {
        let mut divisor = Self::new()?;
        let raw = divisor.as_mut_ptr();
        // SAFETY: all ours, alive.
        check(unsafe { sys::BN_gcd(raw, self.as_ptr(), other.as_ptr(), scratch.as_mut_ptr()) })?;
        Ok(divisor)
    }

    /// The number (below `modulus`, which is odd) to the power of `exponent`, in constant time.
    pub(crate) fn power(
        &self,
        exponent: &Self,
        modulus: &Self,
        scratch: &mut Scratch,
    ) -> Result<Self> {
        let mut power = Self::new()?;
        // SAFETY: all ours, alive; NULL makes the library compute its constants.
        check(unsafe {
            sys::BN_mod_exp_mont_consttime(
                power.as_mut_ptr(),
                self.as_ptr(),
                exponent.as_ptr(),
                modulus.as_ptr(),
                scratch.as_mut_ptr(),
                ptr::null(),
            )
        })?;
        Ok(power)
    }

    /// A view for the functions below.
    pub(crate) const fn view(&self) -> View<'_> {
        View(self.as_ptr(), std::marker::PhantomData)
    }
}

impl Drop for Bn {
    fn drop(&mut self) {
        // SAFETY: we own the integer, and no reference to it is left.
        unsafe { sys::BN_clear_free(self.0.as_ptr()) }
    }
}

/// A big integer that another value owns.
#[derive(Clone, Copy)]
pub(crate) struct View<'a>(*const sys::BIGNUM, std::marker::PhantomData<&'a sys::BIGNUM>);

impl View<'_> {
    /// # Safety
    /// `raw` is NULL or an integer that outlives the view and is not written meanwhile.
    pub(crate) const unsafe fn new(raw: *const sys::BIGNUM) -> Option<Self> {
        if raw.is_null() { None } else { Some(Self(raw, std::marker::PhantomData)) }
    }

    /// Length without leading zeros, in bits.
    pub(crate) fn bits(self) -> usize {
        // SAFETY: the view's integer is alive.
        unsafe { sys::BN_num_bits(self.0) as usize }
    }

    /// Length without leading zeros, in bytes.
    pub(crate) fn length(self) -> usize {
        self.bits().div_ceil(8)
    }

    /// Fills `out` with the integer, big-endian, with leading zeros; the time depends on the
    /// lengths alone.
    pub(crate) fn write(self, out: &mut [u8]) -> Result<()> {
        // SAFETY: the view's integer is alive and the range is a slice's.
        check(unsafe { sys::BN_bn2bin_padded(out.as_mut_ptr(), out.len(), self.0) })
    }
}

/// Scratch memory for arithmetic.
pub(crate) struct Scratch(NonNull<sys::BN_CTX>);

impl Scratch {
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: no argument.
        not_null(unsafe { sys::BN_CTX_new() }).map(Self)
    }

    #[expect(clippy::needless_pass_by_ref_mut, reason = "the library writes through it")]
    pub(crate) const fn as_mut_ptr(&mut self) -> *mut sys::BN_CTX {
        self.0.as_ptr()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: we own it.
        unsafe { sys::BN_CTX_free(self.0.as_ptr()) }
    }
}
