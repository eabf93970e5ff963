// SPDX-License-Identifier: Apache-2.0
//! What a key is for, and that nothing leads beyond it: each attack works under `legacy`, or its
//! refusal would mean nothing, and is refused under the default policy; what programs do every day
//! works under both.

mod user;

use metaslot_ck::attribute::{CKA_BIRTH_ROLES, CKA_PURPOSES};
use metaslot_ck::*;
use metaslot_engine::{Answer, Policy};
use metaslot_models::{collect, row};
use metaslot_spi::provider::Direction::{Backward, Forward};
use metaslot_spi::{Attributes, Bytes, Params, RawValue, Template, Value};
use user::*;

/// `attack` gives what it learned; that must be so under `legacy` and refused by default.
fn refused(attack: impl Fn(&User) -> Result<bool>) -> Error {
    let learned = attack(&User::under(Policy::legacy()));
    assert_eq!(learned, Ok(true), "under legacy");
    attack(&User::under(Policy::DEFAULT)).expect_err("under the default policy")
}

#[test]
fn a_key_generated_for_transport_carries_protected_keys() {
    for policy in [Policy::DEFAULT, Policy::legacy()] {
        let user = User::under(policy);
        let by = user.aes(transport()).expect("a key is made");
        for mechanism in [KW, KWP, BOUND] {
            let key = user.aes(target()).expect("a key is made");
            let sealed = user.cipher(Forward, CTR, key, b"some data").expect("it encrypts");
            let wrapped = user.wrap(mechanism, by, key).expect("it wraps");
            let back = user.unwrap(mechanism, by, &wrapped, secret(CKK_AES)).expect("it unwraps");
            let opened = user.cipher(Backward, CTR, back, &sealed).expect("it decrypts");
            assert_eq!(opened, b"some data");
            assert!(user.bool(back, CKA_SENSITIVE));
        }
    }
}

#[test]
fn a_pair_generated_for_transport_carries_protected_keys() {
    let user = User::under(Policy::DEFAULT);
    let (public, private) =
        user.rsa(vec![on(CKA_WRAP)], vec![on(CKA_UNWRAP)]).expect("a pair is made");
    let key = user.aes(target()).expect("a key is made");
    let wrapped = user.wrap(OAEP, public, key).expect("it wraps");
    user.unwrap(OAEP, private, &wrapped, secret(CKK_AES)).expect("it unwraps");
    assert!(!user.bool(private, CKA_DECRYPT) && !user.bool(private, CKA_SIGN));
}

/// As a browser's database imports a PKCS#12 file: with a key of its own, by CBC with padding.
#[test]
fn a_readable_key_unwraps_by_any_mechanism() {
    let user = User::under(Policy::DEFAULT);
    let by = user.brought(CKK_AES, &[3; 32], transport()).expect("a key is brought");
    assert_eq!(user.value(by), Ok(vec![3; 32]), "a key brought in the clear stays readable");
    let key = user.aes(readable()).expect("a key is made");
    let wrapped = user.wrap(CBC_PAD, by, key).expect("it wraps");
    let back = user.unwrap(CBC_PAD, by, &wrapped, secret(CKK_AES)).expect("it unwraps");
    assert!(user.bool(back, CKA_SENSITIVE));
}

#[test]
fn usages_beyond_the_purpose_can_be_stated_and_not_used() {
    let user = User::under(Policy::DEFAULT);
    let all = [CKA_ENCRYPT, CKA_DECRYPT, CKA_SIGN, CKA_VERIFY, CKA_WRAP, CKA_UNWRAP, CKA_DERIVE];
    let key = user.aes(all.into_iter().map(on).collect()).expect("a key is made");
    user.cipher(Forward, CTR, key, b"data").expect("it encrypts");
    user.sign(CKM_AES_CMAC, Params::None, key, b"data").expect("it signs");
    let other = user.aes(target()).expect("a key is made");
    assert_eq!(user.wrap(KW, key, other), Err(Error::KEY_NOT_WRAPPABLE));
}

