// SPDX-License-Identifier: Apache-2.0
//! Attacks on the interface: each works under `legacy`, or its refusal would mean nothing, and is
//! refused under the default policy (Clulow 2003; Bortolozzo et al. 2010; Bardou et al. 2012).

use metaslot_ck::*;
use metaslot_engine::{Answer, Engine, Policy};
use metaslot_models::{aes, collect, engine, logged_in, logged_in_under, open, row};
use metaslot_spi::provider::Direction::{Backward, Forward};
use metaslot_spi::{Bytes, Params, RawValue, Template, Value};

/// Runs an attack under both policies: it must read or inject a key under `legacy`, and be refused
/// under the default policy with this error.
fn refused_by_default(refusal: Error, attack: impl Fn(&Engine, SessionHandle) -> Result<()>) {
    for (policy, works) in [(Policy::legacy(), true), (Policy::DEFAULT, false)] {
        let (engine, session) = logged_in_under(policy);
        match attack(&engine, session) {
            Ok(()) => assert!(works, "the attack works under the default policy"),
            Err(error) if works => panic!("the attack fails under legacy: {error}"),
            Err(error) => assert_eq!(error, refusal),
        }
    }
}

fn sensitive(engine: &Engine, session: SessionHandle) -> Result<ObjectHandle> {
    aes(engine, session, vec![row(CKA_SENSITIVE, true), row(CKA_EXTRACTABLE, true)])
}

fn wrap(
    engine: &Engine,
    session: SessionHandle,
    mechanism: CK_MECHANISM_TYPE,
    by: ObjectHandle,
    key: ObjectHandle,
) -> Result<Vec<u8>> {
    let params = || match mechanism {
        CKM_AES_CBC_PAD => Params::Iv(Bytes::from_slice(&[0; 16])),
        _ => Params::None,
    };
    collect(|out| engine.wrap_key(session, mechanism, params(), by, key, out))
}

fn unwrap(
    engine: &Engine,
    session: SessionHandle,
    by: ObjectHandle,
    wrapped: &[u8],
    more: Template,
) -> Result<ObjectHandle> {
    let mut template = vec![row(CKA_CLASS, CKO_SECRET_KEY), row(CKA_KEY_TYPE, CKK_AES)];
    template.extend(more);
    engine.unwrap_key(session, CKM_AES_KEY_WRAP, Params::None, by, wrapped, template)
}

fn read(engine: &Engine, session: SessionHandle, key: ObjectHandle) -> Result<()> {
    let object = engine.object(session, key)?;
    match object.answer(CKA_VALUE)? {
        Answer::Secret(_) => Ok(()),
        Answer::Value(_) => Err(Error::GENERAL_ERROR),
    }
}

#[test]
fn wrap_then_decrypt_reads_no_key() {
    refused_by_default(Error::KEY_NOT_WRAPPABLE, |engine, session| {
        let both = aes(engine, session, vec![row(CKA_WRAP, true), row(CKA_DECRYPT, true)])?;
        let key = sensitive(engine, session)?;
        let wrapped = wrap(engine, session, CKM_AES_CBC_PAD, both, key)?;
        let iv = Params::Iv(Bytes::from_slice(&[0; 16]));
        engine.cipher_init(Backward, session, CKM_AES_CBC_PAD, iv, both)?;
        let plain = collect(|out| engine.cipher(Backward, session, &wrapped, out))?;
        assert_eq!(plain.len(), 32, "the value of the sensitive key");
        Ok(())
    });
}

#[test]
fn a_role_cannot_be_switched_on_later() {
    refused_by_default(Error::ATTRIBUTE_READ_ONLY, |engine, session| {
        let by = aes(engine, session, vec![row(CKA_WRAP, true), row(CKA_DECRYPT, false)])?;
        engine.set_attributes(session, by, vec![row(CKA_WRAP, false)])?;
        engine.set_attributes(session, by, vec![row(CKA_DECRYPT, true)])
    });
}

#[test]
fn a_copy_without_a_role_does_not_forget_it() {
    refused_by_default(Error::KEY_NOT_WRAPPABLE, |engine, session| {
        let both = aes(engine, session, vec![row(CKA_WRAP, true), row(CKA_DECRYPT, true)])?;
        let copy = engine.copy_object(session, both, vec![row(CKA_DECRYPT, false)])?;
        let key = sensitive(engine, session)?;
        wrap(engine, session, CKM_AES_KEY_WRAP, copy, key).map(drop)
    });
}

