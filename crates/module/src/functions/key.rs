// SPDX-License-Identifier: Apache-2.0
//! Key management functions.

use crate::decode::Given;
use crate::enter::{enter_audited, unserved};
use metaslot_ck::*;

/// `C_GenerateKey` (PKCS#11 3.2 §5.18)
#[unsafe(no_mangle)]
pub extern "C" fn C_GenerateKey(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    template: Given<'_, CK_ATTRIBUTE>,
    count: CK_ULONG,
    key: Given<'_, CK_OBJECT_HANDLE>,
) -> CK_RV {
    enter_audited(Function::GenerateKey, session, |engine, caller, session, note| {
        let place = caller.place(key)?;
        let (mechanism, params) = caller.mechanism(mechanism)?;
        let template = caller.template(template, count)?;
        let made = engine.generate_key(session, mechanism, params, template)?;
        note.mechanism(mechanism);
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
    enter_audited(Function::WrapKey, session, |engine, caller, session, note| {
        let asks_length = out.is_null();
        let output = caller.output(out, out_length)?;
        let (mechanism, params) = caller.mechanism(mechanism)?;
        let keys = (ObjectHandle(wrapping_key), ObjectHandle(key));
        if !asks_length {
            note.mechanism(mechanism);
            note.object(engine, session, "by", keys.0);
            note.object(engine, session, "object", keys.1);
        }
        output.fill(|out| engine.wrap_key(session, mechanism, params, keys.0, keys.1, out))
    })
}

/// `C_WrapKeyAuthenticated` (PKCS#11 3.2 §5.18)
#[unsafe(no_mangle)]
pub extern "C" fn C_WrapKeyAuthenticated(
    _session: CK_SESSION_HANDLE,
    _mechanism: Given<'_, CK_MECHANISM>,
    _wrapping_key: CK_OBJECT_HANDLE,
    _key: CK_OBJECT_HANDLE,
    _data: Given<'_, CK_BYTE>,
    _data_length: CK_ULONG,
    _out: Given<'_, CK_BYTE>,
    _out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    unserved(Function::WrapKeyAuthenticated)
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
    enter_audited(Function::UnwrapKey, session, |engine, caller, session, note| {
        let place = caller.place(key)?;
        let (mechanism, params) = caller.mechanism(mechanism)?;
        let wrapped = caller.bytes(wrapped, length)?;
        let template = caller.template(template, count)?;
        let (session, unwrapping) = (session, ObjectHandle(unwrapping_key));
        let made = engine.unwrap_key(session, mechanism, params, unwrapping, wrapped, template)?;
        note.mechanism(mechanism);
        note.object(engine, session, "object", made);
        place.set_object(made);
        Ok(())
    })
}

/// `C_UnwrapKeyAuthenticated` (PKCS#11 3.2 §5.18)
#[unsafe(no_mangle)]
pub extern "C" fn C_UnwrapKeyAuthenticated(
    _session: CK_SESSION_HANDLE,
    _mechanism: Given<'_, CK_MECHANISM>,
    _unwrapping_key: CK_OBJECT_HANDLE,
    _wrapped: Given<'_, CK_BYTE>,
    _length: CK_ULONG,
    _template: Given<'_, CK_ATTRIBUTE>,
    _count: CK_ULONG,
    _data: Given<'_, CK_BYTE>,
    _data_length: CK_ULONG,
    _key: Given<'_, CK_OBJECT_HANDLE>,
) -> CK_RV {
    unserved(Function::UnwrapKeyAuthenticated)
}

/// `C_DeriveKey` (PKCS#11 3.2 §5.18)
#[unsafe(no_mangle)]
pub extern "C" fn C_DeriveKey(
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    base_key: CK_OBJECT_HANDLE,
    template: Given<'_, CK_ATTRIBUTE>,
    count: CK_ULONG,
    key: Given<'_, CK_OBJECT_HANDLE>,
) -> CK_RV {
    enter_audited(Function::DeriveKey, session, |engine, caller, session, note| {
        let further = caller.additional_keys(&mechanism)?;
        // Some mechanisms make further keys only, and their callers pass NULL here.
        let place =
            if key.is_null() && !further.is_empty() { None } else { Some(caller.place(key)?) };
        let (mechanism, params) = caller.mechanism(mechanism)?;
        let template = caller.template(template, count)?;
        let (first, others) =
            engine.derive_key(session, mechanism, params, ObjectHandle(base_key), template)?;
        note.mechanism(mechanism);
        note.object(engine, session, "object", first);
        if let Some(place) = place {
            place.set_object(first);
        }
        for (at, (place, other)) in further.into_iter().zip(others).enumerate() {
            note.object(engine, session, &format!("further{}", at + 1), other);
            place.set_object(other);
        }
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
        let ciphertext = caller.bytes(ciphertext, length)?;
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