/// It computes nothing that reading the one and encrypting by the other does not.
#[test]
fn a_key_that_encrypts_wraps_readable_keys_by_any_mechanism() {
    let user = User::under(Policy::DEFAULT);
    let by = user.aes(vec![on(CKA_ENCRYPT), on(CKA_DECRYPT), on(CKA_WRAP), on(CKA_UNWRAP)]);
    let by = by.expect("a key is made");
    let plain = user.brought(CKK_GENERIC_SECRET, &[1; 16], vec![]).expect("a key is brought");
    for mechanism in [KW, KWP, CBC_PAD, CTR, GCM] {
        let wrapped = user.wrap(mechanism, by, plain).expect("it wraps");
        let mut template = secret(CKK_GENERIC_SECRET);
        template.extend(readable());
        let back = user.unwrap(mechanism, by, &wrapped, template).expect("it unwraps");
        assert_eq!(user.value(back), Ok(vec![1; 16]));
        let mut template = secret(CKK_GENERIC_SECRET);
        template.extend(transport());
        let known = user.unwrap(mechanism, by, &wrapped, template).expect("it unwraps");
        assert!(!user.bool(known, CKA_ALWAYS_SENSITIVE));
    }
    let verifies = user.aes(vec![row(CKA_ENCRYPT, false), on(CKA_SIGN), on(CKA_WRAP)]);
    let verifies = verifies.expect("a key is made");
    assert_eq!(user.wrap(CTR, verifies, plain), Err(Error::KEY_NOT_WRAPPABLE));
    let by = user.aes(vec![row(CKA_DECRYPT, false), on(CKA_ENCRYPT), on(CKA_WRAP), on(CKA_UNWRAP)]);
    let by = by.expect("a key is made");
    let wrapped = user.wrap(CTR, by, plain).expect("it encrypts, so it wraps");
    let opened = user.unwrap(CTR, by, &wrapped, secret(CKK_GENERIC_SECRET));
    assert_eq!(opened, Err(Error::KEY_FUNCTION_NOT_PERMITTED));
}

#[test]
fn a_weaker_transport_key_wraps_readable_keys_only() {
    let user = User::under(Policy::DEFAULT);
    let mut template = vec![row(CKA_VALUE_LEN, 16)];
    template.extend(transport());
    let mechanism = CKM_AES_KEY_GEN;
    let by = user.engine.generate_key(user.session, mechanism, Params::None, template);
    let by = by.expect("a key is made");
    user.wrap(KW, by, user.aes(readable()).expect("a key is made")).expect("it wraps");
    let wrapped = user.wrap(KW, by, user.aes(target()).expect("a key is made"));
    assert_eq!(wrapped, Err(Error::WRAPPING_KEY_SIZE_RANGE));
}

/// PKCS#11 3.2 §4.10: `CKA_SENSITIVE` of a secret key is false unless the template says more.
#[test]
fn a_secret_key_is_sensitive_unless_it_is_made_extractable() {
    for policy in [Policy::DEFAULT, Policy::legacy()] {
        let user = User::under(policy);
        let open = user.aes(vec![on(CKA_EXTRACTABLE)]).expect("a key is made");
        let kept = user.aes(vec![]).expect("a key is made");
        assert!(!user.bool(open, CKA_SENSITIVE) && user.bool(kept, CKA_SENSITIVE));
        let by = user.aes(transport()).expect("a key is made");
        let wrapped = user.wrap(KW, by, open).expect("it wraps");
        let mut template = secret(CKK_AES);
        template.push(on(CKA_EXTRACTABLE));
        let back = user.unwrap(KW, by, &wrapped, template).expect("it unwraps");
        assert_eq!(user.bool(back, CKA_SENSITIVE), policy == Policy::DEFAULT);
    }
}

/// An EC key agrees unless it was made without: a bare form would bring that back.
#[test]
fn a_private_key_that_does_not_agree_leaves_in_a_bound_form() {
    let user = User::under(Policy::DEFAULT);
    let by = user.aes(transport()).expect("a key is made");
    for (agrees, bare) in [(true, true), (false, false)] {
        let mut private = target();
        private.extend([row(CKA_DERIVE, agrees), on(CKA_SIGN)]);
        let (_, key) = user.p256(private).expect("a pair is made");
        assert_eq!(user.wrap(KWP, by, key).is_ok(), bare);
        let wrapped = user.wrap(BOUND, by, key).expect("it wraps");
        let template = vec![row(CKA_CLASS, CKO_PRIVATE_KEY), row(CKA_KEY_TYPE, CKK_EC)];
        let back = user.unwrap(BOUND, by, &wrapped, template).expect("it unwraps");
        assert_eq!(user.bool(back, CKA_DERIVE), agrees);
    }
}