/// The known key can come in, as `C_CreateObject` can bring it, and carries nothing out.
#[test]
fn encrypt_then_unwrap_injects_no_wrapping_key() {
    refused_by_default(Error::KEY_NOT_WRAPPABLE, |engine, session| {
        let both = aes(engine, session, vec![row(CKA_UNWRAP, true), row(CKA_ENCRYPT, true)])?;
        let iv = || Params::Iv(Bytes::from_slice(&[0; 16]));
        engine.cipher_init(Forward, session, CKM_AES_CBC_PAD, iv(), both)?;
        let known = collect(|out| engine.cipher(Forward, session, &[9; 32], out))?;
        let template = vec![
            row(CKA_CLASS, CKO_SECRET_KEY),
            row(CKA_KEY_TYPE, CKK_AES),
            row(CKA_WRAP, true),
            row(CKA_SENSITIVE, true),
        ];
        let by = engine.unwrap_key(session, CKM_AES_CBC_PAD, iv(), both, &known, template)?;
        let key = sensitive(engine, session)?;
        wrap(engine, session, CKM_AES_KEY_WRAP, by, key).map(drop)
    });
}

/// A key that may wrap and unwrap and nothing else.
fn wrapper(engine: &Engine, session: SessionHandle) -> Result<ObjectHandle> {
    let roles = vec![
        row(CKA_WRAP, true),
        row(CKA_UNWRAP, true),
        row(CKA_ENCRYPT, false),
        row(CKA_DECRYPT, false),
    ];
    aes(engine, session, roles)
}

#[test]
fn a_sensitive_key_is_not_unwrapped_into_an_open_one() {
    refused_by_default(Error::TEMPLATE_INCONSISTENT, |engine, session| {
        let by = wrapper(engine, session)?;
        let open =
            aes(engine, session, vec![row(CKA_SENSITIVE, false), row(CKA_EXTRACTABLE, true)])?;
        let wrapped = wrap(engine, session, CKM_AES_KEY_WRAP, by, open)?;
        let more = vec![row(CKA_SENSITIVE, false), row(CKA_EXTRACTABLE, true)];
        let key = unwrap(engine, session, by, &wrapped, more)?;
        read(engine, session, key)
    });
}

#[test]
fn a_sensitive_key_is_not_wrapped_by_a_key_that_the_user_brought() {
    refused_by_default(Error::KEY_NOT_WRAPPABLE, |engine, session| {
        let brought = vec![
            row(CKA_CLASS, CKO_SECRET_KEY),
            row(CKA_KEY_TYPE, CKK_AES),
            row(CKA_VALUE, &[1u8; 32][..]),
            row(CKA_WRAP, true),
            row(CKA_ENCRYPT, false),
            row(CKA_DECRYPT, false),
        ];
        let by = engine.create_object(session, brought)?;
        let key = sensitive(engine, session)?;
        wrap(engine, session, CKM_AES_KEY_WRAP, by, key).map(drop)
    });
}

/// PKCS#11 3.2 §4.1, footnote 10: under every policy, at birth, later, and inside a template.
#[test]
fn only_the_so_trusts() {
    for policy in [Policy::legacy(), Policy::DEFAULT] {
        let (engine, session) = logged_in_under(policy);
        let refused = Err(Error::ATTRIBUTE_READ_ONLY);
        let trusted = || vec![row(CKA_TRUSTED, true), row(CKA_WRAP, true)];
        assert_eq!(aes(&engine, session, trusted()), refused);
        let key = aes(&engine, session, vec![row(CKA_WRAP, true)]).expect("a key is made");
        let set = engine.set_attributes(session, key, vec![row(CKA_TRUSTED, true)]);
        assert_eq!(set, Err(Error::ATTRIBUTE_READ_ONLY));
        for template in [CKA_UNWRAP_TEMPLATE, CKA_DERIVE_TEMPLATE] {
            let imposed = vec![(template, RawValue::Template(trusted()))];
            assert_eq!(aes(&engine, session, imposed), refused);
        }
    }
}

