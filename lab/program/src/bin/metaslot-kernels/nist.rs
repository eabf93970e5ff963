// SPDX-License-Identifier: Apache-2.0
//! P-256 and P-384.

use crate::lanes::{Kernel, Lanes, Verify, requests};
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

/// Signatures differ each time, so the library verifies what the kernel has signed.
struct Sign<K>(Lanes<EcKey, K, Vec<u8>, Vec<u8>>);

impl<K> Work for Sign<K> {
    fn raw(&mut self) {
        self.0.raw();
    }

    fn batch(&mut self, filled: usize) {
        self.0.batch(filled);
    }

    fn check(&mut self) -> Result<()> {
        let mut lanes = self.0.library.iter().zip(&self.0.inputs).zip(&self.0.out);
        lanes.try_for_each(|((key, digest), signature)| {
            same(key.verify(digest, signature).is_ok(), self.0.what)
        })
    }
}

fn sign<K: 'static>(
    curve: Curve,
    key: impl Fn(Vec<u8>) -> Result<K>,
    kernel: Kernel<K, Vec<u8>, Vec<u8>>,
) -> Result<Box<dyn Work>> {
    let (library, length) = (keys(curve)?, curve.length());
    Ok(Box::new(Sign(Lanes {
        keys: each(MAX_BATCH, |lane| key(scalar(&library[lane])?))?,
        library,
        inputs: each(MAX_BATCH, |_| random(length))?,
        out: vec![vec![0; 2 * length]; MAX_BATCH],
        alone: vec![0; 2 * length],
        length: 0,
        what: "an ECDSA signature",
        plain: |key, digest, out| key.sign(digest, out).is_ok(),
        kernel,
    })))
}

fn private_p256(scalar: Vec<u8>) -> Result<p256::PrivateKey> {
    p256::PrivateKey::new(&scalar).map_err(failed("a key"))
}

pub(crate) fn sign_p256() -> Result<Box<dyn Work>> {
    sign(Curve::P256, private_p256, |keys, digests, out, _| {
        let mut requests = requests(keys, digests, out, |key, digest, out| {
            p256::SignRequest::new(key, digest, out)
        });
        p256::sign(&mut requests);
        requests.iter().all(|request| request.result.is_ok())
    })
}

pub(crate) fn sign_p384() -> Result<Box<dyn Work>> {
    let key = |scalar: Vec<u8>| p384::PrivateKey::new(&scalar).map_err(failed("a key"));
    sign(Curve::P384, key, |keys, digests, out, _| {
        let mut requests = requests(keys, digests, out, |key, digest, out| {
            p384::SignRequest::new(key, digest, out)
        });
        p384::sign(&mut requests);
        requests.iter().all(|request| request.result.is_ok())
    })
}

fn signed(key: &EcKey) -> Result<(Vec<u8>, Vec<u8>)> {
    let length = key.curve().length();
    let (digest, mut signature) = (random(length)?, vec![0; 2 * length]);
    key.sign(&digest, &mut signature).map_err(failed("a signature"))?;
    Ok((digest, signature))
}

pub(crate) fn verify_p256() -> Result<Box<dyn Work>> {
    let library = keys(Curve::P256)?;
    let key = |lane: usize| p256::PublicKey::new(&point(&library[lane])?).map_err(failed("a key"));
    Ok(Box::new(Verify(Lanes {
        keys: each(MAX_BATCH, key)?,
        inputs: each(MAX_BATCH, |lane| signed(&library[lane]))?,
        library,
        out: vec![false; MAX_BATCH],
        alone: false,
        length: 0,
        what: "a changed signature",
        plain: |key, (digest, signature), good| {
            *good = key.verify(digest, signature).is_ok();
            true
        },
        kernel: |keys, inputs, out, _| {
            let mut requests = requests(keys, inputs, out, |key, (digest, signature), _| {
                p256::VerifyRequest::new(key, digest, signature)
            });
            p256::verify(&mut requests);
            let results = requests.iter().map(|request| request.result.is_ok());
            out.iter_mut().zip(results).for_each(|(good, result)| *good = result);
            true
        },
    })))
}

pub(crate) fn derive_p256() -> Result<Box<dyn Work>> {
    let library = keys(Curve::P256)?;
    Ok(Box::new(Lanes {
        keys: each(MAX_BATCH, |lane| private_p256(scalar(&library[lane])?))?,
        inputs: each(MAX_BATCH, |lane| point(&library[MAX_BATCH - 1 - lane]))?,
        library,
        out: vec![vec![0; p256::LENGTH]; MAX_BATCH],
        alone: vec![0; p256::LENGTH],
        length: 0,
        what: "a shared secret",
        plain: |key, peer, out| key.diffie_hellman(peer, out).is_ok(),
        kernel: |keys, peers, out, _| {
            let mut requests = requests(keys, peers, out, |key, peer, out| {
                p256::DeriveRequest::new(key, peer, out)
            });
            p256::derive(&mut requests);
            requests.iter().all(|request| request.result.is_ok())
        },
    }))
}
