// SPDX-License-Identifier: Apache-2.0
//! What another module would allow and our rules and policy refuse.

use super::*;
use metaslot_client::{Mechanism, Params, Value};

/// Everything that makes a key weaker, as a change and as a copy's template.
const WEAKER: [(CK_ATTRIBUTE_TYPE, bool); 10] = [
    (CKA_SENSITIVE, false),
    (CKA_EXTRACTABLE, true),
    (CKA_PRIVATE, false),
    (CKA_ALWAYS_SENSITIVE, false),
    (CKA_TRUSTED, true),
    (CKA_WRAP, true),
    (CKA_UNWRAP, true),
    (CKA_DERIVE, true),
    (CKA_DECRYPT, true),
    (CKA_WRAP_WITH_TRUSTED, false),
];

#[test]
fn no_change_and_no_copy_makes_its_keys_weaker() {
    let name = "attacks::no_change_and_no_copy_makes_its_keys_weaker";
    softhsm("weaker keys", name, "", |module| {
        let session = logged_in(module)?;
        let common = || Template::new().token(true).bool(CKA_SIGN, true);
        let public = Template::new()
            .token(true)
            .ulong(CKA_MODULUS_BITS, 2048)
            .bytes(CKA_PUBLIC_EXPONENT, [1, 0, 1]);
        let private = common().bool(CKA_WRAP_WITH_TRUSTED, true);
        let pair =
            session.generate_key_pair(&CKM_RSA_PKCS_KEY_PAIR_GEN.into(), &public, &private)?;
        let secret = common().ulong(CKA_VALUE_LEN, 32);
        let secret = session.generate_key(&CKM_GENERIC_SECRET_KEY_GEN.into(), &secret)?;
        for key in [pair.1, secret] {
            for (attribute, flag) in WEAKER {
                if session.attribute_bool(key, attribute).is_ok_and(|now| now == flag) {
                    continue;
                }
                let changed = session.set_attribute(key, attribute, Value::Bool(flag));
                ensure!(changed.is_err(), "{attribute:#x} of {key} was changed");
                let copy = Template::new().token(true).bool(attribute, flag);
                let copied = session.copy(key, &copy);
                ensure!(copied.is_err(), "{key} was copied with {attribute:#x}");
            }
            for value in [CKA_VALUE, CKA_PRIVATE_EXPONENT, CKA_PRIME_1] {
                ensure!(session.attribute(key, value).is_err(), "{value:#x} of {key} was read");
            }
        }
        Ok(())
    });
}

#[test]
fn weak_things_are_refused_with_its_keys_as_with_ours() {
    let name = "attacks::weak_things_are_refused_with_its_keys_as_with_ours";
    softhsm("weak things", name, "", |module| {
        let session = logged_in(module)?;
        let make = |mechanism: CK_MECHANISM_TYPE, length: CK_ULONG| {
            let template = Template::new().token(true).bool(CKA_ENCRYPT, true).bool(CKA_SIGN, true);
            let template =
                if length > 0 { template.ulong(CKA_VALUE_LEN, length) } else { template };
            session.generate_key(&mechanism.into(), &template)
        };
        for (mechanism, length) in [
            (CKM_GENERIC_SECRET_KEY_GEN, 4),
            (CKM_DES3_KEY_GEN, 0),
            (CKM_DES2_KEY_GEN, 0),
            (CKM_DES_KEY_GEN, 0),
        ] {
            ensure!(make(mechanism, length).is_err(), "{mechanism:#x} made a weak key");
        }
        let aes = make(CKM_AES_KEY_GEN, 32)?;
        for tag_bits in [0, 8, 32, 95] {
            let gcm = Params::Gcm { iv: &[1; 12], aad: b"", tag_bits };
            let sealed = session.encrypt(&Mechanism::with(CKM_AES_GCM, gcm), aes, b"text");
            ensure!(sealed.is_err(), "a tag of {tag_bits} bits");
        }
        // What is derived, wrapped, digested or unwrapped with a key of the token leaves it.
        let template = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
        let template = template.bool(CKA_SENSITIVE, false).bool(CKA_EXTRACTABLE, true);
        let ecb = Mechanism::with(CKM_AES_ECB_ENCRYPT_DATA, Params::Bytes(&[0; 16]));
        ensure!(session.derive(&ecb, aes, &template).is_err(), "derived");
        let gcm = Params::Gcm { iv: &[1; 12], aad: b"", tag_bits: 128 };
        for mechanism in [CKM_AES_KEY_WRAP.into(), Mechanism::with(CKM_AES_GCM, gcm)] {
            ensure!(session.wrap(&mechanism, aes, aes).is_err(), "wrapped");
            ensure!(session.unwrap(&mechanism, aes, &[0; 40], &template).is_err(), "unwrapped");
        }
        session.digest_init(&CKM_SHA256.into())?;
        ensure!(session.digest_key(aes).is_err(), "digested");
        Ok(())
    });
}

#[test]
fn module_that_is_not_trusted_knows_no_key_of_others() {
    let name = "attacks::module_that_is_not_trusted_knows_no_key_of_others";
    softhsm("trusted = false", name, "trusted = false", |module| {
        let session = logged_in(module)?;
        let (public, private) = rsa_pair(&session, "rsa")?;
        let signature = session.sign(&CKM_SHA256_RSA_PKCS.into(), private, b"message")?;
        session.verify(&CKM_SHA256_RSA_PKCS.into(), public, b"message", &signature)?;
        let key = Template::new().class(CKO_SECRET_KEY).key_type(CKK_AES).bytes(CKA_VALUE, [7; 32]);
        fails_with(session.create(&key.clone().token(true)), Error::ACTION_PROHIBITED)?;
        says(module, "softhsm is not trusted")?;
        session.create(&key.token(false))?;
        let listed = module.mechanisms(slot(module, LABEL)?)?;
        ensure!(!listed.contains(&CKM_ECDH1_DERIVE), "it would know what is agreed on");
        Ok(())
    });
}

#[test]
fn without_a_login_nothing_private_is_seen_or_made() {
    let name = "attacks::without_a_login_nothing_private_is_seen_or_made";
    softhsm("no login", name, "", |module| {
        let session = logged_in(module)?;
        let (public, private) = rsa_pair(&session, "rsa")?;
        // The host logs in by itself; for our callers that is no login.
        session.logout()?;
        let direct = Module::load(SOFTHSM)?;
        let host = direct.open_session(slot(&direct, LABEL)?, Access::ReadWrite)?;
        host.login(User::User, USER_PIN.as_bytes())?;
        ensure!(
            session.find(&Template::new().label("rsa"))? == [public],
            "the private key is seen"
        );
        fails_with(session.sign_init(&CKM_RSA_PKCS.into(), private), Error::KEY_HANDLE_INVALID)?;
        let template = Template::new().token(true).ulong(CKA_VALUE_LEN, 32);
        let made = session.generate_key(&CKM_AES_KEY_GEN.into(), &template);
        fails_with(made, Error::USER_NOT_LOGGED_IN)?;
        let copied = session.copy(public, &Template::new().token(true).bool(CKA_PRIVATE, true));
        fails_with(copied, Error::USER_NOT_LOGGED_IN)?;
        host.logout()?;
        Ok(())
    });
}