#[test]
fn a_usage_that_is_left_out_serves_the_purpose() {
    let user = User::under(Policy::DEFAULT);
    let kek = user.aes(transport()).expect("a key is made");
    let data = user.aes(vec![on(CKA_ENCRYPT)]).expect("a key is made");
    let base = user.generic(vec![on(CKA_DERIVE)]).expect("a key is made");
    for (key, sign, decrypt) in [(kek, false, false), (data, true, true), (base, false, false)] {
        assert_eq!((user.bool(key, CKA_SIGN), user.bool(key, CKA_DECRYPT)), (sign, decrypt));
    }
}

#[test]
fn a_digested_derivation_key_gives_no_derived_key() {
    let error = refused(|user| {
        let base = user.generic(vec![on(CKA_DERIVE), on(CKA_SIGN)])?;
        user.engine.digest_init(user.session, CKM_SHA256)?;
        user.engine.digest_update(user.session, &[0x36; 64])?;
        user.engine.digest_key(user.session, base)?;
        collect(|out| user.engine.digest_final(user.session, out))?;
        user.derive(hkdf(true, false), base, vec![])?;
        Ok(true)
    });
    // The key signs, so it is digestible, and does not derive.
    assert_eq!(error, Error::KEY_FUNCTION_NOT_PERMITTED);
    let user = User::under(Policy::DEFAULT);
    let base = user.generic(vec![on(CKA_DERIVE)]).expect("a key is made");
    user.engine.digest_init(user.session, CKM_SHA256).expect("a digest begins");
    assert_eq!(user.engine.digest_key(user.session, base), Err(Error::KEY_INDIGESTIBLE));
}

/// One IV for a known key and for the target: the difference of the two gives the target.
#[test]
fn keys_are_not_wrapped_by_gcm_under_an_iv_of_the_caller() {
    let error = refused(|user| {
        let by = user.aes(transport())?;
        let key = user.aes(target())?;
        let known = user.brought(CKK_AES, &[9; 32], vec![])?;
        let (one, other) = (user.wrap(GCM, by, known)?, user.wrap(GCM, by, key)?);
        let value: Vec<u8> = one.iter().zip(&other).take(32).map(|(a, b)| a ^ b ^ 9).collect();
        let copy = user.brought(CKK_AES, &value, vec![])?;
        let zeros = [0; 16];
        Ok(user.cipher(Forward, CTR, copy, &zeros)? == user.cipher(Forward, CTR, key, &zeros)?)
    });
    assert_eq!(error, Error::MECHANISM_INVALID);
}

/// PKCS#8 begins with bytes that are known; a MAC at each length gives the next one.
#[test]
fn a_private_key_does_not_come_back_as_a_secret_one() {
    for policy in [Policy::DEFAULT, Policy::legacy()] {
        let user = User::under(policy);
        let by = user.aes(transport()).expect("a key is made");
        let (_, private) = user.rsa(vec![], vec![on(CKA_EXTRACTABLE)]).expect("a pair is made");
        let wrapped = user.wrap(KWP, by, private).expect("it wraps");
        let whole = user.unwrap(KWP, by, &wrapped, secret(CKK_GENERIC_SECRET));
        let refused = (policy == Policy::DEFAULT).then_some(Error::WRAPPED_KEY_INVALID);
        assert_eq!(whole.err(), refused);
        // The form says how long the key is, under every policy (PKCS#11 3.2 §5.18.4).
        let template = secret(CKK_GENERIC_SECRET).into_iter().chain([row(CKA_VALUE_LEN, 24)]);
        let piece = user.unwrap(KWP, by, &wrapped, template.collect());
        assert_eq!(piece, Err(Error::WRAPPED_KEY_LEN_RANGE));
    }
}

/// A user may make a transport key with any template, so no template makes a second purpose.
#[test]
fn no_template_makes_a_twin_for_another_purpose() {
    let user = User::under(Policy::DEFAULT);
    let derives = || (CKA_UNWRAP_TEMPLATE, RawValue::Template(vec![on(CKA_DERIVE)]));
    let (mut carries, mut signs) = (transport(), target());
    carries.push(derives());
    signs.push(on(CKA_SIGN));
    let by = user.aes(carries).expect("a key is made");
    let key = user.generic(signs).expect("a key is made");
    assert_eq!(user.wrap(KWP, by, key), Err(Error::KEY_NOT_WRAPPABLE));
    let private = vec![on(CKA_UNWRAP), derives()];
    let (public, private) = user.rsa(vec![on(CKA_WRAP)], private).expect("a pair is made");
    assert_eq!(user.wrap(OAEP, public, key), Err(Error::KEY_NOT_WRAPPABLE));
    let own = user.brought(CKK_GENERIC_SECRET, &[1; 32], vec![]).expect("it is brought");
    let wrapped = user.wrap(OAEP, public, own).expect("a readable key may leave");
    let twin = user.unwrap(OAEP, private, &wrapped, secret(CKK_GENERIC_SECRET));
    assert_eq!(twin, Err(Error::KEY_FUNCTION_NOT_PERMITTED));
}

