// SPDX-License-Identifier: Apache-2.0
//! Attribute templates: typed values, laid out for the C ABI only during a call.

use crate::ulong;
use metaslot_ck::*;
use std::fmt;

/// The value of one attribute.
#[derive(Clone, Eq, PartialEq)]
pub enum Value {
    /// `CK_BBOOL`
    Bool(bool),
    /// `CK_ULONG`: numbers, classes, key types.
    Ulong(CK_ULONG),
    /// Bytes of any kind: labels, identifiers, key values, big integers, DER.
    Bytes(Vec<u8>),
    /// An array of mechanisms (`CKA_ALLOWED_MECHANISMS`).
    Mechanisms(Vec<CK_MECHANISM_TYPE>),
    /// A template inside a template (`CKA_WRAP_TEMPLATE` and its kin).
    Template(Template),
}

impl fmt::Debug for Value {
    /// Bytes may be a key's: only their number is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Ulong(value) => value.fmt(f),
            Self::Bytes(value) => write!(f, "{} bytes", value.len()),
            Self::Mechanisms(value) => value.fmt(f),
            Self::Template(value) => value.fmt(f),
        }
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        if let Self::Bytes(bytes) = self {
            bytes.fill(0);
            std::hint::black_box(&mut bytes[..]);
        }
    }
}

/// Attributes in the order in which they were added; their bytes are zeroised on drop.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Template(Vec<(CK_ATTRIBUTE_TYPE, Value)>);

impl Template {
    /// No attributes yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// `CKA_CLASS`
    #[must_use]
    pub fn class(self, class: CK_OBJECT_CLASS) -> Self {
        self.ulong(CKA_CLASS, class)
    }

    /// `CKA_KEY_TYPE`
    #[must_use]
    pub fn key_type(self, key_type: CK_KEY_TYPE) -> Self {
        self.ulong(CKA_KEY_TYPE, key_type)
    }

    /// `CKA_LABEL`
    #[must_use]
    pub fn label(self, label: &str) -> Self {
        self.bytes(CKA_LABEL, label)
    }

    /// `CKA_TOKEN`
    #[must_use]
    pub fn token(self, token: bool) -> Self {
        self.bool(CKA_TOKEN, token)
    }

    /// A `CK_BBOOL`.
    #[must_use]
    pub fn bool(self, attribute: CK_ATTRIBUTE_TYPE, value: bool) -> Self {
        self.with(attribute, Value::Bool(value))
    }

    /// A `CK_ULONG`.
    #[must_use]
    pub fn ulong(self, attribute: CK_ATTRIBUTE_TYPE, value: CK_ULONG) -> Self {
        self.with(attribute, Value::Ulong(value))
    }

    /// Bytes; a copy is taken.
    #[must_use]
    pub fn bytes(self, attribute: CK_ATTRIBUTE_TYPE, value: impl AsRef<[u8]>) -> Self {
        self.with(attribute, Value::Bytes(value.as_ref().to_vec()))
    }

    /// Any value.
    #[must_use]
    pub fn with(mut self, attribute: CK_ATTRIBUTE_TYPE, value: Value) -> Self {
        self.push(attribute, value);
        self
    }

    /// Adds one attribute at the end.
    pub fn push(&mut self, attribute: CK_ATTRIBUTE_TYPE, value: Value) {
        self.0.push((attribute, value));
    }

    /// The value of `attribute`, the first if it was added twice.
    #[must_use]
    pub fn find(&self, attribute: CK_ATTRIBUTE_TYPE) -> Option<&Value> {
        self.0.iter().find(|(number, _)| *number == attribute).map(|(_, value)| value)
    }

    /// The attributes in order.
    pub fn iter(&self) -> impl Iterator<Item = (CK_ATTRIBUTE_TYPE, &Value)> {
        self.0.iter().map(|(number, value)| (*number, value))
    }

    /// How many attributes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The C layout, pointing into `self`.
    pub(crate) fn encode(&self) -> Encoded<'_> {
        let mut inner = Vec::new();
        let attributes = self.0.iter().map(|(number, value)| {
            let (pointer, length) = match value {
                Value::Bool(true) => (TRUE.as_ptr().cast_mut().cast(), TRUE.len()),
                Value::Bool(false) => (FALSE.as_ptr().cast_mut().cast(), FALSE.len()),
                Value::Ulong(value) => (std::ptr::from_ref(value).cast_mut().cast(), 8),
                Value::Bytes(bytes) => (bytes.as_ptr().cast_mut().cast(), bytes.len()),
                Value::Mechanisms(list) => (list.as_ptr().cast_mut().cast(), list.len() * 8),
                Value::Template(template) => {
                    let mut nested = template.encode();
                    let entry = (
                        nested.attributes.as_mut_ptr().cast(),
                        size_of_val(nested.attributes.as_slice()),
                    );
                    inner.push(nested);
                    entry
                }
            };
            CK_ATTRIBUTE { type_: *number, pValue: pointer, ulValueLen: ulong(length) }
        });
        let attributes = attributes.collect();
        Encoded { attributes, _inner: inner, _values: std::marker::PhantomData }
    }
}

impl FromIterator<(CK_ATTRIBUTE_TYPE, Value)> for Template {
    fn from_iter<T: IntoIterator<Item = (CK_ATTRIBUTE_TYPE, Value)>>(attributes: T) -> Self {
        Self(attributes.into_iter().collect())
    }
}

impl Extend<(CK_ATTRIBUTE_TYPE, Value)> for Template {
    fn extend<T: IntoIterator<Item = (CK_ATTRIBUTE_TYPE, Value)>>(&mut self, attributes: T) {
        self.0.extend(attributes);
    }
}

const _: () = assert!(size_of::<CK_ULONG>() == 8, "values are encoded as 64-bit numbers");
static TRUE: [u8; 1] = [CK_TRUE];
static FALSE: [u8; 1] = [CK_FALSE];

/// A template as the C ABI wants it. Its pointers reach into the [`Template`] that it borrows and
/// into heap blocks of its own, so it may be moved.
pub(crate) struct Encoded<'a> {
    attributes: Vec<CK_ATTRIBUTE>,
    _inner: Vec<Self>,
    _values: std::marker::PhantomData<&'a Template>,
}

impl Encoded<'_> {
    /// Pointer and count, as every function takes them.
    pub(crate) fn raw(&mut self) -> (*mut CK_ATTRIBUTE, CK_ULONG) {
        (self.attributes.as_mut_ptr(), ulong(self.attributes.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_laid_out_with_its_own_length() {
        let inner = Template::new().bool(CKA_SENSITIVE, true).ulong(CKA_VALUE_LEN, 32);
        let template = Template::new()
            .class(CKO_SECRET_KEY)
            .token(false)
            .label("name")
            .with(CKA_ALLOWED_MECHANISMS, Value::Mechanisms(vec![CKM_AES_GCM, CKM_AES_CBC]))
            .with(CKA_WRAP_TEMPLATE, Value::Template(inner));
        let mut encoded = template.encode();
        let lengths: Vec<_> = encoded.attributes.iter().map(|a| a.ulValueLen).collect();
        assert_eq!(lengths, [8, 1, 4, 16, 2 * 24]);
        assert_eq!(encoded.raw().1, 5);
    }

    #[test]
    fn debug_output_never_shows_bytes() {
        let template = Template::new().bytes(CKA_VALUE, b"secret");
        assert!(format!("{template:?}").contains("6 bytes"));
        assert!(!format!("{template:?}").contains("secret"));
    }
}
