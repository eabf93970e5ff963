// SPDX-License-Identifier: Apache-2.0
//! What is done with the keys of another module's token.

use super::view::{private_key, user, with_pin};
use super::*;
use metaslot_client::{Mechanism, MessageParams, Params, Value, Way};

/// DER of the object identifier of P-256.
pub(super) const P256: &[u8] = &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];

/// Copies a public key into our own token's session: who verifies there is another implementation.
pub(super) fn ours(
    module: &Module,
    session: &Session,
    public: ObjectHandle,
) -> Result<(Session, ObjectHandle)> {
    let other = module.open_session(SlotId(0), Access::ReadOnly)?;
    let kind = session.attribute_ulong(public, CKA_KEY_TYPE)?;
    let parts: &[_] = match kind {
        CKK_RSA => &[CKA_MODULUS, CKA_PUBLIC_EXPONENT],
        _ => &[CKA_EC_PARAMS, CKA_EC_POINT],
    };
    let template = Template::new().class(CKO_PUBLIC_KEY).key_type(kind).token(false);
    let template = parts.iter().try_fold(template, |all, part| {
        anyhow::Ok(all.bytes(*part, session.attribute(public, *part)?))
    })?;
    let key = other.create(&template)?;
    Ok((other, key))
}

#[test]
fn token_is_a_slot_and_says_who_made_it() {
    softhsm("slots", "softhsm::token_is_a_slot_and_says_who_made_it", "", |module| {
        let slot = slot(module, LABEL)?;
        ensure!(slot.0 > 0, "ours comes first");
        let info = module.token_info(slot)?;
        ensure!(info.manufacturer == "SoftHSM project", "{}", info.manufacturer);
        ensure!(
            info.has(CKF_TOKEN_INITIALIZED | CKF_USER_PIN_INITIALIZED | CKF_LOGIN_REQUIRED),
            "flags"
        );
        ensure!(!info.has(CKF_PROTECTED_AUTHENTICATION_PATH), "it has no PIN of its own");
        ensure!(module.slot_info(slot)?.description.starts_with("softhsm: "), "its description");
        ensure!(module.mechanisms(slot)?.contains(&CKM_RSA_PKCS), "what its keys do");
        ensure!(!module.mechanisms(slot)?.contains(&CKM_HKDF_DERIVE), "what only ours do");
        ensure!(module.mechanisms(slot)?.contains(&CKM_SHA3_256), "digests need no key");
        let candidates = module.candidates(CKM_RSA_PKCS).context("candidates")?;
        ensure!(candidates.iter().any(|row| row.provider == "softhsm"), "{candidates:?}");
        Ok(())
    });
}

#[test]
fn signatures_of_its_keys_are_right() {
    softhsm("signatures", "softhsm::signatures_of_its_keys_are_right", "", |module| {
        let session = logged_in(module)?;
        let (public, private) = rsa_pair(&session, "rsa")?;
        let (other, verifying) = ours(module, &session, public)?;
        for number in [CKM_SHA256_RSA_PKCS, CKM_RSA_PKCS] {
            let mechanism = Mechanism::new(number);
            let signature = session.sign(&mechanism, private, b"message")?;
            other.verify(&mechanism, verifying, b"message", &signature)?;
            session.verify(&mechanism, public, b"message", &signature)?;
            let wrong = session.verify(&mechanism, public, b"other", &signature);
            fails_with(wrong, Error::SIGNATURE_INVALID)?;
        }
        session.sign_init(&CKM_SHA256_RSA_PKCS.into(), private)?;
        session.sign_update(b"mess")?;
        session.sign_update(b"age")?;
        let signature = session.sign_final()?;
        other.verify(&CKM_SHA256_RSA_PKCS.into(), verifying, b"message", &signature)?;
        let pss = Params::Pss { hash: CKM_SHA256, mgf: CKG_MGF1_SHA256, salt_length: 32 };
        let pss = Mechanism::with(CKM_SHA256_RSA_PKCS_PSS, pss);
        let signature = session.sign(&pss, private, b"message")?;
        other.verify(&pss, verifying, b"message", &signature)?;

        let public = Template::new().token(true).bytes(CKA_EC_PARAMS, P256);
        let private = Template::new().token(true);
        let pair = session.generate_key_pair(&CKM_EC_KEY_PAIR_GEN.into(), &public, &private)?;
        let (other, verifying) = ours(module, &session, pair.0)?;
        let signature = session.sign(&CKM_ECDSA.into(), pair.1, &[7; 32])?;
        ensure!(signature.len() == 64, "{} bytes", signature.len());
        Ok(other.verify(&CKM_ECDSA.into(), verifying, &[7; 32], &signature)?)
    });
}