#[test]
fn a_bare_wrap_is_not_two_things_before_the_so_trusts_its_key_and_after() {
    let user = User::under(Policy::DEFAULT);
    let value = [7; 32];
    let sender = user.brought(CKK_AES, &value, vec![on(CKA_WRAP)]).expect("it is brought");
    let key = user.brought(CKK_GENERIC_SECRET, &[1; 32], vec![]).expect("it is brought");
    let wrapped = user.wrap(KWP, sender, key).expect("a readable key may leave");
    let derives = (CKA_UNWRAP_TEMPLATE, RawValue::Template(vec![on(CKA_DERIVE)]));
    let mut kek = vec![on(CKA_UNWRAP), on(CKA_SENSITIVE), on(CKA_TOKEN), derives];
    kek.extend([row(CKA_PRIVATE, false), row(CKA_LABEL, "kek")]);
    let kek = user.brought(CKK_AES, &value, kek).expect("it is brought");
    let before = user.unwrap(KWP, kek, &wrapped, secret(CKK_GENERIC_SECRET));
    assert_eq!(before, Err(Error::KEY_FUNCTION_NOT_PERMITTED));
    let kek = user.trusts("kek").expect("the SO trusts it");
    let twin = user.unwrap(KWP, kek, &wrapped, secret(CKK_GENERIC_SECRET)).expect("it unwraps");
    assert_eq!(user.hmac(twin, b"message"), Err(Error::KEY_FUNCTION_NOT_PERMITTED));
    user.derive(hkdf(false, true), twin, vec![]).expect("it derives");
}

#[test]
fn only_a_secret_key_is_a_salt() {
    for policy in [Policy::DEFAULT, Policy::legacy()] {
        let user = User::under(policy);
        let base =
            user.brought(CKK_GENERIC_SECRET, &[1; 32], vec![on(CKA_DERIVE)]).expect("brought");
        let (_, private) = user.p256(vec![]).expect("a pair is made");
        let derived = user.derive(salted(true, true, private), base, readable());
        assert_eq!(derived, Err(Error::KEY_TYPE_INCONSISTENT));
    }
}

/// Anyone who knows the key can seal any head with it.
#[test]
fn a_forged_bound_wrap_makes_no_key_that_is_trusted() {
    let forged = |user: &User, by, said: &[(u64, Value)]| {
        let said: Attributes = said.iter().cloned().collect();
        let said = said.encode();
        let length = u32::try_from(said.len()).expect("it is short").to_le_bytes();
        let head = [&b"metawrp1"[..], &[9; 12], &length, &said].concat();
        let aad = [b"aad", &head[..], &3_u64.to_le_bytes()].concat();
        let params = || Params::Gcm {
            iv: Bytes::from_slice(&[9; 12]),
            aad: Bytes::from_slice(&aad),
            tag_bits: 128,
        };
        let sealed = user.cipher(Forward, (CKM_AES_GCM, params), by, &[5; 32])?;
        user.unwrap(BOUND, by, &[head, sealed].concat(), secret(CKK_AES))
    };
    let purposes = Value::Ulong(16 | 32 | 64);
    let wraps = [(CKA_WRAP, Value::Bool(true)), (CKA_PURPOSES, purposes)];
    for more in
        [None, Some(CKA_TRUSTED), Some(CKA_LOCAL), Some(CKA_BIRTH_ROLES), Some(CKA_KEY_TYPE)]
    {
        let user = User::under(Policy::DEFAULT);
        let by = user
            .brought(CKK_AES, &[3; 32], vec![on(CKA_ENCRYPT), on(CKA_UNWRAP)])
            .expect("brought");
        let target = user.aes(target()).expect("a key is made");
        let mut said = wraps.to_vec();
        said.extend(more.map(|attribute| (attribute, Value::Bool(true))));
        match forged(&user, by, &said) {
            Ok(known) => assert_eq!(user.wrap(KW, known, target), Err(Error::KEY_NOT_WRAPPABLE)),
            Err(error) => assert_eq!(error, Error::WRAPPED_KEY_INVALID),
        }
    }
    let user = User::under(Policy::legacy());
    let by =
        user.brought(CKK_AES, &[3; 32], vec![on(CKA_ENCRYPT), on(CKA_UNWRAP)]).expect("brought");
    let said = [&wraps[..], &[(CKA_TRUSTED, Value::Bool(true))]].concat();
    assert_eq!(forged(&user, by, &said), Err(Error::WRAPPED_KEY_INVALID));
    let every = [(CKA_PURPOSES, Value::Ulong(63))];
    assert_eq!(forged(&user, by, &every), Err(Error::WRAPPED_KEY_INVALID), "one purpose");
}