#[test]
fn a_strong_key_is_not_wrapped_by_a_weak_one() {
    refused_by_default(Error::WRAPPING_KEY_SIZE_RANGE, |engine, session| {
        let weak = vec![
            row(CKA_VALUE_LEN, 16),
            row(CKA_WRAP, true),
            row(CKA_ENCRYPT, false),
            row(CKA_DECRYPT, false),
        ];
        let weak = engine.generate_key(session, CKM_AES_KEY_GEN, Params::None, weak)?;
        let key = sensitive(engine, session)?;
        wrap(engine, session, CKM_AES_KEY_WRAP, weak, key).map(drop)
    });
}

#[test]
fn short_tags_are_refused() {
    refused_by_default(Error::MECHANISM_PARAM_INVALID, |engine, session| {
        let key = aes(engine, session, vec![])?;
        let iv = Bytes::from_slice(&[0; 12]);
        let params = Params::Gcm { iv, aad: Bytes::new(), tag_bits: 32 };
        engine.cipher_init(Forward, session, CKM_AES_GCM, params, key)
    });
    refused_by_default(Error::MECHANISM_PARAM_INVALID, |engine, session| {
        let key = vec![row(CKA_VALUE_LEN, 32)];
        let key = engine.generate_key(session, CKM_GENERIC_SECRET_KEY_GEN, Params::None, key)?;
        engine.sign_init(session, CKM_SHA256_HMAC_GENERAL, Params::Ulong(4), key)
    });
}

/// IPsec, SRTP and TLS with CCM_8 have tags of 64 to 80 bits.
#[test]
fn macs_of_half_a_block_are_made_and_verified() {
    let engine = engine(Policy::DEFAULT);
    let session = open(&engine);
    let key = vec![row(CKA_VALUE_LEN, 32)];
    let mechanism = CKM_GENERIC_SECRET_KEY_GEN;
    let key = engine.generate_key(session, mechanism, Params::None, key).expect("a key is made");
    for (length, served) in [(7, false), (8, true), (10, true)] {
        let mechanism = CKM_SHA256_HMAC_GENERAL;
        let signed = engine.sign_init(session, mechanism, Params::Ulong(length), key);
        assert_eq!(signed.is_ok(), served, "{length}");
        let verified = engine.verify_init(session, mechanism, Params::Ulong(length), key);
        assert_eq!(verified.is_ok(), served, "{length}");
        engine.session_cancel(session, CKF_SIGN | CKF_VERIFY).expect("there is a session");
    }
    for (tag, served) in [(6, false), (8, true)] {
        let key = aes(&engine, session, vec![]).expect("a key is made");
        let nonce = Bytes::from_slice(&[0; 12]);
        let params = Params::Ccm { data_length: 16, nonce, aad: Bytes::new(), mac_length: tag };
        let begun = engine.cipher_init(Forward, session, CKM_AES_CCM, params, key);
        assert_eq!(begun.is_ok(), served, "{tag}");
        engine.session_cancel(session, CKF_ENCRYPT).expect("there is a session");
    }
}

#[test]
fn padding_oracles_are_shut() {
    refused_by_default(Error::MECHANISM_INVALID, |engine, session| {
        let by = wrapper(engine, session)?;
        let open =
            aes(engine, session, vec![row(CKA_SENSITIVE, false), row(CKA_EXTRACTABLE, true)])?;
        wrap(engine, session, CKM_AES_CBC_PAD, by, open).map(drop)
    });
}

fn hkdf(length: u64, more: Template) -> (Params, Template) {
    let params = Params::Hkdf {
        extract: true,
        expand: true,
        prf: CKM_SHA256,
        salt_type: CKF_HKDF_SALT_NULL,
        salt: Bytes::new(),
        salt_key: ObjectHandle(0),
        info: Bytes::from_slice(b"info"),
    };
    let mut template = vec![
        row(CKA_CLASS, CKO_SECRET_KEY),
        row(CKA_KEY_TYPE, CKK_GENERIC_SECRET),
        row(CKA_VALUE_LEN, length),
    ];
    template.extend(more);
    (params, template)
}

fn base(engine: &Engine, session: SessionHandle) -> Result<ObjectHandle> {
    let key = vec![row(CKA_VALUE_LEN, 32), row(CKA_DERIVE, true), row(CKA_SENSITIVE, true)];
    engine.generate_key(session, CKM_GENERIC_SECRET_KEY_GEN, Params::None, key)
}

