// SPDX-License-Identifier: Apache-2.0
//! Metaslot behind Metaslot: keys that are wrapped and unwrapped by a token's, and those that are made there.

use super::twin::{TWIN, pair, prepared, readable, same, secret, twin};
use super::*;
use metaslot_client::{Mechanism, Params, Value};

/// How keys are wrapped by an AES key, and where the length of what comes back has to be said.
fn wraps() -> [(Mechanism<'static>, bool); 8] {
    let iv = Params::Bytes(&[9; 16]);
    let gcm = |iv| Params::Gcm { iv, aad: b"head", tag_bits: 128 };
    [
        (CKM_AES_KEY_WRAP.into(), true),
        (CKM_AES_KEY_WRAP_KWP.into(), false),
        (CKM_AES_KEY_WRAP_PAD.into(), false),
        (CKM_AES_KEY_WRAP_PKCS7.into(), false),
        (Mechanism::with(CKM_AES_CBC_PAD, iv), false),
        (Mechanism::with(CKM_AES_CBC, iv), true),
        (Mechanism::with(CKM_AES_GCM, gcm(&[1; 12])), false),
        // We draw the IV, and say it in the form.
        (Mechanism::with(CKM_AES_GCM, gcm(&[])), false),
    ]
}

/// Keys of a session that may be read: secret ones of several lengths, and the private one of a pair.
pub(super) fn travellers(
    session: &Session,
    token: bool,
) -> Result<Vec<(ObjectHandle, CK_ATTRIBUTE_TYPE)>> {
    let mut all = Vec::new();
    for length in [16, 21, 32, 64] {
        let kind = if length == 32 { CKK_AES } else { CKK_GENERIC_SECRET };
        let key = Template::new().class(CKO_SECRET_KEY).key_type(kind).token(token);
        let key = key.bool(CKA_SENSITIVE, false).bool(CKA_EXTRACTABLE, true);
        all.push((session.create(&key.bytes(CKA_VALUE, vec![7; length]))?, CKA_VALUE));
    }
    let public = Template::new().token(token).bytes(CKA_EC_PARAMS, softhsm::P256);
    let private =
        Template::new().token(token).bool(CKA_SENSITIVE, false).bool(CKA_EXTRACTABLE, true);
    let pair = session.generate_key_pair(&CKM_EC_KEY_PAIR_GEN.into(), &public, &private)?;
    all.push((pair.1, CKA_VALUE));
    Ok(all)
}

/// A template by which a key comes back, readable.
pub(super) fn arriving(
    session: &Session,
    key: ObjectHandle,
    says: bool,
    token: bool,
) -> Result<Template> {
    let kind = session.attribute_ulong(key, CKA_KEY_TYPE)?;
    let class = session.attribute_ulong(key, CKA_CLASS)?;
    let template = Template::new().class(class).key_type(kind).token(token).label("arrived");
    let template = template.bool(CKA_SENSITIVE, false).bool(CKA_EXTRACTABLE, true);
    match says && class == CKO_SECRET_KEY {
        true => Ok(template.ulong(CKA_VALUE_LEN, session.attribute(key, CKA_VALUE)?.len() as u64)),
        false => Ok(template),
    }
}

#[test]
fn wraps_of_its_keys_and_of_ours_are_the_same() {
    let name = "transport::wraps_of_its_keys_and_of_ours_are_the_same";
    twin("wraps of session keys", name, "", |twin, ours| {
        let [there, here] = same(twin, ours, CKK_AES, 32, &[CKA_WRAP, CKA_UNWRAP])?;
        for (key, value) in travellers(twin, false)? {
            let plain = twin.attribute(key, value)?;
            let is_private = twin.attribute_ulong(key, CKA_CLASS)? == CKO_PRIVATE_KEY;
            for (mechanism, says) in wraps() {
                if mechanism.number == CKM_AES_CBC && is_private {
                    continue;
                }
                let what = || format!("{:#x} of {} bytes", mechanism.number, plain.len());
                let wrapped = twin.wrap(&mechanism, there, key).with_context(what)?;
                for (session, by) in [(ours, here), (twin, there)] {
                    let template = arriving(twin, key, says, false)?;
                    let back = session.unwrap(&mechanism, by, &wrapped, &template);
                    let back = back.with_context(what)?;
                    ensure!(session.attribute(back, value)? == plain, "{}", what());
                }
                if matches!(mechanism.number, CKM_AES_CBC | CKM_AES_CBC_PAD) {
                    continue;
                }
                let mut wrong = wrapped.clone();
                wrong[40 % wrapped.len()] ^= 1;
                let template = arriving(twin, key, says, false)?;
                let opened = twin.unwrap(&mechanism, there, &wrong, &template);
                ensure!(opened.is_err(), "{} opens though it was changed", what());
            }
        }
        // By a pair: the public half is used by our providers, the private one there.
        let (public, private) = (
            Template::new().token(true).ulong(CKA_MODULUS_BITS, 2048).bool(CKA_WRAP, true),
            Template::new().token(true).bool(CKA_UNWRAP, true).bool(CKA_DECAPSULATE, true),
        );
        let public = public.bool(CKA_ENCAPSULATE, true).bytes(CKA_PUBLIC_EXPONENT, [1, 0, 1]);
        let make = CKM_RSA_PKCS_KEY_PAIR_GEN.into();
        let (public, private) = twin.generate_key_pair(&make, &public, &private)?;
        let (key, value) = travellers(twin, false)?[0];
        let oaep = Params::Oaep { hash: CKM_SHA256, mgf: CKG_MGF1_SHA256, label: b"" };
        let oaep = Mechanism::with(CKM_RSA_PKCS_OAEP, oaep);
        let wrapped = twin.wrap(&oaep, public, key)?;
        let template = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
        let back = twin.unwrap(&oaep, private, &wrapped, &template.clone().token(false))?;
        let mac = |key| twin.sign(&CKM_SHA256_HMAC.into(), key, b"message");
        ensure!(mac(back)? == mac(key)?, "it is another key than {value:#x}");
        ensure!(twin.attribute(back, CKA_VALUE).is_err(), "what was unwrapped can be read");
        let (sealed, one) = twin.encapsulate(&oaep, public, &readable(Some(24)))?;
        let other = twin.decapsulate(&oaep, private, &sealed, &readable(None))?;
        ensure!(twin.attribute(one, CKA_VALUE)? == twin.attribute(other, CKA_VALUE)?, "RSA");
        fails_with(twin.unwrap(&oaep, private, &[1; 256], &template), Error::WRAPPED_KEY_INVALID)
    });
}

/// What a wrap under an AES key that goes along takes, and the pair that it goes along by.
fn carriers() -> [(Mechanism<'static>, CK_MECHANISM_TYPE, Template); 4] {
    let (hash, mgf) = (CKM_SHA256, CKG_MGF1_SHA256);
    let oaep = Params::RsaAes { bits: 256, hash, mgf, label: b"label" };
    let agreed = |bits| Params::EcdhAes { bits, kdf: CKD_SHA256_KDF, shared: b"shared" };
    let rsa = Template::new().ulong(CKA_MODULUS_BITS, 2048).bytes(CKA_PUBLIC_EXPONENT, [1, 0, 1]);
    let on = |curve: &[u8]| Template::new().bytes(CKA_EC_PARAMS, curve);
    let x25519: &[u8] = &[6, 3, 0x2b, 0x65, 0x6e];
    [
        (Mechanism::with(CKM_RSA_AES_KEY_WRAP, oaep), CKM_RSA_PKCS_KEY_PAIR_GEN, rsa),
        (
            Mechanism::with(CKM_ECDH_AES_KEY_WRAP, agreed(128)),
            CKM_EC_KEY_PAIR_GEN,
            on(softhsm::P256),
        ),
        (
            Mechanism::with(CKM_ECDH_COF_AES_KEY_WRAP, agreed(256)),
            CKM_EC_KEY_PAIR_GEN,
            on(softhsm::P256),
        ),
        (
            Mechanism::with(CKM_ECDH_X_AES_KEY_WRAP, agreed(256)),
            CKM_EC_MONTGOMERY_KEY_PAIR_GEN,
            on(x25519),
        ),
    ]
}

#[test]
fn keys_go_under_an_aes_key_that_goes_along() {
    let name = "transport::keys_go_under_an_aes_key_that_goes_along";
    twin("wraps by pairs", name, "", |twin, ours| {
        for (mechanism, make, said) in carriers() {
            let what = || format!("{:#x}", mechanism.number);
            let public = said.clone().token(true).bool(CKA_WRAP, true);
            // It is for transport alone.
            let private = Template::new().token(true).bool(CKA_UNWRAP, true);
            let private = private.bool(CKA_DERIVE, false).bool(CKA_SIGN, false);
            let only = Value::Mechanisms(vec![mechanism.number]);
            let private = private.with(CKA_ALLOWED_MECHANISMS, only);
            let (its, private) = twin.generate_key_pair(&make.into(), &public, &private)?;
            // The public half in our token, where the wrap is made inside the process.
            let kind = twin.attribute_ulong(its, CKA_KEY_TYPE)?;
            let parts: &[_] = match kind {
                CKK_RSA => &[CKA_MODULUS, CKA_PUBLIC_EXPONENT],
                _ => &[CKA_EC_PARAMS, CKA_EC_POINT],
            };
            let copy = Template::new().class(CKO_PUBLIC_KEY).key_type(kind).token(false);
            let copy = parts.iter().try_fold(copy.bool(CKA_WRAP, true), |copy, part| {
                anyhow::Ok(copy.bytes(*part, twin.attribute(its, *part)?))
            })?;
            let copy = ours.create(&copy)?;
            let mac = |session: &Session, key| {
                session.sign(&CKM_SHA256_HMAC.into(), key, b"message").with_context(what)
            };
            let secret = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
            for length in [16, 21, 64] {
                let value = secret.clone().bytes(CKA_VALUE, vec![7; length]);
                let value = value.bool(CKA_EXTRACTABLE, true);
                let own = value.clone().token(false);
                let (one, other) = (twin.create(&own)?, ours.create(&own)?);
                let there = twin.create(&value.token(true))?;
                let mac_of_it = mac(twin, one)?;
                let wraps = [(twin, its, one), (ours, copy, other), (twin, its, there)];
                for (session, by, key) in wraps {
                    let wrapped = session.wrap(&mechanism, by, key).with_context(what)?;
                    for token in [false, true] {
                        let template = secret.clone().token(token);
                        let back = twin.unwrap(&mechanism, private, &wrapped, &template);
                        let back = back.with_context(what)?;
                        ensure!(mac(twin, back)? == mac_of_it, "{} of {length}", what());
                        ensure!(twin.attribute_bool(back, CKA_TOKEN)? == token, "{}", what());
                        ensure!(twin.attribute(back, CKA_VALUE).is_err(), "it can be read");
                    }
                    let mut wrong = wrapped.clone();
                    *wrong.last_mut().context("nothing")? ^= 1;
                    let template = secret.clone().token(false);
                    let opened = twin.unwrap(&mechanism, private, &wrong, &template);
                    fails_with(opened, Error::WRAPPED_KEY_INVALID)?;
                    let other = match mechanism.params {
                        Params::RsaAes { bits, hash, mgf, .. } => {
                            Params::RsaAes { bits, hash, mgf, label: b"other" }
                        }
                        _ => Params::EcdhAes { bits: 256, kdf: CKD_SHA256_KDF, shared: b"other" },
                    };
                    let other = Mechanism::with(mechanism.number, other);
                    let opened = twin.unwrap(&other, private, &wrapped, &template);
                    fails_with(opened, Error::WRAPPED_KEY_INVALID)?;
                }
            }
        }
        Ok(())
    });
}

#[test]
fn keys_of_the_token_are_wrapped_and_made_there() {
    let name = "transport::keys_of_the_token_are_wrapped_and_made_there";
    twin("keys that stay", name, "", |twin, ours| {
        let [there, here] = same(twin, ours, CKK_AES, 32, &[CKA_WRAP, CKA_UNWRAP])?;
        let arrived = |session: &Session, key, plain: &[u8]| {
            ensure!(session.attribute_bool(key, CKA_TOKEN)?, "it is not there");
            ensure!(session.find(&Template::new().label("arrived"))?.contains(&key), "not found");
            ensure!(session.attribute(key, CKA_VALUE)? == plain, "it is another key");
            Ok(session.destroy(key)?)
        };
        for (key, value) in travellers(twin, true)? {
            let plain = twin.attribute(key, value)?;
            let is_private = twin.attribute_ulong(key, CKA_CLASS)? == CKO_PRIVATE_KEY;
            for (mechanism, says) in wraps() {
                if mechanism.number == CKM_AES_CBC && is_private {
                    continue;
                }
                let what = || format!("{:#x} of {} bytes", mechanism.number, plain.len());
                let bound = matches!(mechanism.params, Params::Gcm { iv: [], .. });
                if bound {
                    // What the form would say of the key only its token knows.
                    fails_with(twin.wrap(&mechanism, there, key), Error::MECHANISM_PARAM_INVALID)?;
                    continue;
                }
                let wrapped = twin.wrap(&mechanism, there, key).with_context(what)?;
                let template = arriving(twin, key, says, false)?;
                let back = ours.unwrap(&mechanism, here, &wrapped, &template).with_context(what)?;
                ensure!(ours.attribute(back, value)? == plain, "{}", what());
                let template = arriving(twin, key, says, true)?;
                let back =
                    twin.unwrap(&mechanism, there, &wrapped, &template).with_context(what)?;
                arrived(twin, back, &plain).with_context(what)?;
            }
        }
        // A key of the token does not leave under a key of ours.
        let (key, _) = travellers(twin, true)?[0];
        let [_, own] = same(twin, twin, CKK_AES, 16, &[CKA_WRAP])?;
        fails_with(twin.wrap(&CKM_AES_KEY_WRAP.into(), own, key), Error::FUNCTION_NOT_SUPPORTED)?;
        let made = |length, token| secret(Some(length), token).label("arrived");
        let [base, own] = same(twin, ours, CKK_GENERIC_SECRET, 32, &[CKA_DERIVE])?;
        let hkdf = Params::Hkdf {
            extract: true,
            expand: true,
            prf: CKM_SHA256,
            salt_type: CKF_HKDF_SALT_NULL,
            salt: b"",
            salt_key: ObjectHandle(0),
            info: b"info",
        };
        let hkdf = Mechanism::with(CKM_HKDF_DERIVE, hkdf);
        let other = ours.derive(&hkdf, own, &made(40, false))?;
        let key = twin.derive(&hkdf, base, &made(40, true))?;
        arrived(twin, key, &ours.attribute(other, CKA_VALUE)?)?;
        let (its, private) = pair(twin, CKM_ML_KEM_KEY_PAIR_GEN, CKP_ML_KEM_768)?;
        let (sealed, other) = twin.encapsulate(&CKM_ML_KEM.into(), its, &made(32, false))?;
        let key = twin.decapsulate(&CKM_ML_KEM.into(), private, &sealed, &made(32, true))?;
        arrived(twin, key, &twin.attribute(other, CKA_VALUE)?)?;
        let public = Template::new().token(true).bytes(CKA_EC_PARAMS, softhsm::P256);
        let public = public.bool(CKA_ENCAPSULATE, true);
        let private =
            Template::new().token(true).bool(CKA_DERIVE, true).bool(CKA_DECAPSULATE, true);
        let make = CKM_EC_KEY_PAIR_GEN.into();
        let (its, private) = twin.generate_key_pair(&make, &public, &private)?;
        let ecdh = Params::Ecdh1 { kdf: CKD_NULL, shared: b"", public: b"" };
        let ecdh = Mechanism::with(CKM_ECDH1_DERIVE, ecdh);
        let (sealed, other) = twin.encapsulate(&ecdh, its, &made(32, false))?;
        let key = twin.decapsulate(&ecdh, private, &sealed, &made(32, true))?;
        arrived(twin, key, &twin.attribute(other, CKA_VALUE)?)?;
        encapsulated(twin, (its, private), &ecdh)?;
        let (its, private) = pair(twin, CKM_ML_KEM_KEY_PAIR_GEN, CKP_ML_KEM_768)?;
        encapsulated(twin, (its, private), &CKM_ML_KEM.into())
    });
}

/// A secret that is made in the token, and by its ciphertext once more.
fn encapsulated(
    twin: &Session,
    (public, private): (ObjectHandle, ObjectHandle),
    by: &Mechanism<'_>,
) -> Result<()> {
    let template = secret(Some(32), true).label("sealed");
    let (sealed, there) = twin.encapsulate(by, public, &template)?;
    ensure!(twin.attribute_bool(there, CKA_TOKEN)?, "it is not there");
    ensure!(
        twin.find(&Template::new().label("sealed"))? == [there],
        "it is not found, or others are"
    );
    let other = twin.decapsulate(by, private, &sealed, &readable(None))?;
    ensure!(twin.attribute(there, CKA_VALUE)? == twin.attribute(other, CKA_VALUE)?, "another key");
    twin.destroy(there)?;
    // What cannot be made leaves nothing there.
    let wrong = template.bool(CKA_LOCAL, true);
    ensure!(twin.encapsulate(by, public, &wrong).is_err(), "it is made here");
    ensure!(twin.find(&Template::new().label("sealed"))?.is_empty(), "something is left");
    Ok(())
}

/// What its module keeps no purposes for: a wrapping key whose copy decrypts opens what it wraps.
#[test]
fn protected_keys_do_not_leave_under_keys_that_others_may_change() {
    let name = "transport::protected_keys_do_not_leave_under_keys_that_others_may_change";
    twin("protected keys", name, "", |twin, _| {
        let make = |usages: &[CK_ATTRIBUTE_TYPE], token| {
            let template = Template::new().token(token).ulong(CKA_VALUE_LEN, 32);
            let template = template.bool(CKA_EXTRACTABLE, !usages.contains(&CKA_WRAP));
            let template = template.bool(CKA_SENSITIVE, true);
            let template = usages.iter().fold(template, |all, usage| all.bool(*usage, true));
            twin.generate_key(&CKM_AES_KEY_GEN.into(), &template)
        };
        let wrap = CKM_AES_KEY_WRAP_KWP.into();
        let wrapping = make(&[CKA_WRAP, CKA_UNWRAP], true)?;
        for token in [false, true] {
            let protected = make(&[CKA_ENCRYPT, CKA_DECRYPT, CKA_SIGN, CKA_VERIFY], token)?;
            fails_with(twin.wrap(&wrap, wrapping, protected), Error::KEY_NOT_WRAPPABLE)?;
            says(twin.module(), "the wrapping key may be known outside")?;
        }
        // Nor is one key for data and for transport, one after the other or in a copy.
        let both = make(&[CKA_DECRYPT, CKA_WRAP], true)?;
        let off = |template: Template| {
            let usages = [CKA_ENCRYPT, CKA_DECRYPT, CKA_SIGN, CKA_VERIFY];
            usages.into_iter().fold(template, |all, usage| all.bool(usage, false))
        };
        let copied = twin.copy(both, &off(Template::new().token(true)));
        fails_with(copied, Error::ATTRIBUTE_READ_ONLY)?;
        says(twin.module(), "the key was made for another purpose")?;
        let changed = twin.set_attributes(both, &off(Template::new()));
        fails_with(changed, Error::ATTRIBUTE_READ_ONLY)?;
        // What is opened there is for use, and cannot be read.
        let kwp = [7; 40];
        for wrong in [CKA_WRAP, CKA_DERIVE] {
            let template = Template::new().class(CKO_SECRET_KEY).key_type(CKK_AES).token(true);
            let opened = twin.unwrap(&wrap, wrapping, &kwp, &template.bool(wrong, true));
            fails_with(opened, Error::TEMPLATE_INCONSISTENT)?;
        }
        let opened = twin.unwrap(&wrap, wrapping, &kwp, &secret(None, true));
        fails_with(opened, Error::TEMPLATE_INCONSISTENT)?;
        says(twin.module(), "an unwrapped key would be readable")
    });
}

#[test]
fn what_a_key_there_imposes_is_imposed_on_keys_of_the_session() {
    let name = "transport::what_a_key_there_imposes_is_imposed_on_keys_of_the_session";
    twin("imposes", name, "policy = \"legacy\"", |twin, _| {
        let inner = Template::new().key_type(CKK_AES).bool(CKA_ENCRYPT, false).label("imposed");
        let make = |template, usages: &[CK_ATTRIBUTE_TYPE], kind: CK_MECHANISM_TYPE| {
            let all = Template::new().token(true).ulong(CKA_VALUE_LEN, 32);
            let all = all.with(template, Value::Template(inner.clone()));
            let all = usages.iter().fold(all, |all, usage| all.bool(*usage, true));
            twin.generate_key(&kind.into(), &all)
        };
        let kwp = CKM_AES_KEY_WRAP_KWP.into();
        let wraps = make(CKA_UNWRAP_TEMPLATE, &[CKA_WRAP, CKA_UNWRAP], CKM_AES_KEY_GEN)?;
        let base = make(CKA_DERIVE_TEMPLATE, &[CKA_DERIVE], CKM_GENERIC_SECRET_KEY_GEN)?;
        let value = readable(None).bytes(CKA_VALUE, [7; 16]);
        let wrapped = twin.wrap(&kwp, wraps, twin.create(&value)?)?;
        let hkdf = Params::Hkdf {
            extract: true,
            expand: true,
            prf: CKM_SHA256,
            salt_type: CKF_HKDF_SALT_NULL,
            salt: b"",
            salt_key: ObjectHandle(0),
            info: b"info",
        };
        let hkdf = Mechanism::with(CKM_HKDF_DERIVE, hkdf);
        let aes = || Template::new().class(CKO_SECRET_KEY).key_type(CKK_AES).token(false);
        let unwrap = |template: Template| twin.unwrap(&kwp, wraps, &wrapped, &template);
        let derive =
            |template: Template| twin.derive(&hkdf, base, &template.ulong(CKA_VALUE_LEN, 16));
        for made in [unwrap(aes())?, derive(aes())?] {
            ensure!(!twin.attribute_bool(made, CKA_ENCRYPT)?, "it encrypts");
            ensure!(twin.attribute_text(made, CKA_LABEL)? == "imposed", "its label");
        }
        for against in [aes().bool(CKA_ENCRYPT, true), aes().label("other")] {
            fails_with(unwrap(against.clone()), Error::TEMPLATE_INCONSISTENT)?;
            fails_with(derive(against), Error::TEMPLATE_INCONSISTENT)?;
        }
        Ok(())
    });
}

#[test]
fn what_a_key_there_imposes_on_decapsulated_keys_and_keeps_there_holds() {
    let name = "transport::what_a_key_there_imposes_on_decapsulated_keys_and_keeps_there_holds";
    twin("keeps", name, "policy = \"legacy\"", |twin, _| {
        let kem = CKM_ML_KEM.into();
        let pair = |imposed: Template| {
            let public = Template::new().token(true).bool(CKA_ENCAPSULATE, true);
            let public = public.ulong(CKA_PARAMETER_SET, CKP_ML_KEM_512);
            let private = Template::new().token(true).bool(CKA_DECAPSULATE, true);
            let private = private.with(CKA_DECAPSULATE_TEMPLATE, Value::Template(imposed));
            twin.generate_key_pair(&CKM_ML_KEM_KEY_PAIR_GEN.into(), &public, &private)
        };
        let sealed = |public| twin.encapsulate(&kem, public, &readable(None));
        // Whole on a key of the session.
        let (public, private) = pair(Template::new().bool(CKA_SIGN, false).label("imposed"))?;
        let (ciphertext, one) = sealed(public)?;
        let open = |template: Template| twin.decapsulate(&kem, private, &ciphertext, &template);
        let other = open(readable(None))?;
        ensure!(twin.attribute(one, CKA_VALUE)? == twin.attribute(other, CKA_VALUE)?, "another");
        ensure!(!twin.attribute_bool(other, CKA_SIGN)?, "it signs");
        ensure!(twin.attribute_text(other, CKA_LABEL)? == "imposed", "its label");
        for against in [readable(None).bool(CKA_SIGN, true), readable(None).label("other")] {
            fails_with(open(against), Error::TEMPLATE_INCONSISTENT)?;
        }
        // What keeps the value there lets no key of the session be made, and one of the token.
        for keeps in [
            Template::new().bool(CKA_EXTRACTABLE, false),
            Template::new().bool(CKA_SENSITIVE, true),
        ] {
            let (public, private) = pair(keeps)?;
            let (ciphertext, _) = sealed(public)?;
            let kept = || Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
            let open = |template| twin.decapsulate(&kem, private, &ciphertext, &template);
            for template in [kept().token(false), readable(None)] {
                fails_with(open(template), Error::TEMPLATE_INCONSISTENT)?;
            }
            let there = open(kept().token(true))?;
            ensure!(twin.attribute(there, CKA_VALUE).is_err(), "it can be read");
        }
        // Of one with a template in it a key of the session has nothing, and one of the token all.
        let of_it = Value::Template(Template::new().label("of it"));
        let nested = Template::new().label("imposed").with(CKA_DERIVE_TEMPLATE, of_it.clone());
        let (public, private) = pair(nested)?;
        let (ciphertext, one) = sealed(public)?;
        let open = |template: Template| twin.decapsulate(&kem, private, &ciphertext, &template);
        let other = open(readable(None))?;
        ensure!(twin.attribute(one, CKA_VALUE)? == twin.attribute(other, CKA_VALUE)?, "another");
        ensure!(twin.attribute_text(other, CKA_LABEL)? != "imposed", "its label");
        let there = open(secret(None, true))?;
        ensure!(twin.attribute_text(there, CKA_LABEL)? == "imposed", "its label there");
        // The same where that would keep the value.
        let nested = Template::new().bool(CKA_EXTRACTABLE, false).with(CKA_DERIVE_TEMPLATE, of_it);
        let (public, private) = pair(nested)?;
        let (ciphertext, _) = sealed(public)?;
        let opened = twin.decapsulate(&kem, private, &ciphertext, &readable(None));
        fails_with(opened, Error::TEMPLATE_INCONSISTENT)
    });
}

#[test]
fn module_that_is_not_trusted_is_told_no_key() {
    let name = "transport::module_that_is_not_trusted_is_told_no_key";
    twin("trusted = false", name, "trusted = false", |twin, _| {
        let usages = Template::new().token(true).ulong(CKA_VALUE_LEN, 32);
        let usages = usages.bool(CKA_WRAP, true).bool(CKA_UNWRAP, true);
        let wrapping = twin.generate_key(&CKM_AES_KEY_GEN.into(), &usages)?;
        let (key, _) = travellers(twin, false)?[0];
        let wrap = CKM_AES_KEY_WRAP_KWP.into();
        fails_with(twin.wrap(&wrap, wrapping, key), Error::FUNCTION_NOT_SUPPORTED)?;
        says(twin.module(), "twin keeps its keys")?;
        let opened = twin.unwrap(&wrap, wrapping, &[7; 40], &readable(None));
        fails_with(opened, Error::FUNCTION_NOT_SUPPORTED)?;
        let base = Template::new().token(true).ulong(CKA_VALUE_LEN, 32).bool(CKA_DERIVE, true);
        let base = twin.generate_key(&CKM_GENERIC_SECRET_KEY_GEN.into(), &base)?;
        let hkdf = Params::Hkdf {
            extract: true,
            expand: true,
            prf: CKM_SHA256,
            salt_type: CKF_HKDF_SALT_NULL,
            salt: b"",
            salt_key: ObjectHandle(0),
            info: b"",
        };
        let derived =
            twin.derive(&Mechanism::with(CKM_HKDF_DERIVE, hkdf), base, &readable(Some(16)));
        fails_with(derived, Error::FUNCTION_NOT_SUPPORTED)
    });
}

/// What is made in slot 0 is its own token's, also by keys that it shows of another one.
#[test]
fn slot_0_wraps_and_makes_keys_by_those_it_shows() {
    let name = "transport::slot_0_wraps_and_makes_keys_by_those_it_shows";
    let prepare = |token: &mut TestToken| {
        let pin = token.path("pin").display().to_string();
        prepared(token, &format!("pin-source = \"file:{pin}\""))
    };
    apart(CLIENT, "slot 0", name, prepare, || {
        let module = started()?;
        let open = |slot| -> Result<Session> {
            let session = module.open_session(slot, Access::ReadWrite)?;
            session.login(User::User, USER_PIN.as_bytes())?;
            Ok(session)
        };
        let (all, twin) = (open(SlotId(0))?, open(slot(&module, TWIN)?)?);
        let usages = [CKA_WRAP, CKA_UNWRAP];
        let label = || Template::new().label("shown");
        let [there, here] = same(&twin, &all, CKK_AES, 32, &usages)?;
        twin.set_attributes(there, &label())?;
        let [guest] = all.find(&label())?[..] else { anyhow::bail!("it is not shown") };
        let kwp = CKM_AES_KEY_WRAP_KWP.into();
        let (key, value) = travellers(&all, false)?[1];
        let plain = all.attribute(key, value)?;
        let wrapped = all.wrap(&kwp, guest, key)?;
        ensure!(wrapped == all.wrap(&kwp, here, key)?, "two wraps differ");
        for token in [false, true] {
            let back = all.unwrap(&kwp, guest, &wrapped, &arriving(&all, key, false, token)?)?;
            ensure!(all.attribute(back, value)? == plain, "it is another key");
            ensure!(twin.find(&Template::new().label("arrived"))?.is_empty(), "it went there");
        }
        // Two of that token: the wrap is made there. One of each: no key passes from one to the other.
        let (its, _) = travellers(&twin, true)?[1];
        twin.set_attributes(its, &Template::new().label("its"))?;
        let [its] = all.find(&Template::new().label("its"))?[..] else { anyhow::bail!("no key") };
        ensure!(all.wrap(&kwp, guest, its)? == wrapped, "by the token");
        fails_with(all.wrap(&kwp, here, its), Error::FUNCTION_NOT_SUPPORTED)?;
        says(&module, "twin keeps its keys")
    });
}

/// The officer of its token says that nobody knows it.
#[test]
fn protected_keys_leave_under_what_the_officer_trusts() {
    let name = "transport::protected_keys_leave_under_what_the_officer_trusts";
    twin("CKA_TRUSTED", name, "", |twin, _| {
        let template = Template::new().token(true).ulong(CKA_VALUE_LEN, 32).label("carrier");
        let template = template.bool(CKA_WRAP, true).bool(CKA_UNWRAP, true);
        twin.generate_key(&CKM_AES_KEY_GEN.into(), &template.bool(CKA_PRIVATE, false))?;
        let carrier = || {
            let found = twin.find(&Template::new().label("carrier"))?;
            found.first().copied().context("no wrapping key")
        };
        twin.logout()?;
        twin.login(User::SecurityOfficer, SO_PIN.as_bytes())?;
        twin.set_attributes(carrier()?, &Template::new().bool(CKA_TRUSTED, true))?;
        twin.logout()?;
        twin.login(User::User, USER_PIN.as_bytes())?;
        let carrier = carrier()?;
        let kwp = CKM_AES_KEY_WRAP_KWP.into();
        for token in [false, true] {
            let template = Template::new().token(token).ulong(CKA_VALUE_LEN, 32);
            let template = template.bool(CKA_EXTRACTABLE, true).bool(CKA_SENSITIVE, true);
            let key = twin.generate_key(&CKM_GENERIC_SECRET_KEY_GEN.into(), &template)?;
            let wrapped = twin.wrap(&kwp, carrier, key)?;
            let template = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
            let back = twin.unwrap(&kwp, carrier, &wrapped, &template.token(token))?;
            let mac = |key| twin.sign(&CKM_SHA256_HMAC.into(), key, b"message");
            ensure!(mac(key)? == mac(back)?, "it is another key");
            ensure!(twin.attribute_bool(back, CKA_SENSITIVE)?, "it can be read");
            ensure!(twin.attribute_bool(back, CKA_TOKEN)? == token, "it is elsewhere");
        }
        Ok(())
    });
}

/// The sessions of its module end under us: they are opened again, the login is repeated, and the keys are found again.
#[test]
fn keys_go_on_wrapping_and_deriving_after_a_loss() {
    let name = "transport::keys_go_on_wrapping_and_deriving_after_a_loss";
    let prepare = |token: &mut TestToken| {
        let pin = token.path("pin").display().to_string();
        prepared(token, &format!("pin-source = \"file:{pin}\""))
    };
    apart(CLIENT, "losses", name, prepare, || {
        let module = started()?;
        let twin = module.open_session(slot(&module, TWIN)?, Access::ReadWrite)?;
        twin.login_protected(User::User)?;
        let conf = std::env::var_os("TWIN_CONF").context("no twin")?;
        let direct = Module::load(Path::new(&conf).with_file_name("twin.so"))?;
        let named = |template: Template, label| template.token(true).label(label);
        let usages = Template::new().ulong(CKA_VALUE_LEN, 32);
        let usages = usages.bool(CKA_WRAP, true).bool(CKA_UNWRAP, true);
        let carrier = twin.generate_key(&CKM_AES_KEY_GEN.into(), &named(usages, "carrier"))?;
        let base = Template::new().ulong(CKA_VALUE_LEN, 32).bool(CKA_DERIVE, true);
        let make = CKM_GENERIC_SECRET_KEY_GEN.into();
        let base = twin.generate_key(&make, &named(base, "base"))?;
        let hkdf = Params::Hkdf {
            extract: true,
            expand: true,
            prf: CKM_SHA256,
            salt_type: CKF_HKDF_SALT_NULL,
            salt: b"",
            salt_key: ObjectHandle(0),
            info: b"",
        };
        let hkdf = Mechanism::with(CKM_HKDF_DERIVE, hkdf);
        let (key, _) = travellers(&twin, false)?[0];
        let mac = |key| twin.sign(&CKM_SHA256_HMAC.into(), key, b"message");
        let kwp = CKM_AES_KEY_WRAP_KWP.into();
        let wrapped = twin.wrap(&kwp, carrier, key)?;
        for token in [false, true] {
            direct.finalize()?;
            ensure!(twin.wrap(&kwp, carrier, key)? == wrapped, "another wrap");
            direct.finalize()?;
            let template = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
            let back = twin.unwrap(&kwp, carrier, &wrapped, &template.token(token))?;
            ensure!(mac(back)? == mac(key)?, "another key");
            direct.finalize()?;
            let template = Template::new().token(token).ulong(CKA_VALUE_LEN, 32);
            twin.derive(&hkdf, base, &template.label("derived"))?;
            let derived = twin.find(&Template::new().label("derived").token(token))?;
            ensure!(derived.len() == 1, "{} derived", derived.len());
        }
        Ok(())
    });
}
