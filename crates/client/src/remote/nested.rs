// SPDX-License-Identifier: Apache-2.0
//! Attributes that are templates, by the version of the protocol that is our own. As by the C ABI it is asked first which attributes
//! are in one, and how long they are, then for their values; of a template in a template once more.

use super::kinds::{Kind, carried};
use super::request::Request;
use super::version::OWN;
use super::wire::{MALFORMED, Reader};
use super::{Remote, write};
use crate::{Error, Result, Template, Value};
use metaslot_ck::attribute::DEEPEST;
use metaslot_ck::{self as ck, CK_ATTRIBUTE, CK_ATTRIBUTE_TYPE, Function, ObjectHandle};

type Read<T> = std::result::Result<T, ck::Error>;

/// A template has no more attributes: neither the module nor the daemon takes one that does.
const MOST: usize = 512;
/// What an attribute takes in an array of the C ABI.
const ATTRIBUTE: usize = size_of::<CK_ATTRIBUTE>();

/// Room for an attribute, and in a template for each: none where only the length is asked for.
struct Room {
    attribute: CK_ATTRIBUTE_TYPE,
    length: usize,
    inner: Vec<Self>,
}

impl Room {
    fn write(&self, request: &mut Request) -> Read<()> {
        let number = u32::try_from(self.attribute);
        request.parts.half(number.map_err(|_| ck::Error::ATTRIBUTE_TYPE_INVALID)?);
        request.parts.count(self.length);
        if self.length != 0 && carried(self.attribute, OWN) == Some(Kind::Template) {
            request.parts.count(self.inner.len());
            self.inner.iter().try_for_each(|inner| inner.write(request))?;
        }
        Ok(())
    }
}

/// What was answered of an attribute, with its length in the C ABI.
enum Said {
    /// It cannot be said.
    Nothing,
    Bytes(usize, Vec<u8>),
    Template(usize, Vec<(CK_ATTRIBUTE_TYPE, Self)>),
}

impl Said {
    fn read(answer: &mut Reader<'_>, depth: usize) -> Read<(CK_ATTRIBUTE_TYPE, Self)> {
        let (attribute, length) = answer.attribute()?;
        let Some(length) = length else { return Ok((attribute, Self::Nothing)) };
        let kind = carried(attribute, OWN).ok_or(MALFORMED)?;
        if kind != Kind::Template {
            let value = answer.value(kind)?;
            // One that is empty is written as if it were not.
            let value = if length == 0 { Vec::new() } else { value.into_owned() };
            return Ok((attribute, Self::Bytes(length, value)));
        }
        let count = answer.count()?;
        if depth == DEEPEST || count > MOST {
            return Err(MALFORMED);
        }
        let inner = (0..count).map(|_| Self::read(answer, depth + 1)).collect::<Read<_>>()?;
        Ok((attribute, Self::Template(length, inner)))
    }

    /// What has to be asked for next, to have all of it.
    fn room(&self, attribute: CK_ATTRIBUTE_TYPE) -> Room {
        let (length, inner) = match self {
            Self::Nothing => (0, Vec::new()),
            Self::Bytes(length, _) => (*length, Vec::new()),
            Self::Template(length, inner) => {
                (*length, inner.iter().map(|(one, said)| said.room(*one)).collect())
            }
        };
        Room { attribute, length, inner }
    }

    /// All of it; `None` where something is left to be asked for.
    fn value(&self) -> Option<Value> {
        match self {
            Self::Bytes(length, value) if value.len() == *length => {
                Some(Value::Bytes(value.clone()))
            }
            _ => self.template().map(Value::Template),
        }
    }

    /// The same of a template.
    fn template(&self) -> Option<Template> {
        let Self::Template(length, inner) = self else { return None };
        let each = inner.iter().map(|(one, said)| Some((*one, said.value()?)));
        each.collect::<Option<_>>().filter(|_| inner.len() * ATTRIBUTE == *length)
    }
}

impl Drop for Said {
    fn drop(&mut self) {
        if let Self::Bytes(_, bytes) = self {
            bytes.fill(0);
            std::hint::black_box(&mut bytes[..]);
        }
    }
}

impl Remote {
    /// An attribute that is a template; `None` where there is none or nothing in it, or an older version carries none.
    pub(crate) fn template(
        &self,
        session: u64,
        object: ObjectHandle,
        attribute: CK_ATTRIBUTE_TYPE,
    ) -> Result<Option<Template>> {
        if !self.is_own() {
            return Ok(None);
        }
        let mut room = Room { attribute, length: MOST * ATTRIBUTE, inner: Vec::new() };
        // Each answer says how long what lies one deeper is.
        for _ in 0..=DEEPEST {
            let parts = |request: &mut Request| {
                write(request, &[session, object.0])?;
                request.parts.count(1);
                room.write(request)
            };
            let said = self.call(Function::GetAttributeValue, &parts, |answer| {
                let one = (answer.count()? == 1).then(|| Said::read(answer, 0));
                let (named, said) = one.ok_or(MALFORMED)??;
                match ck::Error::check(answer.number()?) {
                    _ if named != attribute => Err(MALFORMED),
                    Err(ck::Error::ATTRIBUTE_SENSITIVE | ck::Error::ATTRIBUTE_TYPE_INVALID) => {
                        Ok(Said::Nothing)
                    }
                    code => code.map(|()| said),
                }
            })?;
            match (said.template(), &said) {
                (None, Said::Template(..)) => room = said.room(attribute),
                (template, _) => return Ok(template.filter(|template| !template.is_empty())),
            }
        }
        Err(Error::new(Function::GetAttributeValue, MALFORMED))
    }
}
