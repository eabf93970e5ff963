// SPDX-License-Identifier: Apache-2.0
//! A public key whose multiples one thread prepares while another thread uses the key.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use metaslot_awslc_wrapper::ec::{Curve, EcKey};
use metaslot_lanes::{curve25519, p256};
use std::sync::Barrier;
use std::thread;

const THREADS: usize = 3;
const ROUNDS: usize = 400;
/// Batches of each thread in a round: the first finds an unknown key, one of the next prepares it.
const BATCHES: usize = 4;

/// Runs `verify` on all threads at once, with a key that is new in each round.
fn at_once<K: Sync>(new: impl Fn() -> K, verify: impl Fn(&K) -> bool + Sync) -> usize {
    let mut wrong = 0;
    for _ in 0..ROUNDS {
        let (key, barrier) = (new(), Barrier::new(THREADS));
        let work = || {
            barrier.wait();
            (0..BATCHES).filter(|_| !verify(&key)).count()
        };
        wrong += thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
        });
    }
    wrong
}

#[test]
fn ed25519_accepts_while_another_thread_prepares() {
    let private = curve25519::PrivateKey::new(&[7; 32]).unwrap();
    let mut signature = [0; 64];
    let mut signing = [curve25519::SignRequest::new(&private, b"message", &mut signature)];
    curve25519::sign(&mut signing);
    assert!(signing[0].result.is_ok());
    let new = || curve25519::PublicKey::new(private.public());
    let verify = |key: &curve25519::PublicKey| {
        let mut requests: Vec<_> =
            (0..8).map(|_| curve25519::VerifyRequest::new(key, b"message", &signature)).collect();
        curve25519::verify(&mut requests);
        requests.iter().all(|request| request.result.is_ok())
    };
    assert_eq!(at_once(new, verify), 0);
}

#[test]
fn p256_accepts_while_another_thread_prepares() {
    let key = EcKey::generate(Curve::P256).unwrap();
    let digest = [9; 32];
    let mut signature = [0; 64];
    key.sign(&digest, &mut signature).unwrap();
    let mut point = [0; 65];
    key.write_point(&mut point).unwrap();
    let new = || p256::PublicKey::new(&point).unwrap();
    let verify = |key: &p256::PublicKey| {
        let mut requests: Vec<_> =
            (0..8).map(|_| p256::VerifyRequest::new(key, &digest, &signature)).collect();
        p256::verify(&mut requests);
        requests.iter().all(|request| request.result.is_ok())
    };
    assert_eq!(at_once(new, verify), 0);
}