#[test]
fn a_bare_wrap_takes_no_key_with_restrictions() {
    let restricted: [fn() -> Template; 4] = [
        || vec![row(CKA_SIGN, false)],
        || vec![row(CKA_COPYABLE, false)],
        || vec![on(CKA_DERIVE)],
        || vec![row(CKA_ALLOWED_MECHANISMS, &CKM_AES_CTR.to_ne_bytes()[..])],
    ];
    for more in restricted {
        let user = User::under(Policy::DEFAULT);
        let by = user.aes(transport()).expect("a key is made");
        let mut template = target();
        template.extend(more());
        let key = user.aes(template).expect("a key is made");
        assert_eq!(user.wrap(KWP, by, key), Err(Error::KEY_NOT_WRAPPABLE));
        let wrapped = user.wrap(BOUND, by, key).expect("a bound wrap says what it is");
        user.unwrap(BOUND, by, &wrapped, secret(CKK_AES)).expect("it unwraps");
    }
}

#[test]
fn a_bound_wrap_comes_back_as_no_more_than_it_was() {
    let user = User::under(Policy::DEFAULT);
    let by = user.aes(transport()).expect("a key is made");
    let mut template = target();
    template.extend([row(CKA_SIGN, false), row(CKA_COPYABLE, false)]);
    let key = user.aes(template).expect("a key is made");
    let wrapped = user.wrap(BOUND, by, key).expect("it wraps");
    let back = user.unwrap(BOUND, by, &wrapped, secret(CKK_AES)).expect("it unwraps");
    assert!(!user.bool(back, CKA_SIGN) && !user.bool(back, CKA_COPYABLE));
    assert!(user.bool(back, CKA_SENSITIVE) && user.bool(back, CKA_DECRYPT));
    for more in [on(CKA_SIGN), row(CKA_SENSITIVE, false), on(CKA_COPYABLE), on(CKA_WRAP)] {
        let mut template = secret(CKK_AES);
        template.push(more);
        let opened = user.unwrap(BOUND, by, &wrapped, template);
        assert_eq!(opened, Err(Error::TEMPLATE_INCONSISTENT));
    }
    let mut less = secret(CKK_AES);
    less.extend([row(CKA_EXTRACTABLE, false), row(CKA_DECRYPT, false)]);
    user.unwrap(BOUND, by, &wrapped, less).expect("less than it was");
    let mut changed = wrapped.clone();
    // The description is authenticated with the key: SIGN cannot be written into it.
    let at = changed.iter().rposition(|byte| *byte == 0).expect("there is a false");
    changed[at] ^= 1;
    let opened = user.unwrap(BOUND, by, &changed, secret(CKK_AES));
    assert_eq!(opened, Err(Error::WRAPPED_KEY_INVALID));
    let other = |aad: &'static [u8]| {
        move || Params::Gcm { iv: Bytes::new(), aad: Bytes::from_slice(aad), tag_bits: 128 }
    };
    let opened = user.unwrap((CKM_AES_GCM, other(b"else")), by, &wrapped, secret(CKK_AES));
    assert_eq!(opened, Err(Error::WRAPPED_KEY_INVALID));
}

/// RFC 5869: expanding what extraction gave is what both steps give together.
#[test]
fn what_hkdf_extracts_is_for_derivation_only() {
    let error = refused(|user| {
        let base = user.generic(vec![on(CKA_DERIVE)])?;
        let derived = user.derive(hkdf(true, true), base, vec![on(CKA_SIGN)])?;
        let extracted = user.derive(hkdf(true, false), base, vec![on(CKA_SIGN)])?;
        let block = [&b"info"[..], &[1]].concat();
        let copy = user.brought(CKK_GENERIC_SECRET, &user.hmac(extracted, &block)?, vec![])?;
        Ok(user.hmac(derived, b"x")? == user.hmac(copy, b"x")?)
    });
    assert_eq!(error, Error::KEY_FUNCTION_NOT_PERMITTED);
    let user = User::under(Policy::DEFAULT);
    let base = user.generic(vec![on(CKA_DERIVE)]).expect("a key is made");
    let extracted = user.derive(hkdf(true, false), base, vec![on(CKA_DERIVE)]).expect("extracted");
    let derived = user.derive(hkdf(false, true), extracted, vec![]).expect("expanded");
    user.hmac(derived, b"x").expect("it signs");
}

