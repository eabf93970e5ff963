// SPDX-License-Identifier: Apache-2.0
//! Ciphers of old, and of some countries: how types of their keys are written (`camellia:256`, `seed`). One row per type.

use metaslot_ck::*;

/// A type of key.
pub(crate) struct Old {
    name: &'static str,
    pub(crate) key_type: CK_KEY_TYPE,
    /// Makes one.
    pub(crate) mechanism: CK_MECHANISM_TYPE,
    /// The fewest and the most bits, in steps of so many.
    bits: (usize, usize),
    step: usize,
}

const fn row(
    name: &'static str,
    key_type: CK_KEY_TYPE,
    mechanism: CK_MECHANISM_TYPE,
    bits: (usize, usize),
    step: usize,
) -> Old {
    Old { name, key_type, mechanism, bits, step }
}

const TYPES: &[Old] = &[
    row("camellia", CKK_CAMELLIA, CKM_CAMELLIA_KEY_GEN, (128, 256), 64),
    row("aria", CKK_ARIA, CKM_ARIA_KEY_GEN, (128, 256), 64),
    row("seed", CKK_SEED, CKM_SEED_KEY_GEN, (128, 128), 8),
    row("twofish", CKK_TWOFISH, CKM_TWOFISH_KEY_GEN, (128, 256), 64),
    row("salsa20", CKK_SALSA20, CKM_SALSA20_KEY_GEN, (256, 256), 8),
    row("cast5", CKK_CAST5, CKM_CAST5_KEY_GEN, (40, 128), 8),
    row("blowfish", CKK_BLOWFISH, CKM_BLOWFISH_KEY_GEN, (32, 448), 8),
    row("idea", CKK_IDEA, CKM_IDEA_KEY_GEN, (128, 128), 8),
    row("rc2", CKK_RC2, CKM_RC2_KEY_GEN, (8, 1024), 8),
    row("rc5", CKK_RC5, CKM_RC5_KEY_GEN, (8, 2040), 8),
    row("des", CKK_DES, CKM_DES_KEY_GEN, (64, 64), 8),
];

impl Old {
    /// The row of what stands before the colon.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        TYPES.iter().find(|row| row.name == name)
    }

    pub(crate) fn of(key_type: CK_KEY_TYPE) -> Option<&'static Self> {
        TYPES.iter().find(|row| row.key_type == key_type)
    }

    /// Whether its keys are all as long, so that nobody says how long.
    pub(crate) const fn has_one_length(&self) -> bool {
        self.bits.0 == self.bits.1
    }

    /// The bits that are said behind the colon, or not, where keys may have so many.
    pub(crate) fn bits(&self, said: &str, number: Option<usize>) -> Option<usize> {
        let (least, most) = self.bits;
        match number {
            None if said.is_empty() && self.has_one_length() => Some(least),
            Some(bits) if !self.has_one_length() => {
                ((least..=most).contains(&bits) && bits.is_multiple_of(self.step)).then_some(bits)
            }
            _ => None,
        }
    }

    /// How a type of so many bits is written.
    pub(crate) fn written(&self, bits: Option<usize>) -> String {
        match bits {
            Some(bits) if !self.has_one_length() => format!("{}:{bits}", self.name),
            _ => self.name.to_owned(),
        }
    }

    /// What `--type` takes.
    pub(crate) fn takes(&self) -> String {
        let (least, most) = self.bits;
        format!("a key of {} has {least} to {most} bits, a multiple of {}", self.name, self.step)
    }

    /// Each once, of the most usual length.
    pub(crate) fn usual() -> impl Iterator<Item = String> {
        TYPES.iter().map(|row| row.written(Some(row.bits.1.min(128).max(row.bits.0))))
    }
}
