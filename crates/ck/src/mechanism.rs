// SPDX-License-Identifier: Apache-2.0
//! The vocabulary: which mechanisms of the standard are known, and how their parameters look.

mod approval;
mod row;
mod table;

pub use approval::{APPROVED, OLD_CIPHERS, approved};
pub use row::{MechanismRow, Shape, Unit};

use crate::*;

impl MechanismRow {
    /// The row of `number`, where it is known.
    #[must_use]
    pub fn find(number: CK_MECHANISM_TYPE) -> Option<&'static Self> {
        Self::index(number).map(|at| &table::MECHANISMS[at])
    }

    /// The place of `number` in [`Self::all`]: what counters are indexed by.
    #[must_use]
    pub fn index(number: CK_MECHANISM_TYPE) -> Option<usize> {
        let at = *PLACES.get(usize::try_from(number).ok()?)?;
        (at != NOWHERE).then_some(usize::from(at))
    }

    /// The class of what `C_GenerateKey` makes by a mechanism.
    #[must_use]
    pub fn class_made(number: CK_MECHANISM_TYPE) -> CK_OBJECT_CLASS {
        Self::find(number).map_or(CKO_SECRET_KEY, |row| row.makes)
    }

    /// Every row, sorted by number.
    #[must_use]
    pub const fn all() -> &'static [Self] {
        table::MECHANISMS
    }
}

/// The place of every number in the table. A search in the table would cost as much as a short digest.
static PLACES: [u16; NUMBERS] = places();

/// One more than the largest number in the table.
const NUMBERS: usize = {
    let last = table::MECHANISMS[table::MECHANISMS.len() - 1].number;
    assert!(last < 1 << 16, "vendor mechanisms need another way to be found");
    (last & 0xffff) as usize + 1
};

const NOWHERE: u16 = u16::MAX;

#[expect(clippy::cast_possible_truncation, reason = "the bounds are asserted")]
const fn places() -> [u16; NUMBERS] {
    assert!(table::MECHANISMS.len() < NOWHERE as usize, "places need more than two bytes");
    let mut places = [NOWHERE; NUMBERS];
    let mut at = 0;
    while at < table::MECHANISMS.len() {
        places[table::MECHANISMS[at].number as usize] = at as u16;
        at += 1;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mechanism_is_found_by_its_number() {
        for row in MechanismRow::all() {
            assert_eq!(MechanismRow::find(row.number).map(|found| found.number), Some(row.number));
        }
        for number in [0x7fff, NUMBERS as u64, u64::MAX, 0x8000_0001] {
            assert!(MechanismRow::find(number).is_none());
        }
    }
}
