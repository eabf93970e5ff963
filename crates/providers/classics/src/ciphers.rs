// SPDX-License-Identifier: Apache-2.0
//! Table: the ciphers, and how each makes its schedule of a key.

use crate::blocks::{Blocks, keyed};
use camellia::{Camellia128, Camellia192, Camellia256};
use metaslot_awslc_wrapper::des;
use metaslot_ck::*;
use metaslot_spi::lengths::Lengths;
use metaslot_spi::{Key, Params};
use std::sync::Arc;

/// A block cipher.
#[derive(Debug)]
pub(crate) struct Cipher {
    /// Length of a block, in bytes.
    block: usize,
    /// Smallest and largest key, in the unit of the vocabulary.
    pub(crate) sizes: (u64, u64),
    /// Makes the schedule of a key.
    keyed: fn(&[u8]) -> Result<Arc<dyn Blocks>>,
}

/// Single DES (FIPS 46-3): AWS-LC's triple DES by one key.
pub(crate) static DES: Cipher = Cipher { block: 8, sizes: (8, 8), keyed: des };

/// Triple DES in the modes that it has here; the others are the plain provider's.
pub(crate) static DES3: Cipher = Cipher { block: 8, sizes: (16, 24), keyed: des };

/// Camellia (RFC 3713): Japan.
pub(crate) static CAMELLIA: Cipher = Cipher {
    block: 16,
    sizes: (16, 32),
    keyed: |key| match key.len() {
        16 => keyed::<Camellia128>(key),
        24 => keyed::<Camellia192>(key),
        _ => keyed::<Camellia256>(key),
    },
};

fn des(key: &[u8]) -> Result<Arc<dyn Blocks>> {
    Ok(Arc::new(des::Keys::new(key).map_err(|_| Error::KEY_SIZE_RANGE)?))
}

/// A schedule that is kept with its key.
struct Prepared(Arc<dyn Blocks>);

impl Cipher {
    /// Length of a block, in bytes.
    pub(crate) const fn block(&self, _: &Params) -> usize {
        self.block
    }

    /// The schedule of this key, made at first use.
    pub(crate) fn schedule(&self, key: &Key, _: &Params) -> Result<Arc<dyn Blocks>> {
        let make = |key: &Key| {
            let value = key.secret(CKA_VALUE)?;
            let lengths = Lengths::of(key.key_type()).ok_or(Error::KEY_TYPE_INCONSISTENT)?;
            if !lengths.fits(value.len() as u64) {
                return Err(Error::KEY_SIZE_RANGE);
            }
            (self.keyed)(value).map(Prepared)
        };
        match key.prepared(make) {
            Ok(prepared) => Ok(Arc::clone(&prepared.0)),
            // It has no place for one more form.
            Err(Error::DEVICE_MEMORY) => make(key).map(|made| made.0),
            Err(error) => Err(error),
        }
    }
}