#[test]
fn a_protected_key_is_no_salt() {
    let error = refused(|user| {
        let base = user.generic(vec![on(CKA_DERIVE)])?;
        let derived = user.derive(hkdf(false, true), base, vec![on(CKA_SIGN)])?;
        let message = [&b"info"[..], &[1]].concat();
        let known = user.brought(CKK_GENERIC_SECRET, &message, vec![on(CKA_DERIVE)])?;
        let copy = user.derive(salted(true, false, base), known, readable())?;
        Ok(user.hmac(derived, b"x")? == user.hmac(copy, b"x")?)
    });
    assert_eq!(error, Error::KEY_FUNCTION_NOT_PERMITTED);
}

#[test]
fn what_is_derived_does_not_derive_or_carry_keys() {
    for usage in [CKA_DERIVE, CKA_WRAP] {
        let user = User::under(Policy::DEFAULT);
        let base = user.generic(vec![on(CKA_DERIVE)]).expect("a key is made");
        let derived = user.derive(hkdf(true, true), base, vec![on(usage)]).expect("derived");
        let key = user.aes(readable()).expect("a key is made");
        let used = match usage {
            CKA_DERIVE => user.derive(hkdf(true, true), derived, vec![]).map(drop),
            _ => user.wrap(KW, derived, key).map(drop),
        };
        assert!(used.is_err(), "{usage:#x}");
    }
}

#[test]
fn a_derive_template_says_what_all_results_are_for() {
    let user = User::under(Policy::DEFAULT);
    let imposed = vec![(CKA_DERIVE_TEMPLATE, RawValue::Template(vec![on(CKA_DERIVE)]))];
    let mut template = vec![on(CKA_DERIVE)];
    template.extend(imposed);
    let base = user.generic(template).expect("a key is made");
    let derived = user.derive(hkdf(true, true), base, vec![]).expect("derived");
    user.derive(hkdf(true, true), derived, vec![]).expect("derived again");
    let signs = user.derive(hkdf(true, true), base, vec![on(CKA_SIGN)]).expect("derived");
    assert_eq!(user.hmac(signs, b"x"), Err(Error::KEY_FUNCTION_NOT_PERMITTED));
}

/// Twins of one key for two purposes: one of them carries keys, the other opens what it carries.
#[test]
fn a_derived_key_imposes_nothing_of_the_callers() {
    let error = refused(|user| {
        let imposes = |what: TemplateRow| (CKA_DERIVE_TEMPLATE, RawValue::Template(vec![what]));
        let base = user.generic(vec![on(CKA_DERIVE), imposes(on(CKA_DERIVE))])?;
        let made = |template| user.derive(hkdf(false, true), base, template);
        let twins = [made(vec![imposes(on(CKA_WRAP))])?, made(vec![])?];
        let aes = |base| {
            let mut template = secret(CKK_AES);
            template.push(row(CKA_VALUE_LEN, 32));
            let params = hkdf(false, true);
            let mechanism = CKM_HKDF_DERIVE;
            user.engine.derive_key(user.session, mechanism, params, base, template)
        };
        let (wraps, decrypts) = (aes(twins[0])?.0, aes(twins[1])?.0);
        let wrapped = user.wrap(KW, wraps, user.aes(target())?)?;
        user.cipher(Backward, KW, decrypts, &wrapped).map(|value| value.len() == 32)
    });
    assert_eq!(error, Error::TEMPLATE_INCONSISTENT);
}

/// What the base key's own template says may be said again.
#[test]
fn a_derive_template_may_hold_the_next_one() {
    let user = User::under(Policy::DEFAULT);
    let next = || (CKA_DERIVE_TEMPLATE, RawValue::Template(vec![on(CKA_SIGN)]));
    let first = (CKA_DERIVE_TEMPLATE, RawValue::Template(vec![on(CKA_DERIVE), next()]));
    let base = user.generic(vec![on(CKA_DERIVE), first]).expect("a key is made");
    for said in [vec![], vec![next()]] {
        let middle = user.derive(hkdf(true, true), base, said).expect("derived");
        let signs = user.derive(hkdf(true, true), middle, vec![]).expect("derived again");
        user.hmac(signs, b"x").expect("it signs");
    }
}

