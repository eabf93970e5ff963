// SPDX-License-Identifier: Apache-2.0
//! P-256 and P-384.

use crate::row::{Result, Work, each, failed, random, same};
use metaslot_awslc_wrapper::ec::{Curve, EcKey};
use metaslot_lanes::{p256, p384};

/// Requests in the largest batch.
pub(crate) const MAX_BATCH: usize = 128;

fn keys(curve: Curve) -> Result<Vec<EcKey>> {
    each(MAX_BATCH, |_| EcKey::generate(curve).map_err(failed("a key")))
}

fn scalar(key: &EcKey) -> Result<Vec<u8>> {
    let mut bytes = vec![0; key.curve().length()];
    key.write_scalar(&mut bytes).map_err(failed("a scalar"))?;
    Ok(bytes)
}

fn point(key: &EcKey) -> Result<Vec<u8>> {
    let mut bytes = vec![0; key.curve().point_length()];
    key.write_point(&mut bytes).map_err(failed("a point"))?;
    Ok(bytes)
}

/// What every operation begins with.
struct Party {
    library: Vec<EcKey>,
    digests: Vec<Vec<u8>>,
    signatures: Vec<Vec<u8>>,
    alone: Vec<u8>,
}

impl Party {
    fn on(curve: Curve) -> Result<Self> {
        let length = curve.length();
        Ok(Self {
            library: keys(curve)?,
            digests: each(MAX_BATCH, |_| random(length))?,
            signatures: vec![vec![0; 2 * length]; MAX_BATCH],
            alone: vec![0; 2 * length],
        })
    }

    fn sign(&mut self) {
        let done = self.library[0].sign(&self.digests[0], &mut self.alone);
        assert!(done.is_ok(), "AWS-LC signs");
    }

    fn verify(&self, lane: usize) -> bool {
        self.library[lane].verify(&self.digests[lane], &self.signatures[lane]).is_ok()
    }

    fn check(&self) -> Result<()> {
        (0..MAX_BATCH).try_for_each(|lane| same(self.verify(lane), "an ECDSA signature"))
    }
}

struct Sign256 {
    party: Party,
    keys: Vec<p256::PrivateKey>,
}

pub(crate) fn sign_p256() -> Result<Box<dyn Work>> {
    let party = Party::on(Curve::P256)?;
    let key = |lane: usize| {
        p256::PrivateKey::new(&scalar(&party.library[lane])?).map_err(failed("a key"))
    };
    Ok(Box::new(Sign256 { keys: each(MAX_BATCH, key)?, party }))
}

impl Work for Sign256 {
    fn raw(&mut self) {
        self.party.sign();
    }

    fn batch(&mut self, filled: usize) {
        let Party { digests, signatures, .. } = &mut self.party;
        let lanes = self.keys.iter().zip(digests).zip(signatures).take(filled);
        let mut requests: Vec<_> =
            lanes.map(|((key, digest), out)| p256::SignRequest::new(key, digest, out)).collect();
        p256::sign(&mut requests);
        assert!(requests.iter().all(|request| request.result.is_ok()), "the kernel signs");
    }

    fn check(&mut self) -> Result<()> {
        self.party.check()
    }
}

struct Sign384 {
    party: Party,
    keys: Vec<p384::PrivateKey>,
}

pub(crate) fn sign_p384() -> Result<Box<dyn Work>> {
    let party = Party::on(Curve::P384)?;
    let key = |lane: usize| {
        p384::PrivateKey::new(&scalar(&party.library[lane])?).map_err(failed("a key"))
    };
    Ok(Box::new(Sign384 { keys: each(MAX_BATCH, key)?, party }))
}

impl Work for Sign384 {
    fn raw(&mut self) {
        self.party.sign();
    }

