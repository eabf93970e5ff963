// SPDX-License-Identifier: Apache-2.0
//! The attribute table: one row per attribute and the classes that have it so, read by the edge, the
//! engine and the keystore (PKCS#11 3.2 §4, footnotes of its table 13).

mod row;
mod table;

pub use row::*;

use crate::*;

/// Where the rows of each number below the arrays' and the vendors' begin, or would.
const STARTS: [u8; 0x700] = {
    let mut starts = [0; 0x700];
    let (mut number, mut start) = (0, 0_u8);
    while number < starts.len() {
        let rows = table::ATTRIBUTES;
        while (start as usize) < rows.len() && rows[start as usize].number < number as u64 {
            start += 1;
        }
        starts[number] = start;
        number += 1;
    }
    starts
};

impl AttributeRow {
    /// Every row, sorted by number.
    #[must_use]
    pub const fn all() -> &'static [Self] {
        table::ATTRIBUTES
    }

    /// The rows of what is written into new objects, or taken out of them; sorted by number.
    #[must_use]
    pub fn born() -> &'static [Self] {
        &table::BORN
    }

    /// The rows of `number`, one for each way in which classes have it; none where it is unknown.
    /// All have the same kind.
    #[must_use]
    pub fn named(number: CK_ATTRIBUTE_TYPE) -> &'static [Self] {
        let start = match usize::try_from(number).ok().and_then(|number| STARTS.get(number)) {
            Some(start) => usize::from(*start),
            None => table::ATTRIBUTES.partition_point(|row| row.number < number),
        };
        let rows = &table::ATTRIBUTES[start..];
        let length = rows.iter().take_while(|row| row.number == number).count();
        &rows[..length]
    }

    /// How the value of `number` looks, where the attribute is known.
    #[must_use]
    pub fn kind_of(number: CK_ATTRIBUTE_TYPE) -> Option<Kind> {
        Self::named(number).first().map(|row| row.kind)
    }

    /// The row of `number` in objects of `class` (`CKO_…`), where they have it.
    #[must_use]
    pub fn of(number: CK_ATTRIBUTE_TYPE, class: CK_OBJECT_CLASS) -> Option<&'static Self> {
        let bit = class_bit(class)?;
        Self::named(number).iter().find(|row| row.classes & bit != 0)
    }

    /// Whether the value is secret in some class, so that it must not lie in ordinary memory.
    #[must_use]
    pub fn can_be_secret(number: CK_ATTRIBUTE_TYPE) -> bool {
        Self::named(number).iter().any(|row| row.secret)
    }

    /// The attributes that stores index, the most selective first.
    pub fn indexed() -> impl Iterator<Item = CK_ATTRIBUTE_TYPE> {
        table::INDEXED.iter().copied()
    }

    /// Whether the row gives this right.
    #[must_use]
    pub const fn may(&self, right: u32) -> bool {
        self.rights & right != 0
    }
}

/// The bit of a class in [`AttributeRow::classes`].
#[must_use]
pub const fn class_bit(class: CK_OBJECT_CLASS) -> Option<u32> {
    Some(match class {
        CKO_DATA => DATA,
        CKO_CERTIFICATE => CERTIFICATE,
        CKO_PUBLIC_KEY => PUBLIC,
        CKO_PRIVATE_KEY => PRIVATE,
        CKO_SECRET_KEY => SECRET,
        CKO_OTP_KEY => OTP,
        CKO_DOMAIN_PARAMETERS => DOMAIN,
        CKO_TRUST => TRUST,
        CKO_PROFILE | CKO_MECHANISM => FIXED,
        _ => return None,
    })
}

/// A template in a template in a template is not in the standard: no template is deeper, neither where one is given nor where one is
/// read.
pub const DEEPEST: usize = 2;

/// Whether objects of a class have a value that stays in the token.
#[must_use]
pub const fn is_secret(class: CK_OBJECT_CLASS) -> bool {
    matches!(class, CKO_PRIVATE_KEY | CKO_SECRET_KEY | CKO_OTP_KEY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_finds_its_own_row() {
        let of = |class| AttributeRow::of(CKA_VALUE, class).expect("every class has a value");
        assert!(of(CKO_SECRET_KEY).secret && of(CKO_PRIVATE_KEY).secret);
        assert!(!of(CKO_PUBLIC_KEY).secret && !of(CKO_CERTIFICATE).secret && !of(CKO_DATA).secret);
        assert!(AttributeRow::of(CKA_MODULUS, CKO_SECRET_KEY).is_none());
        assert!(AttributeRow::named(0x7fff_ffff).is_empty());
    }

    #[test]
    fn every_number_finds_its_rows_and_no_others() {
        let known = AttributeRow::all().iter().map(|row| row.number);
        for number in (0..0x800).chain(known) {
            let count = AttributeRow::all().iter().filter(|row| row.number == number).count();
            let named = AttributeRow::named(number);
            assert_eq!(named.len(), count, "{number:#x}");
            assert!(named.iter().all(|row| row.number == number), "{number:#x}");
        }
    }

    #[test]
    fn indexed_attributes_have_distinct_ranks() {
        let ranks = |row: &&AttributeRow| row.rank != 0;
        let mut numbers: Vec<_> =
            AttributeRow::all().iter().filter(ranks).map(|row| row.number).collect();
        numbers.dedup();
        assert_eq!(AttributeRow::indexed().count(), numbers.len());
    }
}
