// SPDX-License-Identifier: Apache-2.0
//! What `C_GenerateKey` tells beside the object that it makes, and where: the IV of a key from a password (Historical Mechanisms 3.0
//! §2.13), and the seed of new parameters of DSA (PKCS#11 3.2 §6.2).

use super::old::IV_OF_PASSWORD;
use super::{Caller, Given, OutPointer};
use metaslot_ck::mechanism::{MechanismRow, Shape};
use metaslot_ck::*;
use metaslot_spi::{Beside, Bytes, DsaSeed, Params};
use std::mem::offset_of;
use std::sync::{Arc, OnceLock};

/// No seed is longer: three times the longest order of DSA, in bytes.
const LONGEST_SEED: CK_ULONG = 96;

/// Where the bytes go, and where it is asked for how many there are.
pub(crate) struct BesidePlace<'a> {
    bytes: Given<'a, u8>,
    length: Option<OutPointer<'a, CK_ULONG>>,
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

    /// The place of what comes beside an object that this mechanism makes; `None` where nothing does.
    ///
    /// # Errors
    /// As [`Self::mechanism`].
    pub(crate) fn beside_place(
        self,
        at: &Given<'a, CK_MECHANISM>,
    ) -> Result<Option<BesidePlace<'a>>> {
        let raw = at.read()?;
        let (bytes, room, length) = match MechanismRow::find(raw.mechanism).map(|row| row.shape) {
            Some(Shape::Pbe { iv: true }) => {
                let p = self.parameter::<CK_PBE_PARAMS>(&raw)?;
                (p.pInitVector, IV_OF_PASSWORD, None)
            }
            Some(Shape::DsaSeed { given: false }) => {
                let p = self.parameter::<CK_DSA_PARAMETER_GEN_PARAM>(&raw)?;
                let place = offset_of!(CK_DSA_PARAMETER_GEN_PARAM, ulSeedLen);
                let length = raw.pParameter.cast::<u8>().wrapping_add(place).cast();
                let room = p.ulSeedLen.min(LONGEST_SEED) as usize;
                (p.pSeed, room, Some(self.place(Given::inside(length))?))
            }
            _ => return Ok(None),
        };
        self.takes(bytes, room)?;
        Ok(Some(BesidePlace { bytes: Given::inside(bytes), length }))
    }

    /// Tells what there is room for.
    ///
    /// # Errors
    /// `CKR_ARGUMENTS_BAD` where there is no place.
    pub(crate) fn tell_beside(self, place: BesidePlace<'a>, told: &[u8]) -> Result<()> {
        let length = told.len() as CK_ULONG;
        self.bytes_mut(place.bytes, length)?.copy_from_slice(told);
        if let Some(place) = place.length {
            place.set(length);
        }
        Ok(())
    }
}
