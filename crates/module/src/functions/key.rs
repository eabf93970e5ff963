// SPDX-License-Identifier: Apache-2.0
//! Key management functions.

use crate::decode::{Aside, Caller, Chosen, Given, Told};
use crate::enter::enter_audited;
use metaslot_ck::*;
use metaslot_engine::NonceBy;

/// `C_GenerateKey` (PKCS#11 3.2 §5.18)
#[unsafe(no_mangle)]
pub extern "C" fn C_GenerateKey(
    session: CK_SESSION_HANDLE,
    mut mechanism: Given<'_, CK_MECHANISM>,
    template: Given<'_, CK_ATTRIBUTE>,
    count: CK_ULONG,
    key: Given<'_, CK_OBJECT_HANDLE>,
) -> CK_RV {
    enter_audited(Function::GenerateKey, session, |engine, caller, session, note| {
        let place = caller.place(key)?;
        let (number, params) = caller.mechanism(mechanism.reborrow())?;
        let place_beside = caller.beside_place(&mechanism)?;
        let template = caller.template(template, count)?;
        let beside = params.beside().cloned();
        let made = engine.generate_key(session, number, params, template)?;
        let told = beside.as_ref().and_then(|beside| beside.told.get());
        if let Some((place, told)) = place_beside.zip(told) {
            caller.tell_beside(place, told)?;
        }
        note.mechanism(number);
        note.object(engine, session, "object", made);
        place.set_object(made);
        Ok(())
    })
}

/// `C_GenerateKeyPair` (PKCS#11 3.2 §5.18)
#[unsafe(no_mangle)]
pub extern "C" fn C_GenerateKeyPair(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    public: Given<'_, CK_ATTRIBUTE>,
    public_count: CK_ULONG,
    private: Given<'_, CK_ATTRIBUTE>,
    private_count: CK_ULONG,
    public_key: Given<'_, CK_OBJECT_HANDLE>,
    private_key: Given<'_, CK_OBJECT_HANDLE>,
) -> CK_RV {
    enter_audited(Function::GenerateKeyPair, session, |engine, caller, session, note| {
        let places = (caller.place(public_key)?, caller.place(private_key)?);
        let (mechanism, params) = caller.mechanism(mechanism)?;
        let public = caller.template(public, public_count)?;
        let private = caller.template(private, private_count)?;
        let made = engine.generate_key_pair(session, mechanism, params, public, private)?;
        note.mechanism(mechanism);
        note.object(engine, session, "public", made.0);
        note.object(engine, session, "object", made.1);
        places.0.set_object(made.0);
        places.1.set_object(made.1);
        Ok(())
    })
}

/// `C_WrapKey` (PKCS#11 3.2 §5.18)
#[unsafe(no_mangle)]
pub extern "C" fn C_WrapKey(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    wrapping_key: CK_OBJECT_HANDLE,
    key: CK_OBJECT_HANDLE,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    let keys = (ObjectHandle(wrapping_key), ObjectHandle(key));
    wrap(Function::WrapKey, session, (mechanism, None), keys, out, out_length)
}

/// `C_WrapKeyAuthenticated` (PKCS#11 3.2 §5.18)
#[unsafe(no_mangle)]
pub extern "C" fn C_WrapKeyAuthenticated(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    wrapping_key: CK_OBJECT_HANDLE,
    key: CK_OBJECT_HANDLE,
    data: Given<'_, CK_BYTE>,
    data_length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    let keys = (ObjectHandle(wrapping_key), ObjectHandle(key));
    let mechanism = (mechanism, Some((data, data_length)));
    wrap(Function::WrapKeyAuthenticated, session, mechanism, keys, out, out_length)
}

/// A mechanism, and associated data where the function has an argument for it.
type WrapMechanism<'a> = (Given<'a, CK_MECHANISM>, Option<(Given<'a, CK_BYTE>, CK_ULONG)>);

fn chosen<'a>(
    caller: Caller<'a>,
    (mechanism, data): WrapMechanism<'a>,
) -> Result<(Chosen, Option<Told<'a>>)> {
    let Some((data, length)) = data else { return caller.wrapping(mechanism) };
    let (chosen, told) = caller.wrapping_apart(mechanism, data, length)?;
    Ok((chosen, Some(told)))
}

