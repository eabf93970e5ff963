// SPDX-License-Identifier: Apache-2.0
//! Objects: create, copy, destroy, read, change, find.

use crate::{Error, Result, Session, Template, Value, length, room, ulong};
use metaslot_ck::attribute::{self, AttributeRow};
use metaslot_ck::{self as ck, *};
use std::ptr;

/// Handles that are fetched by one `C_FindObjects`.
const BATCH: usize = 256;
/// More attributes than an array of them has.
const MOST_NESTED: usize = 256;

impl Session {
    /// `C_CreateObject`
    ///
    /// # Errors
    /// The module's code.
    pub fn create(&self, template: &Template) -> Result<ObjectHandle> {
        if let Some(remote) = self.module().other_process() {
            return remote
                .make(Function::CreateObject, &[self.handle().0], None, &[template])
                .map(|[object]| object);
        }
        let mut encoded = template.encode();
        let (attributes, count) = encoded.raw();
        let function = self.list().C_CreateObject;
        let handle = self.module().fill(Function::CreateObject, function, |f, handle| {
            // SAFETY: a template with its count, and a handle to be written.
            unsafe { f(self.handle().0, attributes, count, handle) }
        })?;
        Ok(ObjectHandle(handle))
    }

    /// `C_CopyObject`, with what the copy has different.
    ///
    /// # Errors
    /// The module's code.
    pub fn copy(&self, object: ObjectHandle, changes: &Template) -> Result<ObjectHandle> {
        if let Some(remote) = self.module().other_process() {
            return remote
                .make(Function::CopyObject, &[self.handle().0, object.0], None, &[changes])
                .map(|[copy]| copy);
        }
        let mut encoded = changes.encode();
        let (attributes, count) = encoded.raw();
        let function = self.list().C_CopyObject;
        let handle = self.module().fill(Function::CopyObject, function, |f, handle| {
            // SAFETY: a template with its count, and a handle to be written.
            unsafe { f(self.handle().0, object.0, attributes, count, handle) }
        })?;
        Ok(ObjectHandle(handle))
    }

    /// `C_DestroyObject`
    ///
    /// # Errors
    /// The module's code.
    pub fn destroy(&self, object: ObjectHandle) -> Result<()> {
        if let Some(remote) = self.module().other_process() {
            return remote.tell(Function::DestroyObject, &[self.handle().0, object.0]);
        }
        self.call(Function::DestroyObject, self.list().C_DestroyObject, |f, session| {
            // SAFETY: takes numbers only.
            unsafe { f(session, object.0) }
        })
    }

    /// `C_GetObjectSize`, in bytes; `None` where the token does not say.
    ///
    /// # Errors
    /// The module's code.
    pub fn object_size(&self, object: ObjectHandle) -> Result<Option<u64>> {
        if let Some(remote) = self.module().other_process() {
            let size = remote.number(Function::GetObjectSize, &[self.handle().0, object.0])?;
            return Ok((size != UNAVAILABLE).then_some(size));
        }
        let function = self.list().C_GetObjectSize;
        let size = self.module().fill(Function::GetObjectSize, function, |f, size| {
            // SAFETY: `size` is a number to be written.
            unsafe { f(self.handle().0, object.0, size) }
        })?;
        Ok((size != UNAVAILABLE).then_some(size))
    }

    /// One attribute.
    ///
    /// # Errors
    /// The module's code: `CKR_ATTRIBUTE_SENSITIVE`, `CKR_ATTRIBUTE_TYPE_INVALID`, …
    pub fn attribute(&self, object: ObjectHandle, attribute: CK_ATTRIBUTE_TYPE) -> Result<Vec<u8>> {
        if let Some(remote) = self.module().other_process() {
            return remote.attribute(self.handle().0, object, attribute);
        }
        let mut raw = [CK_ATTRIBUTE { type_: attribute, pValue: ptr::null_mut(), ulValueLen: 0 }];
        self.read_attributes(object, &mut raw)?;
        if raw[0].ulValueLen == UNAVAILABLE {
            return Err(Error::new(Function::GetAttributeValue, ck::Error::ATTRIBUTE_TYPE_INVALID));
        }
        let mut value = room(Function::GetAttributeValue, raw[0].ulValueLen, 0)?;
        raw[0].pValue = value.as_mut_ptr().cast();
        self.read_attributes(object, &mut raw)?;
        value.truncate(length(raw[0].ulValueLen));
        Ok(value)
    }

