// SPDX-License-Identifier: Apache-2.0
//! ChaCha20-Poly1305 (PKCS#11 3.2 §6.61) in one call, and encryption in parts.

use super::over::{Ciphering, cipher};
use super::parts::Plain;
use crate::chacha::{self, KEY, LONGEST, NONCE, Sealing, TAG};
use metaslot_ck::{CKA_VALUE, CKM_CHACHA20_POLY1305, Error, Result};
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction, Postponed};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

/// Its row, where the plain provider has one too.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    cipher(plain, CKM_CHACHA20_POLY1305, ChaCha).into_iter().collect()
}

/// Over the plain one.
#[derive(Debug)]
struct ChaCha(&'static dyn Cipher);

type Asked<'a> = (&'a [u8; KEY], &'a [u8; NONCE], &'a [u8]);

/// Key, nonce and what is authenticated beside the text. What is wrong with lengths is for the plain provider to say.
fn asked<'a>(key: &'a Key, params: &'a Params) -> Result<Option<Asked<'a>>> {
    let Params::ChaCha20Poly1305 { nonce, aad } = params else { return Ok(None) };
    let (key, nonce) = (key.secret(CKA_VALUE)?.try_into(), nonce[..].try_into());
    Ok(key.ok().zip(nonce.ok()).map(|(key, nonce)| (key, nonce, &aad[..])))
}

/// Encryption in parts. Decryption in parts is the plain provider's: it waits for the tag.
#[derive(Debug)]
struct Parts(Sealing);

impl CipherStream for Parts {
    fn update_length(&self, input: usize) -> usize {
        input
    }

    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        self.0.update(input, out).then_some(()).ok_or(Error::DATA_LEN_RANGE)
    }

    fn finish_length(&self) -> usize {
        TAG
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        out[..TAG].copy_from_slice(&self.0.finish());
        Ok(TAG)
    }
}

impl Ciphering for ChaCha {
    fn plain(&self) -> &'static dyn Cipher {
        self.0
    }

    fn serves(&self) -> bool {
        chacha::available()
    }

    fn run(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<Option<usize>> {
        let Some((key, nonce, aad)) = asked(key, params)? else { return Ok(None) };
        match direction {
            Direction::Forward if input.len() <= LONGEST => {
                let Some((out, tag)) = out.split_at_mut_checked(input.len()) else {
                    return Ok(None);
                };
                let Some(tag) = tag.first_chunk_mut() else { return Ok(None) };
                *tag = chacha::seal(key, nonce, aad, input, out);
                Ok(Some(input.len() + TAG))
            }
            Direction::Backward if input.len() <= LONGEST => {
                let Some((sealed, tag)) = input.split_last_chunk() else { return Ok(None) };
                let Some(out) = out.get_mut(..sealed.len()) else { return Ok(None) };
                let right = chacha::open(key, nonce, aad, sealed, tag, out);
                right.then_some(Some(sealed.len())).ok_or(Error::ENCRYPTED_DATA_INVALID)
            }
            _ => Ok(None),
        }
    }

    fn run_later(&self, _: Direction, _: &Arc<Key>, _: &Params, _: &[u8]) -> Postponed {
        Ok(None)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
    ) -> Result<Option<Box<dyn CipherStream>>> {
        let asked = asked(key, params)?.filter(|_| direction == Direction::Forward);
        let parts = asked.map(|(key, nonce, aad)| Parts(Sealing::new(key, nonce, aad)));
        Ok(parts.map(|parts| Box::new(parts) as Box<dyn CipherStream>))
    }
}
