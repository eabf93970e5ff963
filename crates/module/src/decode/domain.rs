// SPDX-License-Identifier: Apache-2.0
//! How new parameters of DSA are made, and where the caller is told of what (PKCS#11 3.2 §6.2).

use super::{Caller, Given, OutPointer};
use metaslot_ck::mechanism::{MechanismRow, Shape};
use metaslot_ck::*;
use metaslot_spi::{Beside, Bytes, DsaSeed, Params};
use std::mem::offset_of;
use std::sync::{Arc, OnceLock};

/// Where the seed goes, and how long it is.
pub(crate) struct SeedPlace<'a> {
    seed: Given<'a, u8>,
    length: OutPointer<'a, CK_ULONG>,
}

impl<'a> Caller<'a> {
    pub(super) fn dsa_seed(self, given: bool, raw: &CK_MECHANISM) -> Result<Params> {
        let p = self.parameter::<CK_DSA_PARAMETER_GEN_PARAM>(raw)?;
        let seed = if given { self.owned(p.pSeed, p.ulSeedLen)? } else { Bytes::new() };
        let room = if given || p.pSeed.is_null() { 0 } else { p.ulSeedLen };
        let length = usize::try_from(room).unwrap_or(0);
        let beside = Arc::new(Beside { length, told: OnceLock::new() });
        Ok(Params::DsaSeed(Box::new(DsaSeed { hash: p.hash, seed, index: p.ulIndex, beside })))
    }

    /// Where the seed goes of parameters that this mechanism makes.
    ///
    /// # Errors
    /// As [`Self::mechanism`].
    pub(crate) fn seed_place(self, at: &Given<'a, CK_MECHANISM>) -> Result<Option<SeedPlace<'a>>> {
        let raw = at.read()?;
        match MechanismRow::find(raw.mechanism).map(|row| row.shape) {
            Some(Shape::DsaSeed { given: false }) => {
                let p = self.parameter::<CK_DSA_PARAMETER_GEN_PARAM>(&raw)?;
                let place = offset_of!(CK_DSA_PARAMETER_GEN_PARAM, ulSeedLen);
                let length = raw.pParameter.cast::<u8>().wrapping_add(place).cast();
                let length = self.place(Given::inside(length))?;
                Ok(Some(SeedPlace { seed: Given::inside(p.pSeed), length }))
            }
            _ => Ok(None),
        }
    }

    /// Tells the seed, which has room there.
    ///
    /// # Errors
    /// `CKR_ARGUMENTS_BAD` where there is no place.
    pub(crate) fn tell_seed(self, place: SeedPlace<'a>, seed: &[u8]) -> Result<()> {
        let length = seed.len() as CK_ULONG;
        self.bytes_mut(place.seed, length)?.copy_from_slice(seed);
        place.length.set(length);
        Ok(())
    }
}
