// SPDX-License-Identifier: Apache-2.0
//! Parameters of old ciphers, and of keys from passwords for them.

use super::mechanism::NO_POINTER;
use super::{Caller, Given};
use metaslot_ck::mechanism::Shape;
use metaslot_ck::*;
use metaslot_spi::{Beside, Bytes, Params};
use std::sync::{Arc, OnceLock};

/// Bytes of the IV that comes with a key from a password.
pub(super) const IV_OF_PASSWORD: usize = 8;

impl<'a> Caller<'a> {
    pub(super) fn old(self, shape: Shape, raw: &CK_MECHANISM) -> Result<Params> {
        match shape {
            Shape::Salsa20 => {
                let p = self.parameter::<CK_SALSA20_PARAMS>(raw)?;
                let nonce = self.owned(p.pNonce, p.ulNonceBits / 8)?;
                if !p.ulNonceBits.is_multiple_of(8) {
                    return Err(Error::MECHANISM_PARAM_INVALID);
                }
                let mut counter = [0; 8];
                counter.copy_from_slice(&self.owned(p.pBlockCounter, 8)?);
                Ok(Params::Salsa20 { counter: u64::from_le_bytes(counter), nonce })
            }
            Shape::Pbe { iv } => {
                let p = self.parameter::<CK_PBE_PARAMS>(raw)?;
                if p.ulPasswordLen > NO_POINTER as CK_ULONG {
                    return Err(Error::MECHANISM_PARAM_INVALID);
                }
                let password = self.secret(Given::inside(p.pPassword), p.ulPasswordLen)?;
                let (salt, iterations) = (self.owned(p.pSalt, p.ulSaltLen)?, p.ulIteration);
                let length = if iv { IV_OF_PASSWORD } else { 0 };
                let beside = Arc::new(Beside { length, told: OnceLock::new() });
                Ok(Params::Pbe { password, salt, iterations, beside })
            }
            Shape::Rc2
            | Shape::Rc2Cbc
            | Shape::Rc2Mac
            | Shape::Rc5
            | Shape::Rc5Cbc
            | Shape::Rc5Mac => self.tuned(shape, raw),
            _ => Err(Error::MECHANISM_INVALID),
        }
    }

    fn tuned(self, shape: Shape, raw: &CK_MECHANISM) -> Result<Params> {
        let (mut iv, mut mac) = (Bytes::new(), 0);
        let by = match shape {
            Shape::Rc2 => [self.parameter::<CK_RC2_PARAMS>(raw)?, 0],
            Shape::Rc2Cbc => {
                let p = self.parameter::<CK_RC2_CBC_PARAMS>(raw)?;
                iv.extend_from_slice(&p.iv);
                [p.ulEffectiveBits, 0]
            }
            Shape::Rc2Mac => {
                let p = self.parameter::<CK_RC2_MAC_GENERAL_PARAMS>(raw)?;
                mac = p.ulMacLength;
                [p.ulEffectiveBits, 0]
            }
            Shape::Rc5 => {
                let p = self.parameter::<CK_RC5_PARAMS>(raw)?;
                [p.ulWordsize, p.ulRounds]
            }
            Shape::Rc5Cbc => {
                let p = self.parameter::<CK_RC5_CBC_PARAMS>(raw)?;
                iv = self.owned(p.pIv, p.ulIvLen)?;
                [p.ulWordsize, p.ulRounds]
            }
            _ => {
                let p = self.parameter::<CK_RC5_MAC_GENERAL_PARAMS>(raw)?;
                mac = p.ulMacLength;
                [p.ulWordsize, p.ulRounds]
            }
        };
        Ok(Params::Tuned { by, iv, mac })
    }
}
