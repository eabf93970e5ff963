// SPDX-License-Identifier: Apache-2.0
//! Values of attributes, sets of them, and their encoding in a stored row.
//!
//! Secret values (`CKA_VALUE` of a key, `CKA_PRIVATE_EXPONENT`, …) never enter [`Attributes`]; they
//! live in [`Secrets`], in protected memory.

use metaslot_ck::attribute::DEEPEST;
use metaslot_ck::{CK_ATTRIBUTE_TYPE, Error, Result};
use metaslot_memory::Secret;

/// One value, typed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Value {
    /// `CK_BBOOL`
    Bool(bool),
    /// `CK_ULONG`
    Ulong(u64),
    /// Bytes, strings, dates, big integers (big-endian, unsigned).
    Bytes(Vec<u8>),
    /// An array of attributes (`CKA_WRAP_TEMPLATE`, …).
    Template(Attributes),
    /// An array of numbers (`CKA_ALLOWED_MECHANISMS`).
    Ulongs(Vec<u64>),
}
/// More than a caller may give, and than there are in the standard.
const MAX_ATTRIBUTES: usize = 1024;

/// A set of attributes in the order in which they were given; none is secret.
#[derive(Clone, Debug, Default, Eq)]
pub struct Attributes {
    rows: Vec<(CK_ATTRIBUTE_TYPE, Value)>,
    /// The bit of each that is there: most of what is looked for is not, and is not searched for then.
    bits: u64,
}

/// The bit of an attribute, which others share. Found by trial: what is asked of each new key and is in few shares none with what most have.
const fn bit(attribute: CK_ATTRIBUTE_TYPE) -> u64 {
    1 << (attribute.wrapping_mul(0x5f9e_01a1_41a0_5f3f) >> 58)
}

/// The order makes no difference.
impl PartialEq for Attributes {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self.iter().all(|(attribute, value)| other.get(attribute) == Some(value))
    }
}

impl Attributes {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { rows: Vec::new(), bits: 0 }
    }

    /// The value of `attribute`, where there is one.
    #[must_use]
    pub fn get(&self, attribute: CK_ATTRIBUTE_TYPE) -> Option<&Value> {
        self.position(attribute).map(|at| &self.rows[at].1)
    }

    /// Sets `attribute`, replacing what was there.
    pub fn set(&mut self, attribute: CK_ATTRIBUTE_TYPE, value: Value) {
        match self.position(attribute) {
            Some(at) => self.rows[at].1 = value,
            None => self.push(attribute, value),
        }
    }

    fn push(&mut self, attribute: CK_ATTRIBUTE_TYPE, value: Value) {
        self.bits |= bit(attribute);
        self.rows.push((attribute, value));
    }

    /// Makes room for `more` at once.
    pub fn reserve(&mut self, more: usize) {
        self.rows.reserve(more);
    }

    /// Takes `attribute` out.
    pub fn remove(&mut self, attribute: CK_ATTRIBUTE_TYPE) -> Option<Value> {
        self.position(attribute).map(|at| self.rows.remove(at).1)
    }

    /// `true` only where the attribute is there and true.
    #[must_use]
    pub fn bool(&self, attribute: CK_ATTRIBUTE_TYPE) -> bool {
        matches!(self.get(attribute), Some(Value::Bool(true)))
    }

    /// The number, where there is one.
    #[must_use]
    pub fn ulong(&self, attribute: CK_ATTRIBUTE_TYPE) -> Option<u64> {
        match self.get(attribute) {
            Some(Value::Ulong(number)) => Some(*number),
            _ => None,
        }
    }

    /// The bytes, where there are some.
    #[must_use]
    pub fn bytes(&self, attribute: CK_ATTRIBUTE_TYPE) -> Option<&[u8]> {
        match self.get(attribute) {
            Some(Value::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// All of them, in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = (CK_ATTRIBUTE_TYPE, &Value)> {
        self.rows.iter().map(|(attribute, value)| (*attribute, value))
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn position(&self, attribute: CK_ATTRIBUTE_TYPE) -> Option<usize> {
        let may = self.bits & bit(attribute) != 0;
        may.then(|| self.rows.iter().position(|row| row.0 == attribute)).flatten()
    }

    /// The bytes of a stored row: for each attribute its number (8 bytes, little-endian), a kind
    /// byte, a length (4 bytes) and the value. `docs/format-keystore.md` has the table.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.rows.len() * 24);
        self.encode_into(&mut out);
        out
    }

    fn encode_into(&self, out: &mut Vec<u8>) {
        for (attribute, value) in &self.rows {
            out.extend_from_slice(&attribute.to_le_bytes());
            let (kind, bytes) = match value {
                Value::Bool(flag) => (KIND_BOOL, vec![u8::from(*flag)]),
                Value::Ulong(number) => (KIND_ULONG, number.to_le_bytes().to_vec()),
                Value::Bytes(bytes) => (KIND_BYTES, bytes.clone()),
                Value::Template(template) => (KIND_TEMPLATE, template.encode()),
                Value::Ulongs(numbers) => {
                    (KIND_ULONGS, numbers.iter().flat_map(|n| n.to_le_bytes()).collect())
                }
            };
            out.push(kind);
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&bytes);
        }
    }

    /// Reads what [`Self::encode`] wrote. Anybody who can write the file may have written it: what
    /// is there twice, too many or too deep is refused, so that the cost stays small and the stack is
    /// safe.
    ///
    /// # Errors
    /// `CKR_DATA_INVALID` when the bytes are not such a row.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        Self::decode_at(bytes, 0)
    }

    fn decode_at(bytes: &[u8], depth: usize) -> Result<Self> {
        let mut set = Self::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let attribute = u64::from_le_bytes(take(&mut rest)?);
            let [kind] = take(&mut rest)?;
            let length = u32::from_le_bytes(take(&mut rest)?) as usize;
            let repeats = set.position(attribute).is_some();
            if length > rest.len() || repeats || set.len() == MAX_ATTRIBUTES {
                return Err(Error::DATA_INVALID);
            }
            let (value, tail) = rest.split_at(length);
            rest = tail;
            set.push(attribute, decode_value(kind, value, depth)?);
        }
        Ok(set)
    }
}