    fn batch(&mut self, filled: usize) {
        let Party { digests, signatures, .. } = &mut self.party;
        let lanes = self.keys.iter().zip(digests).zip(signatures).take(filled);
        let mut requests: Vec<_> =
            lanes.map(|((key, digest), out)| p384::SignRequest::new(key, digest, out)).collect();
        p384::sign(&mut requests);
        assert!(requests.iter().all(|request| request.result.is_ok()), "the kernel signs");
    }

    fn check(&mut self) -> Result<()> {
        self.party.check()
    }
}

struct Verify256 {
    party: Party,
    keys: Vec<p256::PublicKey>,
    good: Vec<bool>,
}

pub(crate) fn verify_p256() -> Result<Box<dyn Work>> {
    let mut party = Party::on(Curve::P256)?;
    for lane in 0..MAX_BATCH {
        let Party { library, digests, signatures, .. } = &mut party;
        library[lane].sign(&digests[lane], &mut signatures[lane]).map_err(failed("a signature"))?;
    }
    let key =
        |lane: usize| p256::PublicKey::new(&point(&party.library[lane])?).map_err(failed("a key"));
    Ok(Box::new(Verify256 { keys: each(MAX_BATCH, key)?, party, good: vec![false; MAX_BATCH] }))
}

impl Work for Verify256 {
    fn raw(&mut self) {
        assert!(self.party.verify(0), "AWS-LC verifies");
    }

    fn batch(&mut self, filled: usize) {
        let Party { digests, signatures, .. } = &self.party;
        let lanes = self.keys.iter().zip(digests).zip(signatures).take(filled);
        let mut requests: Vec<_> = lanes
            .map(|((key, digest), signature)| p256::VerifyRequest::new(key, digest, signature))
            .collect();
        p256::verify(&mut requests);
        for (good, request) in self.good.iter_mut().zip(&requests) {
            *good = request.result.is_ok();
        }
    }

    fn check(&mut self) -> Result<()> {
        same(self.good.iter().all(|good| *good), "a good signature that was refused")?;
        self.party.signatures.iter_mut().step_by(3).for_each(|signature| signature[40] ^= 1);
        self.batch(MAX_BATCH);
        let right = |lane: usize| self.good[lane] == self.party.verify(lane);
        same((0..MAX_BATCH).all(right), "a changed signature")
    }
}

struct Derive256 {
    library: Vec<EcKey>,
    keys: Vec<p256::PrivateKey>,
    points: Vec<Vec<u8>>,
    out: Vec<Vec<u8>>,
    alone: Vec<u8>,
}

pub(crate) fn derive_p256() -> Result<Box<dyn Work>> {
    let library = keys(Curve::P256)?;
    let key =
        |lane: usize| p256::PrivateKey::new(&scalar(&library[lane])?).map_err(failed("a key"));
    Ok(Box::new(Derive256 {
        keys: each(MAX_BATCH, key)?,
        points: each(MAX_BATCH, |lane| point(&library[MAX_BATCH - 1 - lane]))?,
        out: vec![vec![0; p256::LENGTH]; MAX_BATCH],
        alone: vec![0; p256::LENGTH],
        library,
    }))
}

impl Derive256 {
    fn by_library(&mut self, lane: usize) {
        let done = self.library[lane].diffie_hellman(&self.points[lane], &mut self.alone);
        assert!(done.is_ok(), "AWS-LC derives");
    }
}

impl Work for Derive256 {
    fn raw(&mut self) {
        self.by_library(0);
    }

    fn batch(&mut self, filled: usize) {
        let lanes = self.keys.iter().zip(&self.points).zip(&mut self.out).take(filled);
        let mut requests: Vec<_> =
            lanes.map(|((key, peer), out)| p256::DeriveRequest::new(key, peer, out)).collect();
        p256::derive(&mut requests);
        assert!(requests.iter().all(|request| request.result.is_ok()), "the kernel derives");
    }

    fn check(&mut self) -> Result<()> {
        for lane in 0..MAX_BATCH {
            self.by_library(lane);
            same(self.alone == self.out[lane], "a shared secret")?;
        }
        Ok(())
    }
}
