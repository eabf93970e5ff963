// SPDX-License-Identifier: Apache-2.0
//! What is asked of a one-time password (PKCS#11 3.2 §6.53).

use super::{Caller, Given};
use metaslot_ck::*;
use metaslot_spi::Otp;

/// There are no more kinds of parameters.
const MOST: usize = 8;

impl Caller<'_> {
    /// `CK_OTP_PARAMS`; PIN, challenge and time, which no mechanism here uses, are not looked at.
    pub(super) fn otp(self, raw: &CK_MECHANISM) -> Result<Otp> {
        let mut asked = Otp::default();
        if raw.ulParameterLen == 0 {
            return Ok(asked);
        }
        let params = self.parameter::<CK_OTP_PARAMS>(raw)?;
        let count = usize::try_from(params.ulCount).ok().filter(|count| *count <= MOST);
        let count = count.ok_or(Error::MECHANISM_PARAM_INVALID)?;
        let each = Given::inside(params.pParams.cast_const());
        for index in 0..count {
            let one: CK_OTP_PARAM = each.nth(index)?.read()?;
            let (place, read): (_, fn([u8; 8]) -> u64) = match one.type_ {
                CK_OTP_PIN | CK_OTP_CHALLENGE | CK_OTP_TIME => continue,
                // Network byte order (§6.53.15).
                CK_OTP_COUNTER => (&mut asked.counter, u64::from_be_bytes),
                CK_OTP_FLAGS => (&mut asked.flags, u64::from_ne_bytes),
                CK_OTP_OUTPUT_LENGTH => (&mut asked.length, u64::from_ne_bytes),
                CK_OTP_OUTPUT_FORMAT => (&mut asked.format, u64::from_ne_bytes),
                _ => return Err(Error::MECHANISM_PARAM_INVALID),
            };
            let value = Given::<[u8; 8]>::inside(one.pValue.cast_const().cast());
            // Of another length it is not read.
            if one.ulValueLen != 8 || place.replace(read(value.read()?)).is_some() {
                return Err(Error::MECHANISM_PARAM_INVALID);
            }
        }
        Ok(asked)
    }
}
