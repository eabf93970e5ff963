// SPDX-License-Identifier: Apache-2.0
//! Diffie-Hellman: the x-coordinate of the peer's point times the own key (SEC 1, 3.3.1 and 3.3.2).

use super::bytes::to_bytes;
use super::curve::{Curve, Kind, Work, work};
use super::key::{PrivateKey, PublicKey};
use super::params::{Affine, Params};
use super::point::Points;
use super::{BATCH, Error, Request, grouped};
use metaslot_memory::wiping;

/// One secret to derive.
#[derive(Debug)]
pub struct Derive<'a> {
    key: &'a PrivateKey,
    peer: &'a PublicKey,
    cofactor: bool,
    secret: &'a mut [u8],
    /// Whether the secret was written: [`Error::Pending`] until [`derive`] is done, [`Error::Curve`] when the keys'
    /// curves differ, [`Error::Length`] when the place for it is not [`Curve::field_length`] bytes long.
    pub answer: Result<(), Error>,
}

impl<'a> Derive<'a> {
    /// With `cofactor` the product is multiplied by the cofactor too (`CKD` functions of `CKM_ECDH1_COFACTOR_DERIVE`).
    #[must_use]
    pub const fn new(
        key: &'a PrivateKey,
        peer: &'a PublicKey,
        cofactor: bool,
        secret: &'a mut [u8],
    ) -> Self {
        Self { key, peer, cofactor, secret, answer: Err(Error::Pending) }
    }

    fn check(&self) -> Result<(), Error> {
        if self.peer.curve() != self.key.curve() {
            Err(Error::Curve)
        } else if self.secret.len() != self.key.curve().field_length() {
            Err(Error::Length)
        } else {
            Ok(())
        }
    }
}

impl Request for Derive<'_> {
    fn curve(&self) -> Curve {
        self.key.curve()
    }
}

/// Derives all; those on the same curve are computed together, up to eight at a time.
pub fn derive(requests: &mut [Derive<'_>]) {
    derive_with(Kind::best(), requests);
}

pub(super) fn derive_with(kind: Kind, requests: &mut [Derive<'_>]) {
    for request in &mut *requests {
        request.answer = request.check();
    }
    let waiting = requests.iter_mut().filter(|request| request.answer.is_ok());
    grouped(waiting.collect(), |curve, group| {
        wiping(|| work(curve, kind, group));
    });
}

impl Work for &mut [&mut Derive<'_>] {
    type Answer = ();

    fn run<const W: usize>(self, points: &dyn Points<W>, curve: &'static Params<W>) {
        let mut scalars = [[0; W]; BATCH];
        let mut peers = [Affine::ZERO; BATCH];
        for ((request, scalar), point) in self.iter().zip(&mut scalars).zip(&mut peers) {
            *point = request.peer.point();
            *scalar = request.key.words();
            // The point has order n, so that the product may be taken modulo n.
            let doublings = if request.cofactor { curve.cofactor.ilog2() } else { 0 };
            for _ in 0..doublings {
                *scalar = curve.order.add(scalar, scalar);
            }
        }
        let count = self.len();
        let mut products = [Affine::ZERO; BATCH];
        points.multiply(curve, &peers[..count], &scalars[..count], &mut products);
        for (request, product) in self.iter_mut().zip(&products) {
            to_bytes(&product.x, request.secret);
        }
    }
}
