// SPDX-License-Identifier: Apache-2.0
//! AES in its modes (PKCS#11 3.2 §6.10–§6.16) and ChaCha20-Poly1305 (§6.61); one file per mode that is its own.

mod aead;
mod cbc_pad;
mod ccm;
mod gmac;
mod key_wrap;
mod keys;
mod stream;
mod xts;

use metaslot_spi::provider::Algorithm;

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
