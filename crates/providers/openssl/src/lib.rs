// SPDX-License-Identifier: Apache-2.0
//! The provider over an OpenSSL of our own: one request at a time, on the thread that calls.
//!
//! It stands beside the provider over AWS-LC, which makes keys and random numbers for both. Each file holds a table of rows and
//! the operations behind them.
#![forbid(unsafe_code)]
#![cfg(feature = "library")]

mod cipher;
mod digest;
mod failure;
mod hashed;
mod mac;
mod rsa;

pub use metaslot_openssl_wrapper::fork;

use metaslot_spi::provider::{Algorithm, Provider, checked};
use metaslot_spi::table;

/// The provider.
pub static OPENSSL: Openssl = Openssl;

/// OpenSSL as a provider; it has no state.
#[derive(Clone, Copy, Debug)]
pub struct Openssl;

/// The tables of the files.
const PARTS: &[&[Algorithm]] =
    &[&cipher::ROWS, &digest::ROWS, &mac::ROWS, rsa::PARTS[0], rsa::PARTS[1]];

static ALGORITHMS: [Algorithm; table::count(PARTS)] = const { checked(table::merged(PARTS)) };

impl Provider for Openssl {
    fn name(&self) -> &'static str {
        "openssl"
    }

    fn algorithms(&'static self) -> &'static [Algorithm] {
        &ALGORITHMS
    }
}
