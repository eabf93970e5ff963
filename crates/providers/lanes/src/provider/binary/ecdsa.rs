// SPDX-License-Identifier: Apache-2.0
//! ECDSA (PKCS#11 3.2 §6.3.12, §6.3.13): the signature is r and s, each as long as the order.

use super::key::{curve, private, public};
use super::{Batch, Meeting, Meetings, Wins, row, wins};
use crate::binary::{self, BATCH, Curve};
use crate::provider::ecdsa::MECHANISMS;
use crate::provider::hashed::{self, Digest, DigestScheme, digest_of};
use crate::provider::{Held, kept, put};
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Direction, Postponed, Signature, SignatureStream};
use metaslot_spi::{Key, Params};
use smallvec::SmallVec;
use std::sync::Arc;

pub(super) fn rows() -> Vec<Algorithm> {
    let algorithm = |(mechanism, hash)| {
        let signing = kept(Signing { hash });
        Algorithm { sign: Some(signing), verify: Some(signing), ..row(mechanism) }
    };
    MECHANISMS.into_iter().map(algorithm).collect()
}

static SIGN: Meetings<Sign> = [const { Meeting::new(Sign) }; Curve::ALL.len()];
static VERIFY: Meetings<Verify> = [const { Meeting::new(Verify) }; Curve::ALL.len()];

/// One row's signatures and verifications.
#[derive(Clone, Copy, Debug)]
struct Signing {
    hash: Option<Hash>,
}

impl Signing {
    /// No more of it counts than what is as long as the order (FIPS 186-5 §6.4.1).
    fn digest(self, curve: Curve, data: &[u8]) -> Result<Digest> {
        match self.hash {
            Some(hash) => digest_of(hash, data),
            None if data.is_empty() => Err(Error::DATA_LEN_RANGE),
            None => Ok(data[..data.len().min(curve.order_length())].into()),
        }
    }
}

impl Signature for Signing {
    fn serves(&self, key: &Key) -> bool {
        curve(key).is_some()
    }

    fn check(&self, direction: Direction, key: &Key, _: &Params) -> Result<()> {
        match direction {
            Direction::Forward => private(key).map(drop),
            Direction::Backward => public(key).map(drop),
        }
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        curve(key).map_or(0, |curve| 2 * curve.order_length())
    }

    fn sign(&self, key: &Key, _: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        self.sign_digest(key, self.digest(private(key)?.curve(), data)?, out)
    }

    fn sign_later(&self, key: &Arc<Key>, _: &Params, data: &[u8]) -> Postponed {
        let curve = private(key)?.curve();
        let digest = self.digest(curve, data)?;
        SIGN[curve as usize].later(Signed::new(Held::Shared(Arc::clone(key)), curve, digest))
    }

    fn verify(&self, key: &Key, _: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        self.verify_digest(key, self.digest(public(key)?.curve(), data)?, signature)
    }

    fn verify_later(&self, key: &Arc<Key>, _: &Params, data: &[u8], signature: &[u8]) -> Postponed {
        let curve = public(key)?.curve();
        let work = Signed::new(Held::Shared(Arc::clone(key)), curve, self.digest(curve, data)?);
        VERIFY[curve as usize].later(work.with(signature)?)
    }

    fn start(&self, _: Direction, key: &Arc<Key>, _: &Params) -> Result<Box<dyn SignatureStream>> {
        hashed::start(*self, self.hash.ok_or(Error::FUNCTION_NOT_SUPPORTED)?, key)
    }
}

impl DigestScheme for Signing {
    fn sign_digest(&self, key: &Key, digest: Digest, out: &mut [u8]) -> Result<usize> {
        let curve = private(key)?.curve();
        let work = Signed::new(Held::Borrowed(key), curve, digest);
        Sign::answer(SIGN[curve as usize].run(work)?, out)
    }

    fn verify_digest(&self, key: &Key, digest: Digest, signature: &[u8]) -> Result<()> {
        let curve = public(key)?.curve();
        let work = Signed::new(Held::Borrowed(key), curve, digest).with(signature)?;
        VERIFY[curve as usize].run(work).map(drop)
    }
}

/// A digest, and its signature that is made or checked.
struct Signed<'a> {
    key: Held<'a>,
    digest: Digest,
    /// Two numbers of up to 570 bits: 144 bytes.
    signature: SmallVec<[u8; 256]>,
}

impl<'a> Signed<'a> {
    fn new(key: Held<'a>, curve: Curve, digest: Digest) -> Self {
        Self { key, digest, signature: SmallVec::from_elem(0, 2 * curve.order_length()) }
    }

    /// A signature may come shorter, both numbers without the same number of zero bytes in front
    /// (PKCS#11 3.2 §6.3.1).
    fn with(mut self, given: &[u8]) -> Result<Self> {
        let length = self.signature.len();
        if given.is_empty() || given.len() > length || !given.len().is_multiple_of(2) {
            return Err(Error::SIGNATURE_LEN_RANGE);
        }
        let halves = self.signature.chunks_mut(length / 2);
        for (half, given) in halves.zip(given.chunks(given.len() / 2)) {
            let zeros = half.len() - given.len();
            half[zeros..].copy_from_slice(given);
        }
        Ok(self)
    }
}

/// Signatures of one curve's keys.
#[derive(Debug)]
struct Sign;

impl Batch for Sign {
    type Work<'a> = Signed<'a>;
    type Request<'r> = binary::Sign<'r>;

    fn lanes(&self) -> usize {
        BATCH
    }

    fn wins(&self) -> Wins {
        wins()
    }

    fn one_in_a_lane(&self) -> bool {
        true
    }

    fn request<'r>(&self, work: &'r mut Signed<'_>) -> Option<binary::Sign<'r>> {
        let key = private(&work.key).ok()?;
        Some(binary::Sign::new(key, &work.digest, &mut work.signature))
    }

    fn compute(&self, requests: &mut [binary::Sign<'_>]) {
        binary::sign(requests);
    }

    fn well(request: &binary::Sign<'_>) -> bool {
        request.answer.is_ok()
    }

    fn answer(work: Signed<'_>, out: &mut [u8]) -> Result<usize> {
        put(&work.signature, out)
    }
}

/// Verifications for one curve's keys.
#[derive(Debug)]
struct Verify;

impl Batch for Verify {
    type Work<'a> = Signed<'a>;
    type Request<'r> = binary::Verify<'r>;

    fn lanes(&self) -> usize {
        BATCH
    }

    fn wins(&self) -> Wins {
        wins()
    }

    fn one_in_a_lane(&self) -> bool {
        true
    }

    fn request<'r>(&self, work: &'r mut Signed<'_>) -> Option<binary::Verify<'r>> {
        Some(binary::Verify::new(public(&work.key).ok()?, &work.digest, &work.signature))
    }

    fn compute(&self, requests: &mut [binary::Verify<'_>]) {
        binary::verify(requests);
    }

    fn well(request: &binary::Verify<'_>) -> bool {
        request.answer.is_ok()
    }

    fn result(_: &Signed<'_>, well: bool) -> Option<Result<()>> {
        Some(if well { Ok(()) } else { Err(Error::SIGNATURE_INVALID) })
    }
}
