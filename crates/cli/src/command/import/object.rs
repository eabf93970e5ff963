// SPDX-License-Identifier: Apache-2.0
//! From an object of the Solaris keystore to the template of one in a token.

use super::packed::Packed;
use crate::key::Kind;
use metaslot_ck::attribute::{AttributeRow, CREATE, SO};

use metaslot_ck::*;
use metaslot_client::{Template, Value};

/// A template, and what is not in it.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) template: Template,
    /// Attributes that objects of this class are not given.
    pub(super) lost: Vec<String>,
}

impl Object {
    /// For an object of the token, or of the session.
    pub(super) fn of(packed: &Packed<'_>, private: bool, token: bool) -> Self {
        let (attribute, number) = match packed.class {
            CKO_CERTIFICATE => (CKA_CERTIFICATE_TYPE, packed.certificate_type),
            _ => (CKA_KEY_TYPE, packed.key_type),
        };
        let template = Template::new().class(packed.class).ulong(attribute, number);
        let template = template.token(token).bool(CKA_PRIVATE, private);
        let mut object = Self { template, lost: Vec::new() };
        for (attribute, on) in packed.flags() {
            match given(attribute, packed.class) {
                true => object.template.push(attribute, Value::Bool(on)),
                false if on => object.lose(attribute),
                false => {}
            }
        }
        for (attribute, value) in &packed.values {
            match given(*attribute, packed.class) {
                // The original kept what is not there as nothing.
                true if value.is_empty() => {}
                true => object.template.push(*attribute, packed.converted(*attribute, value)),
                false => object.lose(*attribute),
            }
        }
        object
    }

    fn lose(&mut self, attribute: CK_ATTRIBUTE_TYPE) {
        let name = attribute_name(attribute).map(str::to_owned);
        self.lost.push(name.unwrap_or_else(|| format!("{attribute:#x}")));
    }
}

/// Whether whoever makes an object of this class may say this.
fn given(attribute: CK_ATTRIBUTE_TYPE, class: CK_OBJECT_CLASS) -> bool {
    AttributeRow::of(attribute, class).is_some_and(|row| row.may(CREATE) && !row.may(SO))
}

impl Packed<'_> {
    /// In words.
    pub(super) fn kind(&self) -> String {
        let class = match self.class {
            CKO_PUBLIC_KEY => "public",
            CKO_PRIVATE_KEY => "private",
            CKO_SECRET_KEY => "secret-key",
            CKO_CERTIFICATE if self.certificate_type == CKC_X_509 => return "cert".to_owned(),
            other => {
                return object_class_name(other)
                    .map_or_else(|| format!("{other:#x}"), str::to_owned);
            }
        };
        format!("{class} {}", self.key_kind())
    }

    fn key_kind(&self) -> Kind {
        let (params, modulus) = (self.value(CKA_EC_PARAMS), self.value(CKA_MODULUS));
        let length = self.value(CKA_VALUE).map(|value| value.len() as u64);
        Kind::of(self.key_type, params, modulus, length)
    }

    /// What two objects of one label and id differ in, as far as it can be seen.
    pub(super) fn public_values(&self) -> impl Iterator<Item = (CK_ATTRIBUTE_TYPE, Value)> {
        let certificate = self.class == CKO_CERTIFICATE;
        let seen = [CKA_MODULUS, CKA_EC_POINT, CKA_VALUE].into_iter();
        let seen = seen.filter(move |attribute| certificate || *attribute != CKA_VALUE);
        seen.filter_map(|attribute| {
            Some((attribute, self.converted(attribute, self.value(attribute)?)))
        })
    }

    /// A value in the form that tokens want.
    fn converted(&self, attribute: CK_ATTRIBUTE_TYPE, value: &[u8]) -> Value {
        // The standard wants a point as DER; the original kept it as it is on the wire.
        let size = self.key_kind().size;
        let bare = attribute == CKA_EC_POINT && size > 0 && value.len() == 1 + 2 * size;
        Value::Bytes(if bare { octet_string(value) } else { value.to_vec() })
    }
}

fn octet_string(value: &[u8]) -> Vec<u8> {
    let length = u8::try_from(value.len()).unwrap_or(u8::MAX);
    let head: &[u8] = if length < 0x80 { &[4, length] } else { &[4, 0x81, length] };
    [head, value].concat()
}