/// SoftHSM signs hashes by ECDSA, and has no mechanism that makes them.
#[test]
fn what_it_does_not_hash_itself_is_hashed_first() {
    let name = "softhsm::what_it_does_not_hash_itself_is_hashed_first";
    softhsm("ECDSA with a hash", name, "", |module| {
        let session = logged_in(module)?;
        let p384 = &[6, 5, 0x2b, 0x81, 4, 0, 34];
        let p521 = &[6, 5, 0x2b, 0x81, 4, 0, 35];
        for (curve, length) in [(P256, 64), (p384, 96), (p521, 132)] {
            let public = Template::new().token(true).bytes(CKA_EC_PARAMS, curve);
            let private = Template::new().token(true).bool(CKA_ALWAYS_AUTHENTICATE, length == 96);
            let pair = CKM_EC_KEY_PAIR_GEN.into();
            let (public, private) = session.generate_key_pair(&pair, &public, &private)?;
            let (other, verifying) = ours(module, &session, public)?;
            let shows_pin = || match length {
                96 => session.login(User::ContextSpecific, USER_PIN.as_bytes()),
                _ => Ok(()),
            };
            for number in [CKM_ECDSA_SHA224, CKM_ECDSA_SHA256, CKM_ECDSA_SHA384, CKM_ECDSA_SHA512] {
                let mechanism = Mechanism::new(number);
                session.sign_init(&mechanism, private)?;
                shows_pin()?;
                let signature = session.sign_initialized(b"message")?;
                ensure!(signature.len() == length, "{} bytes", signature.len());
                other.verify(&mechanism, verifying, b"message", &signature)?;
                session.verify(&mechanism, public, b"message", &signature)?;
                let wrong = session.verify(&mechanism, public, b"other", &signature);
                fails_with(wrong, Error::SIGNATURE_INVALID)?;
                session.sign_init(&mechanism, private)?;
                shows_pin()?;
                session.sign_update(b"mess")?;
                session.sign_update(b"")?;
                session.sign_update(b"age")?;
                let signature = session.sign_final()?;
                other.verify(&mechanism, verifying, b"message", &signature)?;
                session.verify_init(&mechanism, public)?;
                session.verify_update(b"message")?;
                session.verify_final(&signature)?;
            }
        }
        let listed = module.mechanisms(slot(module, LABEL)?)?;
        ensure!(listed.contains(&CKM_ECDSA_SHA256), "it is not listed");
        ensure!(!listed.contains(&CKM_ECDSA_SHA3_256), "SoftHSM has no SHA-3");
        Ok(())
    });
}

#[test]
fn what_its_keys_encrypt_they_decrypt() {
    softhsm("encryption", "softhsm::what_its_keys_encrypt_they_decrypt", "", |module| {
        let session = logged_in(module)?;
        let template = Template::new().token(true).ulong(CKA_VALUE_LEN, 32);
        let aes = session.generate_key(&CKM_AES_KEY_GEN.into(), &template)?;
        let (iv, data) = ([9; 16], vec![5; 100]);
        for number in [CKM_AES_CBC_PAD, CKM_AES_CTR, CKM_AES_GCM] {
            let params = match number {
                CKM_AES_CTR => Params::Ctr { bits: 128, block: iv },
                CKM_AES_GCM => Params::Gcm { iv: &iv[..12], aad: b"head", tag_bits: 128 },
                _ => Params::Bytes(&iv),
            };
            let mechanism = Mechanism::with(number, params);
            let sealed = session.encrypt(&mechanism, aes, &data)?;
            ensure!(session.decrypt(&mechanism, aes, &sealed)? == data, "{number:#x} at once");
            session.encrypt_init(&mechanism, aes)?;
            let mut parts = Vec::new();
            for part in data.chunks(33) {
                parts.extend(session.encrypt_update(part)?);
            }
            parts.extend(session.encrypt_final()?);
            ensure!(parts == sealed, "{number:#x}: encrypted in parts");
            session.decrypt_init(&mechanism, aes)?;
            let mut parts = Vec::new();
            for part in sealed.chunks(29) {
                parts.extend(session.decrypt_update(part)?);
            }
            parts.extend(session.decrypt_final()?);
            ensure!(parts == data, "{number:#x}: decrypted in parts");
        }
        seals_messages(&session, aes)?;
        let (public, private) = rsa_pair(&session, "rsa")?;
        let (other, encrypting) = ours(module, &session, public)?;
        let sealed = other.encrypt(&CKM_RSA_PKCS.into(), encrypting, b"secret")?;
        ensure!(session.decrypt(&CKM_RSA_PKCS.into(), private, &sealed)? == b"secret", "RSA");
        // An operation that is left in the middle leaves no trace in the next.
        session.encrypt_init(&Mechanism::with(CKM_AES_CBC, Params::Bytes(&iv)), aes)?;
        session.encrypt_update(&data)?;
        session.cancel(CKF_ENCRYPT)?;
        let cbc = Mechanism::with(CKM_AES_CBC, Params::Bytes(&iv));
        ensure!(session.encrypt(&cbc, aes, &data[..96])?.len() == 96, "after a cancelled one");
        Ok(())
    });
}

