// SPDX-License-Identifier: Apache-2.0
//! The provider over AWS-LC: one request at a time, on the thread that calls.
//!
//! Each file holds a table of rows and the operations behind them; the tables are put together and
//! checked at compile time. Nothing here decides whether something is allowed: that is policy.
#![forbid(unsafe_code)]

mod aes;
mod blake2b;
mod block;
mod chacha20;
mod des;
mod dh;
mod digest;
mod domain;
mod dsa;
mod ec;
mod ecdh;
mod ecdsa;
mod eddsa;
mod failure;
mod field;
mod generate;
mod hash_ml_dsa;
mod hashes;
mod hkdf;
mod hmac;
mod hotp;
mod ike;
mod keccak;
mod mac;
mod ml_dsa;
mod ml_kem;
mod montgomery;
mod old_hashes;
mod other_hashes;
mod pbe;
mod pbkdf2;
mod prf;
mod private_key;
mod private_key_info;
mod public_key;
mod rc4;
mod rsa;
mod rsa_cipher;
mod rsa_encapsulation;
mod rsa_key;
mod rsa_pkcs1;
mod rsa_pss;
mod rsa_raw;
mod rsa_rejection;
mod rsa_x931;
mod secret_key;
mod seeded;
mod simple;
mod sp800_108;
mod tls;
mod transport;
mod xeddsa;

use metaslot_ck::Result;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Provider, checked};
use metaslot_spi::{Key, NewObject, table};

/// The provider.
pub static AWSLC: Awslc = Awslc;

/// AWS-LC as a provider; it has no state.
#[derive(Clone, Copy, Debug)]
pub struct Awslc;

/// The tables of the files.
const PARTS: &[&[Algorithm]] = &[
    &aes::ROWS,
    &chacha20::ROWS,
    &des::ROWS,
    &hkdf::ROWS,
    &pbe::ROWS,
    &pbkdf2::ROWS,
    &rc4::ROWS,
    &sp800_108::ROWS,
    &digest::ROWS,
    &generate::ROWS,
    &hmac::ROWS,
    &hotp::ROWS,
    &ec::ROWS,
    &ecdh::ROWS,
    &ecdsa::ROWS,
    &eddsa::ROWS,
    &ml_dsa::ROWS,
    &ml_kem::ROWS,
    &hash_ml_dsa::ROWS,
    &montgomery::ROWS,
    &rsa::ROWS,
    &rsa_pkcs1::ROWS,
    &rsa_pss::ROWS,
    &other_hashes::ROWS,
    &ike::ROWS,
    &simple::ROWS,
    &transport::ROWS,
    &dh::ROWS,
    &domain::ROWS,
    &dsa::ROWS,
    &tls::ROWS,
    &rsa_x931::ROWS,
    &xeddsa::ROWS,
];

static ALGORITHMS: [Algorithm; table::count(PARTS)] = const { checked(table::merged(PARTS)) };

impl Provider for Awslc {
    fn name(&self) -> &'static str {
        "awslc"
    }

    fn algorithms(&'static self) -> &'static [Algorithm] {
        &ALGORITHMS
    }

    fn random(&self, out: &mut [u8]) -> Result<()> {
        generate::random(out)
    }

    fn complete(&self, key: &mut NewObject) -> Result<()> {
        private_key::complete(key)
    }

    fn encode_private_key(&self, key: &Key) -> Result<Secret> {
        private_key_info::encode(key)
    }

    fn decode_private_key(&self, der: &[u8]) -> Result<NewObject> {
        private_key_info::decode(der)
    }
}
