// SPDX-License-Identifier: Apache-2.0
//! Templates, and the answers of `C_GetAttributeValue` (PKCS#11 3.2 §5.7.5).

use super::connection::Asked;
use super::frame::LONGEST;
use metaslot_ck::attribute::{AttributeRow, DEEPEST};
use metaslot_ck::*;
use metaslot_client::protocol::{Kind, NO_BYTES, Reader, Writer, kind_in};
use metaslot_engine::{Answer, Object};
use metaslot_memory::Secret;
use metaslot_spi::{Attributes, RawValue, Template, Value};
use metaslot_wiring::room::check_room;
use std::borrow::Cow;

/// More attributes than a template has: the standard does not define as many.
const MAX_ATTRIBUTES: usize = 512;
/// From this version on the room for an array of attributes says the room for each of them.
const NESTS_ROOM: u8 = 1;
/// What an attribute takes in an array of the C ABI.
const ATTRIBUTE: usize = size_of::<CK_ATTRIBUTE>();

/// What an attribute takes in a template of ours beside its value.
const IN_TEMPLATE: usize = size_of::<(CK_ATTRIBUTE_TYPE, RawValue)>();

/// Takes so many bytes for what is on its way.
type Take<'a> = &'a mut dyn FnMut(usize) -> Result<()>;

/// An attribute that is asked for.
pub(super) struct Wanted {
    attribute: CK_ATTRIBUTE_TYPE,
    /// None where only the length is asked for.
    room: usize,
    /// Of an array: the room for each in it.
    inner: Vec<Self>,
}

impl Asked<'_, '_, '_> {
    /// An array of attributes, copied.
    ///
    /// # Errors
    /// `CKR_ARGUMENTS_BAD`, `CKR_ATTRIBUTE_VALUE_INVALID`
    pub(super) fn template(&mut self) -> Result<Template> {
        let version = self.connection.version;
        template(&mut self.request, &mut |bytes| self.connection.kept.under_way(bytes), version, 0)
    }

    /// Room for attributes.
    ///
    /// # Errors
    /// `CKR_ARGUMENTS_BAD`
    pub(super) fn wanted(&mut self) -> Result<Vec<Wanted>> {
        let version = self.connection.version;
        wanted(&mut self.request, &mut |bytes| self.connection.kept.under_way(bytes), version, 0)
    }
}

fn count(request: &mut Reader<'_>, depth: usize) -> Result<usize> {
    let count = request.count()?;
    if count > MAX_ATTRIBUTES || depth > DEEPEST { Err(Error::ARGUMENTS_BAD) } else { Ok(count) }
}

fn template(
    request: &mut Reader<'_>,
    take: Take<'_>,
    version: u8,
    depth: usize,
) -> Result<Template> {
    let count = count(request, depth)?;
    (0..count)
        .map(|_| {
            let (attribute, length) = request.attribute()?;
            // Without a value there is a length that cannot be.
            let length = length.ok_or(Error::ATTRIBUTE_VALUE_INVALID)?;
            take(IN_TEMPLATE)?;
            Ok((attribute, value(request, take, version, (attribute, length), depth)?))
        })
        .collect()
}

fn value(
    request: &mut Reader<'_>,
    take: Take<'_>,
    version: u8,
    (attribute, length): (CK_ATTRIBUTE_TYPE, usize),
    depth: usize,
) -> Result<RawValue> {
    let kind = kind_in(attribute, version);
    if kind == Kind::Template {
        let inner = template(request, take, version, depth + 1)?;
        // Of a length that is none of an array what it restricts is not known.
        return if inner.len() * ATTRIBUTE == length {
            Ok(RawValue::Template(inner))
        } else {
            Err(Error::ATTRIBUTE_VALUE_INVALID)
        };
    }
    let mut value = request.value(kind)?;
    if length == 0 {
        // One that is empty may be written as if it were not.
        value = Cow::Borrowed(&[]);
    }
    if value.len() != length {
        return Err(Error::ATTRIBUTE_VALUE_INVALID);
    }
    take(length)?;
    check_room(length)?;
    Ok(if AttributeRow::can_be_secret(attribute) {
        RawValue::Secret(Secret::try_copy_of(&value).ok_or(Error::HOST_MEMORY)?)
    } else {
        RawValue::Bytes(value.into_owned())
    })
}

fn wanted(
    request: &mut Reader<'_>,
    take: Take<'_>,
    version: u8,
    depth: usize,
) -> Result<Vec<Wanted>> {
    let nests = version >= NESTS_ROOM;
    let count = count(request, depth)?;
    (0..count)
        .map(|_| {
            take(size_of::<Wanted>())?;
            let (attribute, room) = (CK_ATTRIBUTE_TYPE::from(request.half()?), request.count()?);
            let nested = nests && room != 0 && kind_in(attribute, version) == Kind::Template;
            let inner =
                if nested { wanted(request, take, version, depth + 1)? } else { Vec::new() };
            Ok(Wanted { attribute, room, inner })
        })
        .collect()
}