/// Several messages under a key that stays there: its IVs are drawn here, and not counted, for others use it, too.
fn seals_messages(session: &Session, key: ObjectHandle) -> Result<()> {
    let (mut iv, mut tag, mut before) = ([1; 12], [0; 16], [1; 12]);
    for way in [Way::Encrypt, Way::Decrypt] {
        session.message_init(way, &CKM_AES_GCM.into(), key)?;
    }
    for generator in [CKG_GENERATE, CKG_GENERATE_RANDOM, CKG_NO_GENERATE] {
        let mut gcm = MessageParams::Gcm { iv: &mut iv, fixed_bits: 0, generator, tag: &mut tag };
        let sealed = session.message(Way::Encrypt, &mut gcm, b"head", b"a message")?;
        let opened = session.message(Way::Decrypt, &mut gcm, b"head", &sealed)?;
        ensure!(opened == b"a message", "it is another one");
        ensure!((iv == before) == (generator == CKG_NO_GENERATE), "{iv:?} after {before:?}");
        before = iv;
    }
    let generator = CKG_GENERATE_COUNTER;
    let mut gcm = MessageParams::Gcm { iv: &mut iv, fixed_bits: 32, generator, tag: &mut tag };
    let counted = session.message(Way::Encrypt, &mut gcm, b"", b"a message");
    fails_with(counted, Error::MECHANISM_PARAM_INVALID)?;
    for way in [Way::Encrypt, Way::Decrypt] {
        session.message_final(way)?;
    }
    Ok(())
}

#[test]
fn its_objects_are_found_changed_copied_and_destroyed() {
    let name = "softhsm::its_objects_are_found_changed_copied_and_destroyed";
    softhsm("objects", name, "", |module| {
        let session = logged_in(module)?;
        let (public, private) = rsa_pair(&session, "first")?;
        let by_label = |label: &str| session.find(&Template::new().label(label));
        ensure!(by_label("first")?.len() == 2, "both halves");
        let class = Template::new().class(CKO_PRIVATE_KEY).bytes(CKA_ID, [7]);
        ensure!(session.find(&class)? == [private], "the same handle each time");
        ensure!(session.attribute_bool(private, CKA_SENSITIVE)?, "it is sensitive");
        ensure!(!session.attribute_bool(private, CKA_EXTRACTABLE)?, "it stays");
        ensure!(session.attribute_bool(private, CKA_PRIVATE)?, "it is private");
        fails_with(session.attribute(private, CKA_PRIME_1), Error::ATTRIBUTE_SENSITIVE)?;
        let exponent = session.attribute(public, CKA_PUBLIC_EXPONENT)?;
        ensure!(exponent == [1, 0, 1], "{exponent:?}");
        // A change is seen, also by a search; what makes a key weaker is not passed on.
        session.set_attribute(private, CKA_LABEL, Value::Bytes(b"second".to_vec()))?;
        ensure!(session.attribute_text(private, CKA_LABEL)? == "second", "the new label");
        ensure!(by_label("second")? == [private], "the new label is found");
        let weaker = session.set_attribute(private, CKA_SENSITIVE, Value::Bool(false));
        fails_with(weaker, Error::ATTRIBUTE_READ_ONLY)?;
        let more = session.set_attribute(private, CKA_EXTRACTABLE, Value::Bool(true));
        fails_with(more, Error::ATTRIBUTE_READ_ONLY)?;
        // Data goes in and comes out.
        let data =
            Template::new().class(CKO_DATA).token(true).label("note").bytes(CKA_VALUE, "text");
        let data = session.create(&data)?;
        ensure!(session.attribute(data, CKA_VALUE)? == b"text", "its value");
        let copy = session.copy(data, &Template::new().token(true).label("copy"))?;
        ensure!(session.attribute(copy, CKA_VALUE)? == b"text", "its copy's value");
        session.destroy(data)?;
        fails_with(session.attribute(data, CKA_VALUE), Error::OBJECT_HANDLE_INVALID)?;
        ensure!(by_label("note")?.is_empty() && by_label("copy")? == [copy], "what is left");
        session.destroy(private)?;
        let gone = session.sign_init(&CKM_RSA_PKCS.into(), private);
        fails_with(gone, Error::KEY_HANDLE_INVALID)
    });
}

