// SPDX-License-Identifier: Apache-2.0
//! The C layout of parameters of mechanisms that make a key of another, or bring one to another place.

use super::{Params, of, pointer};
use crate::ulong;
use metaslot_ck::*;
use std::ffi::c_void;
use std::ptr;

/// One parameter, where its address can be taken.
#[derive(Debug)]
pub(crate) enum Made {
    None,
    /// The second is what the first points to.
    RsaAes(CK_RSA_AES_KEY_WRAP_PARAMS, CK_RSA_PKCS_OAEP_PARAMS),
    EcdhAes(CK_ECDH_AES_KEY_WRAP_PARAMS),
}

impl Made {
    /// The layout of a parameter that has one here.
    pub(super) fn of(params: &Params<'_>) -> Self {
        match *params {
            Params::RsaAes { bits, hash, mgf, label } => Self::RsaAes(
                CK_RSA_AES_KEY_WRAP_PARAMS { ulAESKeyBits: bits, pOAEPParams: ptr::null_mut() },
                CK_RSA_PKCS_OAEP_PARAMS {
                    hashAlg: hash,
                    mgf,
                    source: CKZ_DATA_SPECIFIED,
                    pSourceData: pointer(label).cast(),
                    ulSourceDataLen: ulong(label.len()),
                },
            ),
            Params::EcdhAes { bits, kdf, shared } => Self::EcdhAes(CK_ECDH_AES_KEY_WRAP_PARAMS {
                ulAESKeyBits: bits,
                kdf,
                ulSharedDataLen: ulong(shared.len()),
                pSharedData: pointer(shared),
            }),
            _ => Self::None,
        }
    }

    /// Address and length.
    pub(super) const fn parameter(&mut self) -> (*mut c_void, usize) {
        match self {
            Self::None => (ptr::null_mut(), 0),
            Self::RsaAes(params, by) => {
                params.pOAEPParams = ptr::from_mut(by);
                of(params)
            }
            Self::EcdhAes(params) => of(params),
        }
    }
}
