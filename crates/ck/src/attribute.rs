// SPDX-License-Identifier: Apache-2.0
//! The attribute table: one row per attribute and the classes that have it so, read by the edge, the
//! engine and the keystore (PKCS#11 3.2 §4, footnotes of its table 13).

mod table;

use crate::*;

/// How a value looks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// `CK_BBOOL`
    Bool,
    /// `CK_ULONG`
    Ulong,
    /// Bytes or a string.
    Bytes,
    /// Unsigned, big-endian, without leading zeros.
    BigInteger,
    /// `CK_DATE`, or empty.
    Date,
    /// An array of `CK_ULONG`.
    Ulongs,
    /// An array of attributes.
    Template,
}

/// What stands where a template says nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// `CK_FALSE`
    False,
    /// `CK_TRUE`
    True,
    /// The number 0, which is how the standard spells "unspecified".
    Zero,
    /// No bytes, no elements.
    Empty,
}

/// One attribute, as some classes have it.
#[derive(Clone, Copy, Debug)]
pub struct AttributeRow {
    /// `CKA_…`
    pub number: CK_ATTRIBUTE_TYPE,
    /// How its value looks.
    pub kind: Kind,
    /// The classes: [`DATA`], [`CERTIFICATE`], …
    pub classes: u32,
    /// What may be done with it: [`CREATE`], [`CHANGE`], …
    pub rights: u32,
    /// Whether its value is secret while the object is sensitive or not extractable (footnote 7).
    pub secret: bool,
    /// Written into a new object whose template does not name it.
    pub at_birth: Option<Standing>,
    /// Answered, and found, where nothing is written.
    pub absent: Option<Standing>,
    /// Its place among the attributes that stores index, the most selective first; 0 for none.
    pub rank: u8,
}

/// `CKO_DATA`
pub const DATA: u32 = 1;
/// `CKO_CERTIFICATE`
pub const CERTIFICATE: u32 = 2;
/// `CKO_PUBLIC_KEY`
pub const PUBLIC: u32 = 4;
/// `CKO_PRIVATE_KEY`
pub const PRIVATE: u32 = 8;
/// `CKO_SECRET_KEY`
pub const SECRET: u32 = 16;

/// May stand in the template of `C_CreateObject`.
pub const CREATE: u32 = 1;
/// May stand in the template of generation, unwrapping and derivation.
pub const MAKE: u32 = 2;
/// May be changed afterwards, where `CKA_MODIFIABLE` allows.
pub const CHANGE: u32 = 4;
/// May be changed by `C_CopyObject`.
pub const COPY: u32 = 8;
/// Changes from false to true only.
pub const ONLY_ON: u32 = 16;
/// Changes from true to false only.
pub const ONLY_OFF: u32 = 32;
/// Takes elements out only; where there are none, any may be put in.
pub const ONLY_FEWER: u32 = 256;
/// Taken in a template, and neither kept nor answered.
pub const IGNORED: u32 = 512;
/// The SO alone sets it to true.
pub const SO: u32 = 64;
/// A usage: whether it may be switched on afterwards is a question of policy.
pub const USAGE: u32 = 128;

/// Our own, of rows that older releases wrote: the usages that a key was born with.
pub const CKA_BIRTH_ROLES: CK_ATTRIBUTE_TYPE = CKA_VENDOR_DEFINED | 0x4d53_0001;
/// Our own: what a key is for, decided when it is made.
pub const CKA_PURPOSES: CK_ATTRIBUTE_TYPE = CKA_VENDOR_DEFINED | 0x4d53_0002;

impl AttributeRow {
    /// Every row, sorted by number.
    #[must_use]
    pub const fn all() -> &'static [Self] {
        table::ATTRIBUTES
    }

    /// The rows of `number`, one for each way in which classes have it; none where it is unknown.
    /// All have the same kind.
    #[must_use]
    pub fn named(number: CK_ATTRIBUTE_TYPE) -> &'static [Self] {
        let start = table::ATTRIBUTES.partition_point(|row| row.number < number);
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
        _ => return None,
    })
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
    fn indexed_attributes_have_distinct_ranks() {
        let ranks = |row: &&AttributeRow| row.rank != 0;
        let mut numbers: Vec<_> =
            AttributeRow::all().iter().filter(ranks).map(|row| row.number).collect();
        numbers.dedup();
        assert_eq!(AttributeRow::indexed().count(), numbers.len());
    }
}
