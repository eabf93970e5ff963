// SPDX-License-Identifier: Apache-2.0
//! ChaCha20-Poly1305 in one call (PKCS#11 3.2 §6.63). Multi-part operations are the plain provider's.

use super::over::{Ciphering, cipher};
use super::parts::Plain;
use crate::chacha::{self, LONGEST, TAG};
use metaslot_ck::{CKA_VALUE, CKM_CHACHA20_POLY1305, Error, Result};
use metaslot_spi::provider::{Algorithm, Cipher, Direction, Postponed};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

/// Its row, where the plain provider has one too.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    cipher(plain, CKM_CHACHA20_POLY1305, ChaCha).into_iter().collect()
}

/// Over the plain one.
#[derive(Debug)]
struct ChaCha(&'static dyn Cipher);

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
        // What is wrong with lengths is for the plain provider to say.
        let Params::ChaCha20Poly1305 { nonce, aad } = params else { return Ok(None) };
        let (Ok(key), Ok(nonce)) = (key.secret(CKA_VALUE)?.try_into(), nonce[..].try_into()) else {
            return Ok(None);
        };
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
}
