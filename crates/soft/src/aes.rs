// SPDX-License-Identifier: Apache-2.0
//! AES in its modes (PKCS#11 3.2 §6.13–§6.19); one file per mode.

mod blocks;
mod cbc;
mod ccm;
mod ctr;
mod ecb;
mod gcm;
mod key_wrap;
mod mac;
mod xts;

use metaslot_awslc::aes::{Keys, Way};
use metaslot_ck::{CKA_VALUE, Error, Result};
use metaslot_engine::Key;
use metaslot_engine::provider::{Algorithm, Direction};

/// One row per mode.
pub(crate) const ROWS: [Algorithm; 12] = [
    ecb::ROW,
    cbc::ROW,
    cbc::PAD_ROW,
    ctr::ROW,
    gcm::ROW,
    ccm::ROW,
    mac::CMAC_ROW,
    mac::CMAC_GENERAL_ROW,
    mac::GMAC_ROW,
    xts::ROW,
    key_wrap::ROW,
    key_wrap::PADDED_ROW,
];

/// Sizes of AES keys, in bytes.
const KEYS: (u64, u64) = (16, 32);

/// The key schedules.
fn keys(key: &Key) -> Result<&Keys> {
    key.prepared(|key| Keys::new(key.secret(CKA_VALUE)?).map_err(|_| Error::KEY_SIZE_RANGE))
}

const fn way(direction: Direction) -> Way {
    match direction {
        Direction::Forward => Way::Encrypt,
        Direction::Backward => Way::Decrypt,
    }
}

/// The complaint about a length, by direction.
const fn length_error(direction: Direction) -> Error {
    match direction {
        Direction::Forward => Error::DATA_LEN_RANGE,
        Direction::Backward => Error::ENCRYPTED_DATA_LEN_RANGE,
    }
}