#[test]
fn its_keys_stay_where_they_are_and_ours_too() {
    let name = "softhsm::its_keys_stay_where_they_are_and_ours_too";
    softhsm("no key leaves", name, "", |module| {
        let session = logged_in(module)?;
        let (_, private) = rsa_pair(&session, "rsa")?;
        let into_session = session.copy(private, &Template::new().token(false));
        fails_with(into_session, Error::ACTION_PROHIBITED)?;
        // A session key is ours, although its session is the foreign token's.
        let template = Template::new().token(false).ulong(CKA_VALUE_LEN, 32);
        let key = session.generate_key(&CKM_AES_KEY_GEN.into(), &template)?;
        let sealed = session.encrypt(
            &Mechanism::with(CKM_AES_CBC, Params::Bytes(&[0; 16])),
            key,
            &[0; 16],
        )?;
        ensure!(sealed.len() == 16, "it works");
        let into_token = session.copy(key, &Template::new().token(true));
        fails_with(into_token, Error::ACTION_PROHIBITED)?;
        says(module, "not copied between softhsm's token and the session")?;
        let carrier = Template::new().token(true).ulong(CKA_VALUE_LEN, 32).bool(CKA_WRAP, true);
        let uses = [CKA_ENCRYPT, CKA_DECRYPT, CKA_SIGN, CKA_VERIFY, CKA_DERIVE];
        let carrier = uses.into_iter().fold(carrier, |all, usage| all.bool(usage, false));
        let carrier = session.generate_key(&CKM_AES_KEY_GEN.into(), &carrier)?;
        let wrap = CKM_AES_KEY_WRAP.into();
        fails_with(session.wrap(&wrap, carrier, key), Error::KEY_UNEXTRACTABLE)?;
        let protected = Template::new().token(false).ulong(CKA_VALUE_LEN, 32);
        let protected = protected.bool(CKA_EXTRACTABLE, true).bool(CKA_SENSITIVE, true);
        let protected = session.generate_key(&CKM_AES_KEY_GEN.into(), &protected)?;
        fails_with(session.wrap(&wrap, carrier, protected), Error::KEY_NOT_WRAPPABLE)?;
        says(module, "the wrapping key may be known outside")?;
        let own = Template::new().token(false).ulong(CKA_VALUE_LEN, 32).bool(CKA_WRAP, true);
        let own = session.generate_key(&CKM_AES_KEY_GEN.into(), &own)?;
        let (its, _) = transport::travellers(&session, true)?[0];
        fails_with(session.wrap(&wrap, own, its), Error::FUNCTION_NOT_SUPPORTED)?;
        says(module, "softhsm keeps its keys")
    });
}

