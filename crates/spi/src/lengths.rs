// SPDX-License-Identifier: Apache-2.0
//! How long secret keys are, by their types: for all that make, take and measure them.

use metaslot_ck::*;

/// Lengths that a type of key has, in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lengths {
    /// One of these.
    Of(&'static [u64]),
    /// Any between these.
    Between(u64, u64),
    /// One length: a template need not say it.
    Always(u64),
}

/// Types of keys whose lengths are not any.
#[rustfmt::skip]
const TYPES: &[(CK_KEY_TYPE, Lengths)] = &[
    (CKK_AES, Lengths::Of(&[16, 24, 32])),
    (CKK_AES_XTS, Lengths::Of(&[32, 64])),
    (CKK_CHACHA20, Lengths::Always(32)),
    (CKK_POLY1305, Lengths::Always(32)),
    (CKK_SALSA20, Lengths::Always(32)),
    (CKK_RC4, Lengths::Between(1, 256)),
    (CKK_DES2, Lengths::Always(16)),
    (CKK_DES3, Lengths::Always(24)),
    (CKK_DES, Lengths::Always(8)),
    // RFC 4226 §4 wants 16; many a service hands out 10.
    (CKK_HOTP, Lengths::Between(10, 64)),
    (CKK_CAMELLIA, Lengths::Of(&[16, 24, 32])),
    (CKK_ARIA, Lengths::Of(&[16, 24, 32])),
    (CKK_SEED, Lengths::Always(16)),
    (CKK_CAST5, Lengths::Between(5, 16)),
    (CKK_IDEA, Lengths::Always(16)),
    (CKK_RC2, Lengths::Between(1, 128)),
    (CKK_RC5, Lengths::Between(1, 255)),
    (CKK_BLOWFISH, Lengths::Between(4, 56)),
    (CKK_TWOFISH, Lengths::Of(&[16, 24, 32])),
];

impl Lengths {
    /// Those of a type of key; `None` where any will do.
    #[must_use]
    pub fn of(key_type: CK_KEY_TYPE) -> Option<Self> {
        TYPES.iter().find(|row| row.0 == key_type).map(|row| row.1)
    }

    /// The smallest and the largest.
    #[must_use]
    pub const fn range(self) -> (u64, u64) {
        match self {
            Self::Of(lengths) => (lengths[0], lengths[lengths.len() - 1]),
            Self::Between(least, most) => (least, most),
            Self::Always(only) => (only, only),
        }
    }

    /// The one that there is, where there is one.
    #[must_use]
    pub const fn only(self) -> Option<u64> {
        if let Self::Always(only) = self { Some(only) } else { None }
    }

    /// Whether this is one of them.
    #[must_use]
    pub fn fits(self, length: u64) -> bool {
        match self {
            Self::Of(lengths) => lengths.contains(&length),
            Self::Between(least, most) => (least..=most).contains(&length),
            Self::Always(only) => length == only,
        }
    }

    /// The length of a new key, of which the template says `wanted`.
    ///
    /// # Errors
    /// `CKR_TEMPLATE_INCOMPLETE` where there are several and none is said, `CKR_KEY_SIZE_RANGE`
    pub fn choose(self, wanted: Option<u64>) -> Result<u64> {
        match (self, wanted) {
            (_, Some(length)) if self.fits(length) => Ok(length),
            (_, Some(_)) => Err(Error::KEY_SIZE_RANGE),
            (Self::Always(only), None) => Ok(only),
            (_, None) => Err(Error::TEMPLATE_INCOMPLETE),
        }
    }
}