/// One that can be read has nothing to guess.
#[test]
fn short_keys_are_not_generated() {
    let short = |engine: &Engine, session, more: Template| {
        let mut template = vec![row(CKA_VALUE_LEN, 13)];
        template.extend(more);
        let mechanism = CKM_GENERIC_SECRET_KEY_GEN;
        engine.generate_key(session, mechanism, Params::None, template).map(drop)
    };
    refused_by_default(Error::ATTRIBUTE_VALUE_INVALID, |engine, session| {
        short(engine, session, vec![])
    });
    let (engine, session) = logged_in();
    let readable = vec![row(CKA_SENSITIVE, false), row(CKA_EXTRACTABLE, true)];
    short(&engine, session, readable).expect("a key is made");
}

#[test]
fn short_keys_are_not_derived() {
    refused_by_default(Error::KEY_SIZE_RANGE, |engine, session| {
        let base = base(engine, session)?;
        let (params, template) = hkdf(1, vec![]);
        engine.derive_key(session, CKM_HKDF_DERIVE, params, base, template).map(drop)
    });
}

#[test]
fn nothing_readable_is_derived_from_a_sensitive_secret() {
    refused_by_default(Error::TEMPLATE_INCONSISTENT, |engine, session| {
        let base = base(engine, session)?;
        let (params, template) =
            hkdf(32, vec![row(CKA_SENSITIVE, false), row(CKA_EXTRACTABLE, true)]);
        let (key, _) = engine.derive_key(session, CKM_HKDF_DERIVE, params, base, template)?;
        read(engine, session, key)
    });
}

#[test]
fn weak_rsa_keys_are_not_made() {
    refused_by_default(Error::ATTRIBUTE_VALUE_INVALID, |engine, session| {
        let public = vec![row(CKA_MODULUS_BITS, 1024)];
        let mechanism = CKM_RSA_PKCS_KEY_PAIR_GEN;
        engine.generate_key_pair(session, mechanism, Params::None, public, vec![]).map(drop)
    });
    refused_by_default(Error::ATTRIBUTE_VALUE_INVALID, |engine, session| {
        let public = vec![row(CKA_MODULUS_BITS, 2048), row(CKA_PUBLIC_EXPONENT, &[3u8][..])];
        let mechanism = CKM_RSA_PKCS_KEY_PAIR_GEN;
        engine.generate_key_pair(session, mechanism, Params::None, public, vec![]).map(drop)
    });
}

#[test]
fn keys_on_weak_curves_are_not_made() {
    let oids = [1, 2, 15].map(|last| vec![0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, last]);
    let names = ["sect163k1", "sect163r1", "sect163r2", "K-163", "B-163"]
        .map(|name| [&[0x13, name.len().to_le_bytes()[0]], name.as_bytes()].concat());
    for params in oids.into_iter().chain(names) {
        let make = |policy| {
            let (engine, session) = logged_in_under(policy);
            let public = vec![row(CKA_EC_PARAMS, params.as_slice())];
            let mechanism = CKM_EC_KEY_PAIR_GEN;
            engine.generate_key_pair(session, mechanism, Params::None, public, vec![]).err()
        };
        assert_eq!(make(Policy::DEFAULT), Some(Error::ATTRIBUTE_VALUE_INVALID), "{params:02x?}");
        assert_ne!(make(Policy::legacy()), Some(Error::ATTRIBUTE_VALUE_INVALID), "{params:02x?}");
    }
}

/// A triple DES key from outside.
fn old_key(engine: &Engine, session: SessionHandle) -> Result<ObjectHandle> {
    let template = vec![
        row(CKA_CLASS, CKO_SECRET_KEY),
        row(CKA_KEY_TYPE, CKK_DES3),
        row(CKA_VALUE, &[0x01; 24][..]),
    ];
    engine.create_object(session, template)
}

#[test]
fn nothing_new_is_made_with_old_ciphers() {
    for mechanism in [CKM_DES2_KEY_GEN, CKM_DES3_KEY_GEN, CKM_RC4_KEY_GEN] {
        refused_by_default(Error::MECHANISM_INVALID, |engine, session| {
            let length = (mechanism == CKM_RC4_KEY_GEN).then(|| row(CKA_VALUE_LEN, 16));
            let template = length.into_iter().collect();
            engine.generate_key(session, mechanism, Params::None, template).map(drop)
        });
    }
    refused_by_default(Error::MECHANISM_INVALID, |engine, session| {
        let key = old_key(engine, session)?;
        engine.cipher_init(Forward, session, CKM_DES3_ECB, Params::None, key)
    });
    refused_by_default(Error::MECHANISM_INVALID, |engine, session| {
        let base = base(engine, session)?;
        derived_old_key(engine, session, base).map(drop)
    });
}

