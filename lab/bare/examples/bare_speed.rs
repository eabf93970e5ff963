// SPDX-License-Identifier: Apache-2.0
//! Signatures by the bare library, in nanoseconds each: the smallest of some rounds. What the
//! provider needs for them: `cargo run --release -p metaslot-awslc --example awslc_speed`.

use metaslot_bare::{EC_SIGNATURE, Ec, Ed25519, Result, Rsa};
use std::time::Instant;

const ROUNDS: usize = 25;

fn fastest(name: &str, count: u32, mut operation: impl FnMut() -> Result<()>) -> Result<()> {
    let mut best = u128::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..count {
            operation()?;
        }
        best = best.min(start.elapsed().as_nanos() / u128::from(count));
    }
    println!("{name} {best}");
    Ok(())
}

fn main() -> Result<()> {
    let data = [5; 32];
    let (rsa, mut signature) = (Rsa::generate(2048)?, [0; 256]);
    fastest("rsa-2048-sign", 40, || rsa.sign(&data, &mut signature).map(|_| ()))?;
    fastest("rsa-2048-verify", 40, || rsa.verify(&data, &signature))?;
    let (ec, mut signature, mut length) = (Ec::generate()?, [0; EC_SIGNATURE], 0);
    fastest("p-256-sign", 800, || {
        length = ec.sign(&data, &mut signature)?;
        Ok(())
    })?;
    fastest("p-256-verify", 800, || ec.verify(&data, &signature[..length]))?;
    let (ed25519, mut signature) = (Ed25519::generate(), [0; 64]);
    fastest("ed25519-sign", 800, || ed25519.sign(&data, &mut signature))?;
    fastest("ed25519-verify", 800, || ed25519.verify(&data, &signature))
}