#[test]
fn what_a_key_imposes_cannot_be_said_otherwise() {
    for policy in [Policy::DEFAULT, Policy::legacy()] {
        let user = User::under(policy);
        let imposed = RawValue::Template(vec![on(CKA_SIGN), row(CKA_VERIFY, false)]);
        let mut template = vec![on(CKA_WRAP), on(CKA_UNWRAP)];
        template.push((CKA_UNWRAP_TEMPLATE, imposed));
        let by = user.aes(template).expect("a key is made");
        let key = user.aes(target()).expect("a key is made");
        let wrapped = user.wrap(KW, by, key).expect("it wraps");
        let said = |row| {
            let mut template = secret(CKK_AES);
            template.extend(row);
            user.unwrap(KW, by, &wrapped, template)
        };
        for other in [row(CKA_SIGN, false), on(CKA_VERIFY)] {
            assert_eq!(said(Some(other)), Err(Error::TEMPLATE_INCONSISTENT));
        }
        for same in [Some(on(CKA_SIGN)), None] {
            let back = said(same).expect("it unwraps");
            assert!(user.bool(back, CKA_SIGN) && !user.bool(back, CKA_VERIFY));
        }
    }
}

#[test]
fn keys_of_a_readable_base_are_readable_by_default() {
    let user = User::under(Policy::DEFAULT);
    let base = user.brought(CKK_GENERIC_SECRET, &[1; 32], vec![on(CKA_DERIVE)]).expect("brought");
    let mut template = secret(CKK_GENERIC_SECRET);
    template.push(row(CKA_VALUE_LEN, 12));
    let (short, _) = user
        .engine
        .derive_key(user.session, CKM_HKDF_DERIVE, hkdf(true, true), base, template)
        .expect("a key of 12 bytes");
    assert_eq!(user.value(short).map(|value| value.len()), Ok(12));
}

#[test]
fn a_key_made_of_a_password_wraps_no_protected_key() {
    let user = User::under(Policy::DEFAULT);
    let params = Params::Pbkd2 {
        prf: CKP_PKCS5_PBKD2_HMAC_SHA256,
        salt: Bytes::from_slice(b"salt"),
        iterations: 10,
        password: metaslot_memory::Secret::copy_of(b"password"),
    };
    let mut template = vec![row(CKA_KEY_TYPE, CKK_AES), row(CKA_VALUE_LEN, 32)];
    template.extend(transport());
    let by = user
        .engine
        .generate_key(user.session, CKM_PKCS5_PBKD2, params, template)
        .expect("a key is made");
    let key = user.aes(target()).expect("a key is made");
    assert_eq!(user.wrap(KW, by, key), Err(Error::KEY_NOT_WRAPPABLE));
}

/// What is derived from one is known to all who know the password, too.
#[test]
fn a_key_derived_from_a_password_wraps_no_protected_key() {
    let user = User::under(Policy::DEFAULT);
    let params = Params::Pbe {
        password: metaslot_memory::Secret::copy_of(b"password"),
        salt: Bytes::from_slice(b"salt"),
        iterations: 10,
        beside: std::sync::Arc::default(),
    };
    let imposed = vec![on(CKA_WRAP), on(CKA_SENSITIVE), row(CKA_EXTRACTABLE, false)];
    let base = vec![on(CKA_DERIVE), (CKA_DERIVE_TEMPLATE, RawValue::Template(imposed))];
    let base = user
        .engine
        .generate_key(user.session, CKM_PBA_SHA1_WITH_SHA1_HMAC, params, base)
        .expect("a key is made");
    let mut template = secret(CKK_AES);
    template.push(row(CKA_VALUE_LEN, 16));
    let (by, _) = user
        .engine
        .derive_key(user.session, CKM_HKDF_DERIVE, hkdf(true, true), base, template)
        .expect("it derives");
    let mut key = target();
    key.push(row(CKA_VALUE_LEN, 16));
    let key = user.engine.generate_key(user.session, CKM_AES_KEY_GEN, Params::None, key);
    assert_eq!(user.wrap(KW, by, key.expect("a key is made")), Err(Error::KEY_NOT_WRAPPABLE));
    assert!(!user.bool(base, CKA_ALWAYS_SENSITIVE) && !user.bool(base, CKA_NEVER_EXTRACTABLE));
}

