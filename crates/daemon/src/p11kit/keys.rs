// SPDX-License-Identifier: Apache-2.0
//! Key management.

use super::arguments::Room;
use super::connection::Asked;
use metaslot_ck::*;
use metaslot_client::protocol::{Form, form};
use metaslot_engine::{Answer, OperationKind};
use metaslot_spi::{Params, Value};
use std::slice;

/// How many keys are derived at most in one call.
const DERIVED: usize = 4;

/// `C_GenerateKey` (PKCS#11 3.2 §5.18)
pub(super) fn generate(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, mechanism) = (asked.session()?, asked.some_mechanism()?);
    let template = asked.template()?;
    asked.request.end()?;
    let (number, params) = mechanism.chosen()?;
    let engine = asked.connection.engine;
    asked.check_may_stay(session, &template, false)?;
    let _room = asked.connection.kept.room_for_objects(asked.length, 1)?;
    let made = engine.generate_key(session, number, params, template)?;
    asked.note.mechanism(number);
    asked.note.object(engine, session, "object", made);
    asked.connection.made(session, made);
    asked.answer.number(made.0);
    Ok(())
}

/// `C_GenerateKeyPair` (PKCS#11 3.2 §5.18)
pub(super) fn generate_pair(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, mechanism) = (asked.session()?, asked.some_mechanism()?);
    let (public, private) = (asked.template()?, asked.template()?);
    asked.request.end()?;
    let (number, params) = mechanism.chosen()?;
    let engine = asked.connection.engine;
    asked.check_may_stay(session, &public, false)?;
    asked.check_may_stay(session, &private, false)?;
    let _room = asked.connection.kept.room_for_objects(asked.length, 2)?;
    let (public, private) = engine.generate_key_pair(session, number, params, public, private)?;
    asked.note.mechanism(number);
    asked.note.object(engine, session, "public", public);
    asked.note.object(engine, session, "object", private);
    [public, private].into_iter().for_each(|made| asked.connection.made(session, made));
    asked.answer.number(public.0);
    asked.answer.number(private.0);
    Ok(())
}

/// `C_WrapKey` (PKCS#11 3.2 §5.18)
pub(super) fn wrap(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, mechanism) = (asked.session()?, asked.some_mechanism()?);
    let (wrapping, key, room) = (asked.object()?, asked.object()?, asked.room()?);
    asked.request.end()?;
    let engine = asked.connection.engine;
    if matches!(room, Room::Of(_)) {
        asked.note.mechanism(mechanism.number);
        asked.note.object(engine, session, "by", wrapping);
        asked.note.object(engine, session, "object", key);
    }
    asked
        .fill(room, 0, |out| {
            let (number, params) = mechanism.chosen()?;
            engine.wrap_key(session, number, params, wrapping, key, out)
        })
        .map(drop)
}

/// `C_UnwrapKey` (PKCS#11 3.2 §5.18)
pub(super) fn unwrap(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, mechanism) = (asked.session()?, asked.some_mechanism()?);
    let (by, wrapped, template) = (asked.object()?, asked.data()?, asked.template()?);
    asked.request.end()?;
    let (number, params) = mechanism.chosen()?;
    let engine = asked.connection.engine;
    asked.check_may_stay(session, &template, false)?;
    let _room = asked.connection.kept.room_for_objects(asked.length, 1)?;
    let made = engine.unwrap_key(session, number, params, by, wrapped, template)?;
    asked.note.mechanism(number);
    asked.note.object(engine, session, "object", made);
    asked.connection.made(session, made);
    asked.answer.number(made.0);
    Ok(())
}

/// `C_DeriveKey` (PKCS#11 3.2 §5.18), by either of its calls. The second says what has become of the code and the parameter:
/// here no parameter changes.
pub(super) fn derive(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, mechanism) = (asked.session()?, asked.some_mechanism()?);
    let (base, template) = (asked.object()?, asked.template()?);
    asked.request.end()?;
    let (number, params) = mechanism.chosen()?;
    let engine = asked.connection.engine;
    asked.check_may_stay(session, &template, false)?;
    let beside = named(&params);
    if beside.iter().any(|key| asked.has_no_right(session, *key, Some(CKA_DERIVE))) {
        return Err(Error::KEY_FUNCTION_NOT_PERMITTED);
    }
    // A part of what is derived may be one key, the other another one.
    let keys = mechanism.objects().chain([base]);
    let secrets = keys.map(|key| asked.connection.kept.secret_size(session, key));
    let length = secrets.fold(asked.length, usize::saturating_add);
    let _room = asked.connection.kept.room_for_objects(length, DERIVED)?;
    let (made, others) = engine.derive_key(session, number, params, base, template)?;
    asked.note.mechanism(number);
    asked.note.object(engine, session, "object", made);
    std::iter::once(made).chain(others).for_each(|made| asked.connection.made(session, made));
    if asked.call.answer == "uPu" {
        asked.answer.number(CKR_OK);
        if form(number) != Form::Nothing {
            asked.answer.byte(u8::from(mechanism.has_parameter()));
        }
    }
    asked.answer.number(made.0);
    Ok(())
}