fn wrap(
    function: Function,
    session: CK_SESSION_HANDLE,
    mechanism: WrapMechanism<'_>,
    (wrapping, key): (ObjectHandle, ObjectHandle),
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    enter_audited(function, session, |engine, caller, session, note| {
        let asks_length = out.is_null();
        let output = caller.output(out, out_length)?;
        let (chosen, told) = chosen(caller, mechanism)?;
        let mut apart = told.as_ref().map(Told::apart).transpose()?;
        if !asks_length {
            note.mechanism(chosen.0);
            note.object(engine, session, "by", wrapping);
            note.object(engine, session, "object", key);
        }
        output.fill(|out| {
            engine.wrap_key_apart(session, chosen, wrapping, key, apart.as_mut(), out)
        })?;
        let told = told.zip(apart);
        told.map_or(Ok(()), |(told, apart)| told.tell(caller, apart))
    })
}

/// `C_UnwrapKey` (PKCS#11 3.2 §5.18)
#[unsafe(no_mangle)]
pub extern "C" fn C_UnwrapKey(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    unwrapping_key: CK_OBJECT_HANDLE,
    wrapped: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    template: Given<'_, CK_ATTRIBUTE>,
    count: CK_ULONG,
    key: Given<'_, CK_OBJECT_HANDLE>,
) -> CK_RV {
    let (by, template) = (ObjectHandle(unwrapping_key), (template, count));
    let mechanism = (mechanism, None);
    unwrap(Function::UnwrapKey, session, mechanism, by, (wrapped, length), template, key)
}

/// `C_UnwrapKeyAuthenticated` (PKCS#11 3.2 §5.18)
#[unsafe(no_mangle)]
pub extern "C" fn C_UnwrapKeyAuthenticated(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    unwrapping_key: CK_OBJECT_HANDLE,
    wrapped: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    template: Given<'_, CK_ATTRIBUTE>,
    count: CK_ULONG,
    data: Given<'_, CK_BYTE>,
    data_length: CK_ULONG,
    key: Given<'_, CK_OBJECT_HANDLE>,
) -> CK_RV {
    let (by, template) = (ObjectHandle(unwrapping_key), (template, count));
    let (function, mechanism) =
        (Function::UnwrapKeyAuthenticated, (mechanism, Some((data, data_length))));
    unwrap(function, session, mechanism, by, (wrapped, length), template, key)
}

