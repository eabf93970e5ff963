// SPDX-License-Identifier: Apache-2.0
//! AES-GCM (PKCS#11 3.2 §6.13.2) and ChaCha20-Poly1305 (§6.61).
//!
//! The kernel takes a message whole, up to some size, with a nonce of 12 bytes, and knows not every length of a tag. What it does
//! not take, and messages in parts, the row of the plain provider does; that also says what is refused.
//! Where nothing is left of a message the kernel is asked for nothing, and looks at no tag.

use crate::cipher::KEYS;
use crate::failure::device_error;
use crate::offer::Offer;
use metaslot_awslc_wrapper::cleanse;
use metaslot_ck::*;
use metaslot_kernel_wrapper::cipher::{MOST, Message};
use metaslot_kernel_wrapper::{Errno, Kind};
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction, Provider};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

/// One row per function that the plain provider has, too.
pub(crate) fn offers(plain: &'static dyn Provider) -> impl Iterator<Item = Offer> {
    let names = [
        (CKM_AES_GCM, KEYS, "gcm(aes)"),
        (CKM_CHACHA20_POLY1305, (32, 32), "rfc7539(chacha20,poly1305)"),
    ];
    names.into_iter().filter_map(|(mechanism, key_sizes, name)| {
        let row = plain.algorithms().iter().find(|row| row.mechanism == mechanism)?;
        // Once in a process.
        let over = |plain| -> &'static dyn Cipher { Box::leak(Box::new(Over { plain, name })) };
        let row = Algorithm {
            mechanism,
            key_sizes,
            encrypt: row.encrypt.map(over),
            decrypt: row.decrypt.map(over),
            ..Algorithm::NONE
        };
        Some(Offer { row, kind: Kind::Aead, name })
    })
}

/// An AEAD over the plain provider's.
#[derive(Debug)]
struct Over {
    plain: &'static dyn Cipher,
    name: &'static str,
}

/// What the kernel takes; with the tag it is so many bytes.
fn message(params: &Params, text: usize) -> Option<Message<'_>> {
    let (iv, aad, tag) = match params {
        Params::Gcm { iv, aad, tag_bits } => (iv, aad, usize::try_from(tag_bits / 8).ok()?),
        Params::ChaCha20Poly1305 { nonce, aad } => (nonce, aad, 16),
        _ => return None,
    };
    let fits = text + tag <= MOST && aad.len() <= MOST - text - tag;
    let takes = iv.len() == 12 && matches!(tag, 4 | 8 | 12..=16);
    let answers = text > 0 || !aad.is_empty();
    (fits && takes && answers).then_some(Message { iv, aad, tag })
}

impl Cipher for Over {
    fn serves(&self, key: &Key) -> bool {
        self.plain.serves(key)
    }

    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.plain.check(direction, key, params)
    }

    fn length(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: usize,
    ) -> Result<usize> {
        self.plain.length(direction, key, params, input)
    }

    fn run(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        let length = self.length(direction, key, params, input.len())?;
        let encrypt = direction == Direction::Forward;
        let Some(message) = message(params, input.len().min(length)) else {
            return self.plain.run(direction, key, params, input, out);
        };
        let (value, out) = (key.secret(CKA_VALUE)?, &mut out[..length]);
        match message.run((self.name, value), encrypt, input, out) {
            Err(Errno::BADMSG) if !encrypt => {
                cleanse(out);
                Err(Error::ENCRYPTED_DATA_INVALID)
            }
            done => done.map(|()| length).map_err(device_error),
        }
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        self.plain.start(direction, key, params)
    }
}