    /// Several attributes in two calls; `None` for each that the object does not have or does not
    /// show (PKCS#11 3.2 §5.7.5: the others are still given).
    ///
    /// # Errors
    /// The module's code, unless it only marks attributes as unavailable.
    pub fn attributes(
        &self,
        object: ObjectHandle,
        attributes: &[CK_ATTRIBUTE_TYPE],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        if let Some(remote) = self.module().other_process() {
            return remote.attributes(self.handle().0, object, attributes);
        }
        let null = |type_: &CK_ATTRIBUTE_TYPE| CK_ATTRIBUTE {
            type_: *type_,
            pValue: ptr::null_mut(),
            ulValueLen: 0,
        };
        let mut raw: Vec<CK_ATTRIBUTE> = attributes.iter().map(null).collect();
        tolerate(self.read_attributes(object, &mut raw))?;
        let place = |raw: &CK_ATTRIBUTE| {
            let there = raw.ulValueLen != UNAVAILABLE;
            there.then(|| room(Function::GetAttributeValue, raw.ulValueLen, 0)).transpose()
        };
        let mut values = raw.iter().map(place).collect::<Result<Vec<Option<Vec<u8>>>>>()?;
        for (raw, value) in raw.iter_mut().zip(&mut values) {
            match value {
                Some(value) => raw.pValue = value.as_mut_ptr().cast(),
                None => raw.ulValueLen = 0,
            }
        }
        tolerate(self.read_attributes(object, &mut raw))?;
        for (raw, slot) in raw.iter().zip(&mut values) {
            match slot {
                Some(value) if raw.ulValueLen != UNAVAILABLE => {
                    value.truncate(length(raw.ulValueLen));
                }
                _ => *slot = None,
            }
        }
        Ok(values)
    }

    /// One attribute that is a `CK_BBOOL`.
    ///
    /// # Errors
    /// As [`Session::attribute`]; `CKR_ATTRIBUTE_VALUE_INVALID` when it is not one byte.
    pub fn attribute_bool(
        &self,
        object: ObjectHandle,
        attribute: CK_ATTRIBUTE_TYPE,
    ) -> Result<bool> {
        match self.attribute(object, attribute)?.as_slice() {
            [byte] => Ok(*byte != CK_FALSE),
            _ => Err(WRONG_TYPE),
        }
    }

    /// One attribute that is a `CK_ULONG`.
    ///
    /// # Errors
    /// As [`Session::attribute`]; `CKR_ATTRIBUTE_VALUE_INVALID` when it is not eight bytes.
    pub fn attribute_ulong(
        &self,
        object: ObjectHandle,
        attribute: CK_ATTRIBUTE_TYPE,
    ) -> Result<CK_ULONG> {
        let value = self.attribute(object, attribute)?;
        value.as_slice().try_into().map(CK_ULONG::from_ne_bytes).map_err(|_| WRONG_TYPE)
    }

    /// One attribute that is text.
    ///
    /// # Errors
    /// As [`Session::attribute`].
    pub fn attribute_text(
        &self,
        object: ObjectHandle,
        attribute: CK_ATTRIBUTE_TYPE,
    ) -> Result<String> {
        let value = self.attribute(object, attribute)?;
        Ok(String::from_utf8_lossy(&value).into_owned())
    }