#[test]
fn what_its_keys_agree_on_is_a_session_key_of_ours() {
    let name = "softhsm::what_its_keys_agree_on_is_a_session_key_of_ours";
    softhsm("ECDH", name, "", |module| {
        let session = logged_in(module)?;
        let pair = |token: bool| {
            let public = Template::new().token(token).bytes(CKA_EC_PARAMS, P256);
            let private = Template::new().token(token).bool(CKA_DERIVE, true);
            session.generate_key_pair(&CKM_EC_KEY_PAIR_GEN.into(), &public, &private)
        };
        // One side is SoftHSM's, the other ours.
        let (theirs, ours) = (pair(true)?, pair(false)?);
        let point = |key| session.attribute(key, CKA_EC_POINT);
        for (kdf, length) in [(CKD_NULL, 32), (CKD_NULL, 16)] {
            let agreed = |private, public: &[u8]| -> Result<Vec<u8>> {
                let params = Params::Ecdh1 { kdf, shared: b"", public };
                let template = Template::new()
                    .class(CKO_SECRET_KEY)
                    .key_type(CKK_GENERIC_SECRET)
                    .bool(CKA_SENSITIVE, false)
                    .bool(CKA_EXTRACTABLE, true)
                    .ulong(CKA_VALUE_LEN, length);
                let mechanism = Mechanism::with(CKM_ECDH1_DERIVE, params);
                let key = session.derive(&mechanism, private, &template)?;
                Ok(session.attribute(key, CKA_VALUE)?)
            };
            let (one, two) =
                (agreed(theirs.1, &point(ours.0)?)?, agreed(ours.1, &point(theirs.0)?)?);
            ensure!(one == two && one.len() as u64 == length, "{one:x?} {two:x?}");
        }
        // Nothing of it stays in the module's token.
        ensure!(
            session.find(&Template::new().class(CKO_SECRET_KEY).token(true))?.is_empty(),
            "left"
        );
        Ok(())
    });
}

#[test]
fn its_wraps_are_opened_by_our_keys_and_ours_by_its() {
    let name = "softhsm::its_wraps_are_opened_by_our_keys_and_ours_by_its";
    softhsm("wraps", name, "", |module| {
        let session = logged_in(module)?;
        let ours = module.open_session(SlotId(0), Access::ReadOnly)?;
        let usages = [CKA_WRAP, CKA_UNWRAP];
        let [there, here] = twin::same(&session, &ours, CKK_AES, 32, &usages)?;
        // What it calls so pads as RFC 5649 has it.
        let pads =
            [(CKM_AES_KEY_WRAP, CKM_AES_KEY_WRAP), (CKM_AES_KEY_WRAP_PAD, CKM_AES_KEY_WRAP_KWP)];
        for token in [false, true] {
            for (key, value) in transport::travellers(&session, token)? {
                let plain = session.attribute(key, value)?;
                // It fills keys up with zeros before it pads them.
                let is_secret = session.attribute_ulong(key, CKA_CLASS)? == CKO_SECRET_KEY;
                if !is_secret || !plain.len().is_multiple_of(8) {
                    continue;
                }
                for (its, own) in pads {
                    let wrapped = session.wrap(&its.into(), there, key)?;
                    let template = transport::arriving(&session, key, false, false)?;
                    let back = ours.unwrap(&own.into(), here, &wrapped, &template)?;
                    let opened = ours.attribute(back, value)?;
                    ensure!(opened == plain, "{its:#x}: {opened:x?} is not {plain:x?}");
                    let template = transport::arriving(&session, key, false, token)?;
                    let back = session.unwrap(&its.into(), there, &wrapped, &template)?;
                    ensure!(session.attribute(back, value)? == plain, "{its:#x}: by its own");
                    ensure!(session.attribute_bool(back, CKA_TOKEN)? == token, "{its:#x}: where");
                }
            }
        }
        Ok(())
    });
}

#[test]
fn key_that_wants_a_pin_for_each_use_gets_it() {
    let name = "softhsm::key_that_wants_a_pin_for_each_use_gets_it";
    softhsm("CKA_ALWAYS_AUTHENTICATE", name, "", |module| {
        let session = logged_in(module)?;
        let public = Template::new()
            .token(true)
            .ulong(CKA_MODULUS_BITS, 2048)
            .bytes(CKA_PUBLIC_EXPONENT, [1, 0, 1]);
        let private = Template::new().token(true).bool(CKA_ALWAYS_AUTHENTICATE, true);
        let pair =
            session.generate_key_pair(&CKM_RSA_PKCS_KEY_PAIR_GEN.into(), &public, &private)?;
        let mechanism = Mechanism::new(CKM_SHA256_RSA_PKCS);
        let locked = session.sign(&mechanism, pair.1, b"message");
        fails_with(locked, Error::USER_NOT_LOGGED_IN)?;
        for pin in [USER_PIN, "9999", USER_PIN] {
            session.sign_init(&mechanism, pair.1)?;
            session.login(User::ContextSpecific, pin.as_bytes())?;
            let signature = session.sign_initialized(b"message");
            match pin {
                USER_PIN => session.verify(&mechanism, pair.0, b"message", &signature?)?,
                _ => fails_with(signature, Error::PIN_INCORRECT)?,
            }
        }
        // Each operation has the PIN that was shown for it, and no other's.
        let other = module.open_session(slot(module, LABEL)?, Access::ReadWrite)?;
        for (session, pin) in [(&session, USER_PIN), (&other, "9999")] {
            session.sign_init(&mechanism, pair.1)?;
            session.login(User::ContextSpecific, pin.as_bytes())?;
        }
        session.sign_initialized(b"message")?;
        fails_with(other.sign_initialized(b"message"), Error::PIN_INCORRECT)?;
        Ok(())
    });
}

