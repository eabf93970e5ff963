// SPDX-License-Identifier: Apache-2.0
//! Secrets under RSA (PKCS#11 3.2 §6.1.6, §6.1.8, §6.1.12): PKCS #1 v1.5 and OAEP carry the one that they are given, the bare
//! operation is RSASVE (SP 800-56B rev. 2 §7.2.1), whose secret is as long as the modulus.

use crate::failure::device_error;
use crate::generate::random;
use crate::rsa_cipher::RsaCipher;
use crate::rsa_key::{is_trivial, prepared};
use metaslot_awslc_wrapper::rsa::{Rsa, RsaNumber};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Cipher, Direction, Encapsulation, Wrap};
use metaslot_spi::{Key, Params};

/// At least every second number that is tried is below the modulus.
const TRIES: usize = 128;

impl Encapsulation for RsaCipher {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        Cipher::check(self, direction, key, params)
    }

    fn ciphertext_length(&self, key: &Key, _: &Params) -> Result<usize> {
        prepared(key).map(Rsa::size)
    }

    fn natural_length(&self, key: &Key, _: &Params) -> Option<usize> {
        prepared(key).ok().filter(|_| !self.carries()).map(Rsa::size)
    }

    fn gives(&self, key: &Key, params: &Params, length: usize) -> bool {
        let most = prepared(key).and_then(|rsa| self.room(rsa, params)).unwrap_or(0);
        if self.carries() { (1..=most).contains(&length) } else { length == most }
    }

    fn carries(&self) -> bool {
        !matches!(self, Self::X509)
    }

    fn encapsulate(
        &self,
        key: &Key,
        params: &Params,
        secret: &mut [u8],
        out: &mut [u8],
    ) -> Result<()> {
        if !self.carries() {
            draw(prepared(key)?, secret)?;
        }
        self.seal(key, params, secret, out).map(drop)
    }

    fn decapsulate(
        &self,
        key: &Key,
        params: &Params,
        length: Option<usize>,
        ciphertext: &[u8],
    ) -> Result<Secret> {
        let secret = Wrap::unwrap(self, key, params, ciphertext)?;
        // What is its own power is no secret.
        if !self.carries() && is_trivial(prepared(key)?, ciphertext)? {
            return Err(Error::WRAPPED_KEY_INVALID);
        }
        match length {
            Some(length) if length != secret.len() => Err(Error::WRAPPED_KEY_LEN_RANGE),
            _ => Ok(secret),
        }
    }
}

/// A number between 1 and the modulus less 1.
fn draw(rsa: &Rsa, out: &mut [u8]) -> Result<()> {
    let mut modulus = vec![0; rsa.size()];
    rsa.write_number(RsaNumber::Modulus, &mut modulus).map_err(device_error)?;
    for _ in 0..TRIES {
        random(out)?;
        out[0] &= 0xff >> modulus[0].leading_zeros();
        if *out < modulus[..] && !is_trivial(rsa, out)? {
            return Ok(());
        }
    }
    Err(Error::DEVICE_ERROR)
}
