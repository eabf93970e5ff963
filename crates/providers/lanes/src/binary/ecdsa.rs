// SPDX-License-Identifier: Apache-2.0
//! ECDSA over a digest (FIPS 186-5, 6.4; SEC 1, 4.1). A signature is r and s, each in [`Curve::order_length`] bytes.
//!
//! Signing is in constant time but for the length of the digest. Nonces are random numbers from 1 to n - 1, by rejection;
//! the product of those of a batch is inverted once for all.

use super::curve::{Curve, Kind, Work, work};
use super::key::{PrivateKey, PublicKey};
use super::params::{Affine, Params};
use super::point::Points;
use super::{BATCH, Error, Request, grouped};
use metaslot_memory::wiping;

/// One signature to make.
#[derive(Debug)]
pub struct Sign<'a> {
    key: &'a PrivateKey,
    digest: &'a [u8],
    signature: &'a mut [u8],
    /// Whether the signature was written: [`Error::Pending`] until [`sign`] is done, [`Error::Length`] when the place for
    /// it is not twice [`Curve::order_length`] bytes long, [`Error::Random`] when there are no random numbers.
    pub answer: Result<(), Error>,
}

impl<'a> Sign<'a> {
    /// Signs a digest of any length; of a longer one than the order the leftmost bits count.
    #[must_use]
    pub const fn new(key: &'a PrivateKey, digest: &'a [u8], signature: &'a mut [u8]) -> Self {
        Self { key, digest, signature, answer: Err(Error::Pending) }
    }
}

impl Request for Sign<'_> {
    fn curve(&self) -> Curve {
        self.key.curve()
    }
}

/// Signs all; those on the same curve are computed together, up to eight at a time.
pub fn sign(requests: &mut [Sign<'_>]) {
    sign_with(Kind::best(), requests);
}

pub(super) fn sign_with(kind: Kind, requests: &mut [Sign<'_>]) {
    for request in &mut *requests {
        let fits = request.signature.len() == 2 * request.curve().order_length();
        request.answer = if fits { Ok(()) } else { Err(Error::Length) };
    }
    let waiting = requests.iter_mut().filter(|request| request.answer.is_ok());
    grouped(waiting.collect(), |curve, group| {
        wiping(|| work(curve, kind, group));
    });
}

impl Work for &mut [&mut Sign<'_>] {
    type Answer = ();

    fn run<const W: usize>(self, points: &dyn Points<W>, curve: &'static Params<W>) {
        let order = &curve.order;
        let mut nonces = [[0; W]; BATCH];
        let nonces = &mut nonces[..self.len()];
        if order.random(nonces).is_err() {
            for request in self {
                request.answer = Err(Error::Random);
            }
            return;
        }
        let mut products = [Affine::ZERO; BATCH];
        points.multiply(curve, &[curve.base; BATCH][..self.len()], nonces, &mut products);
        for nonce in &mut *nonces {
            *nonce = order.to_montgomery(nonce);
        }
        order.invert(nonces);
        for ((request, inverse), point) in self.iter_mut().zip(&*nonces).zip(&products) {
            let r = order.reduce(&point.x);
            let product = order.mul(&order.to_montgomery(&r), &request.key.words());
            let sum = order.add(&product, &order.digest(request.digest));
            let s = order.mul(inverse, &sum);
            if !(order.contains(&r) && order.contains(&s)) {
                // Zero, once in 2^160 signatures.
                request.answer = Err(Error::Random);
            }
            if request.answer.is_ok() {
                let (left, right) = request.signature.split_at_mut(order.length());
                order.write(&r, left);
                order.write(&s, right);
            }
        }
    }
}

/// One signature to verify.
#[derive(Debug)]
pub struct Verify<'a> {
    key: &'a PublicKey,
    digest: &'a [u8],
    signature: &'a [u8],
    /// Whether it is valid: [`Error::Pending`] until [`verify`] is done, [`Error::Length`] when it is not twice
    /// [`Curve::order_length`] bytes long, [`Error::Signature`] when it is wrong.
    pub answer: Result<(), Error>,
}

impl<'a> Verify<'a> {
    /// Verifies what [`Sign`] makes.
    #[must_use]
    pub const fn new(key: &'a PublicKey, digest: &'a [u8], signature: &'a [u8]) -> Self {
        Self { key, digest, signature, answer: Err(Error::Pending) }
    }
}

impl Request for Verify<'_> {
    fn curve(&self) -> Curve {
        self.key.curve()
    }
}

/// Verifies all; those on the same curve are computed together, up to eight at a time. In variable time.
pub fn verify(requests: &mut [Verify<'_>]) {
    verify_with(Kind::best(), requests);
}

pub(super) fn verify_with(kind: Kind, requests: &mut [Verify<'_>]) {
    for request in &mut *requests {
        let fits = request.signature.len() == 2 * request.curve().order_length();
        request.answer = if fits { Ok(()) } else { Err(Error::Length) };
    }
    let waiting = requests.iter_mut().filter(|request| request.answer.is_ok());
    grouped(waiting.collect(), |curve, group| work(curve, kind, group));
}

impl Work for &mut [&mut Verify<'_>] {
    type Answer = ();

    fn run<const W: usize>(self, points: &dyn Points<W>, curve: &'static Params<W>) {
        let order = &curve.order;
        let mut one = [0; W];
        one[0] = 1;
        let (mut r, mut inverses) = ([one; BATCH], [one; BATCH]);
        let count = self.len();
        for ((request, r), s) in self.iter_mut().zip(&mut r).zip(&mut inverses) {
            let (left, right) = request.signature.split_at(order.length());
            match order.parse(left).zip(order.parse(right)) {
                Some((left, right)) => (*r, *s) = (left, order.to_montgomery(&right)),
                None => request.answer = Err(Error::Signature),
            }
        }
        order.invert(&mut inverses[..count]);
        // The base point's multiples first, then the keys'.
        let mut scalars = [one; 2 * BATCH];
        let mut factors = [curve.base; 2 * BATCH];
        let mut without_base = [false; BATCH];
        for (at, request) in self.iter().enumerate() {
            let digest = order.mul(&inverses[at], &order.digest(request.digest));
            without_base[at] = digest == [0; W];
            if !without_base[at] {
                scalars[at] = digest;
            }
            scalars[count + at] = order.mul(&inverses[at], &r[at]);
            factors[count + at] = request.key.point();
        }
        let mut products = [Affine::ZERO; 2 * BATCH];
        points.multiply(curve, &factors[..2 * count], &scalars[..2 * count], &mut products);
        let mut pairs = [(Affine::ZERO, Affine::ZERO); BATCH];
        for (at, pair) in pairs.iter_mut().enumerate().take(count) {
            *pair = (products[at], products[count + at]);
        }
        let mut sums = [None; BATCH];
        points.add_x(curve, &pairs[..count], &mut sums[..count]);
        for (at, request) in self.iter_mut().enumerate() {
            let x = if without_base[at] { Some(products[count + at].x) } else { sums[at] };
            let right = x.is_some_and(|x| order.reduce(&x) == r[at]);
            if !right {
                request.answer = Err(Error::Signature);
            }
        }
    }
}
