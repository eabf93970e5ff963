// SPDX-License-Identifier: Apache-2.0
//! Derivations of one step (PKCS#11 3.2 §6.43, §6.20–§6.31), by encryption (§6.17), and those of IKE and TLS: how much they give where
//! the template does not say it.

use crate::mechanism::Length;
use metaslot_ck::*;
use metaslot_spi::{Key, Params};

/// Bytes of a master secret of TLS and SSL.
const MASTER: usize = 48;

/// Whether a mechanism is one of them, and gives one key.
pub(super) const fn gives(mechanism: CK_MECHANISM_TYPE) -> bool {
    digest(mechanism).is_some()
        || is_master(mechanism)
        || encrypts(mechanism)
        || matches!(
            mechanism,
            CKM_CONCATENATE_BASE_AND_DATA
                | CKM_CONCATENATE_DATA_AND_BASE
                | CKM_XOR_BASE_AND_DATA
                | CKM_EXTRACT_KEY_FROM_KEY
                | CKM_TLS_KDF
                | CKM_TLS12_KDF
                | CKM_IKE_PRF_DERIVE
                | CKM_IKE1_EXTENDED_DERIVE
                | CKM_IKE2_PRF_PLUS_DERIVE
        )
}

/// Whether there is something to encrypt, by a mechanism that makes a key so: of nothing comes a key of no length, and a module would have
/// another word for that.
pub(super) fn has_data(mechanism: CK_MECHANISM_TYPE, params: &Params) -> bool {
    !encrypts(mechanism) || !matches!(params, Params::Data { data, .. } if data.is_empty())
}

/// How much comes out, in bytes; `None` where that has to be said.
pub(super) fn length(mechanism: CK_MECHANISM_TYPE, key: &Key, params: &Params) -> Option<usize> {
    let data = match params {
        Params::Data { data, .. } => Some(data.len()),
        _ => None,
    };
    let base = || usize::try_from(key.attributes().ulong(CKA_VALUE_LEN)?).ok();
    match (mechanism, params) {
        (CKM_CONCATENATE_BASE_AND_DATA | CKM_CONCATENATE_DATA_AND_BASE, _) => {
            base()?.checked_add(data?)
        }
        (CKM_XOR_BASE_AND_DATA, _) => Some(base()?.min(data?)),
        (CKM_IKE_PRF_DERIVE, Params::Ike { prf, .. }) => match Length::of(*prf) {
            Length::Fixed(length) => Some(length),
            _ => None,
        },
        _ if encrypts(mechanism) => data,
        _ if is_master(mechanism) => Some(MASTER),
        _ => digest(mechanism),
    }
}

/// Bytes of the digest that is the key; of an extendable function as much as its security allows (FIPS 202, table 4).
const fn digest(mechanism: CK_MECHANISM_TYPE) -> Option<usize> {
    Some(match mechanism {
        CKM_MD2_KEY_DERIVATION | CKM_MD5_KEY_DERIVATION => 16,
        CKM_SHA1_KEY_DERIVATION | CKM_BLAKE2B_160_KEY_DERIVE => 20,
        CKM_SHA224_KEY_DERIVATION | CKM_SHA512_224_KEY_DERIVATION | CKM_SHA3_224_KEY_DERIVE => 28,
        CKM_SHA256_KEY_DERIVATION
        | CKM_SHA512_256_KEY_DERIVATION
        | CKM_SHA3_256_KEY_DERIVE
        | CKM_BLAKE2B_256_KEY_DERIVE
        | CKM_SHAKE_128_KEY_DERIVE => 32,
        CKM_SHA384_KEY_DERIVATION | CKM_SHA3_384_KEY_DERIVE | CKM_BLAKE2B_384_KEY_DERIVE => 48,
        CKM_SHA512_KEY_DERIVATION
        | CKM_SHA3_512_KEY_DERIVE
        | CKM_BLAKE2B_512_KEY_DERIVE
        | CKM_SHAKE_256_KEY_DERIVE => 64,
        _ => return None,
    })
}

const fn encrypts(mechanism: CK_MECHANISM_TYPE) -> bool {
    matches!(
        mechanism,
        CKM_AES_ECB_ENCRYPT_DATA
            | CKM_AES_CBC_ENCRYPT_DATA
            | CKM_DES3_ECB_ENCRYPT_DATA
            | CKM_DES3_CBC_ENCRYPT_DATA
            | CKM_CAMELLIA_ECB_ENCRYPT_DATA
            | CKM_CAMELLIA_CBC_ENCRYPT_DATA
            | CKM_ARIA_ECB_ENCRYPT_DATA
            | CKM_ARIA_CBC_ENCRYPT_DATA
            | CKM_SEED_ECB_ENCRYPT_DATA
            | CKM_SEED_CBC_ENCRYPT_DATA
    )
}

const fn is_master(mechanism: CK_MECHANISM_TYPE) -> bool {
    matches!(
        mechanism,
        CKM_SSL3_MASTER_KEY_DERIVE
            | CKM_SSL3_MASTER_KEY_DERIVE_DH
            | CKM_TLS_MASTER_KEY_DERIVE
            | CKM_TLS_MASTER_KEY_DERIVE_DH
            | CKM_TLS12_MASTER_KEY_DERIVE
            | CKM_TLS12_MASTER_KEY_DERIVE_DH
            | CKM_TLS12_EXTENDED_MASTER_KEY_DERIVE
            | CKM_TLS12_EXTENDED_MASTER_KEY_DERIVE_DH
    )
}
