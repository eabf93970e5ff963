// SPDX-License-Identifier: Apache-2.0
//! The form of a wrapped key that says what it is: a head that is authenticated with the key, and the nonces of such forms.

use metaslot_ck::{Error, Result};
use metaslot_spi::{Attributes, Bytes, Params};

/// Begins every bound form; the digit is its version.
const MAGIC: &[u8; 8] = b"metawrp1";
/// Length of the IV that the token chooses, in bytes (SP 800-38D §8.2.2).
pub const IV: usize = 12;

/// The nonce of an authenticated cipher's parameters.
pub fn nonce_of(params: &mut Params) -> Option<&mut Bytes> {
    match params {
        Params::Gcm { iv, .. } => Some(iv),
        Params::Ccm { nonce, .. } => Some(nonce),
        _ => None,
    }
}

/// CCM is told how long the key is, whatever the caller said of it (PKCS#11 3.2 §6.13.5).
pub const fn say_length(params: &mut Params, length: usize) {
    if let Params::Ccm { data_length, .. } = params {
        *data_length = length as u64;
    }
}

/// Whether these parameters would open what is sealed in the bound form as if it said nothing of the key.
#[must_use]
pub fn opens_bound(params: &Params) -> bool {
    let Params::Gcm { iv, aad, .. } = params else { return false };
    let head = [&MAGIC[..], iv].concat();
    aad.windows(head.len()).any(|window| window == head)
}

/// What stands before the ciphertext of a bound form.
#[derive(Debug)]
pub struct Head {
    /// That the token chose.
    pub iv: [u8; IV],
    /// What limits the key.
    pub said: Attributes,
}

impl Head {
    /// What stands before the ciphertext.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let said = self.said.encode();
        let length = u32::try_from(said.len()).unwrap_or(u32::MAX);
        [&MAGIC[..], &self.iv, &length.to_le_bytes(), &said].concat()
    }

    /// The head, its bytes, and what follows it.
    ///
    /// # Errors
    /// `CKR_WRAPPED_KEY_INVALID` for anything else.
    pub fn decode(wrapped: &[u8]) -> Result<(Self, &[u8], &[u8])> {
        let head = || {
            let rest = wrapped.strip_prefix(MAGIC)?;
            let (iv, rest) = rest.split_first_chunk::<IV>()?;
            let (length, rest) = rest.split_first_chunk::<4>()?;
            let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
            let (said, rest) = rest.split_at_checked(length)?;
            let head = Self { iv: *iv, said: Attributes::decode(said).ok()? };
            Some((head, &wrapped[..wrapped.len() - rest.len()], rest))
        };
        head().ok_or(Error::WRAPPED_KEY_INVALID)
    }
}

/// GCM parameters with the token's IV, and the head behind the caller's additional data.
///
/// # Errors
/// `CKR_MECHANISM_PARAM_INVALID` for another mechanism's.
pub fn head_bound(params: Params, iv: [u8; IV], head: &[u8]) -> Result<Params> {
    let Params::Gcm { mut aad, tag_bits, .. } = params else {
        return Err(Error::MECHANISM_PARAM_INVALID);
    };
    // The head has a fixed beginning and says its own length, so the two cannot run into each other
    // where the caller's length is also said.
    let length = (aad.len() as u64).to_le_bytes();
    aad.extend_from_slice(head);
    aad.extend_from_slice(&length);
    Ok(Params::Gcm { iv: Bytes::from_slice(&iv), aad, tag_bits })
}
