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
use metaslot_spi::wrapping::ByCipher;

/// One row per mode.
pub(crate) const ROWS: [Algorithm; 3] = checked([
    Algorithm {
        mechanism: CKM_DES3_ECB,
        key_sizes: KEYS,
        encrypt: Some(&Ecb::<Des, BLOCK>::NEW),
        decrypt: Some(&Ecb::<Des, BLOCK>::NEW),
        wrap: Some(&ByCipher(Ecb::<Des, BLOCK>::NEW)),
        unwrap: Some(&ByCipher(Ecb::<Des, BLOCK>::NEW)),
        ..Algorithm::NONE
    },
    Algorithm {
        mechanism: CKM_DES3_CBC,
        key_sizes: KEYS,
        encrypt: Some(&Cbc::<Des, BLOCK>::NEW),
        decrypt: Some(&Cbc::<Des, BLOCK>::NEW),
        wrap: Some(&ByCipher(Cbc::<Des, BLOCK>::NEW)),
        unwrap: Some(&ByCipher(Cbc::<Des, BLOCK>::NEW)),
        ..Algorithm::NONE
    },
    Algorithm {
        mechanism: CKM_DES3_CBC_PAD,
        key_sizes: KEYS,
        encrypt: Some(&CbcPad::<Des, BLOCK>::NEW),
        decrypt: Some(&CbcPad::<Des, BLOCK>::NEW),
        wrap: Some(&ByCipher(CbcPad::<Des, BLOCK>::NEW)),
        unwrap: Some(&ByCipher(CbcPad::<Des, BLOCK>::NEW)),
        ..Algorithm::NONE
    },
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
