// SPDX-License-Identifier: Apache-2.0
//! The parameter of one message of several (PKCS#11 3.2 §6.13.2, §6.13.4, §6.61): what stands there, and what is put there.

use crate::{Bytes, Params};
use metaslot_ck::mechanism::Shape;
use metaslot_ck::{CK_ULONG, CKG_NO_GENERATE};

/// The parameter of a message that is sealed or opened.
#[derive(Debug)]
pub struct Message {
    /// Whose parameter it is: that of `CKM_AES_GCM`, `CKM_AES_CCM` or `CKM_CHACHA20_POLY1305`.
    pub shape: Shape,
    /// The IV, or its fixed part where the rest is generated.
    pub iv: Bytes,
    /// Length of the fixed part, in bits.
    pub fixed_bits: CK_ULONG,
    /// `CKG_…`
    pub generator: CK_ULONG,
    /// The tag, or room for it.
    pub tag: Bytes,
    /// Length of the plaintext in bytes, for CCM.
    pub data_length: CK_ULONG,
}

impl Message {
    /// An empty message; `None` for mechanisms that do not authenticate what they encrypt.
    #[must_use]
    pub fn plain(shape: Shape) -> Option<Self> {
        let known = matches!(shape, Shape::Gcm | Shape::Ccm | Shape::ChaCha20Poly1305);
        known.then(|| Self {
            shape,
            iv: Bytes::from_elem(0, 12),
            fixed_bits: 0,
            generator: CKG_NO_GENERATE,
            tag: Bytes::from_elem(0, 16),
            data_length: 0,
        })
    }

    /// The same as the parameter of a mechanism that has one message.
    #[must_use]
    pub fn params(&self, aad: &[u8]) -> Params {
        let (iv, aad, tag) = (self.iv.clone(), Bytes::from_slice(aad), self.tag.len() as CK_ULONG);
        match self.shape {
            Shape::Gcm => Params::Gcm { iv, aad, tag_bits: 8 * tag },
            Shape::Ccm => {
                Params::Ccm { data_length: self.data_length, nonce: iv, aad, mac_length: tag }
            }
            _ => Params::ChaCha20Poly1305 { nonce: iv, aad },
        }
    }
}