/// The keys that a derivation takes beside its base key, which the standard asks no usage of. What is made of them under a key that a client
/// knows is a digest of theirs, and of a salt the MACs under it.
fn named(params: &Params) -> &[ObjectHandle] {
    match params {
        Params::Key(key) => slice::from_ref(key),
        Params::Hkdf { salt_type: CKF_HKDF_SALT_KEY, salt_key, .. } => slice::from_ref(salt_key),
        Params::Ike { before, .. } => before,
        _ => &[],
    }
}

impl Asked<'_, '_, '_> {
    /// Whether a key of a token is used without a login, and not for this (or for nothing in particular): a service has of it no more
    /// than it is given.
    fn has_no_right(
        &self,
        session: SessionHandle,
        key: ObjectHandle,
        usage: Option<CK_ATTRIBUTE_TYPE>,
    ) -> bool {
        let engine = self.connection.engine;
        let logged_in = engine.session_info(session).is_ok_and(|info| {
            ![CKS_RO_PUBLIC_SESSION, CKS_RW_PUBLIC_SESSION].contains(&info.state)
        });
        let may = |usage| {
            engine.object(session, key).is_ok_and(|object| {
                matches!(object.answer(usage), Ok(Answer::Value(Value::Bool(true))))
            })
        };
        !logged_in && self.connection.is_of_token(session, key) && !usage.is_some_and(may)
    }
}

/// `C_EncapsulateKey` (PKCS#11 3.2 §5.18.8). Who asks for the length makes no key.
pub(super) fn encapsulate(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, mechanism) = (asked.session()?, asked.some_mechanism()?);
    let (by, template, room) = (asked.object()?, asked.template()?, asked.room()?);
    asked.request.end()?;
    let (number, params) = mechanism.chosen()?;
    let engine = asked.connection.engine;
    asked.check_may_stay(session, &template, false)?;
    let _room = asked.connection.kept.room_for_objects(asked.length, 1)?;
    let (mut made, mut template) = (None, Some(template));
    asked.fill(room, 0, |out| {
        // No ciphertext is longer than the room of the first try.
        let template = template.take().ok_or(Error::HOST_MEMORY)?;
        made = engine.encapsulate_key(session, number, &params, by, template, out)?;
        Ok(())
    })?;
    if let Some(made) = made {
        asked.note.mechanism(number);
        asked.note.object(engine, session, "object", made);
        asked.connection.made(session, made);
    }
    asked.answer.number(made.map_or(CK_INVALID_HANDLE, |made| made.0));
    Ok(())
}

/// `C_DecapsulateKey` (PKCS#11 3.2 §5.18.9)
pub(super) fn decapsulate(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, mechanism) = (asked.session()?, asked.some_mechanism()?);
    let (by, ciphertext, template) = (asked.object()?, asked.data()?, asked.template()?);
    asked.request.end()?;
    let (number, params) = mechanism.chosen()?;
    let engine = asked.connection.engine;
    asked.check_may_stay(session, &template, false)?;
    let _room = asked.connection.kept.room_for_objects(asked.length, 1)?;
    let made = engine.decapsulate_key(session, number, &params, by, template, ciphertext)?;
    asked.note.mechanism(number);
    asked.note.object(engine, session, "object", made);
    asked.connection.made(session, made);
    asked.answer.number(made.0);
    Ok(())
}

/// `C_DigestKey` (PKCS#11 3.2 §5.12). It asks for no attribute of the key, so that none of a client's rights gives it: without a
/// login no key of a token is digested.
pub(super) fn digest(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, key) = (asked.session()?, asked.object()?);
    asked.request.end()?;
    let engine = asked.connection.engine;
    if asked.has_no_right(session, key, None) {
        engine.fail_active(session, OperationKind::of(asked.call.function));
        return Err(Error::KEY_INDIGESTIBLE);
    }
    engine.digest_key(session, key)
}
