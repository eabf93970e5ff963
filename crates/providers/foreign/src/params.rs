// SPDX-License-Identifier: Apache-2.0
//! Parameters of mechanisms, for the module.

mod ike_tls;

use metaslot_ck::*;
use metaslot_client::{KdfParam as ForeignData, Mechanism, Params as Foreign};
use metaslot_spi::{KdfParam, Params, detail};

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
        Params::Transport { bits, by } => carrying(*bits, by)?,
        Params::ChaCha20 { counter, nonce } => Foreign::ChaCha20 { counter: *counter, nonce },
        Params::XEdDsa { hash } => Foreign::XEdDsa { hash: *hash },
        Params::Tls(tls) => ike_tls::finished(number, tls)?,
        Params::Ecdh1 { .. }
        | Params::Hkdf { .. }
        | Params::Pbkd2 { .. }
        | Params::Sp800108 { .. }
        | Params::Data { .. }
        | Params::Key(_)
        | Params::Pbe { .. }
        | Params::Salsa20 { .. }
        | Params::Tuned { .. }
        | Params::Ike { .. }
        | Params::Otp(_)
        | Params::DsaSeed(_) => return Err(Error::MECHANISM_PARAM_INVALID),
    };
    Ok(Mechanism::with(number, params))
}

/// That of a wrap under an AES key, which goes along by another mechanism.
fn carrying(bits: u64, by: &Params) -> Result<Foreign<'_>> {
    match by {
        Params::Oaep { hash, mgf, label } => {
            Ok(Foreign::RsaAes { bits, hash: *hash, mgf: *mgf, label })
        }
        Params::Ecdh1 { kdf, shared, .. } => Ok(Foreign::EcdhAes { bits, kdf: *kdf, shared }),
        _ => Err(Error::MECHANISM_PARAM_INVALID),
    }
}

/// What each step of SP 800-108 takes, for [`deriving`].
pub(crate) fn data(params: &Params) -> Vec<ForeignData<'_>> {
    match params {
        Params::Sp800108 { data, .. } => data.iter().map(step).collect(),
        _ => Vec::new(),
    }
}

fn step(data: &KdfParam) -> ForeignData<'_> {
    match *data {
        KdfParam::Iteration { bits: 0, .. } => ForeignData::Previous,
        KdfParam::Iteration { little_endian, bits } => {
            ForeignData::Iteration { little_endian, bits }
        }
        KdfParam::Counter { little_endian, bits } => ForeignData::Counter { little_endian, bits },
        KdfParam::DkmLength { sum_of_segments, little_endian, bits } => {
            ForeignData::DkmLength { sum_of_segments, little_endian, bits }
        }
        KdfParam::Bytes(ref bytes) => ForeignData::Bytes(bytes),
    }
}

/// [`mechanism`] of a derivation, with its [`data`].
///
/// # Errors
/// As [`mechanism`].
pub(crate) fn deriving<'a>(
    number: CK_MECHANISM_TYPE,
    params: &'a Params,
    data: &'a [ForeignData<'a>],
) -> Result<Mechanism<'a>> {
    let params = match params {
        Params::Ecdh1 { public, .. } if number == CKM_DH_PKCS_DERIVE => Foreign::Bytes(public),
        Params::Ecdh1 { kdf, shared, public } if number == CKM_X9_42_DH_DERIVE => {
            let kdf = if *kdf == CKD_SHA1_KDF { CKD_SHA1_KDF_CONCATENATE } else { *kdf };
            Foreign::X942 { kdf, info: shared, public }
        }
        Params::Ecdh1 { kdf, shared, public } => Foreign::Ecdh1 { kdf: *kdf, shared, public },
        Params::Hkdf { extract, expand, prf, salt_type, salt, info, .. }
            if *salt_type != CKF_HKDF_SALT_KEY =>
        {
            Foreign::Hkdf {
                extract: *extract,
                expand: *expand,
                prf: *prf,
                salt_type: *salt_type,
                salt,
                salt_key: ObjectHandle(0),
                info,
            }
        }
        Params::Sp800108 { prf, iv, .. } if number == CKM_SP800_108_FEEDBACK_KDF => {
            Foreign::Sp800108Feedback { prf: *prf, data, iv }
        }
        Params::Sp800108 { prf, .. } => Foreign::Sp800108 { prf: *prf, data },
        Params::Data { iv, data } if iv.is_empty() => Foreign::StringData { data },
        Params::Data { iv, data } => Foreign::CbcData { iv, data },
        Params::Ike { prf, data, data_as_key, before } if before.is_empty() => {
            ike_tls::ike(number, *prf, data, *data_as_key)?
        }
        Params::Tls(tls) => ike_tls::tls(number, tls)?,
        Params::Hkdf { .. } | Params::Key(_) | Params::Ike { .. } => {
            detail::set(format_args!("a second key is not named to another module"));
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        _ => return mechanism(number, params),
    };
    Ok(Mechanism::with(number, params))
}
