// SPDX-License-Identifier: Apache-2.0
//! What is made of a shared secret (PKCS#11 3.2 §6.3.18).

use super::{device_error, hashes};
use metaslot_awslc::counter_kdf::expand;
use metaslot_awslc::digest::Hash;
use metaslot_ck::*;
use metaslot_engine::Params;
use metaslot_memory::Secret;

/// The parameters of `CKM_ECDH1_DERIVE`, read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agreement<'a> {
    pub(super) kdf: Kdf,
    shared: &'a [u8],
    /// The other side's public point, raw or as a DER OCTET STRING.
    pub(super) public: &'a [u8],
}

/// A derivation function.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kdf {
    /// `CKD_NULL`: the secret itself.
    None,
    /// ANSI X9.63: secret, counter, shared data.
    X963(Hash),
    /// SP 800-56A: counter, secret, other information.
    Sp800(Hash),
}

/// No derived key is longer, in bytes.
const MAX_LENGTH: usize = 1 << 16;

impl<'a> Agreement<'a> {
    pub(super) fn read(params: &'a Params) -> Result<Self> {
        let Params::Ecdh1 { kdf: number, shared, public } = params else {
            return Err(Error::MECHANISM_PARAM_INVALID);
        };
        let kdf = match *number {
            CKD_NULL if shared.is_empty() => Some(Kdf::None),
            number => hashes::by_x963(number)
                .map(Kdf::X963)
                .or_else(|| hashes::by_sp800(number).map(Kdf::Sp800)),
        };
        Ok(Self { kdf: kdf.ok_or(Error::MECHANISM_PARAM_INVALID)?, shared, public })
    }

    /// The one key that is wanted, of what `agree` says.
    pub(super) fn derive(
        self,
        lengths: &[usize],
        agree: impl FnOnce() -> Result<Secret>,
    ) -> Result<Vec<Secret>> {
        let &[length @ 1..=MAX_LENGTH] = lengths else { return Err(Error::KEY_SIZE_RANGE) };
        let secret = agree()?;
        let (secret, shared) = (secret.expose(), self.shared);
        let derived = match self.kdf {
            Kdf::None => {
                // §6.3.19: truncation takes bytes off the leading end.
                let surplus = secret.len().checked_sub(length).ok_or(Error::KEY_SIZE_RANGE)?;
                Ok(Secret::copy_of(&secret[surplus..]))
            }
            Kdf::X963(hash) => expand(hash, length, secret, &[shared]),
            Kdf::Sp800(hash) => expand(hash, length, &[], &[secret, shared]),
        };
        Ok(vec![derived.map_err(device_error)?])
    }
}
