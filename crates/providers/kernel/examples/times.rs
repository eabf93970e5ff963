// SPDX-License-Identifier: Apache-2.0
//! What SHA-256 takes by the kernel and by AWS-LC, in nanoseconds: the least of ten times a tenth of a second's.
#![expect(clippy::print_stdout, reason = "a program that prints")]

use metaslot_awslc::AWSLC;
use metaslot_ck::{CKM_SHA256, Result};
use metaslot_kernel::Kernel;
use metaslot_spi::provider::{Digest, Provider};
use std::time::{Duration, Instant};

static KERNEL: Kernel = Kernel::beside(&AWSLC);

fn main() -> Result<()> {
    println!("{:>8} {:>12} {:>12}", "bytes", "kernel", "awslc");
    for length in [64, 1 << 14, 1 << 20] {
        let data = vec![7; length];
        print!("{length:>8}");
        for provider in [&KERNEL as &'static dyn Provider, &AWSLC] {
            let row = provider.algorithms().iter().find(|row| row.mechanism == CKM_SHA256);
            match row.and_then(|row| row.digest) {
                Some(digest) => print!(" {:>12}", least(digest, &data)?),
                None => print!(" {:>12}", "-"),
            }
        }
        println!();
    }
    Ok(())
}

fn least(digest: &dyn Digest, data: &[u8]) -> Result<u128> {
    let mut least = u128::MAX;
    for _ in 0..10 {
        let (start, mut count, mut out) = (Instant::now(), 0, [0; 32]);
        while start.elapsed() < Duration::from_millis(100) {
            digest.digest(data, &mut out)?;
            count += 1;
        }
        least = least.min(start.elapsed().as_nanos() / count);
    }
    Ok(least)
}