/// A triple DES key out of another secret, without a word of its length.
fn derived_old_key(
    engine: &Engine,
    session: SessionHandle,
    base: ObjectHandle,
) -> Result<ObjectHandle> {
    let (params, _) = hkdf(24, vec![]);
    let template = vec![row(CKA_CLASS, CKO_SECRET_KEY), row(CKA_KEY_TYPE, CKK_DES3)];
    Ok(engine.derive_key(session, CKM_HKDF_DERIVE, params, base, template)?.0)
}

/// PKCS#11 3.2 §6.18.2, §6.18.3; vectors of others do not always have it.
#[test]
fn des_keys_that_are_brought_have_parity() {
    let import = |policy, key_type: u64, value: &[u8]| {
        let engine = engine(policy);
        let session = open(&engine);
        let template = vec![
            row(CKA_CLASS, CKO_SECRET_KEY),
            row(CKA_KEY_TYPE, key_type),
            row(CKA_VALUE, value),
        ];
        engine.create_object(session, template).map(drop)
    };
    for at in 0..24 {
        let mut value = [0x01; 24];
        value[at] ^= 0x80;
        let refused = Err(Error::ATTRIBUTE_VALUE_INVALID);
        assert_eq!(import(Policy::DEFAULT, CKK_DES3, &value), refused);
        let two = if at < 16 { refused } else { Ok(()) };
        assert_eq!(import(Policy::DEFAULT, CKK_DES2, &value[..16]), two);
        assert_eq!(import(Policy::legacy(), CKK_DES3, &value), Ok(()));
        value[at] ^= 0x01;
        assert_eq!(import(Policy::DEFAULT, CKK_DES3, &value), Ok(()));
    }
}

#[test]
fn what_was_sealed_with_old_ciphers_is_opened() {
    let (engine, session) = logged_in();
    let key = old_key(&engine, session).expect("a key is imported");
    engine.cipher_init(Backward, session, CKM_DES3_ECB, Params::None, key).expect("it begins");
}

#[test]
fn keys_of_old_ciphers_have_parity_made_here_or_brought_in() {
    let (engine, session) = logged_in_under(Policy::legacy());
    let open = || vec![row(CKA_SENSITIVE, false), row(CKA_EXTRACTABLE, true)];
    let made = |mechanism| engine.generate_key(session, mechanism, Params::None, open());
    let mut template = vec![row(CKA_CLASS, CKO_SECRET_KEY), row(CKA_KEY_TYPE, CKK_DES3)];
    template.extend(open());
    let base = base(&engine, session).expect("a key is made");
    let derived = engine.derive_key(session, CKM_HKDF_DERIVE, hkdf(24, vec![]).0, base, template);
    let derived = derived.map(|keys| keys.0);
    for (key, length) in [(made(CKM_DES2_KEY_GEN), 16), (made(CKM_DES3_KEY_GEN), 24), (derived, 24)]
    {
        let key = engine.object(session, key.expect("a key is made")).expect("it is there");
        let Ok(Answer::Secret(value)) = key.answer(CKA_VALUE) else { panic!("it is readable") };
        assert_eq!(value.len(), length);
        assert!(value.iter().all(|byte| byte.count_ones() % 2 == 1));
    }
}

#[test]
fn a_public_key_does_not_wrap_what_its_twin_decrypts() {
    refused_by_default(Error::KEY_NOT_WRAPPABLE, |engine, session| {
        let public = vec![row(CKA_MODULUS_BITS, 3072), row(CKA_WRAP, true)];
        let private = vec![row(CKA_DECRYPT, true)];
        let mechanism = CKM_RSA_PKCS_KEY_PAIR_GEN;
        let (by, _) =
            engine.generate_key_pair(session, mechanism, Params::None, public, private)?;
        let key =
            vec![row(CKA_VALUE_LEN, 16), row(CKA_SENSITIVE, true), row(CKA_EXTRACTABLE, true)];
        let key = engine.generate_key(session, CKM_AES_KEY_GEN, Params::None, key)?;
        let params =
            || Params::Oaep { hash: CKM_SHA256, mgf: CKG_MGF1_SHA256, label: Bytes::new() };
        collect(|out| engine.wrap_key(session, CKM_RSA_PKCS_OAEP, params(), by, key, out)).map(drop)
    });
}

