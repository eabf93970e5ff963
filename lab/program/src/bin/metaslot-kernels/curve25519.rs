// SPDX-License-Identifier: Apache-2.0
//! X25519 and Ed25519.

use crate::nist::MAX_BATCH;
use crate::row::{Result, Work, array, each, failed, random, same};
use metaslot_awslc_wrapper::curve25519::{self as library, Ed25519, Ed25519Key};
use metaslot_lanes::curve25519 as kernel;

struct Agree {
    seeds: Vec<[u8; 32]>,
    keys: Vec<kernel::X25519Key>,
    peers: Vec<[u8; 32]>,
    out: Vec<[u8; 32]>,
    alone: [u8; 32],
}

pub(crate) fn agree() -> Result<Box<dyn Work>> {
    let seeds = each(MAX_BATCH, |_| array::<32>())?;
    Ok(Box::new(Agree {
        keys: seeds.iter().map(kernel::X25519Key::new).collect(),
        peers: seeds.iter().rev().map(library::x25519_public).collect(),
        seeds,
        out: vec![[0; 32]; MAX_BATCH],
        alone: [0; 32],
    }))
}

impl Agree {
    fn by_library(&mut self, lane: usize) {
        let done = library::x25519(&self.seeds[lane], &self.peers[lane], &mut self.alone);
        assert!(done.is_ok(), "AWS-LC derives");
    }
}

impl Work for Agree {
    fn raw(&mut self) {
        self.by_library(0);
    }

    fn batch(&mut self, filled: usize) {
        let lanes = self.keys.iter().zip(&self.peers).zip(&mut self.out).take(filled);
        let mut requests: Vec<_> =
            lanes.map(|((key, peer), out)| kernel::X25519Request::new(key, peer, out)).collect();
        kernel::x25519(&mut requests);
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

/// What both halves of Ed25519 begin with.
struct Party {
    keys: Vec<Ed25519Key>,
    publics: Vec<[u8; 32]>,
    messages: Vec<Vec<u8>>,
    signatures: Vec<[u8; 64]>,
}

impl Party {
    fn new(seeds: &[[u8; 32]]) -> Result<Self> {
        let keys: Vec<_> = seeds.iter().map(Ed25519Key::new).collect();
        let publics = keys.iter().map(Ed25519Key::public).collect();
        let messages = each(MAX_BATCH, |_| random(32))?;
        Ok(Self { keys, publics, messages, signatures: vec![[0; 64]; MAX_BATCH] })
    }

    fn sign(&self, lane: usize, out: &mut [u8; 64]) {
        let done = self.keys[lane].sign(Ed25519::Plain, &self.messages[lane], out);
        assert!(done.is_ok(), "AWS-LC signs");
    }

    fn verify(&self, lane: usize) -> bool {
        let (public, message) = (&self.publics[lane], &self.messages[lane]);
        library::ed25519_verify(Ed25519::Plain, public, message, &self.signatures[lane]).is_ok()
    }
}

struct Sign {
    party: Party,
    keys: Vec<kernel::PrivateKey>,
    alone: [u8; 64],
}

pub(crate) fn sign() -> Result<Box<dyn Work>> {
    let seeds = each(MAX_BATCH, |_| array::<32>())?;
    let keys =
        each(MAX_BATCH, |lane| kernel::PrivateKey::new(&seeds[lane]).map_err(failed("a key")))?;
    Ok(Box::new(Sign { party: Party::new(&seeds)?, keys, alone: [0; 64] }))
}

impl Work for Sign {
    fn raw(&mut self) {
        self.party.sign(0, &mut self.alone);
    }

    fn batch(&mut self, filled: usize) {
        let Party { messages, signatures, .. } = &mut self.party;
        let lanes = self.keys.iter().zip(messages).zip(signatures).take(filled);
        let mut requests: Vec<_> = lanes
            .map(|((key, message), out)| kernel::SignRequest::new(key, message, out))
            .collect();
        kernel::sign(&mut requests);
        assert!(requests.iter().all(|request| request.result.is_ok()), "the kernel signs");
    }

    /// The same key and message always give the same signature (RFC 8032 §5.1.6).
    fn check(&mut self) -> Result<()> {
        for lane in 0..MAX_BATCH {
            self.party.sign(lane, &mut self.alone);
            same(self.alone == self.party.signatures[lane], "an Ed25519 signature")?;
        }
        Ok(())
    }
}

struct Verify {
    party: Party,
    keys: Vec<kernel::PublicKey>,
    good: Vec<bool>,
}

pub(crate) fn verify() -> Result<Box<dyn Work>> {
    let mut party = Party::new(&each(MAX_BATCH, |_| array::<32>())?)?;
    for lane in 0..MAX_BATCH {
        let mut signature = [0; 64];
        party.sign(lane, &mut signature);
        party.signatures[lane] = signature;
    }
    let keys = party.publics.iter().map(kernel::PublicKey::new).collect();
    Ok(Box::new(Verify { party, keys, good: vec![false; MAX_BATCH] }))
}

impl Work for Verify {
    fn raw(&mut self) {
        assert!(self.party.verify(0), "AWS-LC verifies");
    }

    fn batch(&mut self, filled: usize) {
        let Party { messages, signatures, .. } = &self.party;
        let lanes = self.keys.iter().zip(messages).zip(signatures).take(filled);
        let mut requests: Vec<_> = lanes
            .map(|((key, message), signature)| kernel::VerifyRequest::new(key, message, signature))
            .collect();
        kernel::verify(&mut requests);
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
