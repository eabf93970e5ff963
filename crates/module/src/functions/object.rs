// SPDX-License-Identifier: Apache-2.0
//! Object management functions.

use crate::decode::Given;
use crate::enter::{enter_audited, enter_session};
use metaslot_ck::*;

/// `C_CreateObject` (PKCS#11 3.2 §5.7)
#[unsafe(no_mangle)]
pub extern "C" fn C_CreateObject(
    session: CK_SESSION_HANDLE,
    template: Given<'_, CK_ATTRIBUTE>,
    count: CK_ULONG,
    object: Given<'_, CK_OBJECT_HANDLE>,
) -> CK_RV {
    enter_audited(Function::CreateObject, session, |engine, caller, session, note| {
        let place = caller.place(object)?;
        let template = caller.template(template, count)?;
        let made = engine.create_object(session, template)?;
        note.object(engine, session, "object", made);
        place.set_object(made);
        Ok(())
    })
}

/// `C_CopyObject` (PKCS#11 3.2 §5.7)
#[unsafe(no_mangle)]
pub extern "C" fn C_CopyObject(
    session: CK_SESSION_HANDLE,
    object: CK_OBJECT_HANDLE,
    template: Given<'_, CK_ATTRIBUTE>,
    count: CK_ULONG,
    copy: Given<'_, CK_OBJECT_HANDLE>,
) -> CK_RV {
    enter_audited(Function::CopyObject, session, |engine, caller, session, note| {
        let place = caller.place(copy)?;
        let template = caller.template(template, count)?;
        note.object(engine, session, "object", ObjectHandle(object));
        let made = engine.copy_object(session, ObjectHandle(object), template)?;
        note.object(engine, session, "copy", made);
        place.set_object(made);
        Ok(())
    })
}

/// `C_DestroyObject` (PKCS#11 3.2 §5.7)
#[unsafe(no_mangle)]
pub extern "C" fn C_DestroyObject(session: CK_SESSION_HANDLE, object: CK_OBJECT_HANDLE) -> CK_RV {
    enter_audited(Function::DestroyObject, session, |engine, _, session, note| {
        note.object(engine, session, "object", ObjectHandle(object));
        engine.destroy_object(session, ObjectHandle(object))
    })
}

/// `C_GetObjectSize` (PKCS#11 3.2 §5.7)
#[unsafe(no_mangle)]
pub extern "C" fn C_GetObjectSize(
    session: CK_SESSION_HANDLE,
    object: CK_OBJECT_HANDLE,
    size: Given<'_, CK_ULONG>,
) -> CK_RV {
    enter_session(Function::GetObjectSize, session, |engine, caller, session| {
        let place = caller.place(size)?;
        place.set(engine.object_size(session, ObjectHandle(object))?);
        Ok(())
    })
}

/// `C_GetAttributeValue` (PKCS#11 3.2 §5.7)
#[unsafe(no_mangle)]
pub extern "C" fn C_GetAttributeValue(
    session: CK_SESSION_HANDLE,
    object: CK_OBJECT_HANDLE,
    template: Given<'_, CK_ATTRIBUTE>,
    count: CK_ULONG,
) -> CK_RV {
    enter_session(Function::GetAttributeValue, session, |engine, caller, session| {
        let object = engine.object(session, ObjectHandle(object))?;
        caller.answer(&object, template, count)
    })
}

/// `C_SetAttributeValue` (PKCS#11 3.2 §5.7)
#[unsafe(no_mangle)]
pub extern "C" fn C_SetAttributeValue(
    session: CK_SESSION_HANDLE,
    object: CK_OBJECT_HANDLE,
    template: Given<'_, CK_ATTRIBUTE>,
    count: CK_ULONG,
) -> CK_RV {
    enter_audited(Function::SetAttributeValue, session, |engine, caller, session, note| {
        let template = caller.template(template, count)?;
        note.object(engine, session, "object", ObjectHandle(object));
        note.attributes(&template);
        engine.set_attributes(session, ObjectHandle(object), template)
    })
}

/// `C_FindObjectsInit` (PKCS#11 3.2 §5.7)
#[unsafe(no_mangle)]
pub extern "C" fn C_FindObjectsInit(
    session: CK_SESSION_HANDLE,
    template: Given<'_, CK_ATTRIBUTE>,
    count: CK_ULONG,
) -> CK_RV {
    enter_session(Function::FindObjectsInit, session, |engine, caller, session| {
        let template = caller.template(template, count)?;
        engine.find_init(session, template)
    })
}

/// `C_FindObjects` (PKCS#11 3.2 §5.7)
#[unsafe(no_mangle)]
pub extern "C" fn C_FindObjects(
    session: CK_SESSION_HANDLE,
    objects: Given<'_, CK_OBJECT_HANDLE>,
    most: CK_ULONG,
    count: Given<'_, CK_ULONG>,
) -> CK_RV {
    enter_session(Function::FindObjects, session, |engine, caller, session| {
        let place = caller.place(count)?;
        if most > 0 && objects.is_null() {
            return Err(Error::ARGUMENTS_BAD);
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let found = engine.find(session, most)?;
        caller.items(found.iter().map(|object| object.0), objects)?;
        place.set(found.len() as CK_ULONG);
        Ok(())
    })
}

/// `C_FindObjectsFinal` (PKCS#11 3.2 §5.7)
#[unsafe(no_mangle)]
pub extern "C" fn C_FindObjectsFinal(session: CK_SESSION_HANDLE) -> CK_RV {
    enter_session(Function::FindObjectsFinal, session, |engine, _, session| {
        engine.find_final(session)
    })
}