impl IntoIterator for Attributes {
    type Item = (CK_ATTRIBUTE_TYPE, Value);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.into_iter()
    }
}

impl FromIterator<(CK_ATTRIBUTE_TYPE, Value)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (CK_ATTRIBUTE_TYPE, Value)>>(rows: I) -> Self {
        let mut set = Self::new();
        for (attribute, value) in rows {
            set.set(attribute, value);
        }
        set
    }
}

const KIND_BOOL: u8 = 1;
const KIND_ULONG: u8 = 2;
const KIND_BYTES: u8 = 3;
const KIND_TEMPLATE: u8 = 4;
const KIND_ULONGS: u8 = 5;

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>().ok_or(Error::DATA_INVALID)?;
    *rest = tail;
    Ok(*head)
}

/// Anyone who wrote the row has chosen how long a value is.
fn copied(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).map_err(|_| Error::DEVICE_MEMORY)?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

fn decode_value(kind: u8, bytes: &[u8], depth: usize) -> Result<Value> {
    let mut rest = bytes;
    Ok(match kind {
        KIND_BOOL => Value::Bool(take::<1>(&mut rest)?[0] != 0),
        KIND_ULONG => Value::Ulong(u64::from_le_bytes(take(&mut rest)?)),
        KIND_BYTES => Value::Bytes(copied(bytes)?),
        KIND_TEMPLATE if depth < DEEPEST => {
            Value::Template(Attributes::decode_at(bytes, depth + 1)?)
        }
        KIND_ULONGS if bytes.len().is_multiple_of(8) => {
            Value::Ulongs(bytes.as_chunks().0.iter().map(|n| u64::from_le_bytes(*n)).collect())
        }
        _ => return Err(Error::DATA_INVALID),
    })
}

/// Secret values of one key, sorted by type, in protected memory.
#[derive(Debug, Default)]
pub struct Secrets(Vec<(CK_ATTRIBUTE_TYPE, Secret)>);

impl Secrets {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The value of `attribute`, where there is one.
    #[must_use]
    pub fn get(&self, attribute: CK_ATTRIBUTE_TYPE) -> Option<&[u8]> {
        let at = self.0.binary_search_by_key(&attribute, |row| row.0).ok()?;
        Some(self.0[at].1.expose())
    }

    /// The value of `attribute`, to be changed in place.
    #[must_use]
    pub fn get_mut(&mut self, attribute: CK_ATTRIBUTE_TYPE) -> Option<&mut [u8]> {
        let at = self.0.binary_search_by_key(&attribute, |row| row.0).ok()?;
        Some(self.0[at].1.expose_mut())
    }

