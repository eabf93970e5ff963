// SPDX-License-Identifier: Apache-2.0
//! AES in its modes (PKCS#11 3.2 §6.13–§6.19) and ChaCha20-Poly1305 (§6.63); one file per mode that is its own.

mod aead;
mod cbc_pad;
mod ccm;
mod gmac;
mod key_wrap;
mod keys;
mod stream;
mod xts;

use metaslot_ck::Error;
use metaslot_spi::provider::{Algorithm, Direction};

/// One row per mode.
pub(crate) const ROWS: [Algorithm; 12] = [
    stream::ECB,
    stream::CBC,
    stream::CTR,
    stream::CFB,
    cbc_pad::ROW,
    aead::GCM,
    aead::CHACHA20_POLY1305,
    ccm::ROW,
    gmac::ROW,
    xts::ROW,
    key_wrap::ROW,
    key_wrap::PADDED_ROW,
];

/// Sizes of AES keys, in bytes.
const KEYS: (u64, u64) = (16, 32);

/// Whether the library encrypts.
fn encrypts(direction: Direction) -> bool {
    direction == Direction::Forward
}

/// The complaint about a length, by direction.
const fn length_error(direction: Direction) -> Error {
    match direction {
        Direction::Forward => Error::DATA_LEN_RANGE,
        Direction::Backward => Error::ENCRYPTED_DATA_LEN_RANGE,
    }
}