#[test]
fn weak_keys_are_refused_before_the_module_is_asked() {
    let name = "softhsm::weak_keys_are_refused_before_the_module_is_asked";
    softhsm("policy", name, "", |module| {
        let session = logged_in(module)?;
        let public = Template::new()
            .token(true)
            .ulong(CKA_MODULUS_BITS, 1024)
            .bytes(CKA_PUBLIC_EXPONENT, [1, 0, 1]);
        let private = Template::new().token(true);
        let pair = session.generate_key_pair(&CKM_RSA_PKCS_KEY_PAIR_GEN.into(), &public, &private);
        ensure!(pair.is_err(), "a short key was made");
        says(module, "refused by the token's policy")?;
        let short = Template::new().token(true).ulong(CKA_VALUE_BITS, 160);
        let public = Template::new().token(true);
        let pair = session.generate_key_pair(&CKM_DH_PKCS_KEY_PAIR_GEN.into(), &public, &short);
        ensure!(pair.is_err(), "a short exponent was made");
        says(module, "refused by the token's policy")
    });
}

#[test]
fn halves_of_two_curves_are_refused_before_a_pair_is_made() {
    let name = "softhsm::halves_of_two_curves_are_refused_before_a_pair_is_made";
    softhsm("two curves", name, "", |module| {
        let session = logged_in(module)?;
        let p384 = [6, 5, 0x2b, 0x81, 4, 0, 0x22];
        for token in [true, false] {
            let public = Template::new().token(token).bytes(CKA_EC_PARAMS, P256);
            let private = Template::new().token(token).bytes(CKA_EC_PARAMS, p384);
            let pair = session.generate_key_pair(&CKM_EC_KEY_PAIR_GEN.into(), &public, &private);
            fails_with(pair, Error::TEMPLATE_INCONSISTENT)?;
            says(module, "the two halves say different CKA_EC_PARAMS")?;
        }
        Ok(())
    });
}

/// A search has the other tokens looked at anew; what is known of the own one's keys is known by its commits.
#[test]
fn a_search_in_slot_0_does_not_have_own_keys_read_again() {
    let name = "softhsm::a_search_in_slot_0_does_not_have_own_keys_read_again";
    let rsa = CKM_SHA256_RSA_PKCS;
    with_pin("own keys after a search", name, &[], |module| {
        rsa_pair(&logged_in(module)?, "theirs")?;
        let here = user(module)?;
        let (_, own) = rsa_pair(&here, "own")?;
        here.sign(&rsa.into(), own, b"message")?;
        // What no release of ours does: rows become others without a commit.
        let spoil = "import sqlite3\ndb = sqlite3.connect('tokens/token.db', isolation_level=None)\n\
                     db.execute('UPDATE object SET attributes = zeroblob(9)')\n";
        let home = std::env::var("METASLOT_CONF")?;
        let home = Path::new(&home).parent().context("a directory")?;
        Program::new("python3").args(["-c", spoil]).directory(home).run()?;
        let theirs = private_key(&here, "theirs")?;
        here.sign(&rsa.into(), theirs, b"message")?;
        here.sign(&rsa.into(), own, b"message")?;
        // After a commit it is read, and is found to be damaged.
        ensure!(here.create(&Template::new().class(CKO_DATA).token(true)).is_ok());
        fails_with(here.sign(&rsa.into(), own, b"message"), Error::DEVICE_ERROR)
    });
}