    /// An attribute that is an array of attributes (`CKA_UNWRAP_TEMPLATE` and its kin), each as its bytes; `None` where there is none, or
    /// where the module is in another process that does not speak [our version](crate::protocol::OWN) of the protocol. One in the array
    /// that is an array itself is read by that version alone.
    ///
    /// # Errors
    /// The module's code; `CKR_DEVICE_ERROR` for what is no such array.
    pub fn template_attribute(
        &self,
        object: ObjectHandle,
        attribute: CK_ATTRIBUTE_TYPE,
    ) -> Result<Option<Template>> {
        if let Some(remote) = self.module().other_process() {
            return remote.template(self.handle().0, object, attribute);
        }
        let null = CK_ATTRIBUTE { type_: 0, pValue: ptr::null_mut(), ulValueLen: 0 };
        let mut outer = [CK_ATTRIBUTE { type_: attribute, ..null }];
        tolerate(self.read_attributes(object, &mut outer))?;
        if matches!(outer[0].ulValueLen, 0 | UNAVAILABLE) {
            return Ok(None);
        }
        let wrong = Error::new(Function::GetAttributeValue, ck::Error::DEVICE_ERROR);
        let bytes = length(outer[0].ulValueLen);
        let count = bytes / size_of::<CK_ATTRIBUTE>();
        if !bytes.is_multiple_of(size_of::<CK_ATTRIBUTE>()) || count > MOST_NESTED {
            return Err(wrong);
        }
        // First which there are, and how long; then their values.
        let mut inner = vec![null; count];
        outer[0].pValue = inner.as_mut_ptr().cast();
        self.read_attributes(object, &mut outer)?;
        if length(outer[0].ulValueLen) != bytes {
            return Err(wrong);
        }
        let named: Vec<_> = inner.iter().map(|one| one.type_).collect();
        let nests = |one: &CK_ATTRIBUTE_TYPE| {
            AttributeRow::kind_of(*one) == Some(attribute::Kind::Template)
        };
        if named.iter().any(nests) || inner.iter().any(|one| one.ulValueLen == UNAVAILABLE) {
            return Err(wrong);
        }
        let place = |one: &CK_ATTRIBUTE| room(Function::GetAttributeValue, one.ulValueLen, 0);
        let mut values = inner.iter().map(place).collect::<Result<Vec<Vec<u8>>>>()?;
        for (one, value) in inner.iter_mut().zip(&mut values) {
            one.pValue = value.as_mut_ptr().cast();
        }
        outer[0].pValue = inner.as_mut_ptr().cast();
        outer[0].ulValueLen = ulong(bytes);
        self.read_attributes(object, &mut outer)?;
        let whole = |(one, value): (&CK_ATTRIBUTE, &Vec<u8>)| length(one.ulValueLen) == value.len();
        let same = inner.iter().map(|one| one.type_).eq(named.iter().copied());
        if length(outer[0].ulValueLen) != bytes || !same || !inner.iter().zip(&values).all(whole) {
            return Err(wrong);
        }
        Ok(Some(named.into_iter().zip(values.into_iter().map(Value::Bytes)).collect()))
    }

    /// `C_GetAttributeValue`
    fn read_attributes(&self, object: ObjectHandle, raw: &mut [CK_ATTRIBUTE]) -> Result<()> {
        let (attributes, count) = (raw.as_mut_ptr(), ulong(raw.len()));
        self.call(Function::GetAttributeValue, self.list().C_GetAttributeValue, |f, session| {
            // SAFETY: each entry has NULL or room for the length that it names.
            unsafe { f(session, object.0, attributes, count) }
        })
    }

    /// `C_SetAttributeValue`
    ///
    /// # Errors
    /// The module's code.
    pub fn set_attributes(&self, object: ObjectHandle, changes: &Template) -> Result<()> {
        if let Some(remote) = self.module().other_process() {
            return remote.set_attributes(self.handle().0, object, changes);
        }
        let mut encoded = changes.encode();
        let (attributes, count) = encoded.raw();
        self.call(Function::SetAttributeValue, self.list().C_SetAttributeValue, |f, session| {
            // SAFETY: a template with its count.
            unsafe { f(session, object.0, attributes, count) }
        })
    }

