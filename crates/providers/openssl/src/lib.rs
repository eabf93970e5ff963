// SPDX-License-Identifier: Apache-2.0
//! The provider over an OpenSSL of our own: one request at a time, on the thread that calls.
//!
//! It stands beside the provider over AWS-LC, which makes other keys than those on curves, and random numbers, for both. Each file holds a table of rows and
//! the operations behind them.
#![forbid(unsafe_code)]
#![cfg(feature = "library")]

mod cipher;
mod digest;
mod ec;
mod failure;
mod hashed;
mod mac;
mod rsa;

pub use metaslot_openssl_wrapper::fork;

use metaslot_ck::Result;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Provider, checked};
use metaslot_spi::{Key, NewObject, table};

/// The provider.
pub static OPENSSL: Openssl = Openssl;

/// OpenSSL as a provider; it has no state.
#[derive(Clone, Copy, Debug)]
pub struct Openssl;

/// The tables of the files.
const PARTS: &[&[Algorithm]] = &[
    &cipher::ROWS,
    &digest::ROWS,
    ec::PARTS[0],
    ec::PARTS[1],
    ec::PARTS[2],
    ec::PARTS[3],
    ec::PARTS[4],
    &mac::ROWS,
    rsa::PARTS[0],
    rsa::PARTS[1],
];

static ALGORITHMS: [Algorithm; table::count(PARTS)] = const { checked(table::merged(PARTS)) };

impl Provider for Openssl {
    fn name(&self) -> &'static str {
        "openssl"
    }

    fn algorithms(&'static self) -> &'static [Algorithm] {
        &ALGORITHMS
    }

    fn complete(&self, key: &mut NewObject) -> Result<()> {
        ec::complete(key)
    }

    fn encode_private_key(&self, key: &Key) -> Result<Secret> {
        ec::encode(key)
    }

    fn decode_private_key(&self, der: &[u8]) -> Result<NewObject> {
        ec::decode(der)
    }
}