fn unwrap(
    function: Function,
    session: CK_SESSION_HANDLE,
    mechanism: WrapMechanism<'_>,
    by: ObjectHandle,
    (wrapped, length): (Given<'_, CK_BYTE>, CK_ULONG),
    (template, count): (Given<'_, CK_ATTRIBUTE>, CK_ULONG),
    key: Given<'_, CK_OBJECT_HANDLE>,
) -> CK_RV {
    enter_audited(function, session, |engine, caller, session, note| {
        let place = caller.place(key)?;
        let ((mechanism, params), told) = chosen(caller, mechanism)?;
        let wrapped = &caller.own_bytes(wrapped, length)?;
        let template = caller.template(template, count)?;
        let made = match told {
            None => engine.unwrap_key(session, mechanism, params, by, wrapped, template)?,
            Some(told) => {
                let (chosen, whole) =
                    ((mechanism, params, NonceBy::Token), told.whole(caller, wrapped)?);
                engine.unwrap_key_apart(session, chosen, by, &whole, template)?
            }
        };
        note.mechanism(mechanism);
        note.object(engine, session, "object", made);
        place.set_object(made);
        Ok(())
    })
}

/// `C_DeriveKey` (PKCS#11 3.2 §5.18)
#[unsafe(no_mangle)]
pub extern "C" fn C_DeriveKey(
    session: CK_SESSION_HANDLE,
    mut mechanism: Given<'_, CK_MECHANISM>,
    base_key: CK_OBJECT_HANDLE,
    mut template: Given<'_, CK_ATTRIBUTE>,
    count: CK_ULONG,
    key: Given<'_, CK_OBJECT_HANDLE>,
) -> CK_RV {
    enter_audited(Function::DeriveKey, session, |engine, caller, session, note| {
        let further = caller.additional_keys(&mechanism)?;
        let mut chosen = caller.mechanism(mechanism.reborrow())?;
        let aside = caller.aside(&mechanism)?;
        let connection = matches!(aside, Some(Aside::Connection(_)));
        // Some mechanisms make further keys only, and their callers pass NULL here. Those of a connection all go elsewhere.
        let alone = connection || (key.is_null() && !further.is_empty());
        let place = if alone { None } else { Some(caller.place(key)?) };
        let again = caller.template(template.reborrow(), if connection { count } else { 0 })?;
        let template = caller.template(template, count)?;
        let template = match connection {
            true => caller.share_out(&mechanism, &mut chosen, [template, again])?,
            false => template,
        };
        let (mechanism, params) = chosen;
        let beside = params.beside().cloned();
        let (first, others) =
            engine.derive_key(session, mechanism, params, ObjectHandle(base_key), template)?;
        if let Some(aside) = aside {
            aside.tell(caller, &[&[first], &others[..]].concat(), beside.as_deref())?;
        }
        note.mechanism(mechanism);
        note.object(engine, session, "object", first);
        if let Some(place) = place {
            place.set_object(first);
        }
        for (at, other) in others.iter().enumerate() {
            note.object(engine, session, &format!("further{}", at + 1), *other);
        }
        further.into_iter().zip(others).for_each(|(place, other)| place.set_object(other));
        Ok(())
    })
}

/// `C_EncapsulateKey` (PKCS#11 3.2 §5.18.8)
#[unsafe(no_mangle)]
pub extern "C" fn C_EncapsulateKey(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    public_key: CK_OBJECT_HANDLE,
    template: Given<'_, CK_ATTRIBUTE>,
    count: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
    key: Given<'_, CK_OBJECT_HANDLE>,
) -> CK_RV {
    enter_audited(Function::EncapsulateKey, session, |engine, caller, session, note| {
        // Who asks for the length has no key to be told of.
        let place = if out.is_null() { None } else { Some(caller.place(key)?) };
        let output = caller.output(out, out_length)?;
        let (mechanism, params) = caller.mechanism(mechanism)?;
        let template = caller.template(template, count)?;
        let public = ObjectHandle(public_key);
        output.fill(|out| {
            let made =
                engine.encapsulate_key(session, mechanism, &params, public, template, out)?;
            if let (Some(place), Some(made)) = (place, made) {
                note.mechanism(mechanism);
                note.object(engine, session, "object", made);
                place.set_object(made);
            }
            Ok(())
        })
    })
}

/// `C_DecapsulateKey` (PKCS#11 3.2 §5.18.9)
#[unsafe(no_mangle)]
pub extern "C" fn C_DecapsulateKey(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    private_key: CK_OBJECT_HANDLE,
    template: Given<'_, CK_ATTRIBUTE>,
    count: CK_ULONG,
    ciphertext: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    key: Given<'_, CK_OBJECT_HANDLE>,
) -> CK_RV {
    enter_audited(Function::DecapsulateKey, session, |engine, caller, session, note| {
        let place = caller.place(key)?;
        let (mechanism, params) = caller.mechanism(mechanism)?;
        let ciphertext = &caller.own_bytes(ciphertext, length)?;
        let template = caller.template(template, count)?;
        let private = ObjectHandle(private_key);
        let made =
            engine.decapsulate_key(session, mechanism, &params, private, template, ciphertext)?;
        note.mechanism(mechanism);
        note.object(engine, session, "object", made);
        place.set_object(made);
        Ok(())
    })
}
