// SPDX-License-Identifier: Apache-2.0
//! The vocabulary: which mechanisms of the standard are known, and how their parameters look.

mod table;

use crate::Shape;
use metaslot_ck::{CK_KEY_TYPE, CK_MECHANISM_TYPE};

/// One mechanism of the standard.
#[derive(Clone, Copy, Debug)]
pub struct Mechanism {
    /// `CKM_…`
    pub number: CK_MECHANISM_TYPE,
    /// How the edge decodes its parameter.
    pub shape: Shape,
    /// Key types it works with (or makes); empty for digests.
    pub keys: &'static [CK_KEY_TYPE],
    /// The unit in which the standard gives its key sizes.
    pub unit: Unit,
    /// Section of PKCS#11 3.2.
    pub section: &'static str,
}

/// Units of `ulMinKeySize`: a known trap, so every row says which.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unit {
    /// No key.
    None,
    /// Bits: RSA, EC, RC4.
    Bits,
    /// Bytes: AES, generic secrets.
    Bytes,
}

impl Mechanism {
    /// The row of `number`, where it is known.
    #[must_use]
    pub fn find(number: CK_MECHANISM_TYPE) -> Option<&'static Self> {
        Self::index(number).map(|at| &table::MECHANISMS[at])
    }

    /// The place of `number` in [`Self::all`]: what counters are indexed by.
    #[must_use]
    pub fn index(number: CK_MECHANISM_TYPE) -> Option<usize> {
        table::MECHANISMS.binary_search_by_key(&number, |row| row.number).ok()
    }

    /// Every row, sorted by number.
    #[must_use]
    pub const fn all() -> &'static [Self] {
        table::MECHANISMS
    }
}