/// Writes what exists and fits, marks the rest as unavailable, and ends with one of the reasons.
///
/// # Errors
/// `CKR_HOST_MEMORY` for more than a message holds, `CKR_DEVICE_MEMORY` where the client's user has no room for it.
pub(super) fn answer(
    answer: &mut Writer,
    take: Take<'_>,
    version: u8,
    object: &Object,
    wanted: &[Wanted],
) -> Result<()> {
    answer.count(wanted.len());
    let mut result = Ok(());
    for one in wanted {
        let filled = object
            .answer(one.attribute)
            .and_then(|value| fill(answer, take, version, (one.attribute, one), value));
        result = unavailable(answer, one.attribute, filled)?.and(result);
    }
    answer.number(result.map_or_else(Error::rv, |()| CKR_OK));
    Ok(())
}

/// What an attribute that was not filled is marked with.
fn unavailable(
    answer: &mut Writer,
    attribute: CK_ATTRIBUTE_TYPE,
    filled: Result<()>,
) -> Result<Result<()>> {
    match filled {
        Err(error @ (Error::DEVICE_MEMORY | Error::HOST_MEMORY)) => return Err(error),
        Err(_) => answer.unavailable(attribute)?,
        Ok(()) => {}
    }
    Ok(filled)
}

/// Writes one attribute; where that fails, nothing of it.
fn fill(
    answer: &mut Writer,
    take: Take<'_>,
    version: u8,
    (attribute, wanted): (CK_ATTRIBUTE_TYPE, &Wanted),
    value: Answer<'_>,
) -> Result<()> {
    let eight;
    let bytes = match value {
        Answer::Secret(bytes) => Cow::Borrowed(bytes),
        Answer::Value(Value::Bytes(bytes)) => Cow::Borrowed(&bytes[..]),
        Answer::Value(Value::Bool(flag)) => Cow::Borrowed(if *flag { &[1][..] } else { &[0][..] }),
        Answer::Value(Value::Ulong(number)) => {
            eight = number.to_ne_bytes();
            Cow::Borrowed(&eight[..])
        }
        Answer::Value(Value::Ulongs(numbers)) => {
            numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
        }
        // An empty template is written as empty bytes in versions that carry no array of attributes there.
        Answer::Value(Value::Template(template))
            if template.is_empty() && kind_in(attribute, version) != Kind::Template =>
        {
            Cow::Borrowed(&[][..])
        }
        Answer::Value(Value::Template(template)) => {
            return fill_template(answer, take, version, (attribute, wanted), template);
        }
    };
    let asked = wanted.room == 0;
    if !asked && wanted.room < bytes.len() {
        return Err(Error::BUFFER_TOO_SMALL);
    }
    if answer.length() + bytes.len() > LONGEST {
        return Err(Error::HOST_MEMORY);
    }
    take(bytes.len())?;
    answer.available(attribute, bytes.len())?;
    match kind_in(attribute, version) {
        Kind::Bytes if asked => answer.half(NO_BYTES),
        Kind::Byte if bytes.len() != 1 => answer.byte(0),
        Kind::Number if bytes.len() != 8 => answer.number(0),
        kind => answer.value(kind, &bytes)?,
    }
    Ok(())
}

/// An array of attributes: the client asks for the array's length, then for the lengths of the values in it, then for the
/// values.
fn fill_template(
    answer: &mut Writer,
    take: Take<'_>,
    version: u8,
    (attribute, wanted): (CK_ATTRIBUTE_TYPE, &Wanted),
    template: &Attributes,
) -> Result<()> {
    if kind_in(attribute, version) != Kind::Template {
        return Err(Error::ATTRIBUTE_TYPE_INVALID);
    }
    let length = template.len() * ATTRIBUTE;
    if wanted.room != 0 && wanted.room < length {
        return Err(Error::BUFFER_TOO_SMALL);
    }
    answer.available(attribute, length)?;
    if wanted.room == 0 {
        answer.count(0);
        return Ok(());
    }
    answer.count(template.len());
    for (at, (attribute, value)) in template.iter().enumerate() {
        // By their places, as in the C ABI: what stands there its reader does not know yet.
        let none = Wanted { attribute, room: 0, inner: Vec::new() };
        let inner = wanted.inner.get(at).unwrap_or(&none);
        let filled = fill(answer, take, version, (attribute, inner), Answer::Value(value));
        // As for the array itself: it is there, and what does not fit, or has no form in this version, is marked.
        unavailable(answer, attribute, filled)?.ok();
    }
    Ok(())
}
