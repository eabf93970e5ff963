// SPDX-License-Identifier: Apache-2.0
//! Times one kernel beside the plain library, for `metaslot lab lanes`: `metaslot-kernels ROW MICROSECONDS [EXTENSION…]`.
//!
//! A program of its own, because the kernels bring AWS-LC's allocation hooks with them: in the `metaslot` command they would
//! slow down what `metaslot lab speed` calls the bare library. It answers each line of its standard input with one line of JSON:
//! `round` with a sample of everything, `end` with the check of the results and the count of instructions.
#![forbid(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod binary;
#[cfg(target_arch = "x86_64")]
mod ciphers;
#[cfg(target_arch = "x86_64")]
mod curve25519;
#[cfg(target_arch = "x86_64")]
mod hashes;
#[cfg(target_arch = "x86_64")]
mod lanes;
#[cfg(target_arch = "x86_64")]
mod lattices;
#[cfg(target_arch = "x86_64")]
mod nist;
#[cfg(target_arch = "x86_64")]
mod row;
#[cfg(target_arch = "x86_64")]
mod rows;
#[cfg(target_arch = "x86_64")]
mod rsa;
#[cfg(target_arch = "x86_64")]
mod serve;

use std::process::ExitCode;

#[cfg(target_arch = "x86_64")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match serve::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            println!("{}", serde_json::json!({ "error": failure }));
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn main() -> ExitCode {
    eprintln!("metaslot-kernels: there are kernels for x86-64 only");
    ExitCode::FAILURE
}
