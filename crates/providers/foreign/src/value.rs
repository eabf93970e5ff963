// SPDX-License-Identifier: Apache-2.0
//! Attributes as the module has them and as ours are.

use metaslot_ck::CK_ATTRIBUTE_TYPE;
use metaslot_ck::attribute::{AttributeRow, Kind};
use metaslot_client::{Template, Value as Foreign};
use metaslot_spi::{Attributes, Secrets, Value};

/// A value for the module.
pub(crate) fn encoded(value: &Value) -> Foreign {
    match value {
        Value::Bool(flag) => Foreign::Bool(*flag),
        Value::Ulong(number) => Foreign::Ulong(*number),
        Value::Bytes(bytes) => Foreign::Bytes(bytes.clone()),
        Value::Template(template) => Foreign::Template(self::template(template)),
        Value::Ulongs(numbers) => Foreign::Mechanisms(numbers.clone()),
    }
}

/// A template for the module.
pub(crate) fn template(attributes: &Attributes) -> Template {
    attributes.iter().map(|(attribute, value)| (attribute, encoded(value))).collect()
}

/// A template for the module, with what is secret in it.
pub(crate) fn whole(attributes: &Attributes, secrets: &Secrets) -> Template {
    let mut all = template(attributes);
    all.extend(
        secrets.iter().map(|(attribute, value)| (attribute, Foreign::Bytes(value.to_vec()))),
    );
    all
}

/// A value of the module's; `None` for one that is not of its attribute's kind.
pub(crate) fn decoded(attribute: CK_ATTRIBUTE_TYPE, bytes: Vec<u8>) -> Option<Value> {
    Some(match AttributeRow::kind_of(attribute)? {
        Kind::Bool => match bytes[..] {
            [byte] => Value::Bool(byte != 0),
            _ => return None,
        },
        Kind::Ulong => Value::Ulong(u64::from_ne_bytes(bytes.try_into().ok()?)),
        Kind::Bytes | Kind::Date => Value::Bytes(bytes),
        Kind::BigInteger => {
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            Value::Bytes(bytes[zeros..].to_vec())
        }
        Kind::Ulongs => {
            let (numbers, rest) = bytes.as_chunks();
            if !rest.is_empty() {
                return None;
            }
            Value::Ulongs(numbers.iter().map(|number| u64::from_ne_bytes(*number)).collect())
        }
        // A list of attributes cannot be read without following the module's pointers.
        Kind::Template => return None,
    })
}

/// Overwrites what was secret.
pub(crate) fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    std::hint::black_box(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_ck::*;

    #[test]
    fn a_value_of_a_wrong_length_is_none() {
        assert_eq!(decoded(CKA_TOKEN, vec![1]), Some(Value::Bool(true)));
        assert_eq!(decoded(CKA_TOKEN, vec![1, 0]), None);
        assert_eq!(decoded(CKA_CLASS, vec![0; 4]), None);
        assert_eq!(decoded(CKA_MODULUS, vec![0, 9]), Some(Value::Bytes(vec![9])));
        assert_eq!(decoded(CKA_ALLOWED_MECHANISMS, vec![0; 9]), None);
    }
}
