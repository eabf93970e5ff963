// SPDX-License-Identifier: Apache-2.0
//! Table: which cipher a mechanism is, in which mode.

use crate::ciphers::*;
use crate::mechanism::{Feedback, Mode, Use};
use crate::salsa20;
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, checked};
use metaslot_spi::table;
use metaslot_spi::wrapping::{self, ByCipher};

const fn row(mechanism: CK_MECHANISM_TYPE, cipher: &'static Cipher, mode: Mode) -> ByCipher<Use> {
    ByCipher(Use { mechanism, cipher, mode })
}

const CFB8: Mode = Mode::Stream(Feedback::Cipher, 1);
const CFB64: Mode = Mode::Stream(Feedback::Cipher, 8);
const OFB8: Mode = Mode::Stream(Feedback::Output, 1);
const OFB64: Mode = Mode::Stream(Feedback::Output, 8);

#[rustfmt::skip]
static USES: [ByCipher<Use>; 71] = [
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
    row(CKM_ARIA_KEY_GEN, &ARIA, Mode::Generate),
    row(CKM_ARIA_ECB, &ARIA, Mode::Ecb),
    row(CKM_ARIA_CBC, &ARIA, Mode::Cbc),
    row(CKM_ARIA_MAC, &ARIA, Mode::Mac),
    row(CKM_ARIA_MAC_GENERAL, &ARIA, Mode::MacGeneral),
    row(CKM_ARIA_CBC_PAD, &ARIA, Mode::CbcPad),
    row(CKM_ARIA_ECB_ENCRYPT_DATA, &ARIA, Mode::Data),
    row(CKM_ARIA_CBC_ENCRYPT_DATA, &ARIA, Mode::Data),
    row(CKM_SEED_KEY_GEN, &SEED, Mode::Generate),
    row(CKM_SEED_ECB, &SEED, Mode::Ecb),
    row(CKM_SEED_CBC, &SEED, Mode::Cbc),
    row(CKM_SEED_MAC, &SEED, Mode::Mac),
    row(CKM_SEED_MAC_GENERAL, &SEED, Mode::MacGeneral),
    row(CKM_SEED_CBC_PAD, &SEED, Mode::CbcPad),
    row(CKM_SEED_ECB_ENCRYPT_DATA, &SEED, Mode::Data),
    row(CKM_SEED_CBC_ENCRYPT_DATA, &SEED, Mode::Data),
    row(CKM_CAST5_KEY_GEN, &CAST5, Mode::Generate),
    row(CKM_CAST5_ECB, &CAST5, Mode::Ecb),
    row(CKM_CAST5_CBC, &CAST5, Mode::Cbc),
    row(CKM_CAST5_MAC, &CAST5, Mode::Mac),
    row(CKM_CAST5_MAC_GENERAL, &CAST5, Mode::MacGeneral),
    row(CKM_CAST5_CBC_PAD, &CAST5, Mode::CbcPad),
    row(CKM_IDEA_KEY_GEN, &IDEA, Mode::Generate),
    row(CKM_IDEA_ECB, &IDEA, Mode::Ecb),
    row(CKM_IDEA_CBC, &IDEA, Mode::Cbc),
    row(CKM_IDEA_MAC, &IDEA, Mode::Mac),
    row(CKM_IDEA_MAC_GENERAL, &IDEA, Mode::MacGeneral),
    row(CKM_IDEA_CBC_PAD, &IDEA, Mode::CbcPad),
    row(CKM_RC2_KEY_GEN, &RC2, Mode::Generate),
    row(CKM_RC2_ECB, &RC2, Mode::Ecb),
    row(CKM_RC2_CBC, &RC2, Mode::Cbc),
    row(CKM_RC2_MAC, &RC2, Mode::Mac),
    row(CKM_RC2_MAC_GENERAL, &RC2, Mode::MacGeneral),
    row(CKM_RC2_CBC_PAD, &RC2, Mode::CbcPad),
    row(CKM_RC5_KEY_GEN, &RC5, Mode::Generate),
    row(CKM_RC5_ECB, &RC5, Mode::Ecb),
    row(CKM_RC5_CBC, &RC5, Mode::Cbc),
    row(CKM_RC5_MAC, &RC5, Mode::Mac),
    row(CKM_RC5_MAC_GENERAL, &RC5, Mode::MacGeneral),
    row(CKM_RC5_CBC_PAD, &RC5, Mode::CbcPad),
    row(CKM_BLOWFISH_KEY_GEN, &BLOWFISH, Mode::Generate),
    row(CKM_BLOWFISH_CBC, &BLOWFISH, Mode::Cbc),
    row(CKM_BLOWFISH_CBC_PAD, &BLOWFISH, Mode::CbcPad),
    row(CKM_TWOFISH_KEY_GEN, &TWOFISH, Mode::Generate),
    row(CKM_TWOFISH_CBC, &TWOFISH, Mode::Cbc),
    row(CKM_TWOFISH_CBC_PAD, &TWOFISH, Mode::CbcPad),
];

pub(crate) static ALGORITHMS: [Algorithm; USES.len() + salsa20::ROWS.len()] = {
    let mut rows = [Algorithm::NONE; USES.len()];
    let mut at = 0;
    while at < rows.len() {
        rows[at] = algorithm(&USES[at]);
        at += 1;
    }
    checked(table::merged(&[&rows, &salsa20::ROWS]))
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
        Mode::Ecb | Mode::Cbc | Mode::CbcPad | Mode::Ctr => {
            wrapping::row(own.mechanism, own.cipher.sizes, with)
        }
    }
}
