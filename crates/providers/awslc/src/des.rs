// SPDX-License-Identifier: Apache-2.0
//! Triple DES with keys of two and of three parts (PKCS#11 3.2 §6.18): for old data.

use crate::block::BlockCipher;
use crate::block::cbc::{Cbc, CbcPad};
use crate::block::ecb::Ecb;
use metaslot_awslc_wrapper::aes::Way;
use metaslot_awslc_wrapper::des::{BLOCK, Keys};
use metaslot_ck::*;
use metaslot_spi::Key;
use metaslot_spi::provider::{Algorithm, checked};
use metaslot_spi::wrapping::{self, ByCipher};

/// One row per mode.
pub(crate) const ROWS: [Algorithm; 3] = checked([
    wrapping::row(CKM_DES3_ECB, KEYS, &ByCipher(Ecb::<Des, BLOCK>::NEW)),
    wrapping::row(CKM_DES3_CBC, KEYS, &ByCipher(Cbc::<Des, BLOCK>::NEW)),
    wrapping::row(CKM_DES3_CBC_PAD, KEYS, &ByCipher(CbcPad::<Des, BLOCK>::NEW)),
]);

/// Sizes of keys, in bytes.
pub(crate) const KEYS: (u64, u64) = (16, 24);

#[derive(Debug)]
pub(crate) struct Des;

impl BlockCipher<BLOCK> for Des {
    type Keys = Keys;

    fn keys(key: &Key) -> Result<&Keys> {
        key.prepared(|key| Keys::new(key.secret(CKA_VALUE)?).map_err(|_| Error::KEY_SIZE_RANGE))
    }

    fn ecb(key: &Key, way: Way, input: &[u8], out: &mut [u8]) -> Result<()> {
        Self::keys(key)?.ecb(way, input, out);
        Ok(())
    }

    fn cbc(keys: &Keys, way: Way, iv: &mut [u8; BLOCK], input: &[u8], out: &mut [u8]) {
        keys.cbc(way, iv, input, out);
    }
}
