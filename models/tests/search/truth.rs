// SPDX-License-Identifier: Apache-2.0
//! What is true of the keys of a sequence, no matter who knows it: which objects have one value, how it was
//! born, who wrapped what.

use crate::alphabet::Mechanism;
use crate::stage::Facts;
use crate::step::Name;
use metaslot_ck::*;
use std::collections::BTreeMap;

/// The value of a key.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    /// What the key is made of; the first is what identifies it.
    pub(crate) bytes: Vec<Vec<u8>>,
    /// As the first object was made.
    pub(crate) birth: Facts,
    pub(crate) standing: Standing,
    /// The SO trusts the key.
    pub(crate) trusted: bool,
}

/// What the attacker may know of a value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Standing {
    /// He brought it, or can compute it.
    Free,
    /// It was made protected, and is his to use only.
    Protected,
    /// It was derived from one that is protected.
    Derived,
    /// It is a piece of a protected one, or an encoding of it.
    Piece,
}

impl Value {
    pub(crate) fn is_secret(&self) -> bool {
        self.standing != Standing::Free
    }

    /// What identifies the value.
    pub(crate) fn main(&self) -> &[u8] {
        self.bytes.first().map_or(&[], Vec::as_slice)
    }

    /// Whether it is the beginning of a private key's encoding, which is known, and so byte by
    /// byte the rest: the attacker may choose every length.
    pub(crate) fn begins_encoded(&self) -> bool {
        self.standing == Standing::Piece && matches!(self.main(), [0x30, 0x81 | 0x82, ..])
    }

    /// Whether these bytes give the value away.
    pub(crate) fn is_in(&self, bytes: &[u8]) -> bool {
        self.bytes.iter().any(|value| value.len() >= MEANS_SOMETHING && contains(bytes, value))
    }
}

/// Fewer bytes than this can be anywhere by chance.
const MEANS_SOMETHING: usize = 8;

pub(crate) fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len().max(1)).any(|window| window == part)
}

/// One output of `C_WrapKey`; the keys as indices of values.
#[derive(Debug)]
pub(crate) struct Wrapped {
    pub(crate) step: usize,
    pub(crate) mechanism: &'static Mechanism,
    pub(crate) by: usize,
    pub(crate) key: usize,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Debug, Default)]
pub(crate) struct Truth {
    pub(crate) values: Vec<Value>,
    of: BTreeMap<Name, usize>,
    pub(crate) wraps: Vec<Wrapped>,
    /// What HKDF extracted without expanding, and what from: the key imposes on both steps together.
    pub(crate) extracted: BTreeMap<usize, usize>,
}

impl Truth {
    /// Index of the value of an object.
    pub(crate) fn of(&self, name: Name) -> Option<usize> {
        self.of.get(&name).copied()
    }

    pub(crate) fn value(&self, name: Name) -> Option<&Value> {
        self.of(name).map(|index| &self.values[index])
    }

    /// Notes an object with the value of another.
    pub(crate) fn same(&mut self, name: Name, index: usize) {
        self.of.insert(name, index);
    }

    /// Notes an object with these bytes: another's value, or a new one.
    pub(crate) fn note(
        &mut self,
        name: Name,
        bytes: Vec<Vec<u8>>,
        birth: Facts,
        standing: Standing,
    ) -> usize {
        let known = |value: &Value| !bytes.is_empty() && value.bytes.first() == bytes.first();
        let index = self.values.iter().position(known).unwrap_or_else(|| {
            self.values.push(Value { bytes, birth, standing, trusted: false });
            self.values.len() - 1
        });
        self.same(name, index);
        index
    }

    /// What a newly unwrapped value has to do with a protected one: the wrapped form that was opened
    /// holds that, and this is another.
    pub(crate) fn unwrapped(
        &self,
        by: usize,
        blob: &[u8],
        bytes: &[Vec<u8>],
        class: u64,
    ) -> Standing {
        let main = bytes.first().map_or(&[][..], Vec::as_slice);
        let piece = self.wraps.iter().filter(|wrap| wrap.by == by).any(|wrap| {
            let (bytes, key) = (&wrap.bytes, &self.values[wrap.key]);
            // A private key's encoding, or its beginning, is a piece of it.
            let encoded = key.birth.class == CKO_PRIVATE_KEY && main.first() == Some(&0x30);
            let cut = key.main().starts_with(main) || key.main().ends_with(main);
            let of_it = bytes == blob || contains(bytes, blob);
            class == CKO_SECRET_KEY && key.is_secret() && of_it && (cut || encoded)
        });
        if piece { Standing::Piece } else { Standing::Free }
    }

    /// Values that the attacker must not have.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Value> {
        self.values.iter().filter(|value| value.is_secret())
    }
}
