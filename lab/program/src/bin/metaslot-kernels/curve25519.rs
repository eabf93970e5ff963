// SPDX-License-Identifier: Apache-2.0
//! X25519 and Ed25519.

use crate::lanes::{Lanes, Verify, requests};
use crate::nist::MAX_BATCH;
use crate::row::{Result, Work, array, each, failed, random};
use metaslot_awslc_wrapper::curve25519::{self as library, Ed25519, Ed25519Key};
use metaslot_lanes::curve25519 as kernel;

fn seeds() -> Result<Vec<[u8; 32]>> {
    each(MAX_BATCH, |_| array())
}

pub(crate) fn agree() -> Result<Box<dyn Work>> {
    let seeds = seeds()?;
    Ok(Box::new(Lanes {
        keys: seeds.iter().map(kernel::X25519Key::new).collect(),
        inputs: seeds.iter().rev().map(library::x25519_public).collect(),
        library: seeds,
        out: vec![[0; 32]; MAX_BATCH],
        alone: [0; 32],
        length: 0,
        what: "a shared secret",
        plain: |seed, peer, out| library::x25519(seed, peer, out).is_ok(),
        kernel: |keys, peers, out, _| {
            let mut requests = requests(keys, peers, out, |key, peer, out| {
                kernel::X25519Request::new(key, peer, out)
            });
            kernel::x25519(&mut requests);
            requests.iter().all(|request| request.result.is_ok())
        },
    }))
}

/// The same key and message always give the same signature (RFC 8032 §5.1.6).
pub(crate) fn sign() -> Result<Box<dyn Work>> {
    let seeds = seeds()?;
    Ok(Box::new(Lanes {
        library: seeds.iter().map(Ed25519Key::new).collect(),
        keys: each(MAX_BATCH, |lane| {
            kernel::PrivateKey::new(&seeds[lane]).map_err(failed("a key"))
        })?,
        inputs: each(MAX_BATCH, |_| random(32))?,
        out: vec![[0; 64]; MAX_BATCH],
        alone: [0; 64],
        length: 0,
        what: "an Ed25519 signature",
        plain: |key, message, out| key.sign(Ed25519::Plain, message, out).is_ok(),
        kernel: |keys, messages, out, _| {
            let mut requests = requests(keys, messages, out, |key, message, out| {
                kernel::SignRequest::new(key, message, out)
            });
            kernel::sign(&mut requests);
            requests.iter().all(|request| request.result.is_ok())
        },
    }))
}

fn signed(key: &Ed25519Key) -> Result<(Vec<u8>, [u8; 64])> {
    let (message, mut signature) = (random(32)?, [0; 64]);
    key.sign(Ed25519::Plain, &message, &mut signature).map_err(failed("a signature"))?;
    Ok((message, signature))
}

pub(crate) fn verify() -> Result<Box<dyn Work>> {
    let private: Vec<_> = seeds()?.iter().map(Ed25519Key::new).collect();
    let library: Vec<_> = private.iter().map(Ed25519Key::public).collect();
    Ok(Box::new(Verify(Lanes {
        keys: library.iter().map(kernel::PublicKey::new).collect(),
        inputs: each(MAX_BATCH, |lane| signed(&private[lane]))?,
        library,
        out: vec![false; MAX_BATCH],
        alone: false,
        length: 0,
        what: "a changed signature",
        plain: |key, (message, signature), good| {
            *good = library::ed25519_verify(Ed25519::Plain, key, message, signature).is_ok();
            true
        },
        kernel: |keys, inputs, out, _| {
            let mut requests = requests(keys, inputs, out, |key, (message, signature), _| {
                kernel::VerifyRequest::new(key, message, signature)
            });
            kernel::verify(&mut requests);
            let results = requests.iter().map(|request| request.result.is_ok());
            out.iter_mut().zip(results).for_each(|(good, result)| *good = result);
            true
        },
    })))
}