#[test]
fn the_names_of_what_legacy_reopens_are_known() {
    let mut policy = Policy::DEFAULT;
    for name in Policy::names() {
        assert!(policy.allow(name), "{name}");
    }
    assert_eq!(policy, Policy::legacy());
    assert!(!policy.allow("everything"));
}

#[test]
fn what_the_key_says_of_being_wrapped_holds_under_every_policy() {
    let (engine, session) = logged_in_under(Policy::legacy());
    let by = wrapper(&engine, session).expect("a key is made");
    let kept = aes(&engine, session, vec![]).expect("a key is made");
    let wrapped = wrap(&engine, session, CKM_AES_KEY_WRAP, by, kept);
    assert_eq!(wrapped, Err(Error::KEY_UNEXTRACTABLE));
    let picky = vec![row(CKA_EXTRACTABLE, true), row(CKA_WRAP_WITH_TRUSTED, true)];
    let picky = aes(&engine, session, picky).expect("a key is made");
    let wrapped = wrap(&engine, session, CKM_AES_KEY_WRAP, by, picky);
    assert_eq!(wrapped, Err(Error::KEY_NOT_WRAPPABLE));
}

/// `docs/policy.md` ends with the tables that the code reads.
#[test]
fn the_book_shows_the_policy_as_it_is() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/policy.md");
    let book = std::fs::read_to_string(path).expect("the page is there");
    let tables = Policy::tables();
    if std::env::var_os("METASLOT_BLESS").is_some() {
        let (before, _) = book.split_once("| use |").unwrap_or((&book, ""));
        std::fs::write(path, format!("{before}{tables}")).expect("the page is written");
        return;
    }
    assert!(book.ends_with(&tables), "run the test with METASLOT_BLESS=1 to write the tables");
}

/// Keys with the exponent 3 exist, and can be brought; none is made.
#[test]
fn small_exponents_are_brought_and_not_made() {
    let (engine, session) = logged_in();
    let mut modulus = [0xc5; 256];
    modulus[255] = 1;
    let brought = |exponent: &[u8]| {
        let template = vec![
            row(CKA_CLASS, CKO_PUBLIC_KEY),
            row(CKA_KEY_TYPE, CKK_RSA),
            row(CKA_MODULUS, &modulus[..]),
            row(CKA_PUBLIC_EXPONENT, exponent),
        ];
        engine.create_object(session, template).map(drop)
    };
    assert_eq!(brought(&[3]), Ok(()));
    assert_eq!(brought(&[1, 0, 1]), Ok(()));
    for exponent in [&[1][..], &[2], &[0], &[1, 0, 0]] {
        assert_eq!(brought(exponent), Err(Error::ATTRIBUTE_VALUE_INVALID));
    }
    let public = vec![row(CKA_MODULUS_BITS, 2048), row(CKA_PUBLIC_EXPONENT, &[3][..])];
    let made =
        engine.generate_key_pair(session, CKM_RSA_PKCS_KEY_PAIR_GEN, Params::None, public, vec![]);
    assert_eq!(made, Err(Error::ATTRIBUTE_VALUE_INVALID));
}

