// SPDX-License-Identifier: Apache-2.0
//! Table: the ciphers, and how each makes its schedule of a key.

use crate::blocks::{Blocks, held, keyed};
use crate::rc5;
use crate::seed::Seed;
use aria::{Aria128, Aria192, Aria256};
use blowfish::Blowfish;
use camellia::{Camellia128, Camellia192, Camellia256};
use cast5::Cast5;
use idea::Idea;
use metaslot_awslc_wrapper::des;
use metaslot_ck::*;
use metaslot_spi::lengths::Lengths;
use metaslot_spi::{Key, Params};
use rc2::Rc2;
use std::sync::Arc;
use twofish::Twofish;

/// A block cipher.
#[derive(Debug)]
pub(crate) struct Cipher {
    /// Length of a block, in bytes; 0 where a parameter says it.
    block: usize,
    /// Smallest and largest key, in the unit of the vocabulary.
    pub(crate) sizes: (u64, u64),
    schedule: Schedule,
}

/// A key schedule, for all that use it.
type Shared = Arc<dyn Blocks>;

/// How a key becomes a schedule.
#[derive(Debug)]
enum Schedule {
    /// Of the key alone, so that it is kept with it.
    Kept(fn(&[u8]) -> Result<Shared>),
    /// Of what parameters say, too.
    Tuned(fn(&[u8], [u64; 2]) -> Result<Shared>),
}

use Schedule::{Kept, Tuned};

/// Single DES (FIPS 46-3): AWS-LC's triple DES by one key.
pub(crate) static DES: Cipher = Cipher { block: 8, sizes: (8, 8), schedule: Kept(des) };

/// Triple DES in the modes that it has here; the others are the plain provider's.
pub(crate) static DES3: Cipher = Cipher { block: 8, sizes: (16, 24), schedule: Kept(des) };

/// Camellia (RFC 3713; Japan).
pub(crate) static CAMELLIA: Cipher = Cipher {
    block: 16,
    sizes: (16, 32),
    schedule: Kept(|key| match key.len() {
        16 => keyed::<Camellia128>(key),
        24 => keyed::<Camellia192>(key),
        _ => keyed::<Camellia256>(key),
    }),
};

/// ARIA (RFC 5794; Korea).
pub(crate) static ARIA: Cipher = Cipher {
    block: 16,
    sizes: (16, 32),
    schedule: Kept(|key| match key.len() {
        16 => keyed::<Aria128>(key),
        24 => keyed::<Aria192>(key),
        _ => keyed::<Aria256>(key),
    }),
};

/// SEED (RFC 4269; Korea).
pub(crate) static SEED: Cipher =
    Cipher { block: 16, sizes: (16, 16), schedule: Kept(|key| Ok(Arc::new(Seed::new(key)?))) };

/// CAST-128 (RFC 2144).
pub(crate) static CAST5: Cipher =
    Cipher { block: 8, sizes: (5, 16), schedule: Kept(keyed::<Cast5>) };

/// IDEA (Lai and Massey, 1991).
pub(crate) static IDEA: Cipher =
    Cipher { block: 8, sizes: (16, 16), schedule: Kept(keyed::<Idea>) };

/// Blowfish (Schneier, 1993).
pub(crate) static BLOWFISH: Cipher =
    Cipher { block: 8, sizes: (4, 56), schedule: Kept(keyed::<Blowfish>) };

/// Twofish (Schneier and others, 1998).
pub(crate) static TWOFISH: Cipher =
    Cipher { block: 16, sizes: (16, 32), schedule: Kept(keyed::<Twofish>) };

/// RC2 (RFC 2268), whose parameter says how many bits of the key count.
pub(crate) static RC2: Cipher = Cipher {
    block: 8,
    sizes: (8, 1024),
    schedule: Tuned(|key, [bits, _]| {
        let bits = usize::try_from(bits).ok().filter(|bits| (1..=1024).contains(bits));
        let bits = bits.ok_or(Error::MECHANISM_PARAM_INVALID)?;
        held(|| Some(Rc2::new_with_eff_key_len(key, bits)))
    }),
};

/// RC5 (RFC 2040), whose parameters say how long its words are and how many rounds there are.
pub(crate) static RC5: Cipher = Cipher { block: 0, sizes: (1, 255), schedule: Tuned(rc5::keyed) };

fn des(key: &[u8]) -> Result<Shared> {
    Ok(Arc::new(des::Keys::new(key).map_err(|_| Error::KEY_SIZE_RANGE)?))
}

/// A schedule that is kept with its key.
struct Prepared(Shared);

impl Cipher {
    /// Length of a block, in bytes.
    pub(crate) fn block(&self, params: &Params) -> usize {
        match params {
            Params::Tuned { by, .. } if self.block == 0 => rc5::block(*by),
            _ => self.block,
        }
    }

    /// Whether its parameters say more than an IV or a length.
    pub(crate) const fn is_tuned(&self) -> bool {
        matches!(self.schedule, Tuned(_))
    }

    /// The schedule of this key, made at first use where it may be kept.
    pub(crate) fn schedule(&self, key: &Key, params: &Params) -> Result<Shared> {
        match (&self.schedule, params) {
            (Tuned(make), Params::Tuned { by, .. }) => make(value(key)?, *by),
            (Tuned(_), _) => Err(Error::MECHANISM_PARAM_INVALID),
            (Kept(make), _) => {
                let make = |key: &Key| make(value(key)?).map(Prepared);
                match key.prepared(make) {
                    Ok(prepared) => Ok(Arc::clone(&prepared.0)),
                    // It has no place for one more form.
                    Err(Error::DEVICE_MEMORY) => make(key).map(|made| made.0),
                    Err(error) => Err(error),
                }
            }
        }
    }
}

/// The bytes of a key, as many as its type may have.
fn value(key: &Key) -> Result<&[u8]> {
    let value = key.secret(CKA_VALUE)?;
    let lengths = Lengths::of(key.key_type()).ok_or(Error::KEY_TYPE_INCONSISTENT)?;
    if lengths.fits(value.len() as u64) { Ok(value) } else { Err(Error::KEY_SIZE_RANGE) }
}
