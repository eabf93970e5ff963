// SPDX-License-Identifier: Apache-2.0
//! Objects and searches.

use super::attributes;
use super::connection::Asked;
use metaslot_ck::*;
use metaslot_spi::{RawValue, Template};

/// How many objects one call finds at most: there may be more in the next.
const MOST_FOUND: usize = 1 << 16;

impl Asked<'_, '_, '_> {
    /// Whether what a template makes may stay in the token, if it says so or, without a word, `stays`. What stays in another
    /// module's token does not go by way of the store, which knows the client.
    ///
    /// # Errors
    /// `CKR_USER_NOT_LOGGED_IN`
    pub(super) fn check_may_stay(
        &self,
        session: SessionHandle,
        template: &Template,
        stays: bool,
    ) -> Result<()> {
        let said = template.iter().find(|(attribute, _)| *attribute == CKA_TOKEN);
        let no =
            |value: &RawValue| matches!(value, RawValue::Bytes(bytes) if bytes[..] == [CK_FALSE]);
        let stays = said.map_or(stays, |(_, value)| !no(value));
        let state = self.connection.engine.session_info(session)?.state;
        match stays && [CKS_RO_PUBLIC_SESSION, CKS_RW_PUBLIC_SESSION].contains(&state) {
            true => Err(Error::USER_NOT_LOGGED_IN),
            false => Ok(()),
        }
    }
}

/// `C_CreateObject` (PKCS#11 3.2 §5.7)
pub(super) fn create(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, template) = (asked.session()?, asked.template()?);
    asked.request.end()?;
    asked.check_may_stay(session, &template, false)?;
    let _room = asked.connection.kept.room_for_objects(asked.length, 1)?;
    let made = asked.connection.engine.create_object(session, template)?;
    asked.note.object(asked.connection.engine, session, "object", made);
    asked.connection.made(session, made);
    asked.answer.number(made.0);
    Ok(())
}

/// `C_CopyObject` (PKCS#11 3.2 §5.7)
pub(super) fn copy(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, object, template) = (asked.session()?, asked.object()?, asked.template()?);
    asked.request.end()?;
    asked.note.object(asked.connection.engine, session, "object", object);
    asked.check_may_stay(session, &template, asked.connection.is_of_token(session, object))?;
    let size = asked.connection.size(session, object).saturating_add(asked.length);
    let _room = asked.connection.kept.room_for_objects(size, 1)?;
    let made = asked.connection.engine.copy_object(session, object, template)?;
    asked.note.object(asked.connection.engine, session, "copy", made);
    asked.connection.made(session, made);
    asked.answer.number(made.0);
    Ok(())
}

/// `C_DestroyObject` (PKCS#11 3.2 §5.7)
pub(super) fn destroy(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, object) = (asked.session()?, asked.object()?);
    asked.request.end()?;
    asked.note.object(asked.connection.engine, session, "object", object);
    asked.connection.engine.destroy_object(session, object)?;
    asked.connection.kept.destroyed(session, object);
    Ok(())
}

/// `C_GetObjectSize` (PKCS#11 3.2 §5.7)
pub(super) fn size(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, object) = (asked.session()?, asked.object()?);
    asked.request.end()?;
    asked.answer.number(asked.connection.engine.object_size(session, object)?);
    Ok(())
}

/// `C_GetAttributeValue` (PKCS#11 3.2 §5.7)
pub(super) fn attributes(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, object, wanted) = (asked.session()?, asked.object()?, asked.wanted()?);
    asked.request.end()?;
    let object = asked.connection.engine.object(session, object)?;
    let version = asked.connection.version;
    let room = &mut |bytes| asked.connection.kept.under_way(bytes);
    attributes::answer(asked.answer, room, version, &object, &wanted)
}

/// `C_SetAttributeValue` (PKCS#11 3.2 §5.7)
pub(super) fn set_attributes(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, object, template) = (asked.session()?, asked.object()?, asked.template()?);
    asked.request.end()?;
    asked.note.object(asked.connection.engine, session, "object", object);
    asked.note.attributes(&template);
    let size = asked.connection.size(session, object).saturating_add(asked.length);
    let _room = asked.connection.kept.room_for_objects(size, 1)?;
    asked.connection.engine.set_attributes(session, object, template)?;
    let session = asked.connection.kept.session_of(session, object);
    asked.connection.made(session, object);
    Ok(())
}

/// `C_FindObjectsInit` (PKCS#11 3.2 §5.7)
pub(super) fn find_init(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, template) = (asked.session()?, asked.template()?);
    asked.request.end()?;
    let room = asked.connection.kept.room_for_search(asked.length)?;
    asked.connection.engine.find_init(session, template)?;
    asked.connection.kept.searches(session, room);
    Ok(())
}

/// `C_FindObjects` (PKCS#11 3.2 §5.7)
pub(super) fn find(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, most) = (asked.session()?, asked.request.count()?);
    asked.request.end()?;
    let most = most.min(MOST_FOUND);
    // Once as they are found, once in the answer.
    asked.connection.kept.under_way(2 * most * size_of::<ObjectHandle>())?;
    let found = asked.connection.engine.find(session, most)?;
    let found: Vec<_> = found.into_iter().map(|object| object.0).collect();
    asked.answer.numbers(&found);
    Ok(())
}

/// `C_FindObjectsFinal` (PKCS#11 3.2 §5.7)
pub(super) fn find_final(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let session = asked.session()?;
    asked.request.end()?;
    asked.connection.engine.find_final(session)?;
    asked.connection.kept.has_found(session);
    Ok(())
}