#[test]
fn unwrapped_keys_neither_open_nor_carry_others() {
    for usage in [CKA_UNWRAP, CKA_WRAP, CKA_DERIVE] {
        let user = User::under(Policy::DEFAULT);
        let by = user.aes(transport()).expect("a key is made");
        let key = user.aes(target()).expect("a key is made");
        let wrapped = user.wrap(KW, by, key).expect("it wraps");
        let derives = usage == CKA_DERIVE;
        let mut template = secret(if derives { CKK_GENERIC_SECRET } else { CKK_AES });
        template.extend([on(usage), row(CKA_DECRYPT, false)]);
        let back = user.unwrap(KW, by, &wrapped, template).expect("the usage can be stated");
        let used = match usage {
            CKA_WRAP => user.wrap(KW, back, key).map(drop),
            CKA_UNWRAP => user.unwrap(KW, back, &wrapped, secret(CKK_AES)).map(drop),
            _ => user.derive(hkdf(true, true), back, vec![]).map(drop),
        };
        assert!(used.is_err_and(|error| error
            == match usage {
                CKA_WRAP => Error::KEY_NOT_WRAPPABLE,
                _ => Error::KEY_FUNCTION_NOT_PERMITTED,
            }));
    }
}

/// One block under AES key wrap with padding is one block of AES, which GCM computes with.
#[test]
fn no_short_key_is_wrapped_by_a_protected_one() {
    let user = User::under(Policy::DEFAULT);
    let by = user.aes(transport()).expect("a key is made");
    let short = user.brought(CKK_GENERIC_SECRET, &[1; 8], vec![]).expect("a key is brought");
    assert_eq!(user.wrap(KWP, by, short), Err(Error::KEY_SIZE_RANGE));
}

#[test]
fn the_two_kinds_of_aes_key_wrap_are_not_taken_for_each_other() {
    let user = User::under(Policy::DEFAULT);
    let by = user.aes(transport()).expect("a key is made");
    let key = user.generic(target()).expect("a key is made");
    let wrapped = user.wrap(KWP, by, key).expect("it wraps");
    let iv = || Params::Iv(Bytes::from_slice(&[0xa6, 0x59, 0x59, 0xa6, 0, 0, 0, 32]));
    let opened = user.unwrap((CKM_AES_KEY_WRAP, iv), by, &wrapped, secret(CKK_GENERIC_SECRET));
    assert_eq!(opened, Err(Error::MECHANISM_INVALID));
}

#[test]
fn a_key_that_wants_its_login_for_each_use_agrees_on_nothing() {
    let user = User::under(Policy::DEFAULT);
    let private = vec![on(CKA_ALWAYS_AUTHENTICATE)];
    let (public, private) = user.p256(private).expect("a pair is made");
    let point = user.engine.object(user.session, public).expect("it is there");
    let Ok(Answer::Value(Value::Bytes(point))) = point.answer(CKA_EC_POINT) else {
        panic!("a public key has a point")
    };
    let (shared, public) = (Bytes::new(), Bytes::from_slice(point));
    let params = Params::Ecdh1 { kdf: CKD_NULL, shared, public };
    let template = secret(CKK_GENERIC_SECRET);
    let agreed = user.engine.derive_key(user.session, CKM_ECDH1_DERIVE, params, private, template);
    assert_eq!(agreed.map(|keys| keys.0), Err(Error::USER_NOT_LOGGED_IN));
}

#[test]
fn what_a_private_key_opens_is_not_public() {
    let user = User::under(Policy::DEFAULT);
    let by = user.aes(transport()).expect("a key is made");
    assert!(user.bool(by, CKA_PRIVATE));
    let key = user.aes(target()).expect("a key is made");
    let wrapped = user.wrap(KW, by, key).expect("it wraps");
    let mut template = secret(CKK_AES);
    template.push(row(CKA_PRIVATE, false));
    let opened = user.unwrap(KW, by, &wrapped, template);
    assert_eq!(opened, Err(Error::TEMPLATE_INCONSISTENT));
}

#[test]
fn a_policy_names_what_reopens_a_refusal() {
    let user = User::under(Policy::DEFAULT);
    let by = user.brought(CKK_AES, &[1; 32], vec![on(CKA_WRAP), on(CKA_SENSITIVE)]);
    let key = user.aes(target()).expect("a key is made");
    let wrapped = user.wrap(KW, by.expect("a key is brought"), key);
    assert_eq!(wrapped, Err(Error::KEY_NOT_WRAPPABLE));
    metaslot_spi::detail::failed();
    metaslot_spi::detail::with(|said| assert!(said.contains("wrap-untrusted"), "{said}"));
}
