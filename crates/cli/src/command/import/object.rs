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
                // Some modules want no word of it.
                Some(_) if !on && is_of_the_other_half(attribute, packed.class) => {}
                Some(_) => object.template.push(attribute, Value::Bool(on)),
                None if on => object.lose(attribute),
                None => {}
            }
        }
        for (attribute, value) in &packed.values {
            match given(*attribute, packed.class) {
                // The original kept what is not there as nothing.
                Some(_) if value.is_empty() => {}
                Some(_) => object.template.push(*attribute, packed.converted(*attribute, value)),
                None => object.lose(*attribute),
            }
        }
        object
    }

    fn lose(&mut self, attribute: CK_ATTRIBUTE_TYPE) {
        let name = attribute_name(attribute).map(str::to_owned);
        self.lost.push(name.unwrap_or_else(|| format!("{attribute:#x}")));
    }
}

/// A usage that objects of this class do not have.
const fn is_of_the_other_half(attribute: CK_ATTRIBUTE_TYPE, class: CK_OBJECT_CLASS) -> bool {
    match class {
        CKO_PUBLIC_KEY => {
            matches!(attribute, CKA_DECRYPT | CKA_SIGN | CKA_SIGN_RECOVER | CKA_UNWRAP)
        }
        CKO_PRIVATE_KEY => {
            matches!(attribute, CKA_ENCRYPT | CKA_VERIFY | CKA_VERIFY_RECOVER | CKA_WRAP)
        }
        _ => matches!(attribute, CKA_SIGN_RECOVER | CKA_VERIFY_RECOVER),
    }
}

/// What is known of an attribute that a template for an object of this class may have.
fn given(attribute: CK_ATTRIBUTE_TYPE, class: CK_OBJECT_CLASS) -> Option<&'static AttributeRow> {
    AttributeRow::of(attribute, class).filter(|row| row.may(CREATE) && !row.may(SO))
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
        Kind::of_group(self.key_type, self.value(CKA_PRIME), self.value(CKA_SUBPRIME))
            .unwrap_or_else(|| Kind::of(self.key_type, params, modulus, length))
    }

    /// What two objects of one label and id differ in, as far as it can be seen.
    pub(super) fn public_values(&self) -> impl Iterator<Item = (CK_ATTRIBUTE_TYPE, Value)> {
        let public = matches!(self.class, CKO_CERTIFICATE | CKO_PUBLIC_KEY);
        let seen = [CKA_MODULUS, CKA_EC_POINT, CKA_VALUE].into_iter();
        let seen = seen.filter(move |attribute| public || *attribute != CKA_VALUE);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_point_becomes_der_and_der_stays() {
        let params = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
        let bare = [[4].as_slice(), &[7; 64]].concat();
        let der = [[4, 65].as_slice(), &bare].concat();
        for point in [&bare, &der] {
            let packed = Packed::of_point(&params, point);
            let object = Object::of(&packed, false, true);
            assert_eq!(object.template.find(CKA_EC_POINT), Some(&Value::Bytes(der.clone())));
            assert_eq!(object.lost, [""; 0]);
        }
        assert_eq!(octet_string(&[4; 133])[..3], [4, 0x81, 133]);
    }

    #[test]
    fn what_only_a_token_says_of_its_objects_is_lost() {
        let mut packed = Packed::of_point(&[], &[]);
        packed.flags = u64::MAX;
        let object = Object::of(&packed, true, false);
        for lost in ["CKA_LOCAL", "CKA_TRUSTED", "CKA_SENSITIVE"] {
            assert!(object.lost.iter().any(|name| name == lost), "{lost}: {:?}", object.lost);
        }
        assert_eq!(object.template.find(CKA_MODIFIABLE), Some(&Value::Bool(false)));
        assert_eq!(object.template.find(CKA_VERIFY), Some(&Value::Bool(true)));
        packed.flags = 0;
        let object = Object::of(&packed, true, false);
        assert_eq!(object.template.find(CKA_SIGN), None);
        assert_eq!(object.template.find(CKA_VERIFY), Some(&Value::Bool(false)));
    }
}
