// SPDX-License-Identifier: Apache-2.0
//! AES in its modes (PKCS#11 3.2 §6.10–§6.16); one file per mode that is its own.

mod ccm;
mod cfb;
mod chained;
mod ctr;
mod cts;
mod gcm;
mod key_wrap;
mod keys;
mod mac;
mod xts;

use crate::block::BlockCipher;
use crate::block::cbc::{Cbc, CbcPad};
use crate::block::ecb::Ecb;
use crate::failure::device_error;
pub(crate) use chained::XcbcKey;
pub(crate) use keys::KEYS;
use keys::keys;
use metaslot_awslc_wrapper::aes::{self, BLOCK, Keys, Way};
use metaslot_ck::*;
use metaslot_spi::Key;
use metaslot_spi::provider::Algorithm;
use metaslot_spi::wrapping::{self, ByCipher};

/// One row per mode.
pub(crate) const ROWS: [Algorithm; 24] = [
    ECB_ROW,
    CBC_ROW,
    CBC_PAD_ROW,
    ctr::ROW,
    cfb::ROW,
    cfb::CFB64_ROW,
    cfb::CFB8_ROW,
    cfb::CFB1_ROW,
    cfb::OFB_ROW,
    cts::ROW,
    chained::CBC_ROW,
    chained::CBC_GENERAL_ROW,
    chained::XCBC_ROW,
    chained::XCBC_96_ROW,
    gcm::ROW,
    ccm::ROW,
    mac::CMAC_ROW,
    mac::CMAC_GENERAL_ROW,
    mac::GMAC_ROW,
    xts::ROW,
    key_wrap::ROW,
    key_wrap::PADDED_ROW,
    key_wrap::PKCS7_ROW,
    key_wrap::PAD_ROW,
];

const ECB_ROW: Algorithm = wrapping::row(CKM_AES_ECB, KEYS, &ByCipher(Ecb::<Aes, BLOCK>::NEW));

const CBC_ROW: Algorithm = wrapping::row(CKM_AES_CBC, KEYS, &ByCipher(Cbc::<Aes, BLOCK>::NEW));

const CBC_PAD_ROW: Algorithm =
    wrapping::row(CKM_AES_CBC_PAD, KEYS, &ByCipher(CbcPad::<Aes, BLOCK>::NEW));

/// Up to here the prepared schedule is faster than a context that works on several blocks at once,
/// in bytes.
const FEW: usize = 8 * BLOCK;

/// AES in the modes that every block cipher has.
#[derive(Debug)]
pub(crate) struct Aes;

impl BlockCipher<BLOCK> for Aes {
    type Keys = Keys;

    fn keys(key: &Key) -> Result<&Keys> {
        keys(key)
    }

    fn ecb(key: &Key, way: Way, input: &[u8], out: &mut [u8]) -> Result<()> {
        if input.len() <= FEW {
            keys(key)?.ecb(way, input, out);
            return Ok(());
        }
        aes::ecb(key.secret(CKA_VALUE)?, way, input, out).map_err(device_error)
    }

    fn cbc(keys: &Keys, way: Way, iv: &mut [u8; BLOCK], input: &[u8], out: &mut [u8]) {
        keys.cbc(way, iv, input, out);
    }
}