/// What a private key's template makes all its results for, no template of the caller's changes.
#[test]
fn what_is_agreed_on_is_for_what_the_private_key_says() {
    const P256: [u8; 10] = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
    let (engine, session) = logged_in();
    let on = |usage| (usage, row(usage, true).1);
    let imposes = |what| (CKA_DERIVE_TEMPLATE, RawValue::Template(vec![what]));
    let private = vec![imposes(on(CKA_DERIVE)), on(CKA_DERIVE)];
    let (public, mechanism) = (vec![row(CKA_EC_PARAMS, &P256[..])], CKM_EC_KEY_PAIR_GEN);
    let pair = engine.generate_key_pair(session, mechanism, Params::None, public, private);
    let (public, private) = pair.expect("a pair is made");
    let public = engine.object(session, public).expect("it is there");
    let Ok(Answer::Value(Value::Bytes(point))) = public.answer(CKA_EC_POINT) else {
        panic!("a public key has a point")
    };
    let agree = |more: Template| {
        let (shared, public) = (Bytes::new(), Bytes::from_slice(point));
        let params = Params::Ecdh1 { kdf: CKD_NULL, shared, public };
        let mut template = vec![row(CKA_KEY_TYPE, CKK_GENERIC_SECRET)];
        template.extend([row(CKA_SENSITIVE, true), row(CKA_EXTRACTABLE, false)]);
        template.extend(more);
        let agreed = engine.derive_key(session, CKM_ECDH1_DERIVE, params, private, template);
        agreed.map(|keys| keys.0)
    };
    let signs = agree(vec![on(CKA_SIGN)]).expect("it agrees");
    let signed = engine.sign_init(session, CKM_SHA256_HMAC, Params::None, signs);
    assert_eq!(signed, Err(Error::KEY_FUNCTION_NOT_PERMITTED));
    let twin = agree(vec![imposes(on(CKA_SIGN))]);
    assert_eq!(twin, Err(Error::TEMPLATE_INCONSISTENT));
    let (params, template) = hkdf(32, vec![]);
    let base = agree(vec![]).expect("it agrees");
    engine.derive_key(session, CKM_HKDF_DERIVE, params, base, template).expect("it derives");
}

#[test]
fn an_imposed_length_cannot_be_said_otherwise() {
    for policy in [Policy::DEFAULT, Policy::legacy()] {
        let (engine, session) = logged_in_under(policy);
        let imposed = RawValue::Template(vec![row(CKA_VALUE_LEN, 32)]);
        let key =
            vec![row(CKA_VALUE_LEN, 32), row(CKA_DERIVE, true), (CKA_DERIVE_TEMPLATE, imposed)];
        let mechanism = CKM_GENERIC_SECRET_KEY_GEN;
        let base = engine.generate_key(session, mechanism, Params::None, key).expect("it is made");
        for (length, expected) in [(16, Err(Error::TEMPLATE_INCONSISTENT)), (32, Ok(()))] {
            let (params, template) = hkdf(length, vec![]);
            let derived = engine.derive_key(session, CKM_HKDF_DERIVE, params, base, template);
            assert_eq!(derived.map(drop), expected);
        }
    }
}

/// What a new key pair agrees on with itself, whose template hides all results.
fn agreed(engine: &Engine, session: SessionHandle, kdf: u64) -> Result<ObjectHandle> {
    const P256: [u8; 10] = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
    let on = |usage| (usage, row(usage, true).1);
    let hidden = vec![on(CKA_SENSITIVE), row(CKA_EXTRACTABLE, false)];
    let private = vec![(CKA_DERIVE_TEMPLATE, RawValue::Template(hidden)), on(CKA_DERIVE)];
    let (public, mechanism) = (vec![row(CKA_EC_PARAMS, &P256[..])], CKM_EC_KEY_PAIR_GEN);
    let pair = engine.generate_key_pair(session, mechanism, Params::None, public, private)?;
    let public = engine.object(session, pair.0)?;
    let Answer::Value(Value::Bytes(point)) = public.answer(CKA_EC_POINT)? else {
        return Err(Error::GENERAL_ERROR);
    };
    let params = Params::Ecdh1 { kdf, shared: Bytes::new(), public: Bytes::from_slice(point) };
    let length = row(CKA_VALUE_LEN, 32_u64);
    let template = vec![row(CKA_KEY_TYPE, CKK_GENERIC_SECRET), length, on(CKA_DERIVE)];
    engine.derive_key(session, CKM_ECDH1_DERIVE, params, pair.1, template).map(|made| made.0)
}

/// Where no result can be read, none of them computes what another derives.
#[test]
fn what_is_agreed_on_and_always_hidden_is_for_use() {
    refused_by_default(Error::KEY_FUNCTION_NOT_PERMITTED, |engine, session| {
        let base = agreed(engine, session, CKD_NULL)?;
        let (params, template) = hkdf(32, vec![]);
        engine.derive_key(session, CKM_HKDF_DERIVE, params, base, template).map(drop)
    });
}

/// Of two hidden keys one would be the digest of the other, which `C_DigestKey` computes.
#[test]
fn what_is_agreed_on_and_always_hidden_is_not_had_digested_too() {
    refused_by_default(Error::MECHANISM_PARAM_INVALID, |engine, session| {
        agreed(engine, session, CKD_NULL)?;
        agreed(engine, session, CKD_SHA256_KDF).map(drop)
    });
}