    /// One attribute changed.
    ///
    /// # Errors
    /// The module's code.
    pub fn set_attribute(
        &self,
        object: ObjectHandle,
        attribute: CK_ATTRIBUTE_TYPE,
        value: Value,
    ) -> Result<()> {
        self.set_attributes(object, &Template::new().with(attribute, value))
    }

    /// Every object that matches.
    ///
    /// # Errors
    /// The code of whichever call failed.
    pub fn find(&self, template: &Template) -> Result<Vec<ObjectHandle>> {
        let mut search = self.search(template)?;
        let mut found = Vec::new();
        let mut batch = [ObjectHandle(0); BATCH];
        loop {
            let count = search.read(&mut batch)?;
            found.extend_from_slice(&batch[..count]);
            if count == 0 {
                search.finish()?;
                return Ok(found);
            }
        }
    }

    /// One object that matches, or `None`; `C_FindObjects` is asked for one only.
    ///
    /// # Errors
    /// The code of whichever call failed.
    pub fn find_one(&self, template: &Template) -> Result<Option<ObjectHandle>> {
        let mut search = self.search(template)?;
        let mut found = [ObjectHandle(0)];
        let count = search.read(&mut found)?;
        search.finish()?;
        Ok((count == 1).then_some(found[0]))
    }

    /// `C_FindObjectsInit`: a search that is read in portions, and ends when it is dropped.
    ///
    /// # Errors
    /// The module's code.
    pub fn search(&self, template: &Template) -> Result<Search<'_>> {
        if let Some(remote) = self.module().other_process() {
            remote.search(self.handle().0, template)?;
            return Ok(Search { session: self, finished: false });
        }
        let mut encoded = template.encode();
        let (attributes, count) = encoded.raw();
        self.call(Function::FindObjectsInit, self.list().C_FindObjectsInit, |f, session| {
            // SAFETY: a template with its count.
            unsafe { f(session, attributes, count) }
        })?;
        Ok(Search { session: self, finished: false })
    }
}

const WRONG_TYPE: Error =
    Error::new(Function::GetAttributeValue, ck::Error::ATTRIBUTE_VALUE_INVALID);

/// Codes that only mean "some of them are not there": PKCS#11 3.2 §5.7.5.
fn tolerate(result: Result<()>) -> Result<()> {
    match result {
        Err(error)
            if matches!(
                error.code,
                ck::Error::ATTRIBUTE_SENSITIVE | ck::Error::ATTRIBUTE_TYPE_INVALID
            ) =>
        {
            Ok(())
        }
        other => other,
    }
}

/// A search in progress.
#[derive(Debug)]
pub struct Search<'a> {
    session: &'a Session,
    finished: bool,
}

impl Search<'_> {
    /// `C_FindObjects`: fills `handles` from the front and says how many; 0 when there are no more.
    ///
    /// # Errors
    /// The module's code.
    pub fn read(&mut self, handles: &mut [ObjectHandle]) -> Result<usize> {
        if let Some(remote) = self.session.module().other_process() {
            return remote.found(self.session.handle().0, handles);
        }
        let session = self.session;
        let (pointer, room) = (handles.as_mut_ptr().cast(), ulong(handles.len()));
        let function = session.list().C_FindObjects;
        let count = session.module().fill(Function::FindObjects, function, |f, count| {
            // SAFETY: room for this many handles (a handle is its number), and a count.
            unsafe { f(session.handle().0, pointer, room, count) }
        })?;
        Ok(length(count).min(handles.len()))
    }

    /// `C_FindObjectsFinal`
    ///
    /// # Errors
    /// The module's code.
    pub fn finish(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.finished = true;
        if let Some(remote) = self.session.module().other_process() {
            return remote.tell(Function::FindObjectsFinal, &[self.session.handle().0]);
        }
        let function = self.session.list().C_FindObjectsFinal;
        self.session.call(Function::FindObjectsFinal, function, |f, session| {
            // SAFETY: takes a number only.
            unsafe { f(session) }
        })
    }
}

impl Drop for Search<'_> {
    fn drop(&mut self) {
        if !self.finished {
            // The search is being abandoned: no caller is left to tell.
            self.end().ok();
        }
    }
}