    /// Sets `attribute`, zeroising what was there.
    pub fn set(&mut self, attribute: CK_ATTRIBUTE_TYPE, value: Secret) {
        match self.0.binary_search_by_key(&attribute, |row| row.0) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (attribute, value)),
        }
    }

    /// All of them, sorted by type.
    pub fn iter(&self) -> impl Iterator<Item = (CK_ATTRIBUTE_TYPE, &[u8])> {
        self.0.iter().map(|(attribute, value)| (*attribute, value.expose()))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The plaintext of a sealed row: for each value its number (8 bytes, little-endian), its
    /// length (4 bytes) and the bytes.
    ///
    /// # Errors
    /// `CKR_DEVICE_MEMORY`
    pub fn encode(&self) -> Result<Secret> {
        let length = self.0.iter().map(|(_, value)| 12 + value.len()).sum();
        let mut out = Secret::try_zeroed(length).ok_or(Error::DEVICE_MEMORY)?;
        let mut rest = out.expose_mut();
        for (attribute, value) in &self.0 {
            let (head, tail) = rest.split_at_mut(12 + value.len());
            head[..8].copy_from_slice(&attribute.to_le_bytes());
            let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
            head[8..12].copy_from_slice(&length.to_le_bytes());
            head[12..].copy_from_slice(value.expose());
            rest = tail;
        }
        Ok(out)
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `CKR_DATA_INVALID` when the bytes are not such a row, `CKR_DEVICE_MEMORY`.
    pub fn decode(bytes: &Secret) -> Result<Self> {
        let mut set = Self::new();
        let mut rest = bytes.expose();
        while !rest.is_empty() {
            let attribute = u64::from_le_bytes(take(&mut rest)?);
            let length = u32::from_le_bytes(take(&mut rest)?) as usize;
            if length > rest.len() {
                return Err(Error::DATA_INVALID);
            }
            let (value, tail) = rest.split_at(length);
            rest = tail;
            set.set(attribute, Secret::try_copy_of(value).ok_or(Error::DEVICE_MEMORY)?);
        }
        Ok(set)
    }
}

/// What a provider hands back for a key it made, opened or derived: the engine adds the rest
/// (class, key type, usage, `CKA_LOCAL`, …).
#[derive(Debug, Default)]
pub struct NewObject {
    /// What may be shown: `CKA_MODULUS`, `CKA_EC_POINT`, `CKA_VALUE_LEN`, …
    pub attributes: Attributes,
    /// What may not: `CKA_VALUE`, `CKA_PRIVATE_EXPONENT`, …
    pub secrets: Secrets,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A template in a template, so many times.
    fn nested(depth: usize) -> Vec<u8> {
        (0..depth).fold(Vec::new(), |inner, _| row(1, KIND_TEMPLATE, &inner))
    }

    fn row(attribute: u64, kind: u8, value: &[u8]) -> Vec<u8> {
        let length = u32::try_from(value.len()).expect("it is short").to_le_bytes();
        [&attribute.to_le_bytes()[..], &[kind], &length, value].concat()
    }

    #[test]
    fn a_template_in_too_many_templates_is_refused() {
        assert!(Attributes::decode(&nested(DEEPEST)).is_ok());
        assert_eq!(Attributes::decode(&nested(DEEPEST + 1)), Err(Error::DATA_INVALID));
        assert_eq!(Attributes::decode(&nested(10_000)), Err(Error::DATA_INVALID));
    }

    #[test]
    fn an_attribute_that_is_there_twice_is_refused() {
        let (one, two) = (row(1, KIND_BOOL, &[1]), row(2, KIND_BOOL, &[1]));
        let order = |row: &Attributes| row.iter().map(|(number, _)| number).collect::<Vec<_>>();
        let decoded = Attributes::decode(&[&two[..], &one].concat()).expect("both are read");
        assert_eq!(order(&decoded), [2, 1]);
        let other_way = Attributes::decode(&[&one[..], &two].concat());
        assert_eq!(other_way.as_ref(), Ok(&decoded));
        assert!(Attributes::decode(&[&one[..], &one].concat()).is_err());
    }

    #[test]
    fn what_is_taken_out_is_gone_and_what_shares_its_bit_stays() {
        let mut set = Attributes::new();
        let all = 0..300_u64;
        all.clone().for_each(|attribute| set.set(attribute, Value::Ulong(attribute)));
        for gone in all.clone().filter(|attribute| attribute % 3 == 0) {
            assert_eq!(set.remove(gone), Some(Value::Ulong(gone)));
        }
        for attribute in all {
            let there = (attribute % 3 != 0).then_some(attribute);
            assert_eq!(set.ulong(attribute), there);
        }
        assert_eq!(set.remove(300), None);
        assert_eq!(set.len(), 200);
    }

    #[test]
    fn a_value_is_no_larger_for_the_bits() {
        assert_eq!(size_of::<Value>(), size_of::<Attributes>());
    }

    #[test]
    fn more_attributes_than_anybody_may_give_are_refused() {
        let rows = |count: usize| -> Vec<u8> {
            (0..count as u64).flat_map(|attribute| row(attribute, KIND_BOOL, &[1])).collect()
        };
        assert!(Attributes::decode(&rows(MAX_ATTRIBUTES)).is_ok());
        assert!(Attributes::decode(&rows(MAX_ATTRIBUTES + 1)).is_err());
    }
}
