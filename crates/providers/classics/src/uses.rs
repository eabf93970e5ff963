// SPDX-License-Identifier: Apache-2.0
//! Table: which cipher a mechanism is, in which mode.

use crate::ciphers::*;
use crate::modes::Feedback;
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, checked};
use metaslot_spi::table;
use metaslot_spi::wrapping::ByCipher;

/// What a mechanism does with its cipher.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mode {
    /// A key is made.
    Generate,
    /// Each block on its own.
    Ecb,
    /// Blocks chained.
    Cbc,
    /// Blocks chained, padded (PKCS#7).
    CbcPad,
    /// A counter is encrypted.
    Ctr,
    /// What was encrypted last, or that of the last time, is encrypted again: a whole block of it, or one byte.
    Stream(Feedback, usize),
    /// The last block of a chain is a MAC: half of it, or as much as is said.
    Mac,
    /// Said.
    MacGeneral,
    /// CMAC (SP 800-38B): all of it, or as much as is said.
    Cmac,
    /// Said.
    CmacGeneral,
    /// A key is derived by encrypting data, chained where there is an IV.
    Data,
}

/// One mechanism.
#[derive(Debug)]
pub(crate) struct Use {
    mechanism: CK_MECHANISM_TYPE,
    pub(crate) cipher: &'static Cipher,
    pub(crate) mode: Mode,
}

const fn row(mechanism: CK_MECHANISM_TYPE, cipher: &'static Cipher, mode: Mode) -> ByCipher<Use> {
    ByCipher(Use { mechanism, cipher, mode })
}

const CFB8: Mode = Mode::Stream(Feedback::Cipher, 1);
const CFB64: Mode = Mode::Stream(Feedback::Cipher, 8);
const OFB8: Mode = Mode::Stream(Feedback::Output, 1);
const OFB64: Mode = Mode::Stream(Feedback::Output, 8);

#[rustfmt::skip]
static USES: [ByCipher<Use>; 25] = [
    row(CKM_DES_KEY_GEN, &DES, Mode::Generate),
    row(CKM_DES_ECB, &DES, Mode::Ecb),
    row(CKM_DES_CBC, &DES, Mode::Cbc),
    row(CKM_DES_MAC, &DES, Mode::Mac),
    row(CKM_DES_MAC_GENERAL, &DES, Mode::MacGeneral),
    row(CKM_DES_CBC_PAD, &DES, Mode::CbcPad),
    row(CKM_DES_OFB64, &DES, OFB64),
    row(CKM_DES_OFB8, &DES, OFB8),
    row(CKM_DES_CFB64, &DES, CFB64),
    row(CKM_DES_CFB8, &DES, CFB8),
    row(CKM_DES_ECB_ENCRYPT_DATA, &DES, Mode::Data),
    row(CKM_DES_CBC_ENCRYPT_DATA, &DES, Mode::Data),
    row(CKM_DES3_MAC, &DES3, Mode::Mac),
    row(CKM_DES3_MAC_GENERAL, &DES3, Mode::MacGeneral),
    row(CKM_DES3_CMAC, &DES3, Mode::Cmac),
    row(CKM_DES3_CMAC_GENERAL, &DES3, Mode::CmacGeneral),
    row(CKM_CAMELLIA_KEY_GEN, &CAMELLIA, Mode::Generate),
    row(CKM_CAMELLIA_ECB, &CAMELLIA, Mode::Ecb),
    row(CKM_CAMELLIA_CBC, &CAMELLIA, Mode::Cbc),
    row(CKM_CAMELLIA_MAC, &CAMELLIA, Mode::Mac),
    row(CKM_CAMELLIA_MAC_GENERAL, &CAMELLIA, Mode::MacGeneral),
    row(CKM_CAMELLIA_CBC_PAD, &CAMELLIA, Mode::CbcPad),
    row(CKM_CAMELLIA_CTR, &CAMELLIA, Mode::Ctr),
    row(CKM_CAMELLIA_ECB_ENCRYPT_DATA, &CAMELLIA, Mode::Data),
    row(CKM_CAMELLIA_CBC_ENCRYPT_DATA, &CAMELLIA, Mode::Data),
];

pub(crate) static ALGORITHMS: [Algorithm; USES.len()] = {
    let mut rows = [Algorithm::NONE; USES.len()];
    let mut at = 0;
    while at < rows.len() {
        rows[at] = algorithm(&USES[at]);
        at += 1;
    }
    checked(table::merged(&[&rows]))
};

/// What can be done with a mechanism follows from its mode.
const fn algorithm(with: &'static ByCipher<Use>) -> Algorithm {
    let own = &with.0;
    let row =
        Algorithm { mechanism: own.mechanism, key_sizes: own.cipher.sizes, ..Algorithm::NONE };
    match own.mode {
        Mode::Generate => Algorithm { generate: Some(own), ..row },
        Mode::Data => Algorithm { derive: Some(own), ..row },
        Mode::Mac | Mode::MacGeneral | Mode::Cmac | Mode::CmacGeneral => {
            Algorithm { sign: Some(own), verify: Some(own), ..row }
        }
        Mode::Stream(..) => Algorithm { encrypt: Some(own), decrypt: Some(own), ..row },
        Mode::Ecb | Mode::Cbc | Mode::CbcPad | Mode::Ctr => Algorithm {
            encrypt: Some(own),
            decrypt: Some(own),
            wrap: Some(with),
            unwrap: Some(with),
            ..row
        },
    }
}
