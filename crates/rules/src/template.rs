// SPDX-License-Identifier: Apache-2.0
//! Templates as the caller wrote them, and as the attribute table types them.

use metaslot_ck::attribute::{AttributeRow, Kind};
use metaslot_ck::{Error, Result};
use metaslot_memory::Secret;
use metaslot_spi::{Attributes, RawValue, Secrets, Template, Value};

/// A template after typing: what may be shown, and what may not.
#[derive(Debug, Default)]
pub struct Typed {
    /// What may be shown.
    pub attributes: Attributes,
    /// What may not.
    pub secrets: Secrets,
}

/// Types every row. What is secret in objects of `class` goes apart; without a class, what is secret in any.
pub fn typed(template: Template, class: Option<u64>) -> Result<Typed> {
    let mut out = Typed::default();
    for (attribute, raw) in template {
        let kind = AttributeRow::kind_of(attribute).ok_or(Error::ATTRIBUTE_TYPE_INVALID)?;
        if out.attributes.get(attribute).is_some() || out.secrets.get(attribute).is_some() {
            return Err(Error::TEMPLATE_INCONSISTENT);
        }
        let row = class.and_then(|class| AttributeRow::of(attribute, class));
        if row.map_or_else(|| AttributeRow::can_be_secret(attribute), |row| row.secret) {
            let secret = match raw {
                RawValue::Secret(secret) => secret,
                other => Secret::try_copy_of(other.bytes()?).ok_or(Error::DEVICE_MEMORY)?,
            };
            out.secrets.set(attribute, secret);
        } else {
            out.attributes.set(attribute, value(kind, raw)?);
        }
    }
    Ok(out)
}

fn value(kind: Kind, raw: RawValue) -> Result<Value> {
    Ok(match kind {
        Kind::Bool => match raw.bytes()? {
            [0] => Value::Bool(false),
            [_] => Value::Bool(true),
            _ => return Err(Error::ATTRIBUTE_VALUE_INVALID),
        },
        Kind::Ulong => {
            let bytes = raw.bytes()?.try_into().map_err(|_| Error::ATTRIBUTE_VALUE_INVALID)?;
            Value::Ulong(u64::from_ne_bytes(bytes))
        }
        Kind::Bytes => match raw {
            RawValue::Bytes(bytes) => Value::Bytes(bytes),
            other => Value::Bytes(other.bytes()?.to_vec()),
        },
        Kind::BigInteger => Value::Bytes(without_leading_zeros(raw.bytes()?).to_vec()),
        Kind::Date => match raw.bytes()? {
            date if date.is_empty() || date.len() == 8 => Value::Bytes(date.to_vec()),
            _ => return Err(Error::ATTRIBUTE_VALUE_INVALID),
        },
        Kind::Ulongs => {
            let (numbers, rest) = raw.bytes()?.as_chunks();
            if !rest.is_empty() {
                return Err(Error::ATTRIBUTE_VALUE_INVALID);
            }
            Value::Ulongs(numbers.iter().map(|n| u64::from_ne_bytes(*n)).collect())
        }
        Kind::Template => match raw {
            RawValue::Template(inner) => {
                let inner = typed(inner, None)?;
                if !inner.secrets.is_empty() {
                    return Err(Error::ATTRIBUTE_VALUE_INVALID);
                }
                Value::Template(inner.attributes)
            }
            RawValue::Bytes(bytes) if bytes.is_empty() => Value::Template(Attributes::new()),
            _ => return Err(Error::ATTRIBUTE_VALUE_INVALID),
        },
    })
}

/// Big integers are compared and stored without leading zeros (PKCS#11 3.2 §2.1).
pub fn without_leading_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros..]
}

/// The class that a template names, where it does.
pub fn class_of(template: &Template) -> Option<u64> {
    let (_, raw) = template.iter().find(|(attribute, _)| *attribute == metaslot_ck::CKA_CLASS)?;
    Some(u64::from_ne_bytes(raw.bytes().ok()?.try_into().ok()?))
}
