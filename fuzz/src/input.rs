// SPDX-License-Identifier: Apache-2.0
//! Bytes as a source of choices: where they end, every choice is the first.

use metaslot_ck::attribute::{AttributeRow, Kind};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::{RawValue, Template};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// The rest of an input.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

/// Numbers at which something may change.
const EDGES: [u64; 16] = [
    0,
    1,
    2,
    7,
    8,
    16,
    32,
    64,
    127,
    128,
    255,
    256,
    u32::MAX as u64,
    1 << 32,
    i64::MAX as u64,
    u64::MAX,
];

impl<'a> Input<'a> {
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn is(&mut self, of: u8) -> bool {
        self.byte() % of == 1
    }

    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::from(self.byte()) % all.len()]
    }

    /// At the end, and otherwise some bytes, rarely many.
    pub(crate) fn bytes(&mut self) -> &'a [u8] {
        let length = match self.byte() {
            short @ 0..=250 => usize::from(short) % 80,
            long => usize::from(long - 250) * 150,
        };
        let (bytes, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    pub(crate) fn number(&mut self) -> u64 {
        match self.byte() {
            edge @ 0..16 => EDGES[usize::from(edge)],
            small @ 16..200 => u64::from(small - 16),
            _ => {
                let mut number = [0; 8];
                number.iter_mut().for_each(|byte| *byte = self.byte());
                u64::from_le_bytes(number)
            }
        }
    }

    /// One of the numbers that the standard has here, or any other.
    pub(crate) fn constant(&mut self, known: &[u64]) -> u64 {
        if self.is(16) { self.number() } else { self.one_of(known) }
    }

    /// An attribute, nearly always one that there is.
    pub(crate) fn attribute(&mut self) -> CK_ATTRIBUTE_TYPE {
        let rows = AttributeRow::all();
        match usize::from(self.byte()) {
            240.. => self.number(),
            index => rows[index % rows.len()].number,
        }
    }

    /// What the edge lets through for this attribute, nearly always of the right length.
    pub(crate) fn value(&mut self, attribute: CK_ATTRIBUTE_TYPE, depth: usize) -> RawValue {
        let odd = self.is(12);
        let bytes = match AttributeRow::kind_of(attribute) {
            Some(Kind::Template) => {
                let inner = if depth < 2 { self.template(depth + 1) } else { Template::new() };
                return RawValue::Template(inner);
            }
            _ if odd => self.bytes().to_vec(),
            Some(Kind::Bool) => vec![self.byte() & 1],
            Some(Kind::Ulong) => {
                let known: &[u64] = match attribute {
                    CKA_CLASS => &CLASSES,
                    CKA_KEY_TYPE => &KEY_TYPES,
                    _ => &EDGES,
                };
                self.constant(known).to_ne_bytes().to_vec()
            }
            Some(Kind::Date) => b"20261122".to_vec(),
            Some(Kind::Ulongs) => {
                (0..self.byte() % 4).flat_map(|_| self.mechanism().to_ne_bytes()).collect()
            }
            Some(Kind::Bytes | Kind::BigInteger) | None => self.bytes().to_vec(),
        };
        match AttributeRow::can_be_secret(attribute) {
            true => RawValue::Secret(Secret::copy_of(&bytes)),
            false => RawValue::Bytes(bytes),
        }
    }

    pub(crate) fn template(&mut self, depth: usize) -> Template {
        let count = self.byte() % 6;
        (0..count)
            .map(|_| {
                let attribute = self.attribute();
                (attribute, self.value(attribute, depth))
            })
            .collect()
    }

    /// `template` with some attributes changed, left out or added.
    pub(crate) fn like(&mut self, mut template: Template) -> Template {
        for (attribute, value) in self.template(0) {
            match template.iter_mut().find(|row| row.0 == attribute) {
                Some(row) if !self.is(8) => row.1 = value,
                _ => template.push((attribute, value)),
            }
        }
        if self.is(8) && !template.is_empty() {
            template.remove(usize::from(self.byte()) % template.len());
        }
        template
    }

    pub(crate) fn mechanism(&mut self) -> CK_MECHANISM_TYPE {
        let rows = mechanism::MechanismRow::all();
        match self.byte() {
            250.. => self.number(),
            // There are more than one byte counts.
            high => rows[usize::from(u16::from_be_bytes([high, self.byte()])) % rows.len()].number,
        }
    }
}

const CLASSES: [u64; 6] =
    [CKO_SECRET_KEY, CKO_DATA, CKO_CERTIFICATE, CKO_PUBLIC_KEY, CKO_PRIVATE_KEY, CKO_HW_FEATURE];
const KEY_TYPES: [u64; 13] = [
    CKK_AES,
    CKK_GENERIC_SECRET,
    CKK_RSA,
    CKK_EC,
    CKK_EC_EDWARDS,
    CKK_EC_MONTGOMERY,
    CKK_DES3,
    CKK_RC4,
    CKK_HKDF,
    CKK_CHACHA20,
    CKK_DES,
    CKK_CAMELLIA,
    CKK_RC5,
];

/// What was seen in a run.
#[derive(Default)]
pub(crate) struct Seen(DefaultHasher);

impl Seen {
    pub(crate) fn note(&mut self, what: impl Hash) {
        what.hash(&mut self.0);
    }

    /// Notes the code alone.
    pub(crate) fn result<T>(&mut self, result: &Result<T>) {
        self.note(code(result));
    }

    pub(crate) fn finish(self) -> u64 {
        self.0.finish()
    }
}

/// The code of a call, 0 where it went well.
pub(crate) fn code<T>(result: &Result<T>) -> u64 {
    result.as_ref().err().map_or(0, |error| error.rv())
}
