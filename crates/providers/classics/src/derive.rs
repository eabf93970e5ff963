// SPDX-License-Identifier: Apache-2.0
//! Keys that are data encrypted under another (PKCS#11 3.2 §6.17, §6.48, §6.50, §6.52): whole blocks, chained where there is an IV.

use crate::mechanism::Use;
use crate::modes::chain;
use metaslot_awslc_wrapper::aes::Way;
use metaslot_ck::*;
use metaslot_memory::{Secret, wipe_shallow_stack};
use metaslot_spi::provider::{Derive, Keys};
use metaslot_spi::{Key, Params};

impl Use {
    /// The IV, where there is one, and whole blocks of data.
    fn data<'a>(&self, params: &'a Params) -> Result<(&'a [u8], &'a [u8])> {
        let Params::Data { iv, data } = params else { return Err(Error::MECHANISM_PARAM_INVALID) };
        let block = self.cipher.block(params);
        let fits = (iv.is_empty() || iv.len() == block)
            && !data.is_empty()
            && data.len().is_multiple_of(block);
        if fits { Ok((iv, data)) } else { Err(Error::MECHANISM_PARAM_INVALID) }
    }
}

impl Derive for Use {
    fn check(&self, key: &Key, params: &Params) -> Result<()> {
        self.data(params)?;
        self.cipher.schedule(key, params).map(drop)
    }

    fn natural_length(&self, _: &Key, params: &Params) -> Option<usize> {
        self.data(params).map(|(_, data)| data.len()).ok()
    }

    fn derive(
        &self,
        key: &Key,
        params: &Params,
        lengths: &[usize],
        _: &dyn Keys,
    ) -> Result<Vec<Secret>> {
        let [length] = lengths else { return Err(Error::MECHANISM_PARAM_INVALID) };
        let (iv, data) = self.data(params)?;
        if *length > data.len() {
            return Err(Error::DATA_LEN_RANGE);
        }
        let mut out = Secret::try_copy_of(data).ok_or(Error::DEVICE_MEMORY)?;
        let schedule = self.cipher.schedule(key, params)?;
        match iv {
            [] => schedule.run(Way::Encrypt, out.expose_mut())?,
            iv => {
                // In the end it is the last block of the key.
                let mut chained = Secret::try_copy_of(iv).ok_or(Error::DEVICE_MEMORY)?;
                chain(&*schedule, chained.expose_mut(), out.expose_mut())?;
            }
        }
        wipe_shallow_stack();
        // What is too much goes from the end.
        Ok(vec![out.truncated(*length)])
    }
}
