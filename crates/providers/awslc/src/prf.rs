// SPDX-License-Identifier: Apache-2.0
//! The pseudo-random functions of derivations, by the numbers of their MACs: HMAC, AES-CMAC and AES-XCBC-MAC.

use crate::aes::XcbcKey;
use crate::failure::device_error;
use metaslot_awslc_wrapper::aes::BLOCK;
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::{cmac, hmac};
use metaslot_ck::*;
use metaslot_memory::Secret;

#[derive(Clone, Copy)]
pub(crate) enum Prf {
    Hmac(Hash),
    Cmac,
    Xcbc,
}

impl Prf {
    pub(crate) const fn find(mechanism: CK_MECHANISM_TYPE) -> Option<Self> {
        Some(Self::Hmac(match mechanism {
            CKM_AES_CMAC => return Some(Self::Cmac),
            CKM_AES_XCBC_MAC => return Some(Self::Xcbc),
            CKM_MD5_HMAC => Hash::Md5,
            CKM_SHA_1_HMAC => Hash::Sha1,
            CKM_SHA224_HMAC => Hash::Sha224,
            CKM_SHA256_HMAC => Hash::Sha256,
            CKM_SHA384_HMAC => Hash::Sha384,
            CKM_SHA512_HMAC => Hash::Sha512,
            CKM_SHA512_224_HMAC => Hash::Sha512_224,
            CKM_SHA512_256_HMAC => Hash::Sha512_256,
            CKM_SHA3_224_HMAC => Hash::Sha3_224,
            CKM_SHA3_256_HMAC => Hash::Sha3_256,
            CKM_SHA3_384_HMAC => Hash::Sha3_384,
            CKM_SHA3_512_HMAC => Hash::Sha3_512,
            _ => return None,
        }))
    }

    /// Bytes of what comes out.
    pub(crate) const fn length(self) -> usize {
        match self {
            Self::Hmac(hash) => hash.length(),
            Self::Cmac | Self::Xcbc => BLOCK,
        }
    }
}

/// The function with its key.
pub(crate) enum Keyed {
    Hmac(hmac::Key),
    Cmac(cmac::Key),
    Xcbc(XcbcKey),
}

impl Keyed {
    /// With a key that its MAC takes.
    pub(crate) fn new(prf: Prf, key: &[u8]) -> Result<Self> {
        Ok(match prf {
            Prf::Hmac(hash) => Self::Hmac(hmac::Key::new(hash, key).map_err(device_error)?),
            Prf::Cmac => Self::Cmac(cmac::Key::new(key).map_err(|_| Error::KEY_SIZE_RANGE)?),
            Prf::Xcbc => Self::Xcbc(XcbcKey::of(key)?),
        })
    }

    /// With a key of any length, of which the functions of AES make one of 128 bits (RFC 4434 §2, RFC 4615 §3).
    pub(crate) fn of_any(prf: Prf, key: &[u8]) -> Result<Self> {
        if matches!(prf, Prf::Hmac(_)) || key.len() == BLOCK {
            return Self::new(prf, key);
        }
        let mut own = Secret::try_zeroed(BLOCK).ok_or(Error::DEVICE_MEMORY)?;
        match prf {
            Prf::Xcbc if key.len() < BLOCK => own.expose_mut()[..key.len()].copy_from_slice(key),
            _ => Self::new(prf, &[0; BLOCK])?.mac(&[key], own.expose_mut())?,
        }
        Self::new(prf, own.expose())
    }

    /// What comes of the parts, one after the other, or its beginning.
    pub(crate) fn mac(&self, parts: &[&[u8]], out: &mut [u8]) -> Result<()> {
        match self {
            Self::Hmac(key) => key.mac(parts, out),
            Self::Cmac(key) => key.mac(parts, out),
            Self::Xcbc(key) => {
                key.parts(parts, out);
                Ok(())
            }
        }
        .map_err(device_error)
    }
}
