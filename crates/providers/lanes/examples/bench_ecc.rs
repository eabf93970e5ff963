// SPDX-License-Identifier: Apache-2.0
//! The elliptic-curve kernels against the library, on this thread's CPU clock: medians of short batches, the two in
//! turns. Results are checked. An argument chooses the operations whose name contains it.

use metaslot_awslc_wrapper::curve25519::{self as library, Ed25519};
use metaslot_awslc_wrapper::ec::{Curve, EcKey};
use metaslot_awslc_wrapper::random;
use metaslot_lanes::{curve25519, p256, p384};

/// Requests in the largest batch.
const MAX_BATCH: usize = 128;
/// How much time a sample takes, in nanoseconds.
const SAMPLE: u64 = 2_000_000;
const SAMPLES: usize = 31;

/// Nanoseconds of this thread's CPU time.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one structure.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Nanoseconds that one call takes: as many calls as fit in a sample.
fn sample(run: &mut dyn FnMut()) -> f64 {
    let start = now();
    let mut calls = 0;
    loop {
        run();
        calls += 1;
        let time = now() - start;
        if time > SAMPLE {
            return time as f64 / f64::from(calls);
        }
    }
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Compares one library call with batches of the kernel.
fn compare(name: &str, library: &mut dyn FnMut(usize), kernel: &mut dyn FnMut(usize)) {
    // Signatures that a later comparison checks.
    kernel(MAX_BATCH);
    if std::env::args().nth(1).is_some_and(|wanted| !name.contains(&wanted)) {
        return;
    }
    for filled in [1, 2, 3, 4, 8, 16, 32, 64, MAX_BATCH] {
        kernel(filled);
        let (mut single, mut batch) = (Vec::new(), Vec::new());
        let mut turn = 0;
        for _ in 0..SAMPLES {
            single.push(sample(&mut || {
                library(turn % MAX_BATCH);
                turn += 1;
            }));
            batch.push(sample(&mut || kernel(filled)) / filled as f64);
        }
        let (single, batch) = (median(single), median(batch));
        println!(
            "{name:15} {filled:4} lanes  kernel {batch:8.0} ns {:8.0}/s  library {single:8.0} ns {:8.0}/s  ratio {:.2}",
            1e9 / batch,
            1e9 / single,
            single / batch
        );
    }
}

fn random_bytes(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    random::fill(&mut bytes).expect("random bytes");
    bytes
}

fn library_keys(curve: Curve) -> Vec<EcKey> {
    (0..MAX_BATCH).map(|_| EcKey::generate(curve).expect("a key")).collect()
}

fn scalar(key: &EcKey) -> Vec<u8> {
    let mut bytes = vec![0; key.curve().length()];
    key.write_scalar(&mut bytes).expect("the scalar");
    bytes
}

fn point(key: &EcKey) -> Vec<u8> {
    let mut bytes = vec![0; key.curve().point_length()];
    key.write_point(&mut bytes).expect("the point");
    bytes
}

/// The two curves have the same interface and different types.
macro_rules! bench_curve {
    ($name:literal, $curve:expr, $module:ident) => {{
        let library = library_keys($curve);
        let length = $module::LENGTH;
        let private: Vec<_> = library
            .iter()
            .map(|key| $module::PrivateKey::new(&scalar(key)).expect("a key"))
            .collect();
        let points: Vec<_> = library.iter().map(point).collect();
        let public: Vec<_> =
            points.iter().map(|point| $module::PublicKey::new(point).expect("a key")).collect();
        let digests: Vec<_> = (0..MAX_BATCH).map(|_| random_bytes(length)).collect();
        let mut signatures = vec![vec![0; 2 * length]; MAX_BATCH];
        let mut out = vec![0; 2 * length];
        compare(
            concat!($name, " sign"),
            &mut |i| library[i].sign(&digests[i], &mut out).expect("a signature"),
            &mut |filled| {
                let all = private.iter().zip(&digests).zip(&mut signatures).take(filled);
                let mut requests: Vec<_> = all
                    .map(|((key, digest), out)| $module::SignRequest::new(key, digest, out))
                    .collect();
                $module::sign(&mut requests);
                assert!(requests.iter().all(|request| request.result.is_ok()));
            },
        );
        for ((key, digest), signature) in library.iter().zip(&digests).zip(&mut signatures) {
            key.sign(digest, signature).expect("a signature");
        }
        compare(
            concat!($name, " verify"),
            &mut |i| library[i].verify(&digests[i], &signatures[i]).expect("a good signature"),
            &mut |filled| {
                let all = public.iter().zip(&digests).zip(&signatures).take(filled);
                let mut requests: Vec<_> = all
                    .map(|((key, digest), signature)| {
                        $module::VerifyRequest::new(key, digest, signature)
                    })
                    .collect();
                $module::verify(&mut requests);
                assert!(requests.iter().all(|request| request.result.is_ok()));
            },
        );
        compare(
            concat!($name, " new key"),
            &mut |i| library[i].verify(&digests[i], &signatures[i]).expect("a good signature"),
            &mut |filled| {
                let fresh: Vec<_> = points[..filled]
                    .iter()
                    .map(|point| $module::PublicKey::new(point).expect("a key"))
                    .collect();
                let all = fresh.iter().zip(&digests).zip(&signatures);
                let mut requests: Vec<_> = all
                    .map(|((key, digest), signature)| {
                        $module::VerifyRequest::new(key, digest, signature)
                    })
                    .collect();
                $module::verify(&mut requests);
                assert!(requests.iter().all(|request| request.result.is_ok()));
            },
        );
        let mut secrets = vec![vec![0; length]; MAX_BATCH];
        let mut secret = vec![0; length];
        compare(
            concat!($name, " derive"),
            &mut |i| {
                library[i]
                    .diffie_hellman(&points[MAX_BATCH - 1 - i], &mut secret)
                    .expect("a secret")
            },
            &mut |filled| {
                let all = private.iter().zip(points.iter().rev()).zip(&mut secrets).take(filled);
                let mut requests: Vec<_> = all
                    .map(|((key, peer), out)| $module::DeriveRequest::new(key, peer, out))
                    .collect();
                $module::derive(&mut requests);
                assert!(requests.iter().all(|request| request.result.is_ok()));
            },
        );
    }};
}

fn bench_25519() {
    let seeds: Vec<[u8; 32]> = (0..MAX_BATCH).map(|_| seed()).collect();
    let ours: Vec<_> = seeds.iter().map(curve25519::X25519Key::new).collect();
    let peers: Vec<[u8; 32]> = seeds.iter().rev().map(library::x25519_public).collect();
    let mut secrets = vec![[0; 32]; MAX_BATCH];
    let mut secret = [0; 32];
    compare(
        "X25519",
        &mut |i| library::x25519(&seeds[i], &peers[i], &mut secret).expect("a secret"),
        &mut |filled| {
            let all = ours.iter().zip(&peers).zip(&mut secrets).take(filled);
            let mut requests: Vec<_> = all
                .map(|((key, peer), secret)| curve25519::X25519Request::new(key, peer, secret))
                .collect();
            curve25519::x25519(&mut requests);
            assert!(requests.iter().all(|request| request.result.is_ok()));
        },
    );
    let keys: Vec<_> = seeds.iter().map(library::Ed25519Key::new).collect();
    let signers: Vec<_> =
        seeds.iter().map(|seed| curve25519::PrivateKey::new(seed).expect("a key")).collect();
    let messages: Vec<_> = (0..MAX_BATCH).map(|_| random_bytes(32)).collect();
    let mut signatures = vec![[0; 64]; MAX_BATCH];
    let mut out = [0; 64];
    compare(
        "Ed25519 sign",
        &mut |i| keys[i].sign(Ed25519::Plain, &messages[i], &mut out).expect("a signature"),
        &mut |filled| {
            let all = signers.iter().zip(&messages).zip(&mut signatures).take(filled);
            let mut requests: Vec<_> = all
                .map(|((key, message), out)| curve25519::SignRequest::new(key, message, out))
                .collect();
            curve25519::sign(&mut requests);
            assert!(requests.iter().all(|request| request.result.is_ok()));
        },
    );
    let publics: Vec<_> = keys.iter().map(library::Ed25519Key::public).collect();
    let kept: Vec<_> = publics.iter().map(curve25519::PublicKey::new).collect();
    for (name, fresh) in [("Ed25519 verify", false), ("Ed25519 new key", true)] {
        compare(
            name,
            &mut |i| {
                library::ed25519_verify(Ed25519::Plain, &publics[i], &messages[i], &signatures[i])
                    .expect("a good signature");
            },
            &mut |filled| {
                let new: Vec<_> =
                    publics[..filled].iter().map(curve25519::PublicKey::new).collect();
                let keys = if fresh { &new } else { &kept };
                let all = keys.iter().zip(&messages).zip(&signatures).take(filled);
                let mut requests: Vec<_> = all
                    .map(|((key, message), signature)| {
                        curve25519::VerifyRequest::new(key, message, signature)
                    })
                    .collect();
                curve25519::verify(&mut requests);
                assert!(requests.iter().all(|request| request.result.is_ok()));
            },
        );
    }
}

fn seed() -> [u8; 32] {
    let mut seed = [0; 32];
    random::fill(&mut seed).expect("random bytes");
    seed
}

fn main() {
    bench_25519();
    bench_curve!("P-256", Curve::P256, p256);
    bench_curve!("P-384", Curve::P384, p384);
}
