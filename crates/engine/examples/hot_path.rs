// SPDX-License-Identifier: Apache-2.0
//! What the engine adds to short operations, in nanoseconds, without the C edge: a number for the
//! author of a change, not a claim (`BENCHMARKING.md`).
//!
//! `cargo run --release -p metaslot-engine --example hot_path`

#![allow(missing_docs, clippy::unwrap_used, reason = "an example, not an interface")]

use metaslot_ck::*;
use metaslot_engine::{Output, Policy};
use metaslot_models::{aes, engine, open};
use metaslot_spi::provider::Direction::Forward;
use metaslot_spi::{Bytes, Params};
use std::time::Instant;

const ROUNDS: u32 = 200_000;

fn time(name: &str, mut call: impl FnMut()) {
    let mut best = f64::MAX;
    for _ in 0..7 {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            call();
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS));
    }
    println!("{name:<40} {best:8.1} ns");
}

fn main() {
    let engine = engine(Policy::DEFAULT);
    let session = open(&engine);
    let key = aes(&engine, session, vec![]).expect("a key is made");
    let (data, mut room) = ([1; 16], [0; 64]);
    time("open and close a session", || {
        let session = open(&engine);
        engine.close_session(session).expect("it closes");
    });
    time("SHA-256 of 16 bytes, awslc alone", || {
        std::hint::black_box(metaslot_awslc_wrapper::digest::sha256(&data));
    });
    time("SHA-256 of 16 bytes, init and digest", || {
        engine.digest_init(session, CKM_SHA256).expect("it begins");
        engine.digest(session, &data, &mut Output::buffer(&mut room)).expect("it ends");
    });
    time("AES-CTR of 16 bytes, init and encrypt", || {
        let params = Params::Ctr { bits: 32, block: [0; 16] };
        engine.cipher_init(Forward, session, CKM_AES_CTR, params, key).expect("it begins");
        let out = &mut Output::buffer(&mut room);
        engine.cipher(Forward, session, &data, out).expect("it ends");
    });
    time("AES-GCM of 16 bytes, init and encrypt", || {
        let iv = Bytes::from_slice(&[0; 12]);
        let params = Params::Gcm { iv, aad: Bytes::new(), tag_bits: 128 };
        engine.cipher_init(Forward, session, CKM_AES_GCM, params, key).expect("it begins");
        let out = &mut Output::buffer(&mut room);
        engine.cipher(Forward, session, &data, out).expect("it ends");
    });
}
