// SPDX-License-Identifier: Apache-2.0
//! Parameters of old ciphers, and of keys from passwords for them.

use super::mechanism::NO_POINTER;
use super::{Caller, Given, OutPointer};
use metaslot_ck::mechanism::{MechanismRow, Shape};
use metaslot_ck::*;
use metaslot_spi::{Bytes, Params};
use std::sync::Arc;

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
            Shape::Pbe { .. } => {
                let p = self.parameter::<CK_PBE_PARAMS>(raw)?;
                if p.ulPasswordLen > NO_POINTER as CK_ULONG {
                    return Err(Error::MECHANISM_PARAM_INVALID);
                }
                let password = self.secret(Given::inside(p.pPassword), p.ulPasswordLen)?;
                let (salt, iterations) = (self.owned(p.pSalt, p.ulSaltLen)?, p.ulIteration);
                Ok(Params::Pbe { password, salt, iterations, iv: Arc::default() })
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

    /// Where the IV goes that comes with a key from a password; `None` where none comes.
    ///
    /// # Errors
    /// As [`Self::mechanism`].
    pub(crate) fn iv_of_password(
        self,
        at: &Given<'a, CK_MECHANISM>,
    ) -> Result<Option<OutPointer<'a, [u8; 8]>>> {
        let raw = at.read()?;
        match MechanismRow::find(raw.mechanism).map(|row| row.shape) {
            Some(Shape::Pbe { iv: true }) => {
                let p = self.parameter::<CK_PBE_PARAMS>(&raw)?;
                let place = self.place(Given::inside(p.pInitVector.cast_const().cast()));
                place.map(Some).map_err(|_| Error::MECHANISM_PARAM_INVALID)
            }
            _ => Ok(None),
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
