// SPDX-License-Identifier: Apache-2.0
//! Table: RSA without a hash of its own (PKCS#11 3.2 §6.1).

use crate::rsa_cipher::RsaCipher;
use crate::rsa_key::{KeyPair, SIZES};
use crate::rsa_raw;
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, checked};

pub(crate) const ROWS: [Algorithm; 4] = checked([
    Algorithm {
        mechanism: CKM_RSA_PKCS_KEY_PAIR_GEN,
        key_sizes: SIZES,
        generate_pair: Some(&KeyPair),
        ..Algorithm::NONE
    },
    Algorithm {
        mechanism: CKM_RSA_PKCS,
        key_sizes: SIZES,
        encrypt: Some(&RsaCipher::Pkcs1),
        decrypt: Some(&RsaCipher::Pkcs1),
        wrap: Some(&RsaCipher::Pkcs1),
        unwrap: Some(&RsaCipher::Pkcs1),
        encapsulate: Some(&RsaCipher::Pkcs1),
        decapsulate: Some(&RsaCipher::Pkcs1),
        sign: Some(&rsa_raw::Pkcs1),
        verify: Some(&rsa_raw::Pkcs1),
        sign_recover: Some(&rsa_raw::Pkcs1),
        verify_recover: Some(&rsa_raw::Pkcs1),
        ..Algorithm::NONE
    },
    Algorithm {
        mechanism: CKM_RSA_X_509,
        key_sizes: SIZES,
        encrypt: Some(&RsaCipher::X509),
        decrypt: Some(&RsaCipher::X509),
        wrap: Some(&RsaCipher::X509),
        unwrap: Some(&RsaCipher::X509),
        encapsulate: Some(&RsaCipher::X509),
        decapsulate: Some(&RsaCipher::X509),
        sign: Some(&rsa_raw::X509),
        verify: Some(&rsa_raw::X509),
        sign_recover: Some(&rsa_raw::X509),
        verify_recover: Some(&rsa_raw::X509),
        ..Algorithm::NONE
    },
    Algorithm {
        mechanism: CKM_RSA_PKCS_OAEP,
        key_sizes: SIZES,
        encrypt: Some(&RsaCipher::Oaep),
        decrypt: Some(&RsaCipher::Oaep),
        wrap: Some(&RsaCipher::Oaep),
        unwrap: Some(&RsaCipher::Oaep),
        encapsulate: Some(&RsaCipher::Oaep),
        decapsulate: Some(&RsaCipher::Oaep),
        ..Algorithm::NONE
    },
]);
