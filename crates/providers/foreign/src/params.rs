// SPDX-License-Identifier: Apache-2.0
//! Parameters of mechanisms, for the module.

use metaslot_ck::{CK_MECHANISM_TYPE, Error, Result};
use metaslot_client::{Mechanism, Params as Foreign};
use metaslot_spi::Params;

/// The mechanism with its parameter, as the module wants it.
///
/// # Errors
/// `CKR_MECHANISM_PARAM_INVALID` for parameters that name keys.
pub(crate) fn mechanism(number: CK_MECHANISM_TYPE, params: &Params) -> Result<Mechanism<'_>> {
    let params = match params {
        Params::None => Foreign::None,
        Params::Iv(iv) => Foreign::Bytes(iv),
        Params::Ulong(number) => Foreign::Ulong(*number),
        Params::Ctr { bits, block } => Foreign::Ctr { bits: *bits, block: *block },
        Params::Gcm { iv, aad, tag_bits } => Foreign::Gcm { iv, aad, tag_bits: *tag_bits },
        Params::Ccm { data_length, nonce, aad, mac_length } => {
            Foreign::Ccm { data_length: *data_length, nonce, aad, mac_length: *mac_length }
        }
        Params::ChaCha20Poly1305 { nonce, aad } => Foreign::ChaCha20Poly1305 { nonce, aad },
        Params::Oaep { hash, mgf, label } => Foreign::Oaep { hash: *hash, mgf: *mgf, label },
        Params::Pss { hash, mgf, salt_length } => {
            Foreign::Pss { hash: *hash, mgf: *mgf, salt_length: *salt_length }
        }
        Params::EdDsa { prehash: false, context } if context.is_empty() => Foreign::None,
        Params::EdDsa { prehash, context } => Foreign::EdDsa { prehash: *prehash, context },
        Params::SignContext { hedge, context } => Foreign::SignContext { hedge: *hedge, context },
        Params::HashSignContext { hedge, context, hash } => {
            Foreign::HashSignContext { hedge: *hedge, context, hash: *hash }
        }
        Params::Ecdh1 { .. }
        | Params::Hkdf { .. }
        | Params::Pbkd2 { .. }
        | Params::Sp800108 { .. }
        | Params::Transport { .. }
        | Params::Data { .. }
        | Params::Key(_)
        | Params::ChaCha20 { .. }
        | Params::Pbe { .. }
        | Params::Salsa20 { .. }
        | Params::Tuned { .. }
        | Params::Ike { .. }
        | Params::Otp(_)
        | Params::XEdDsa { .. }
        | Params::DsaSeed(_)
        | Params::Tls(_) => return Err(Error::MECHANISM_PARAM_INVALID),
    };
    Ok(Mechanism::with(number, params))
}
