// SPDX-License-Identifier: Apache-2.0
//! Requests of ours: templates and mechanisms, as far as every version of p11-kit's protocol writes them in the same way, or all of
//! the vocabulary in the version that is our own.

use super::calls::Call;
use super::kinds::{Kind, carried, has_no_parameter, has_parameter, may_have_parameter};
use super::version::{OWN, SAYS_PARAMETERS};
use super::wire::{Message, NO_BYTES, Writer};
use crate::{Mechanism, Params, Template, Value};
use metaslot_ck::{
    self as ck, CK_ATTRIBUTE_TYPE, CK_MECHANISM_TYPE, CKM_RSA_PKCS_OAEP, CKM_RSA_PKCS_PSS,
    CKZ_DATA_SPECIFIED,
};

type Result<T> = std::result::Result<T, ck::Error>;

/// A request that is being written.
pub(super) struct Request {
    pub(super) parts: Writer,
    version: u8,
}

impl Request {
    pub(super) fn new(call: &Call, version: u8) -> Self {
        let mut parts = Writer::default();
        parts.begin(call.number, call.request);
        Self { parts, version }
    }

    pub(super) fn finish(self) -> Message {
        self.parts.finish()
    }

    pub(super) fn numbers(&mut self, numbers: &[u64]) {
        numbers.iter().for_each(|number| self.parts.number(*number));
    }

    pub(super) fn template(&mut self, template: &Template) -> Result<()> {
        self.parts.count(template.len());
        template.iter().try_for_each(|(attribute, value)| self.attribute(attribute, value))
    }

    fn attribute(&mut self, attribute: CK_ATTRIBUTE_TYPE, value: &Value) -> Result<()> {
        let kind = carried(attribute, self.version).ok_or(ck::Error::ATTRIBUTE_TYPE_INVALID)?;
        let (one, eight, list);
        let bytes = match value {
            Value::Bool(flag) => {
                one = [u8::from(*flag)];
                &one[..]
            }
            Value::Ulong(number) => {
                eight = number.to_ne_bytes();
                &eight[..]
            }
            Value::Bytes(bytes) => bytes,
            Value::Mechanisms(numbers) if kind == Kind::Numbers => {
                list = numbers.iter().flat_map(|one| one.to_ne_bytes()).collect::<Vec<_>>();
                &list[..]
            }
            Value::Template(inner) if kind == Kind::Template => {
                let length = inner.len() * size_of::<ck::CK_ATTRIBUTE>();
                self.parts.available(attribute, length)?;
                return self.template(inner);
            }
            Value::Mechanisms(_) | Value::Template(_) => {
                return Err(ck::Error::ATTRIBUTE_VALUE_INVALID);
            }
        };
        self.parts.available(attribute, bytes.len())?;
        self.parts.value(kind, bytes)
    }

    pub(super) fn mechanism(&mut self, mechanism: &Mechanism<'_>) -> Result<()> {
        if self.version >= OWN {
            return self.parts.mechanism(mechanism);
        }
        let number = mechanism.number;
        self.parts.half(u32::try_from(number).map_err(|_| ck::Error::MECHANISM_INVALID)?);
        let plain = has_no_parameter(number);
        let has = !matches!(mechanism.params, Params::None);
        match (self.version >= SAYS_PARAMETERS, plain) {
            (true, true) if !has => return Ok(()),
            (true, false) => {
                self.parts.byte(u8::from(has));
                if !has && may_have_parameter(number) {
                    return Ok(());
                }
            }
            (false, true) if !has => {
                self.parts.half(NO_BYTES);
                return Ok(());
            }
            (false, false) if has => {}
            _ => return Err(ck::Error::MECHANISM_PARAM_INVALID),
        }
        match (number, mechanism.params) {
            (CKM_RSA_PKCS_PSS, Params::Pss { hash, mgf, salt_length }) => {
                [hash, mgf, salt_length].into_iter().for_each(|number| self.parts.number(number));
            }
            (CKM_RSA_PKCS_OAEP, Params::Oaep { hash, mgf, label }) => {
                [hash, mgf, CKZ_DATA_SPECIFIED]
                    .into_iter()
                    .for_each(|number| self.parts.number(number));
                self.parts.counted(label);
            }
            (CKM_RSA_PKCS_PSS | CKM_RSA_PKCS_OAEP, _) => {
                return Err(ck::Error::MECHANISM_PARAM_INVALID);
            }
            (_, Params::Bytes(bytes)) => self.parts.counted(bytes),
            _ => return Err(ck::Error::MECHANISM_PARAM_INVALID),
        }
        Ok(())
    }
}

/// Whether a mechanism can be asked for in this version of the protocol.
pub(super) fn carries(mechanism: CK_MECHANISM_TYPE, version: u8) -> bool {
    // Whatever parameter it is given says of what kind it is.
    if version >= OWN {
        return true;
    }
    let said = version >= SAYS_PARAMETERS && may_have_parameter(mechanism);
    has_no_parameter(mechanism) || has_parameter(mechanism) || said
}
